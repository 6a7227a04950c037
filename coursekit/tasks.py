"""Small tasks whose answer depends on where things stand, drawn from a seed."""

from typing import NamedTuple

import torch
from torch import Generator, Tensor

from coursekit import _require

UNASKED = -100
"""The target where nothing is asked; torch's ``cross_entropy`` leaves it out."""
NOUNS = ("bear", "bird", "cat", "child", "dog", "fox", "man", "woman")
"""Who may act in ``order_task``; the place is the id."""
WORDS = (*NOUNS, "bites", "calls", "sees", ".")
"""All words of ``order_task``; the place is the id."""
FILLER = range(10, 42)
"""Ids of the filler of ``passkey_task``; each digit is its own id."""
MARK, ASK = 42, 43
"""Ids in ``passkey_task``: before the digit to report, and where it is asked for."""


class Batch(NamedTuple):
    """What a model reads, and what it should say at each place.

    Both are (batch, length) int64; targets are -100 where nothing is asked.
    """

    inputs: Tensor
    targets: Tensor


def order_task(batch_size: int, *, generator: Generator) -> Batch:
    """Draw sentences such as *dog bites man .* and ask at the full stop who acts.

    The words alone do not tell: *man bites dog .* holds the same ones.

    Args:
        batch_size: Number of sentences.
        generator: Where the randomness comes from.

    Returns:
        Ids of ``WORDS``, (batch_size, 4); only the full stop has a target.

    Raises:
        ValueError: If ``batch_size`` is below 1.

    Example:
        >>> batch = order_task(2, generator=torch.Generator().manual_seed(0))
        >>> [" ".join(WORDS[i] for i in row) for row in batch.inputs]
        ['cat bites child .', 'dog bites fox .']
        >>> batch.targets
        tensor([[-100, -100, -100,    2],
                [-100, -100, -100,    4]])
    """
    _sizes(batch_size=batch_size)
    drawn = torch.rand(batch_size, len(NOUNS), generator=generator)
    first, second = drawn.argsort(-1)[:, :2].T  # nobody bites itself
    verb = len(NOUNS) + torch.randint(3, (batch_size,), generator=generator)
    stop = torch.full_like(verb, WORDS.index("."))
    return _asked_last(torch.stack((first, verb, second, stop), dim=1), first)


def recall_task(
    batch_size: int, length: int, vocab_size: int, *, offset: int, generator: Generator
) -> Batch:
    """Draw tokens at random, and ask at each for the one ``offset`` steps back.

    Args:
        batch_size: Number of sequences.
        length: Tokens of each.
        vocab_size: Number of different tokens.
        offset: Steps to look back, from 1 to ``length`` - 1.
        generator: Where the randomness comes from.

    Returns:
        (batch_size, length); the first ``offset`` tokens have no target.

    Raises:
        ValueError: If a size is below 1, or ``offset`` leads past the first token.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> torch.cat(recall_task(1, 6, 10, offset=2, generator=generator))
        tensor([[   4,    9,    3,    0,    3,    9],
                [-100, -100,    4,    9,    3,    0]])
    """
    _sizes(batch_size=batch_size, length=length, vocab_size=vocab_size, offset=offset)
    if offset >= length:
        raise ValueError(
            f"offset is {offset} and length is {length}, but no token has another so "
            f"far back, so nothing would be asked. Use a length of {offset + 1}."
        )
    inputs = torch.randint(vocab_size, (batch_size, length), generator=generator)
    targets = torch.full_like(inputs, UNASKED)
    targets[:, offset:] = inputs[:, :-offset]
    return Batch(inputs, targets)


def reverse_task(
    batch_size: int, length: int, vocab_size: int, *, generator: Generator
) -> Batch:
    """Draw tokens at random, and ask for them from the last to the first.

    The second half is blank, so that only its place tells a token what to say: place
    p asks for place ``length`` - 1 - p.

    Args:
        batch_size: Number of sequences.
        length: Tokens of each, an even number.
        vocab_size: Number of different tokens; the blank has the id ``vocab_size``.
        generator: Where the randomness comes from.

    Returns:
        (batch_size, length); the first half has no targets.

    Raises:
        ValueError: If a size is below 1, or ``length`` is odd.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> torch.cat(reverse_task(1, 6, 10, generator=generator))
        tensor([[   4,    9,    3,   10,   10,   10],
                [-100, -100, -100,    3,    9,    4]])
    """
    _sizes(batch_size=batch_size, vocab_size=vocab_size)
    _require.multiple("length", length, "the number of halves", 2)
    half = batch_size, length // 2
    tokens = torch.randint(vocab_size, half, generator=generator)
    unasked = torch.full_like(tokens, UNASKED)
    inputs = torch.cat((tokens, torch.full_like(tokens, vocab_size)), dim=1)
    return Batch(inputs, torch.cat((unasked, tokens.flip(1)), dim=1))


def passkey_task(
    batch_size: int, length: int, *, decoys: bool = True, generator: Generator
) -> Batch:
    """Hide a digit behind a mark in filler, and ask for it at the end.

    With decoys a quarter of the filler is random digits, and only its place, one
    after the mark, tells the right one. Without, any digit found is the right one.

    Args:
        batch_size: Number of sequences.
        length: Tokens of each, at least 3.
        decoys: Whether other digits stand in the filler.
        generator: Where the randomness comes from.

    Returns:
        (batch_size, length) of 44 ids: the digits 0 to 9, ``FILLER``, ``MARK`` and,
        at the end, ``ASK``, the only one with a target.

    Raises:
        ValueError: If ``batch_size`` is below 1, or ``length`` below 3.

    Example:
        >>> batch = passkey_task(1, 8, generator=torch.Generator().manual_seed(0))
        >>> batch.inputs, batch.targets[0, -1]  # the mark is 42
        (tensor([[22, 25, 42,  6, 13, 37, 13, 43]]), tensor(6))
    """
    _sizes(batch_size=batch_size)
    _require.at_least("length", length, 3)
    shape, rows = (batch_size, length), torch.arange(batch_size)
    inputs = torch.randint(FILLER.start, FILLER.stop, shape, generator=generator)
    digits = torch.randint(10, shape, generator=generator)
    digital = torch.rand(shape, generator=generator) < (0.25 if decoys else 0)
    inputs = torch.where(digital, digits, inputs)
    place = torch.randint(length - 2, (batch_size,), generator=generator)
    answer = digits[rows, place + 1]
    inputs[rows, place], inputs[rows, place + 1] = MARK, answer
    inputs[:, -1] = ASK
    return _asked_last(inputs, answer)


def _asked_last(inputs: Tensor, answer: Tensor) -> Batch:
    """Ask for one answer per row, (batch,), at its last token."""
    targets = torch.full_like(inputs, UNASKED)
    targets[:, -1] = answer
    return Batch(inputs, targets)


def _sizes(**sizes: int) -> None:
    """Refuse each size that is not a whole number above 0, by its name."""
    for name, size in sizes.items():
        _require.at_least(name, size)
