"""Scaled dot-product attention, every step returned."""

from typing import NamedTuple

import torch
from torch import Tensor

from coursekit import _require


class AttentionSteps(NamedTuple):
    """The four named values of one attention, one for each line of the formula.

    ``scores``, ``logits`` and ``weights`` are (batch, heads, query, key); ``output``
    is (batch, heads, query, head_dim).
    """

    scores: Tensor
    logits: Tensor
    weights: Tensor
    output: Tensor


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """Cut the features of each token into heads.

    Args:
        x: (batch, length, d_model).
        num_heads: Number of heads; divides d_model.

    Returns:
        (batch, num_heads, length, d_model / num_heads).

    Raises:
        ValueError: If ``x`` has not three axes or the heads do not divide d_model.

    Source: Vaswani et al. 2017, section 3.2.2, arXiv:1706.03762.
    """
    _require.at_least("num_heads", num_heads)
    if x.dim() != 3 or x.shape[-1] % num_heads:
        raise ValueError(
            f"x has shape {tuple(x.shape)}, which does not split into {num_heads} "
            f"heads: it must be (batch, length, d_model) with d_model a multiple of "
            f"num_heads. Change one of the two."
        )
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """Lay the heads of each token side by side again, undoing ``split_heads``.

    Args:
        x: (batch, heads, length, head_dim).

    Returns:
        (batch, length, heads * head_dim).

    Raises:
        ValueError: If ``x`` has not four axes.
    """
    if x.dim() != 4:
        raise ValueError(
            f"x has shape {tuple(x.shape)}, but merging needs the four axes (batch, "
            f"heads, length, head_dim). Use split_heads to make them."
        )
    return x.transpose(1, 2).flatten(-2)


def causal_mask(query_positions: Tensor, key_positions: Tensor) -> Tensor:
    """Allow each query the keys that are not later than itself.

    Positions are compared, not indices, so a cached query needs no case of its own.
    Padding and packed documents do: add ``& real[:, None, None, :]`` for the one and
    ``& same_document[:, None]`` for the other.

    Args:
        query_positions: (query,), or (batch, query) with a row for each sequence.
        key_positions: (key,) or (batch, key).

    Returns:
        bool, True = may attend: (query, key), or (batch, 1, query, key) where a
        batch was given, to broadcast over heads.

    Raises:
        ValueError: If positions are not one or two axes of real numbers.
    """
    _require.positions("query_positions", query_positions)
    _require.positions("key_positions", key_positions)
    allowed = key_positions.unsqueeze(-2) <= query_positions.unsqueeze(-1)
    return allowed.unsqueeze(1) if allowed.dim() == 3 else allowed


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    scale: float | None = None,
) -> AttentionSteps:
    """Average the values by how well each key answers the query.

    Args:
        query: (batch, heads, query, head_dim).
        key: (batch, heads, key, head_dim).
        value: (batch, heads, key, value_dim).
        bias: Added to the scores: (query, key), (heads, query, key) or four axes.
        mask: bool, True = may attend; (query, key), or four axes that broadcast.
        scale: Factor of the dot products; 1/√head_dim unless given (T5 has 1).

    Returns:
        ``scores`` (scaled), ``logits`` (biased, -inf where blocked), ``weights`` (a
        row that may attend to nothing is zero) and ``output``.

    Raises:
        ValueError: If shapes do not fit, the mask is not boolean or the bias is.

    Source: Vaswani et al. 2017, equation 1, arXiv:1706.03762.
    """
    *leading, _, head_dim = query.shape
    _require.ends_with("key", key, (*leading, *key.shape[-2:-1], head_dim))
    _require.ends_with("value", value, (*key.shape[:-1], *value.shape[-1:]))
    scale = head_dim**-0.5 if scale is None else scale
    # Scaled before the product, which half precision could not hold unscaled.
    scores = query * scale @ key.transpose(-2, -1)  # (batch, heads, query, key)
    logits = scores if bias is None else scores + _fitting("bias", bias, scores)
    if mask is not None:
        logits = logits.masked_fill(~_fitting("mask", mask, scores), float("-inf"))
    blocked = (logits == float("-inf")).all(dim=-1, keepdim=True)
    # A softmax over nothing is 0/0, and so is its gradient: fill the row before it.
    weights = torch.softmax(logits.masked_fill(blocked, 0.0), dim=-1)
    weights = weights.masked_fill(blocked, 0.0)
    return AttentionSteps(scores, logits, weights, weights @ value)


def _fitting(name: str, extra: Tensor, scores: Tensor) -> Tensor:
    """Return the mask or bias, or refuse one that would broadcast to something else."""
    masks, axes = name == "mask", extra.dim()
    fits = (extra.dtype == torch.bool) == masks and 2 <= axes <= scores.dim()
    if masks and axes == 3 < scores.dim():  # batch rows would meet heads
        fits = False
    sizes = zip(extra.shape[::-1], scores.shape[::-1], strict=False)
    if not fits or any(have not in (1, want) for have, want in sizes):
        raise ValueError(
            f"{name} is {tuple(extra.shape)} {extra.dtype}, but scores are "
            f"{tuple(scores.shape)}. A mask is boolean (True = may attend), (query, "
            f"key) or with as many axes as the scores; a bias is a number for each "
            f"pair and may also be (heads, query, key). For one of "
            f"(batch, key) use {name}[:, None, None], of (batch, query, key) "
            f"{name}[:, None]."
        )
    return extra if masks else extra.to(scores.dtype)
