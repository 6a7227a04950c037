"""Each position method as one class that opens one door."""

from collections.abc import Callable

import torch
from torch import Tensor

from coursekit import _require
from coursekit.doors import NoPosition, beside
from coursekit.learned import LearnedPositions
from coursekit.position_bias import T5, Alibi, Kerple, Shaw
from coursekit.rope import rotate_pairs, rotations, xpos_scales
from coursekit.sinusoidal import position_angles, sinusoidal_encoding


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
        positions = beside(x, positions)
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

    ``frequencies`` and ``attention_factor`` come from ``context_extension``, to read
    with a trained model what is longer than its training.

    Source: Su et al. 2021, RoFormer, section 3.2.2, arXiv:2104.09864.
    """

    def __init__(
        self,
        base: float = 10_000.0,
        *,
        frequencies: Tensor | None = None,
        attention_factor: float = 1.0,
    ) -> None:
        """Keep the base or the frequencies, (head_dim / 2,); refuse what is not > 0."""
        super().__init__()
        _require.positive("base", base)
        _require.positive("attention_factor", attention_factor)
        if frequencies is not None:
            _require.ends_with("frequencies", frequencies, (frequencies.numel(),))
        self.base = base
        self.frequencies = frequencies  # no buffer: ``.to(dtype)`` must not round it
        self.attention_factor = attention_factor

    def turns(self, positions, num_heads, head_dim, dtype) -> Tensor:
        """Turn query and key alike."""
        if self.frequencies is None:
            angles = position_angles(positions, head_dim, self.base)
        else:
            _require.ends_with("frequencies", self.frequencies, (head_dim // 2,))
            one_each = position_angles(positions, 1)  # as exact as the device can
            angles = one_each * self.frequencies.to(one_each)
        turns = rotations(angles.unsqueeze(1) if angles.dim() == 3 else angles, dtype)
        factor = self.attention_factor
        return turns if factor == 1 else turns * factor

    def rotate(self, x: Tensor, positions: Tensor) -> Tensor:
        """Turn ``x``, (batch, heads, length, head_dim), by its positions."""
        positions = positions.to(x.device)
        return rotate_pairs(x, Rope.turns(self, positions, 1, x.shape[-1], x.dtype))


class XPos(NoPosition):
    """Door 2: rotate as RoPE, and damp each pair with the distance looked back.

    Query and key need opposite scales, so ``rotate`` alone, which cannot tell them
    apart, turns a query. For a decoder: a key ahead of its query would grow.

    Source: Sun et al. 2022, section 3.2, arXiv:2212.10554.
    """

    def __init__(self, base: float = 10_000.0, *, scale_base: float = 512.0) -> None:
        """Keep both; raise ValueError if one is not above 0."""
        super().__init__()
        _require.positive("scale_base", scale_base)
        self.rope, self.scale_base = Rope(base), scale_base

    def turns(self, positions, num_heads, head_dim, dtype) -> Tensor:
        """Shrink the query by what the key of its position grows."""
        sides = self._sides(positions, head_dim, dtype)
        return torch.cat([s.expand(-1, num_heads, -1, -1) for s in sides], dim=1)

    def rotate(self, x: Tensor, positions: Tensor) -> Tensor:
        """Turn and shrink queries, (batch, heads, length, head_dim)."""
        positions = positions.to(x.device)
        return rotate_pairs(x, self._sides(positions, x.shape[-1], x.dtype)[0])

    def _sides(self, positions, head_dim, dtype) -> tuple[Tensor, Tensor]:
        """Make the turns of one head of the query, and of the key, four axes each."""
        positions = positions if positions.dim() == 2 else positions.unsqueeze(0)
        turns = self.rope.turns(positions, 1, head_dim, dtype)
        scales = xpos_scales(positions, head_dim, self.scale_base).unsqueeze(1)
        scales = scales.to(turns.real.dtype)
        return turns * scales, turns / scales


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


METHODS: dict[str, Callable[..., NoPosition]] = {
    "none": lambda *, d_model, num_heads, max_length: NoPosition(),
    "sinusoidal": lambda *, d_model, num_heads, max_length: Sinusoidal(),
    "learned": lambda *, d_model, num_heads, max_length: Learned(max_length, d_model),
    "shaw": lambda *, d_model, num_heads, max_length: Shaw(d_model // num_heads),
    "t5": lambda *, d_model, num_heads, max_length: T5(num_heads, bidirectional=False),
    "rope": lambda *, d_model, num_heads, max_length: Rope(),
    "alibi": lambda *, d_model, num_heads, max_length: Alibi(num_heads),
    "kerple": lambda *, d_model, num_heads, max_length: Kerple(num_heads),
    "xpos": lambda *, d_model, num_heads, max_length: XPos(),
}
"""Each method by name, as a decoder wants it: call with the three sizes by name."""
