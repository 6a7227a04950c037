"""Frequencies, angles, the encoding of 2017 and the matrix that shifts it."""

import torch
from torch import Tensor

from coursekit import _require


def pair_frequencies(dim: int, base: float = 10_000.0) -> Tensor:
    """Compute how fast each feature pair turns: base^(-2i / dim) for pair i.

    Args:
        dim: Number of features, d_model or head_dim. An odd one keeps its true value
            in the exponent, and its last feature has a frequency of its own.
        base: Ratio of the wavelengths over the whole width.

    Returns:
        Radians per position, (dim / 2,) float64, falling from 1; an odd ``dim`` is
        rounded up.

    Raises:
        ValueError: If ``dim`` is no whole number above 0 or ``base`` not above 0.

    Example:
        >>> pair_frequencies(4)
        tensor([1.0000, 0.0100], dtype=torch.float64)

    Source: Vaswani et al. 2017, section 3.5, arXiv:1706.03762.
    """
    _require.at_least("dim", dim)
    _require.positive("base", base)
    return float(base) ** (torch.arange(0, dim, 2, dtype=torch.float64) / -dim)


def position_angles(positions: Tensor, dim: int, base: float = 10_000.0) -> Tensor:
    """Multiply each position by each frequency.

    The product is made in float64 whatever the dtype of the model: rounded to
    float32 an angle is off by 2.5e-4 at position 5,000, and in bfloat16 it is lost.

    Args:
        positions: (length,) or (batch, length), any real numbers in any order.
        dim: Number of features, d_model or head_dim.
        base: Ratio of the wavelengths over the whole width.

    Returns:
        Radians, (length, dim / 2) or (batch, length, dim / 2), float64 (float32 on a
        device that has no float64).

    Raises:
        ValueError: If ``positions``, ``dim`` or ``base`` is out of range.
    """
    _require.positions("positions", positions)
    wide = torch.float32 if positions.device.type == "mps" else torch.float64
    frequencies = pair_frequencies(dim, base).to(positions.device, wide)
    return positions.unsqueeze(-1) * frequencies  # promoted, so in float64


def sinusoidal_encoding(
    positions: Tensor, d_model: int, base: float = 10_000.0
) -> Tensor:
    """Give each position the sines and cosines of its angles.

    Even columns hold the sine of pair i, odd columns its cosine; each pair is the
    hand of a clock with its own speed. An odd ``d_model`` ends with a sine.

    Args:
        positions: (length,) or (batch, length), any real numbers in any order.
        d_model: Number of features.
        base: Ratio of the wavelengths over the whole width.

    Returns:
        (length, d_model) or (batch, length, d_model): float32, or float64 where
        ``positions`` are float64.

    Raises:
        ValueError: If ``positions``, ``d_model`` or ``base`` is out of range.

    Example:
        >>> sinusoidal_encoding(torch.arange(2), 4)
        tensor([[0.0000, 1.0000, 0.0000, 1.0000],
                [0.8415, 0.5403, 0.0100, 0.9999]])

    Source: Vaswani et al. 2017, section 3.5, arXiv:1706.03762.
    """
    angles = position_angles(positions, d_model, base)
    table = torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)
    wide = torch.promote_types(torch.float32, _float_dtype(positions))
    return table[..., :d_model].to(wide)


def shift_matrix(
    offset: float | Tensor, d_model: int, base: float = 10_000.0
) -> Tensor:
    """Build the matrix that moves every encoding by ``offset`` positions.

    ``encoding(p + offset) == shift_matrix(offset) @ encoding(p)`` for every p: each
    pair is turned by offset times its frequency, so the matrix is a rotation.

    Args:
        offset: How far to move, in positions; any real number.
        d_model: Number of features, even.
        base: Ratio of the wavelengths over the whole width.

    Returns:
        (d_model, d_model): float32, or float64 for a float64 tensor ``offset``.

    Raises:
        ValueError: If ``d_model`` is odd, since a lone sine cannot be rotated, or
            there is more than one offset.

    Source: Vaswani et al. 2017, section 3.5, arXiv:1706.03762.
    """
    _require.even("d_model", d_model)
    if isinstance(offset, Tensor) and offset.numel() != 1:
        raise ValueError(
            f"offset has shape {tuple(offset.shape)}, but one matrix moves by one "
            f"offset. Call shift_matrix for each, or use offset[i]."
        )
    wide = torch.float32
    if isinstance(offset, Tensor):
        wide = torch.promote_types(wide, _float_dtype(offset))
    else:
        offset = torch.tensor(offset, dtype=torch.float64)
    angles = position_angles(offset.reshape(1), d_model, base)[0]
    cos, sin = angles.cos(), angles.sin()
    blocks = torch.stack((cos, sin, -sin, cos), dim=-1).unflatten(-1, (2, 2))
    return torch.block_diag(*blocks).to(wide)


def _float_dtype(tensor: Tensor) -> torch.dtype:
    """Return the dtype of a floating tensor, and float32 for whole numbers."""
    return tensor.dtype if tensor.is_floating_point() else torch.float32
