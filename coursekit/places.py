"""Where tokens stand in a batch: positions, documents, and what decoding keeps."""

from typing import NamedTuple

import torch
from torch import Tensor

from coursekit.attention import causal_mask
from coursekit.position import positions_from_mask


class Places(NamedTuple):
    """Positions, and the document that each token belongs to.

    Tokens see their own document alone, so packed texts stay apart, and padding is
    simply another document; ``None`` is one document for all.
    """

    positions: Tensor  # (length,) or (batch, length)
    documents: Tensor | None = None  # (batch, length) whole numbers

    @staticmethod
    def from_mask(mask: Tensor) -> "Places":
        """Place padded rows; mask is (batch, length) bool, True = a real token."""
        return Places(positions_from_mask(mask), mask.long())


class Cache(NamedTuple):
    """What decoding keeps: rotated keys and values of each layer, and all places."""

    keys: list[Tensor]  # each (batch, heads, length, head_dim)
    values: list[Tensor]
    places: Places


def next_places(length: int, cache: Cache | None, device: torch.device) -> Places:
    """Count on from the cache, or from 0, in the document of the last token.

    Args:
        length: Number of new tokens.
        cache: What came before, or None.
        device: Of the new positions.

    Returns:
        The places of the new tokens.
    """
    if cache is None:
        return Places(torch.arange(length, device=device))
    positions, documents = cache.places
    if documents is not None:
        documents = documents[:, -1:].expand(-1, length)
    steps = torch.arange(1, length + 1, device=device)
    return Places(positions[..., -1:] + steps, documents)


def append(cache: Cache | None, new: Places) -> Places:
    """Lay new places behind the cached ones; a row for all meets a row for each.

    Args:
        cache: What came before, or None.
        new: Places of the new tokens.

    Returns:
        The places of all tokens.

    Raises:
        ValueError: If only one of the two says which document a token belongs to.
    """
    old = Places(new.positions[..., :0], None) if cache is None else cache.places
    if cache and (old.documents is None) != (new.documents is None):
        raise ValueError(
            "documents are given for the cached tokens or the new ones, not for both, "
            "so it is not known who may see whom. Give them in every call, or in none."
        )
    rows = max(old.positions.shape[:-1], new.positions.shape[:-1])  # () < (batch,)
    parts = old.positions, new.positions
    if parts[0].shape[:-1] != parts[1].shape[:-1]:
        parts = [part.expand(*rows, -1) for part in parts]
    documents = new.documents
    if old.documents is not None:
        documents = torch.cat((old.documents, documents), -1)
    return Places(torch.cat(parts, -1), documents)


def visible(new: Places, every: Places) -> Tensor:
    """Mask what is later or of another document, as ``causal_mask`` does.

    Args:
        new: Places of the queries.
        every: Places of the keys.

    Returns:
        bool, True = may attend, (query, key) or (batch, 1, query, key).
    """
    mask = causal_mask(new.positions, every.positions)
    if new.documents is None:
        return mask
    same = new.documents.unsqueeze(-1) == every.documents.unsqueeze(-2)
    return mask & same.unsqueeze(1)
