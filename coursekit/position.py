"""The three doors, and each method as one class that opens one door."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from coursekit import _require
from coursekit.sinusoidal import sinusoidal_encoding


class NoPosition(nn.Module):
    """Open no door: the model sees a set of tokens, or under a causal mask a bag.

    Each method is a child of this class that overrides exactly one door, so any of
    them can be handed to the walk and to the transformer.
    """

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        """Pass door 1: change embeddings, (batch, length, d_model)."""
        return x

    def rotate(self, x: Tensor, positions: Tensor) -> Tensor:
        """Pass door 2: change queries or keys, (batch, heads, length, head_dim)."""
        return x

    def bias(
        self, query: Tensor, query_positions: Tensor, key_positions: Tensor
    ) -> Tensor | None:
        """Pass door 3: what to add to scores, (batch, heads, query, key), or None."""
        return None


class Sinusoidal(NoPosition):
    """Door 1: add the code of each position to its embedding.

    The table is computed from the positions at every call: nothing of it is learned,
    stored in a checkpoint, or rounded by ``.to(dtype)``.

    Args:
        base: Ratio of the wavelengths over the whole width.

    Source: Vaswani et al. 2017, section 3.5, arXiv:1706.03762.
    """

    def __init__(self, base: float = 10_000.0) -> None:
        """Keep the base; raise ValueError if it is not above 0."""
        super().__init__()
        _require.positive("base", base)
        self.base = base

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        """Add the encoding of ``positions`` to ``x``, in the dtype of ``x``."""
        positions = _on(x, positions)
        code = sinusoidal_encoding(positions, x.shape[-1], self.base)
        return x + code.to(x.dtype)


def positions_from_mask(mask: Tensor) -> Tensor:
    """Count the real tokens of each row, so that padding takes no position.

    Args:
        mask: (batch, length) bool, True = a real token; padding on either side.

    Returns:
        (batch, length) int64: 0, 1, 2, … over the real tokens; padding has 0.

    Raises:
        ValueError: If ``mask`` is not boolean with two axes.

    Example:
        >>> positions_from_mask(torch.tensor([[False, False, True, True, True]]))
        tensor([[0, 0, 0, 1, 2]])
    """
    if mask.dim() != 2 or mask.dtype != torch.bool:
        raise ValueError(
            f"mask is {tuple(mask.shape)} {mask.dtype}, but it must be (batch, length) "
            f"and boolean, so that a 0 or 1 cannot be taken for a position. Use "
            f"mask.bool(), and mask[None] for one row."
        )
    return (mask.cumsum(-1) - 1).clamp(min=0).masked_fill(~mask, 0)


def _on(x: Tensor, positions: Tensor) -> Tensor:
    """Move positions beside ``x``, as float64 where ``x`` is, for a code as fine."""
    positions = positions.to(x.device)
    return positions.to(x.dtype) if x.dtype == torch.float64 else positions


METHODS: dict[str, Callable[..., NoPosition]] = {
    "none": lambda *, d_model, num_heads, max_length: NoPosition(),
    "sinusoidal": lambda *, d_model, num_heads, max_length: Sinusoidal(),
}
"""Each method by name; call with ``d_model``, ``num_heads`` and ``max_length``."""
