"""Rotate feature pairs: RoPE, whole or partial, along one axis or two, and xPos.

Our pairs are adjacent, (2i, 2i+1), and turn counter-clockwise by +angle. The clockwise
sense is ``apply_rope(x, -angles)``: it scores an offset as ours scores the opposite
one. Values never turn.
"""

import torch
from torch import Tensor

from coursekit import _require


def apply_rope(x: Tensor, angles: Tensor) -> Tensor:
    """Rotate each feature pair of ``x`` by the angle of its position.

    Query and key both turn, so their dot product keeps only the difference of the
    two angles: the score depends on the offset, not on the positions.

    Args:
        x: Queries or keys, (batch, heads, length, head_dim).
        angles: Radians, (length, head_dim / 2), from ``position_angles``; those of a
            batch of positions as (batch, 1, length, head_dim / 2).

    Returns:
        The rotated ``x``, same shape and dtype.

    Raises:
        ValueError: If ``x`` is not floating, head_dim is odd or ``angles`` do not fit.

    Example:
        >>> east = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
        >>> apply_rope(east, torch.tensor([[0.0], [1.0]]))
        tensor([[1.0000, 0.0000],
                [0.5403, 0.8415]])

    Source: Su et al. 2021, RoFormer, section 3.4.2, arXiv:2104.09864.
    """
    _require_fit("angles", angles, x)
    return _turn(x, rotations(angles, x.dtype))


