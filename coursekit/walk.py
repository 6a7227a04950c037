"""The walk from text to output for one attention layer, as one value."""

from typing import NamedTuple

import torch
from torch import Tensor

from coursekit import _require
from coursekit.attention import attention, merge_heads, split_heads
from coursekit.position import NoPosition
from coursekit.tokens import token_ids, tokenize, vocabulary

SENTENCE = "the dog bites the man"
"""The course's one sentence: two equal words at two positions, and a change of
meaning when dog and man trade places."""


class Walk(NamedTuple):
    """Every stage from text to output, in order; batch 1 where there is a batch.

    Door 1 lies between ``embeddings`` and ``positioned``, door 2 between ``query``,
    ``key`` and their rotated forms, door 3 between ``scores`` and ``logits``.
    """

    tokens: list[str]
    ids: Tensor  # (length,)
    embeddings: Tensor  # (1, length, d_model)
    positioned: Tensor  # (1, length, d_model)
    query: Tensor  # (1, heads, length, head_dim)
    key: Tensor
    value: Tensor
    rotated_query: Tensor
    rotated_key: Tensor
    scores: Tensor  # (1, heads, query, key)
    logits: Tensor
    weights: Tensor
    output: Tensor  # (1, length, d_model)


def walk(
    text: str,
    position: NoPosition,
    *,
    d_model: int = 16,
    num_heads: int = 2,
    seed: int = 0,
) -> Walk:
    """Take a text through one attention layer and keep each stage.

    Embeddings and projections are drawn from ``seed``, so two walks with the same
    words differ by their order and their ``position`` alone.

    Args:
        text: A sentence of at least one token.
        position: The method, whose one door changes the walk.
        d_model: Features of each token.
        num_heads: Heads; divides ``d_model``.
        seed: Of the embeddings and the three projections.

    Returns:
        The stages. Embeddings are drawn from N(0, 1/d_model) and multiplied by
        √d_model, as in Vaswani et al. 2017, section 3.4.

    Raises:
        ValueError: If the text holds no token, ``position`` is no method, or heads do
            not divide ``d_model``.
    """
    if not isinstance(position, NoPosition):
        raise ValueError(
            f"position is {position!r}, but the walk needs the method itself, made "
            f"ready. Use Sinusoidal(), or METHODS[name](d_model=…, …)."
        )
    tokens = tokenize(text)
    _require.at_least("the number of tokens in text", len(tokens))
    _require.at_least("d_model", d_model)
    vocab = vocabulary(tokens)
    ids = token_ids(tokens, vocab)
    generator = torch.Generator().manual_seed(seed)
    table = torch.randn(len(vocab), d_model, generator=generator) * d_model**-0.5
    projections = torch.randn(3, d_model, d_model, generator=generator) * d_model**-0.5
    positions = torch.arange(len(tokens))
    embeddings = table[ids].unsqueeze(0) * d_model**0.5
    positioned = position.embed(embeddings, positions)
    query, key, value = (split_heads(positioned @ w, num_heads) for w in projections)
    rotated_query = position.rotate(query, positions)
    rotated_key = position.rotate(key, positions)
    bias = position.bias(rotated_query, positions, positions)
    steps = attention(rotated_query, rotated_key, value, bias=bias)
    return Walk(
        *(tokens, ids, embeddings, positioned, query, key, value),
        *(rotated_query, rotated_key, *steps[:3], merge_heads(steps.output)),
    )


def stage_shapes(steps: Walk) -> dict[str, str]:
    """Name each stage of a walk with its shape: query and key once, value not at all.

    Args:
        steps: From ``walk``.

    Returns:
        Stage to shape, in order, as ``plots.plot_walk`` draws them.
    """
    told = steps._asdict() | {"query": None, "rotated_query": None, "value": None}
    names = {"key": "query, key", "rotated_key": "rotated"}
    return {
        names.get(name, name): str(tuple(getattr(stage, "shape", [len(stage)])))
        for name, stage in told.items()
        if stage is not None
    }
