"""Offsets, key minus query, and what hangs on them: Shaw's rows and T5's buckets."""

import torch
from torch import Tensor

from coursekit import _require


def relative_positions(query_positions: Tensor, key_positions: Tensor) -> Tensor:
    """Subtract the position of each query from that of each key: the past is below 0.

    Args:
        query_positions: (query,) or (batch, query), any real numbers.
        key_positions: (key,) or (batch, key).

    Returns:
        (query, key), or (batch, 1, query, key) where a batch was given; int64 for
        whole numbers, else float32 or wider.

    Raises:
        ValueError: If positions are not one or two axes of real numbers.
    """
    _require.positions("query_positions", query_positions)
    _require.positions("key_positions", key_positions)
    both = torch.promote_types(query_positions.dtype, key_positions.dtype)
    least = torch.float32 if both.is_floating_point else torch.int64
    wide = torch.promote_types(both, least)  # uint8 has no -1, bfloat16 no 257
    key = key_positions.to(wide).unsqueeze(-2)
    offsets = key - query_positions.to(wide).unsqueeze(-1)
    return offsets.unsqueeze(1) if offsets.dim() == 3 else offsets


def clipped_index(relative_position: Tensor, clip: int) -> Tensor:
    """Number the offsets from -clip to clip; farther ones count as the ends.

    Args: ``relative_position``, offsets of any shape, of which a fraction is dropped
        (towards 0); ``clip``, the largest distance with a row of its own.
    Returns: int64 from 0 to 2·clip, same shape; offset 0 is ``clip``.

    Raises:
        ValueError: If ``clip`` is no whole number from 0 on.

    Example:
        >>> clipped_index(torch.tensor([-9, -1, 0, 1, 2, 3]), clip=2)
        tensor([0, 1, 2, 3, 4, 4])

    Source: Shaw et al. 2018, section 3.2, arXiv:1803.02155.
    """
    _require.at_least("clip", clip, 0)
    return relative_position.clamp(-clip, clip).long().add_(clip)


def relative_scores(query: Tensor, table: Tensor, relative_position: Tensor) -> Tensor:
    """Score each query against the row of its offset to each key (Shaw, keys).

    A query meets each row once and the products are then picked by offset, so there
    is no (query, key, head_dim) tensor. They have 1/√head_dim and add to scores.

    Args:
        query: (batch, heads, query, head_dim).
        table: (2·clip + 1, head_dim), row 0 for offset -clip, shared by the heads.
        relative_position: (query, key) or (batch, 1, query, key), key minus query.

    Returns:
        (batch, heads, query, key), in the dtype of ``query``.

    Raises:
        ValueError: If shapes do not fit or the rows are not an odd number.

    Source: Shaw et al. 2018, equations 4 and 5, arXiv:1803.02155.
    """
    _require.ends_with("table", table, (len(table), query.shape[-1]))
    per_row = query @ table.T.to(query.dtype) * query.shape[-1] ** -0.5
    return per_row.gather(-1, _row_index(relative_position, per_row))


def relative_values(
    weights: Tensor, table: Tensor, relative_position: Tensor
) -> Tensor:
    """Average the rows of the offsets, to be added to the output (Shaw, values).

    Args: ``weights``, (batch, heads, query, key); ``table``, ``relative_position`` and
        the errors as in ``relative_scores``.
    Returns: (batch, heads, query, head_dim), in the dtype of ``weights``.

    Source: Shaw et al. 2018, equation 3, arXiv:1803.02155.
    """
    _require.ends_with("relative_position", relative_position, weights.shape[-2:])
    wide = torch.promote_types(weights.dtype, torch.float32)  # round once, last
    per_row = weights.new_zeros(*weights.shape[:-1], len(table), dtype=wide)
    index = _row_index(relative_position, per_row)
    per_row = per_row.scatter_add(-1, index, weights.to(wide))
    return (per_row @ table.to(wide)).to(weights.dtype)


