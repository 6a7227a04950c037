"""A score taken apart: the terms of Transformer-XL and of DeBERTa."""

from typing import NamedTuple

import torch
from torch import Tensor

from coursekit import _require


class TransformerXLTerms(NamedTuple):
    """The paper's terms a, b, c, d, each (batch, heads, query, key); add them up."""

    content_content: Tensor
    content_position: Tensor
    global_content: Tensor
    global_position: Tensor


class DisentangledTerms(NamedTuple):
    """DeBERTa's terms, query side first, each (batch, heads, query, key)."""

    content_content: Tensor
    content_position: Tensor
    position_content: Tensor


def relative_shift(x: Tensor) -> Tensor:
    """Move row i left until column j holds the value for j - i: one cut, one reshape.

    Past and future both come out right: ``out[i, j] == x[i, j + query - i]``. The first
    release cut later, and rubbish stood above the diagonal.

    Args:
        x: (..., query, query + key); column m is for the difference m - query.

    Returns:
        (..., query, key).

    Raises:
        ValueError: If there are not more columns than rows.

    Source: Dai et al. 2019, appendix B, arXiv:1901.02860.
    """
    rows, columns = x.shape[-2:]
    if columns <= rows:
        raise ValueError(
            f"x is {tuple(x.shape)}, but it has a column for each difference from "
            f"-query to key - 1, so more columns than rows. Add the later ones."
        )
    shifted = x.flatten(-2)[..., rows:].unflatten(-1, (rows, columns - 1))
    return shifted[..., : columns - rows]


def transformer_xl_terms(
    query: Tensor, key: Tensor, position_keys: Tensor, u: Tensor, v: Tensor
) -> TransformerXLTerms:
    """Score content and offset, for this query and for all, each with 1/√head_dim.

    Args:
        query: (batch, heads, query, head_dim), the last of the positions.
        key: (batch, heads, key, head_dim).
        position_keys: (heads, query + key, head_dim), projected encodings of offsets
            -key to query - 1; the paper counts query minus key.
        u: The query of all for content, (heads, head_dim).
        v: The query of all for offsets, (heads, head_dim).

    Returns:
        The four terms.

    Raises:
        ValueError: If sizes do not fit.

    Source: Dai et al. 2019, section 3.3, arXiv:1901.02860.
    """
    heads, queries, head_dim = query.shape[-3:]
    rows = queries + key.shape[-2]
    _require.ends_with("key", key, (heads, key.shape[-2], head_dim))
    _require.ends_with("position_keys", position_keys, (heads, rows, head_dim))
    _require.ends_with("u", u, (heads, head_dim))
    _require.ends_with("v", v, (heads, head_dim))
    u, v = u.unsqueeze(1).expand_as(query), v.unsqueeze(1).expand_as(query)
    content = [side @ key.mT * head_dim**-0.5 for side in (query, u)]
    offset = [side @ position_keys.mT * head_dim**-0.5 for side in (query, v)]
    shifted = [relative_shift(scores) for scores in offset]
    return TransformerXLTerms(content[0], shifted[0], content[1], shifted[1])


def deberta_bucket(
    relative_position: Tensor, bucket_size: int, max_position: int
) -> Tensor:
    """Keep offsets up to half of ``bucket_size``; put farther ones in log steps.

    Edges are in exact arithmetic and the sign is kept. The released code counts query
    minus key, so its bucket is minus this one, and from ``max_position`` on it has
    no last bucket: it cuts at the lookup.

    Args:
        relative_position: Offsets, key minus query, of any shape.
        bucket_size: Buckets of one sign, 2 or more; half of them are exact.
        max_position: Distances from ``max_position - 1`` on share the last bucket.

    Returns:
        int64, same shape.

    Raises:
        ValueError: If ``max_position`` leaves no offset beyond the exact ones.

    Source: He et al. 2021, code of DeBERTaV3, arXiv:2111.09543.
    """
    _require.at_least("bucket_size", bucket_size, 2)
    exact, last = bucket_size // 2, max_position - 1
    _require.at_least("max_position", max_position, exact + 2)
    edges, steps = [], exact - 1
    for step in range(steps):
        power = exact ** (steps - step) * last**step
        edge = int(exact * (last / exact) ** (step / steps)) - 1  # from below
        while edge**steps <= power:
            edge += 1
        edges.append(edge)
    offset = relative_position.clamp(-last, last).long()
    distance = offset.abs()
    edges = torch.tensor(edges, dtype=torch.int64).to(distance)
    far = torch.bucketize(distance, edges, right=True)
    return offset.sign() * (distance.clamp(max=exact) + far)


def disentangled_scores(
    query: Tensor,
    key: Tensor,
    position_query: Tensor,
    position_key: Tensor,
    relative_index: Tensor,
) -> DisentangledTerms:
    """Score content and offset without their fourth term, each with 1/√(3·head_dim).

    Both mixed terms read row δ(i, j), as the two public codes do; the paper writes
    δ(j, i) in the last. Position with position depends on the offset alone.

    Args:
        query: (batch, heads, query, head_dim).
        key: (batch, heads, key, head_dim).
        position_query: (heads, rows, head_dim), projected from the shared table.
        position_key: (heads, rows, head_dim).
        relative_index: The row of each pair, (query, key) or (batch, 1, query, key):
            ``span - deberta_bucket(...)`` for released weights.

    Returns:
        The three terms.

    Raises:
        ValueError: If sizes do not fit.

    Source: He et al. 2021, section 3.1, equation 4, arXiv:2006.03654.
    """
    heads, _, head_dim = query.shape[-3:]
    rows = (heads, position_key.shape[-2], head_dim)
    _require.ends_with("key", key, (heads, key.shape[-2], head_dim))
    _require.ends_with("position_query", position_query, rows)
    _require.ends_with("position_key", position_key, rows)
    query = query * (3 * head_dim) ** -0.5
    content = query @ key.mT
    fit = (len(query), 1, *content.shape[-2:])[-relative_index.dim() :]
    _require.ends_with("relative_index", relative_index, fit)
    index = relative_index.expand_as(content)
    by_query = (query @ position_key.mT).gather(-1, index)
    by_key = (position_query @ key.mT * (3 * head_dim) ** -0.5).gather(-2, index)
    return DisentangledTerms(content, by_query, by_key)
