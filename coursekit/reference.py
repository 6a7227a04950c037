"""The model in which position methods are compared, and the texts it reads."""

import copy
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from coursekit import _require, corpus
from coursekit.learned import interpolate_rows, repeat_last_row, zero_rows
from coursekit.position import METHODS, NoPosition
from coursekit.position_bias import T5, Windowed
from coursekit.tasks import Batch
from coursekit.transformer import TinyTransformer


def _t5(max_distance: int) -> Callable[..., NoPosition]:
    """Fix the distance from which on T5 has but one bucket."""
    options = {"max_distance": max_distance, "bidirectional": False}
    return lambda *, d_model, num_heads, max_length: T5(num_heads, **options)


def _copied(position: T5) -> T5:
    """Copy the last trained row into the untrained ones, which are still 0."""
    table = position.table.detach()
    last = int(table.any(-1).nonzero().max())
    table[last:] = table[last]
    return position


GRID = {name: make for name, make in METHODS.items() if name != "t5"}
GRID |= {"t5_48": _t5(48), "t5_128": _t5(128)}
"""The methods to compare, called as those of ``METHODS``. Scores keep the 1/√head_dim
that T5 leaves out, so that models differ in nothing but the position."""
POSITION_RATE = {"t5_48": 10.0, "t5_128": 10.0}
"""How many times faster than the model its position learns, where it is not once."""
PAST_THE_END = {
    "learned_last": repeat_last_row,
    "learned_interpolated": interpolate_rows,
    "learned_zeros": zero_rows,
}
"""Three ways to read on past the last row of one and the same trained table."""
CHANGED = {
    "rope": {"rope_window64": lambda position: Windowed(position, 64)},
    "sinusoidal": {"sinusoidal_window64": lambda position: Windowed(position, 64)},
    "alibi": {"alibi_window8": lambda position: Windowed(position, 8)},
    "t5_128": {"t5_128_copied": _copied},
}
"""For some methods, the same weights read in another way: through a window, or with
the last trained number of T5 in the place of those that training never touched."""


def reference_model(
    method: str, *, seed: int = 0, train_length: int = 64
) -> TinyTransformer:
    """Build the reference model: 64 features, 2 layers, 4 heads.

    Args:
        method: A name from ``GRID``.
        seed: Of the parameters; the state of torch's own generator stays as it is.
        train_length: The number of rows of a learned table.

    Returns:
        An untrained decoder of the characters of ``corpus``.

    Raises:
        ValueError: If there is no such method.
    """
    if method not in GRID:
        raise ValueError(
            f"method is {method!r}, but there is none of this name to compare. Use one "
            f"of {', '.join(GRID)}."
        )
    sizes = {"d_model": 64, "num_heads": 4}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        position = GRID[method](**sizes, max_length=train_length)
        vocab_size = len(corpus.ALPHABET)
        return TinyTransformer(vocab_size, **sizes, num_layers=2, position=position)


def readings(method: str) -> tuple[str, ...]:
    """Name the ways in which a method reads on past the length of its training.

    Args:
        method: A name from ``GRID``.

    Returns:
        The three of ``PAST_THE_END`` for a learned table; else ``method`` itself and
        what ``CHANGED`` has for it.
    """
    if method == "learned":
        return tuple(PAST_THE_END)
    return method, *CHANGED.get(method, {})


def lengthened(model: TinyTransformer, reading: str, length: int) -> TinyTransformer:
    """Make a trained model read longer texts, or the same ones in another way.

    Args:
        model: From ``reference_model``; it is not changed.
        reading: One of ``readings``.
        length: Characters to read.

    Returns:
        A copy with another position, or ``model`` itself.
    """
    change = {n: c for part in CHANGED.values() for n, c in part.items()}.get(reading)
    if change is None and reading not in PAST_THE_END:
        return model
    longer = copy.deepcopy(model)
    if change is not None:
        longer.position = change(longer.position)
        return longer
    table = longer.position.rows.table.detach()
    rows = PAST_THE_END[reading](table, max(length, len(table)))
    longer.position.rows.table = nn.Parameter(rows)
    return longer


def text_batches(
    length: int = 64, *, batch_size: int = 32
) -> Callable[[torch.Generator], Batch]:
    """Cut batches out of the two novels to train on, and ask for every next character.

    Args:
        length: Characters of each window.
        batch_size: Number of windows.

    Returns:
        What draws a ``Batch``, (batch_size, length), with a generator: for ``train``.

    Raises:
        ValueError: If a size is below 1.
    """
    _require.at_least("length", length)
    _require.at_least("batch_size", batch_size)
    ids = torch.cat([corpus.encode(corpus.load(name)) for name in corpus.TRAIN])
    place = torch.arange(length + 1)

    def make_batch(generator: torch.Generator) -> Batch:
        """Draw where the windows start."""
        last = len(ids) - length
        starts = torch.randint(last, (batch_size, 1), generator=generator)
        windows = ids[starts + place]
        return Batch(windows[:, :-1], windows[:, 1:])

    return make_batch


def scored_ids(test_lengths: Iterable[int]) -> Tensor:
    """Return the held-out characters that are scored, the same at each length.

    Args:
        test_lengths: Each divides 8 times the longest, the number of characters.

    Returns:
        (8 · longest + 1,) int64, the beginning of the part for reported numbers.

    Raises:
        ValueError: If there is no length, or one that does not divide.
    """
    lengths = tuple(test_lengths)
    tokens = 8 * max(lengths, default=0)
    if not tokens or min(lengths) < 1 or any(tokens % length for length in lengths):
        raise ValueError(
            f"test_lengths are {lengths}, but all read the same {tokens} characters "
            f"without a rest, so each must divide 8 times the longest. Use powers of 2."
        )
    text = corpus.load(corpus.HELD_OUT)[corpus.REPORTED]
    if len(text) <= tokens:
        raise ValueError(
            f"the longest of test_lengths is {max(lengths)}, but 8 windows of it must "
            f"fit into {len(text)} characters. Use {(len(text) - 1) // 8} or less."
        )
    return corpus.encode(text[: tokens + 1])
