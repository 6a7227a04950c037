"""Finished runs as small files, and the one table made of them."""

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from coursekit import _shipped
from coursekit._files import write_whole

_SHA256 = "b498239665fa51d21b653806306d7a7abf1310e01e084c6eb355e1c04d4d2b4a"


class Score(NamedTuple):
    """How one trained model reads one length: a row of the table."""

    method: str
    seed: int
    length: int
    score: float
    """Nats per character, to six digits after the point."""
    steps: int
    versions: str


def save_run(path: Path, scores: Iterable[Score], settings: str) -> None:
    """Write a finished run, so that at no moment a half-written file bears its name.

    Args:
        path: Where to; the folder is made if it is not there.
        scores: The rows of the run.
        settings: What must be equal for runs to stand in one table.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, _text(scores, settings))


def load_run(path: Path, expected: Iterable[tuple], settings: str) -> list[Score]:
    """Read a finished run, if it is whole and was made with the same settings.

    Args:
        path: A file of ``save_run``.
        expected: The method, seed and length of each row, in order.
        settings: Of the runs that it is to be put beside.

    Returns:
        The rows.

    Raises:
        ValueError: If the file is damaged or no such run, or its settings differ.
    """
    try:
        text = path.read_bytes().decode()
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        scores = [_score(row) for row in rows]
        found = rows[0]["settings"]
        whole = _text(scores, found) == text
        whole = whole and [score[:3] for score in scores] == list(expected)
    except (OSError, IndexError, KeyError, TypeError, ValueError, csv.Error):
        whole = False
    if not whole:
        raise ValueError(
            f"{path} is damaged, or is no finished run of this name, so its numbers "
            f"cannot be trusted. Delete it, and the run is made anew."
        )
    if found != settings:
        raise ValueError(
            f"{path} was made with {found}, but now it is {settings}; one table must "
            f"not mix the two. Use another folder, or the settings of before."
        )
    return scores


def save_table(path: Path, scores: Iterable[Score]) -> None:
    """Write rows sorted by method, seed and length.

    Args:
        path: Where to.
        scores: The rows, in any order.
    """
    path.write_bytes(_text(sorted(scores)).encode())


def shipped_scores() -> list[Score]:
    """Load the table that comes with the package: all methods, three seeds.

    The command that made it stands in ``coursekit/data/results/README.md``.

    Returns:
        The rows, sorted by method, seed and length.

    Raises:
        ValueError: If the file is missing or not the one that was shipped.
    """
    return shipped_table("length_sweep.csv", _SHA256)


def shipped_table(name: str, sha256: str) -> list[Score]:
    """Load a table that comes with the package.

    Args:
        name: Of the file in ``coursekit/data/results``.
        sha256: What its bytes must hash to.

    Returns:
        The rows, in the order of the file.

    Raises:
        ValueError: If the file is missing or not the one that was shipped.
    """
    text = _shipped.read(f"results/{name}", sha256).decode()
    return [_score(row) for row in csv.DictReader(io.StringIO(text))]


def _score(row: dict[str, str]) -> Score:
    """Turn the words of a row into a score."""
    kinds = Score.__annotations__.items()
    return Score(**{name: kind(row[name]) for name, kind in kinds})


def _text(scores: Iterable[Score], settings: str | None = None) -> str:
    """Write rows with commas, the score with a fixed number of digits."""
    last = [] if settings is None else [settings]
    rows = [[*Score._fields, *(["settings"] if last else [])]]
    for score in scores:
        rows.append([*score._replace(score=f"{score.score:.6f}"), *last])
    return "".join(",".join(map(str, row)) + "\n" for row in rows)
