"""What is kept of each submission, and the tables that are made of it."""

import contextlib
import csv
import hashlib
import io
import json
import secrets
from pathlib import Path
from typing import Any, NamedTuple

from coursekit import __version__, checks
from coursekit._files import write_whole
from coursekit.classroom.notebooks import Assignment, readable
from coursekit.classroom.sandbox import Limits
from coursekit.classroom.submissions import Submission

COLUMNS = ("student", "assignment", "score", "max_score", "file", "page", "notes")
NOTES = 25  # for one submission


class Mark(NamedTuple):
    """What one exercise of one submission came to."""

    exercise: str
    share: float  # of one point
    line: str


def settings_of(
    out: Path,
    variant: int | None,
    seed: int | None,
    assignments: list[Assignment],
    limits: Limits,
) -> dict:
    """Settle what all marks of a folder depend on, and keep it there.

    Args:
        out: The folder of the marks.
        variant: Seed of the constants that were handed out, or None.
        seed: Of the inputs; that of before, or a new one, unless given.
        assignments: What was handed out.
        limits: Of time and memory.

    Returns:
        The settings, ``seed`` among them.

    Raises:
        ValueError: If the folder has marks for another variant.
    """
    place = out / "batch.json"
    before: dict = {}
    with contextlib.suppress(OSError, ValueError, TypeError):
        before = dict(json.loads(place.read_text(encoding="utf-8")))
    if before and before.get("variant") != variant:
        raise ValueError(
            f"{out} holds marks for the variant {before.get('variant')}, but these are "
            f"to be made for {variant}. Give the variant that was handed out, or name "
            f"another folder with --to."
        )
    if seed is None:
        seed = before.get("seed")
    if type(seed) is not int:
        seed = secrets.randbelow(2**31)
    code = hashlib.sha256(json.dumps([a.sources for a in assignments]).encode())
    for path in sorted(Path(checks.__file__).parent.rglob("*.py")):
        code.update(path.read_bytes())
    settings = {"seed": seed, "variant": variant, "version": __version__}
    settings |= {"limits": list(limits), "code": code.hexdigest()}
    write_whole(place, json.dumps(settings))
    return settings


def key_of(submission: Submission, settings: dict, folder: Path) -> str:
    """Name a mark by all that it depends on.

    Args:
        submission: The one that is marked.
        settings: From ``settings_of``.
        folder: Of all submissions.

    Returns:
        A name for its file.
    """
    content = b""
    if submission.path.is_file() and not submission.path.is_symlink():
        with submission.path.open("rb") as stream:
            content = hashlib.file_digest(stream, "sha256").digest()
    told = [submission.student, submission.stem, _at(submission, folder)]
    told += [submission.fault, *submission.notes, settings]
    return hashlib.sha256(json.dumps(told).encode() + content).hexdigest()[:40]


def record_of(
    submission: Submission, assignment: Assignment | None, folder: Path
) -> dict:
    """Start the record of a submission, with no points for each exercise.

    Args:
        submission: The one that is to be marked.
        assignment: The one that it belongs to, if that is known.
        folder: Of all submissions.

    Returns:
        The record, fit for JSON.
    """
    names = assignment.exercises if assignment else ()
    marks = [Mark(name, 0.0, f"{name}: not graded.")._asdict() for name in names]
    return {
        "student": submission.student,
        "assignment": submission.stem,
        "file": _at(submission, folder),
        "notes": list(submission.notes),
        "look": _borrowed(submission, assignment) if assignment else [],
        "fault": submission.fault,
        "marks": marks,
        "answers": {c.role: c.source for c in submission.cells if c.role in names},
    }


def write_tables(records: list[dict], pages: dict[str, str], out: Path) -> Path:
    """Write the table of scores, and one of every exercise.

    Args:
        records: Of all submissions.
        pages: Student → name of the page.
        out: Where to.

    Returns:
        The table of scores.
    """
    scores, lines = io.StringIO(), io.StringIO()
    table = csv.writer(scores, lineterminator="\n")
    long = csv.writer(lines, lineterminator="\n")
    table.writerow(COLUMNS)
    long.writerow(("student", "assignment", "exercise", "share", "line"))
    for record in records:
        marks = record["marks"]
        score = f"{sum(mark['share'] for mark in marks):g}"
        score = "" if record.get("open") else score
        told = [record["fault"], *record["look"], *record["notes"]]
        told = [note[:300] for note in told if note]
        more = [f"and {len(told) - NOTES} more"] if len(told) > NOTES else []
        who = record["student"], record["assignment"]
        page = pages[record["student"]]
        notes = "; ".join([*told[:NOTES], *more])
        row = (*who, score, len(marks), record["file"], page, notes)
        table.writerow([_safe(value) for value in row])
        for mark in marks:
            row = (*who, mark["exercise"], f"{mark['share']:g}", mark["line"])
            long.writerow([_safe(value) for value in row])
    # Excel takes a file for UTF-8 if it begins with this mark.
    write_whole(out / "exercises.csv", "\ufeff" + lines.getvalue())
    write_whole(out / "grades.csv", "\ufeff" + scores.getvalue())
    return out / "grades.csv"


def _at(submission: Submission, folder: Path) -> str:
    """Name a file as a teacher finds it."""
    return readable(submission.path.relative_to(folder).as_posix())


def _safe(value: Any) -> Any:
    """Keep a spreadsheet from taking a student's text for a formula."""
    risky = isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r")
    return f"'{value}" if risky else value


def _borrowed(submission: Submission, assignment: Assignment) -> list[str]:
    """Name what an answer takes from where the right answers are."""
    told = []
    for cell in submission.cells:
        for word in ("coursekit.slips", "EXERCISES", "checks.known"):
            ours = cell.role in assignment.restored
            if word in cell.source and not ours:
                told.append(f"cell {cell.role or '?'} uses {word}: look at it")
    return told
