"""Words to ids: the first two steps of the walk."""

import re
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor


def tokenize(text: str) -> list[str]:
    """Split text into lower-case words and single punctuation marks.

    Args:
        text: Any string.

    Returns:
        The tokens in reading order; an empty list for a text without any.

    Raises:
        ValueError: If ``text`` is not a string.

    Example:
        >>> tokenize("The dog bites, barks.")
        ['the', 'dog', 'bites', ',', 'barks', '.']
    """
    if not isinstance(text, str):
        raise ValueError(
            f"text is {type(text).__name__}, but tokens are cut from a string. "
            f"Join words with ' '.join(words) first."
        )
    return re.findall(r"\w+|[^\w\s]", text.lower())


def vocabulary(tokens: Iterable[str]) -> dict[str, int]:
    """Number the distinct tokens in alphabetical order.

    The order of the text plays no part, so a reordered text has the same ids and
    differs from the first by its positions alone.

    Args:
        tokens: Tokens, repeated ones allowed.

    Returns:
        Token to id, counted from 0.

    Raises:
        ValueError: If ``tokens`` is one string.

    Example:
        >>> vocabulary(["dog", "bites", "dog"])
        {'bites': 0, 'dog': 1}
    """
    if isinstance(tokens, str):
        raise ValueError(
            f"tokens are the string {tokens[:20]!r}, which would be numbered letter by "
            f"letter. Use tokenize(text) first."
        )
    return {token: index for index, token in enumerate(sorted(set(tokens)))}


def token_ids(tokens: Sequence[str], vocab: Mapping[str, int]) -> Tensor:
    """Look up the id of each token.

    Args:
        tokens: Tokens in reading order.
        vocab: Token to id, from ``vocabulary``.

    Returns:
        Ids, (length,) int64.

    Raises:
        ValueError: If a token is not in ``vocab``.
    """
    unknown = sorted(set(tokens) - set(vocab))
    if unknown:
        raise ValueError(
            f"{unknown} not in the vocabulary of {len(vocab)} tokens, so there is no "
            f"id for it. Build the vocabulary from this text as well."
        )
    return torch.tensor([vocab[token] for token in tokens], dtype=torch.int64)