def t5_bucket(
    relative_position: Tensor,
    num_buckets: int = 32,
    max_distance: int = 128,
    *,
    bidirectional: bool = True,
) -> Tensor:
    """Sort offsets into buckets: near ones exact, far ones in ever wider steps.

    The edges are exact: no logarithm is rounded. The last bucket begins before
    ``max_distance``: by default at 91, and at 113 in the causal form.

    Args: ``relative_position``, offsets of any shape; ``num_buckets`` of both
        directions together (an odd one leaves the last unused); ``max_distance``, from
        where on distances are sure to share the last bucket; ``bidirectional`` gives
        the future the upper half, else it shares bucket 0.
    Returns: int64, same shape.

    Raises:
        ValueError: If buckets are too few or ``max_distance`` is among the exact ones.

    Source: Raffel et al. 2020, section 2.1, arXiv:1910.10683.
    """
    edges = _t5_edges(num_buckets, max_distance, 2 if bidirectional else 1)
    offset = clipped_index(relative_position, max_distance) - max_distance
    distance = offset.abs() if bidirectional else -offset.clamp(max=0)
    bucket = torch.bucketize(distance, torch.tensor(edges).to(distance), right=True)
    return bucket + (offset > 0) * (num_buckets // 2) if bidirectional else bucket


def t5_bias(
    table: Tensor,
    query_positions: Tensor,
    key_positions: Tensor,
    *,
    max_distance: int = 128,
    bidirectional: bool = True,
) -> Tensor:
    """Look up T5's bias once for each offset, then lay it out over all pairs.

    T5 scores carry no 1/√head_dim: call ``attention`` with ``scale=1``.

    Args: ``table``, (num_buckets, heads), as T5 stores it; positions as in
        ``relative_positions``; options, and what is refused, as in ``t5_bucket``.
    Returns: (heads, query, key), or (batch, heads, query, key) for a batch.
    """
    _require.at_least("max_distance", max_distance)
    if _is_run(query_positions) and _is_run(key_positions):
        first = int(key_positions[0]) - int(query_positions[-1])
        last = int(key_positions[-1]) - int(query_positions[0])
        offsets = torch.arange(first, last + 1, device=table.device)
        bucket = t5_bucket(
            offsets, len(table), max_distance, bidirectional=bidirectional
        )
        # Each query has a window on this row of values, the last query the first one.
        return table[bucket].T.unfold(1, len(key_positions), 1).flip(1)
    near = torch.arange(-max_distance, max_distance + 1, device=table.device)
    bucket = t5_bucket(near, len(table), max_distance, bidirectional=bidirectional)
    values = table[bucket].T.contiguous()  # (heads, 2·max_distance + 1)
    offsets = relative_positions(query_positions, key_positions)
    index = clipped_index(offsets, max_distance)
    bias = values.index_select(1, index.flatten()).unflatten(1, index.shape)
    return bias.squeeze(2).transpose(0, 1) if index.dim() == 4 else bias


def _is_run(positions: Tensor) -> bool:
    """Tell whether positions count up by one, where looking costs no wait."""
    if not isinstance(positions, Tensor) or torch.compiler.is_compiling():
        return False
    counts = positions.dtype in (torch.int64, torch.int32) and positions.dim() == 1
    there = counts and positions.device.type == "cpu" and len(positions) > 0
    return there and bool((positions.diff() == 1).all())


def _row_index(relative_position: Tensor, per_row: Tensor) -> Tensor:
    """Number the offsets for each batch entry, head and query of ``per_row``."""
    *batch, heads, queries, rows = per_row.shape
    found, keys = tuple(relative_position.shape), relative_position.shape[-1]
    fits = (queries, keys), (*batch, 1, queries, keys), (1, 1, queries, keys)
    if found not in fits or rows % 2 == 0:
        raise ValueError(
            f"relative_position is {found} and there are {rows} rows, but they must be "
            f"{fits[0]} or {fits[1]} and an odd number, a row for each offset from "
            f"-clip to clip. Use relative_positions and {rows // 2 * 2 + 1} rows."
        )
    return clipped_index(relative_position, rows // 2).expand(*batch, heads, -1, -1)


def _t5_edges(num_buckets: int, max_distance: int, ways: int) -> list[int]:
    """Find the first distance of each bucket after bucket 0, in whole numbers."""
    _require.at_least("num_buckets", num_buckets, 2 * ways)
    exact = num_buckets // ways // 2
    steps = num_buckets // ways - exact
    _require.at_least("max_distance", max_distance, exact + 1)
    edges = list(range(1, exact + 1))
    for step in range(1, steps):
        power = exact ** (steps - step) * max_distance**step
        edge = int(exact * (max_distance / exact) ** (step / steps)) - 1  # from below
        while edge**steps < power:
            edge += 1
        edges.append(edge)
    return edges
