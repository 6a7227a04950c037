"""Two ways to attend: every step returned, or torch's own kernel."""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from coursekit.attention import AttentionSteps, attention, causal_mask


class Way(NamedTuple):
    """How to attend: ``attend(query, key, value, *join(bias, mask, places))``.

    What ``join`` returns serves all layers that have one bias. ``places`` are the
    positions of queries and keys; ``mask`` is None for one document from the start.
    """

    join: Callable
    attend: Callable


def explicit(found: list[AttentionSteps]) -> Way:
    """Attend step by step, and add the steps of each layer to a list.

    Args:
        found: The list to add to.

    Returns:
        The way.
    """

    def _attend(query, key, value, bias, mask):
        found.append(attention(query, key, value, bias=bias, mask=mask))
        return found[-1].output

    return Way(_apart, _attend)


def _apart(bias, mask, places) -> tuple[Tensor | None, Tensor]:
    """Keep bias and mask apart, and make the causal mask if there is none."""
    return bias, causal_mask(*places) if mask is None else mask


def _joined(bias, mask, places) -> tuple[Tensor | None, bool]:
    """Lay the mask into the bias, and say whether the kernel is to mask the future."""
    several = places[0].shape[-1] > 1
    if bias is None:
        return mask, mask is None and several
    if mask is None and several:
        mask = causal_mask(*places)
    bias = bias if mask is None else bias.masked_fill(~mask, float("-inf"))
    return bias[None] if bias.dim() == 3 else bias, False  # of three axes is slower


def _kernel(query, key, value, extra, causal) -> Tensor:
    """Attend with torch's own kernel, without a mask tensor where it can."""
    return scaled_dot_product_attention(query, key, value, extra, is_causal=causal)


FAST = Way(_joined, _kernel)
