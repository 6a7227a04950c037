"""The numbers behind the claims."""

from collections.abc import Callable

import torch
from torch import Tensor


def permutation_gap(
    function: Callable[[Tensor], Tensor], x: Tensor, order: Tensor
) -> float:
    """Compare reordering before a function with reordering after it.

    Args:
        function: From (..., length, features) to (..., length, anything).
        x: (..., length, features).
        order: A permutation of the positions, (length,) int64.

    Returns:
        The largest absolute difference of ``function(x[order])`` and
        ``function(x)[order]``; 0 if reordering the input only reorders the output.

    Raises:
        ValueError: If ``order`` is no permutation of the length of ``x``.

    Source: Lee et al. 2019, Set Transformer, definition 1, arXiv:1810.00825.
    """
    length = x.shape[-2]
    found = order.cpu().sort().values
    if order.dtype != torch.int64 or not torch.equal(found, torch.arange(length)):
        raise ValueError(
            f"order is {order.tolist()}, but it must hold each position from 0 to "
            f"{length - 1} once, so that nothing is lost. Use torch.randperm({length})."
        )
    reordered_first, plain = function(x[..., order, :]), function(x)
    if plain.dim() != x.dim() or plain.shape[-2] != length:
        raise ValueError(
            f"function made {tuple(plain.shape)} of {tuple(x.shape)}, but it must keep "
            f"the length axis, or there is nothing to reorder. Use keepdim=True."
        )
    reordered_last = plain[..., order, :]
    return (reordered_first - reordered_last).abs().max().item()


def mean_by_offset(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Average all scores that share an offset, key minus query.

    Args:
        scores: (..., query, key), positions counted from 0 on both axes.

    Returns:
        The offsets from 1 - query to key - 1, int64, and for each the mean over its
        diagonal and all leading axes, in the dtype of ``scores``.

    Raises:
        ValueError: If there are fewer than two axes or values that are not finite.
    """
    diagonals = _diagonals(scores)
    means = torch.stack([diagonal.mean() for diagonal in diagonals])
    return torch.arange(1 - scores.shape[-2], scores.shape[-1]), means


def offset_spread(scores: Tensor) -> float:
    """Measure how much scores of the same offset differ within one matrix.

    Args:
        scores: (..., query, key), positions counted from 0 on both axes.

    Returns:
        The largest difference along any diagonal of any matrix; 0 if the score
        depends on key minus query alone.

    Raises:
        ValueError: If there are fewer than two axes or values that are not finite.
    """
    diagonals = _diagonals(scores)
    return max((d.amax(-1) - d.amin(-1)).max().item() for d in diagonals)


def similarity(encoding: Tensor) -> Tensor:
    """Compute the cosine between every two rows.

    Args:
        encoding: (length, d_model).

    Returns:
        (length, length), from -1 to 1; a zero row has 0 with every row.

    Raises:
        ValueError: If ``encoding`` has not two axes.
    """
    if encoding.dim() != 2:
        raise ValueError(
            f"encoding has shape {tuple(encoding.shape)}, but rows are compared with "
            f"rows, so it must be (length, d_model). Pick one table of the batch."
        )
    # Each row is divided by its largest value first, so that no square overflows.
    largest = encoding.abs().amax(-1, keepdim=True)
    rows = encoding / largest.masked_fill(largest == 0, 1)
    norms = rows.norm(dim=-1, keepdim=True)
    rows = rows / norms.masked_fill(norms == 0, 1)
    return (rows @ rows.T).clamp(-1, 1)


def mean_distance(weights: Tensor) -> Tensor:
    """Measure how far each head looks, in positions.

    Args:
        weights: (..., query, key), each row summing to 1 (or 0 if it saw nothing);
            queries are the last positions where there are fewer of them.

    Returns:
        (...,): the mean over queries of the weighted distance to the keys, float32 or
        wider; a query that saw nothing counts as 0.

    Raises:
        ValueError: If there are fewer than two axes, or more queries than keys.
    """
    _matrix("weights", weights)
    queries, keys = weights.shape[-2:]
    if queries > keys:
        raise ValueError(
            f"weights have {queries} queries and {keys} keys, but each query is one of "
            f"the keys, the last ones with a cache. Transpose them if axes are swapped."
        )
    weights = weights.to(torch.promote_types(weights.dtype, torch.float32))
    key_positions = torch.arange(keys, device=weights.device)
    query_positions = key_positions[keys - queries :]
    distance = (key_positions - query_positions.unsqueeze(-1)).abs()
    return (weights * distance).sum(-1).mean(-1)


def _diagonals(scores: Tensor) -> list[Tensor]:
    """Cut (..., query, key) into diagonals (..., n), lowest offset first."""
    _matrix("scores", scores)
    if not torch.isfinite(scores).all():
        raise ValueError(
            "scores hold values that are not finite, and infinity minus infinity is no "
            "spread. Pass the scores before the mask."
        )
    scores = scores if scores.is_floating_point() else scores.float()
    offsets = range(1 - scores.shape[-2], scores.shape[-1])
    return [scores.diagonal(offset, -2, -1) for offset in offsets]


def _matrix(name: str, tensor: Tensor) -> None:
    """Refuse what has not a query and a key axis."""
    if tensor.dim() < 2 or 0 in tensor.shape:
        raise ValueError(
            f"{name} have shape {tuple(tensor.shape)}, but every query meets every "
            f"key, so the last two axes must be (query, key) and none empty. Use "
            f"{name}[None] for a single query."
        )