def rotations(angles: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Write each angle as the complex number that turns a pair by it.

    ``apply_rope`` makes them in each call. Where query and key, or several layers,
    share their positions, make them once and call ``rotate_pairs``.

    Args: ``angles`` in radians, best float64: cos and sin are as exact as they are;
        the ``dtype`` of query and key.
    Returns: cos + i·sin, same shape, complex64, or complex128 for float64.
    """
    angles = angles.to(torch.promote_types(angles.dtype, torch.float32))
    wide = torch.promote_types(dtype, torch.complex64)
    return torch.polar(torch.ones_like(angles), angles).to(wide)


def rotate_pairs(x: Tensor, turns: Tensor) -> Tensor:
    """Multiply each pair (a, b) of ``x``, read as a + i·b, by its rotation.

    (a + i·b)(cos + i·sin) = (a·cos - b·sin) + i·(a·sin + b·cos): the rotation by a
    matrix, in one pass over memory.

    Args: ``x`` as in ``apply_rope``, turned in float32 if it is half precision;
        ``turns`` from ``rotations``, also scaled, as xPos and YaRN do.
    Returns: The rotated ``x``, same shape and dtype.
    """
    _require_fit("turns", turns, x)
    return _turn(x, turns)


def apply_partial_rope(x: Tensor, angles: Tensor) -> Tensor:
    """Rotate the first features and pass on the others, which then know no position.

    Args: ``x`` as in ``apply_rope``; ``angles`` with r / 2 columns to turn r features,
        made by ``position_angles`` with r, not head_dim, as its ``dim``.
    Returns: ``x`` with its first r features rotated.

    Raises:
        ValueError: If r is above head_dim, or as ``apply_rope``.

    Source: Black et al. 2022, GPT-NeoX-20B, section 2.1.1, arXiv:2204.06745.
    """
    turning = 2 * angles.shape[-1]
    if turning > x.shape[-1]:
        raise ValueError(
            f"angles turn {turning} features, but head_dim is only {x.shape[-1]}. Use "
            f"at most {x.shape[-1] // 2} angles for each position."
        )
    rotated = apply_rope(x[..., :turning], angles)
    return torch.cat((rotated, x[..., turning:]), dim=-1)


def apply_two_axis_rope(x: Tensor, row_angles: Tensor, column_angles: Tensor) -> Tensor:
    """Rotate the first half of the features by the row, the second by the column.

    The score of two patches of an image then depends on how far apart they are along
    each axis, and not on where they lie.

    Args: ``x`` as in ``apply_rope``, its patches in any order; the angles of the row
        and of the column of each, (length, head_dim / 4), or four axes.
    Returns: The rotated ``x``, same shape and dtype.

    Raises:
        ValueError: If the two differ in shape, or as ``apply_rope``.

    Source: Heo et al. 2024, RoPE for ViT, section 3, arXiv:2403.13298.
    """
    _require.ends_with("column_angles", column_angles, tuple(row_angles.shape))
    return apply_rope(x, torch.cat((row_angles, column_angles), dim=-1))


def xpos_scales(positions: Tensor, dim: int, scale_base: float = 512.0) -> Tensor:
    """Compute by how much xPos shrinks the query of each position.

    The query turns by ``rotations(angles) * scales``, the key by ``/ scales``, so a key
    n back is damped by ζ^(n / scale_base), with one ζ < 1 for each pair. A key ahead
    grows: use it under a causal mask. A common shift of the positions cancels; centre
    them, since past 70 · scale_base (float16: 8 · scale_base) the factors overflow.

    Args: ``positions`` and ``dim`` as in ``position_angles``; ``scale_base``, over how
        many positions a pair is damped by its ζ.
    Returns: (…, length, dim / 2), float64 (float32 on a device without it).

    Raises:
        ValueError: If ``dim`` is odd or another argument out of range.

    Source: Sun et al. 2022, section 3.2, with γ = 0.4, arXiv:2212.10554.
    """
    _require.positions("positions", positions)
    _require.even("dim", dim)
    _require.positive("scale_base", scale_base)
    wide = torch.float32 if positions.device.type == "mps" else torch.float64
    pair = torch.arange(0, dim, 2, dtype=wide, device=positions.device)
    damping = (pair + 0.4 * dim) / (1.4 * dim)
    return damping ** (positions.to(wide).unsqueeze(-1) / scale_base)


def adjacent_from_halves(head_dim: int) -> Tensor:
    """Index from the other pairing, feature i with i + head_dim / 2, to ours.

    ``adjacent = halves[..., index]``, and ``index.argsort()`` leads back. If the rows
    of W_q and W_k move so, head by head, each layout has the scores of the other:
    ``weight.unflatten(0, (heads, -1))[:, index].flatten(0, 1)``. W_v stays.

    Args: ``head_dim``, the number of features that turn, even.
    Returns: (head_dim,) int64.

    Example:
        >>> adjacent_from_halves(6)
        tensor([0, 3, 1, 4, 2, 5])
    """
    _require.even("head_dim", head_dim)
    return torch.arange(head_dim).unflatten(0, (2, -1)).T.flatten()


def _turn(x: Tensor, turns: Tensor) -> Tensor:
    """Multiply the pairs of ``x`` by ``turns`` that fit."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    *steps, last = wide.stride()
    start = 0 if torch.compiler.is_compiling() else wide.storage_offset()
    if last != 1 or any(step % 2 for step in (start, *steps)):
        wide = wide.clone(memory_format=torch.contiguous_format)  # else no complex view
    pairs = torch.view_as_complex(wide.unflatten(-1, (-1, 2)))
    if wide.dtype == x.dtype or x.requires_grad:
        pairs = pairs * turns
    else:
        pairs *= turns  # in the widened copy, which is ours: no second one
    return torch.view_as_real(pairs).flatten(-2).to(x.dtype)


def _require_fit(name: str, table: Tensor, x: Tensor) -> None:
    """Refuse a ``table`` that would broadcast to something other than positions."""
    if not x.is_floating_point():
        raise ValueError(f"x is {x.dtype}, but turning makes fractions. Use x.float().")
    _require.even("head_dim", x.shape[-1])
    wanted = (*x.shape[-2:-1], x.shape[-1] // 2)
    fits = table.shape == wanted
    if table.dim() == x.dim() and table.shape[-2:] == wanted:
        rows = zip(table.shape[:-2], x.shape[:-2], strict=True)
        fits = all(have in (1, want) for have, want in rows)
    if not fits:
        raise ValueError(
            f"{name} has shape {tuple(table.shape)}, but x is {tuple(x.shape)}, so it "
            f"must be {wanted}, one row for each position of x, or have {x.dim()} axes "
            f"that end so and fit the others of x. For a batch of positions use "
            f"{name}[:, None]: without it batch rows would meet heads."
        )
