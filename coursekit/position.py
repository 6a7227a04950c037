"""The three doors, and each method as one class that opens one door."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from coursekit import _require
from coursekit.alibi import alibi_bias
from coursekit.learned import LearnedPositions
from coursekit.relative import relative_positions, relative_scores, t5_bias
from coursekit.rope import apply_rope
from coursekit.sinusoidal import position_angles, sinusoidal_encoding


class NoPosition(nn.Module):
    """Open no door; each method is a child of this class that overrides one."""

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

    It is computed at every call: never learned, saved or rounded by ``.to(dtype)``.

    Source: Vaswani et al. 2017, section 3.5, arXiv:1706.03762.
    """

    def __init__(self, base: float = 10_000.0) -> None:
        """Keep the base; raise ValueError if it is not above 0."""
        super().__init__()
        _require.positive("base", base)
        self.base = base

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        """Add the encoding of ``positions`` to ``x``, in the dtype of ``x``."""
        _require.a_position_each(positions, x)
        positions = _on(x, positions)
        code = sinusoidal_encoding(positions, x.shape[-1], self.base)
        return x + code.to(x.dtype)


class Learned(NoPosition):
    """Door 1: add the trained row of each position, a ValueError past the last."""

    def __init__(self, max_length: int, d_model: int) -> None:
        """Make the table; raise ValueError for sizes below 1."""
        super().__init__()
        self.rows = LearnedPositions(max_length, d_model)

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        """Add the rows of ``positions`` to ``x``, in the dtype of ``x``."""
        _require.a_position_each(positions, x)
        return x + self.rows(positions).to(x.dtype)


class Rope(NoPosition):
    """Door 2: turn each feature pair of query and key by the angle of its position.

    Source: Su et al. 2021, RoFormer, section 3.2.2, arXiv:2104.09864.
    """

    def __init__(self, base: float = 10_000.0) -> None:
        """Keep the base; raise ValueError if it is not above 0."""
        super().__init__()
        _require.positive("base", base)
        self.base = base

    def rotate(self, x: Tensor, positions: Tensor) -> Tensor:
        """Turn ``x``, (batch, heads, length, head_dim), by its positions."""
        angles = position_angles(positions.to(x.device), x.shape[-1], self.base)
        return apply_rope(x, angles.unsqueeze(1) if angles.dim() == 3 else angles)


class Shaw(NoPosition):
    """Door 3: score each query against a trained row for each clipped offset.

    Offsets farther than ``clip`` share the last row of their side.

    Source: Shaw et al. 2018, section 3.2, arXiv:1803.02155.
    """

    def __init__(self, head_dim: int, clip: int = 16) -> None:
        """Make the table; raise ValueError for sizes below 1."""
        super().__init__()
        _require.at_least("head_dim", head_dim)
        _require.at_least("clip", clip)
        self.table = nn.Parameter(torch.empty(2 * clip + 1, head_dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the rows small, so that training starts near no position at all."""
        nn.init.normal_(self.table, std=0.02)

    def bias(self, query: Tensor, query_positions: Tensor, key_positions: Tensor):
        """Return query times row, scaled like the scores."""
        offsets = relative_positions(query_positions, key_positions)
        return relative_scores(query, self.table, offsets)


class T5(NoPosition):
    """Door 3: add one trained number for each head and bucket of offsets.

    ``options`` go to ``t5_bucket``: max_distance, and bidirectional=False for a
    decoder, which needs no buckets for the future.

    Source: Raffel et al. 2020, section 2.1, arXiv:1910.10683.
    """

    def __init__(self, num_heads: int, num_buckets: int = 32, **options) -> None:
        """Make the table; raise ValueError for sizes below 1."""
        super().__init__()
        _require.at_least("num_heads", num_heads)
        _require.at_least("num_buckets", num_buckets)
        self.table = nn.Parameter(torch.empty(num_buckets, num_heads))
        self.options = options
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start from no bias at all."""
        nn.init.zeros_(self.table)

    def bias(self, query: Tensor, query_positions: Tensor, key_positions: Tensor):
        """Return the bias of every pair, in the dtype of ``query``."""
        places = query_positions, key_positions
        return t5_bias(self.table, *places, **self.options).to(query.dtype)


class Alibi(NoPosition):
    """Door 3: subtract a penalty that grows with distance, at each head's own rate.

    Source: Press et al. 2022, section 3, arXiv:2108.12409.
    """

    def __init__(self, num_heads: int) -> None:
        """Keep the number of heads; raise ValueError if it is below 1."""
        super().__init__()
        _require.at_least("num_heads", num_heads)
        self.num_heads = num_heads

    def bias(self, query: Tensor, query_positions: Tensor, key_positions: Tensor):
        """Return minus slope times distance, in the dtype of ``query``."""
        places = _on(query, query_positions), _on(query, key_positions)
        return alibi_bias(self.num_heads, *places).to(query.dtype)


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
    "learned": lambda *, d_model, num_heads, max_length: Learned(max_length, d_model),
    "shaw": lambda *, d_model, num_heads, max_length: Shaw(d_model // num_heads),
    "t5": lambda *, d_model, num_heads, max_length: T5(num_heads, bidirectional=False),
    "rope": lambda *, d_model, num_heads, max_length: Rope(),
    "alibi": lambda *, d_model, num_heads, max_length: Alibi(num_heads),
}
"""Each method by name, as a decoder wants it: call with the three sizes by name."""
