"""Submissions as Classroom, Canvas, Moodle or e-mail give them: whose, of what, cells.

Nothing in here runs a student's code, and nothing that a student hands in stops it:
what cannot be read becomes a submission with a fault in words.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from coursekit.classroom.notebooks import (
    BLANK,
    Assignment,
    Cell,
    answered,
    likeness,
    load,
    readable,
    repaired,
)

LARGEST = 30_000_000  # bytes: a notebook with pictures has 5
_MOODLE = re.compile(r"_\d+_assignsubmission_.*$")
_CANVAS = re.compile(r"^(?P<who>[^\W\d_][^_]*?)(?:_LATE)?_(?P<id>\d{3,})_\d{3,}_")
_COPY = re.compile(r"^(?:copy of |kopie van |copie de |kopie von )+", re.IGNORECASE)
_NUMBER = re.compile(r"(?: ?\((\d+)\)|-(\d+))$")


class Submission(NamedTuple):
    """One notebook of one student, repaired, or the reason why there is none."""

    student: str  # a name if no other has it, or all that is known
    stem: str  # of the assignment, or "" where that is not known
    path: Path
    cells: tuple[Cell, ...]
    notes: tuple[str, ...]  # what was repaired
    fault: str = ""


def find_submissions(
    folder: Path, assignments: list[Assignment]
) -> Iterator[Submission]:
    """Go through a folder of submissions, one folder per student or flat.

    A student with several notebooks of one assignment is graded on the last attempt,
    by its number and then its time; the others are named in its notes.

    Args:
        folder: What the teacher downloaded.
        assignments: From ``read_assignments``.

    Returns:
        The submissions, by student and assignment; each file is in one of them or
        named in the notes of one.

    Raises:
        ValueError: If ``folder`` is not a folder with something in it.
    """
    if not folder.is_dir():
        raise ValueError(
            f"{folder} is not a folder. Unpack what the learning platform gave, and "
            f"name the folder that the notebooks or the students' folders are in."
        )
    groups: dict[tuple[str, str], list[Submission]] = {}
    others: dict[str, list[Path]] = {}
    for path in sorted(p for p in folder.rglob("*") if not _hidden(p, folder)):
        if path.is_dir() and not path.is_symlink():
            if path.parent == folder and not any(path.iterdir()):
                others.setdefault(_student(path / "x", folder, []), [])
            continue
        read = read_submission(path, folder, assignments)
        if read is None:
            others.setdefault(_student(path, folder, assignments), []).append(path)
        else:
            groups.setdefault((read.student, read.stem), []).append(read)
    served = {student for student, _ in groups}
    for student, paths in others.items():
        if student not in served:
            names = readable(", ".join(p.name for p in paths[:5])) or "nothing"
            fault = f"no notebook found, but {names}. Ask for the .ipynb file."
            at = paths[0] if paths else folder / student
            groups[student, ""] = [Submission(student, "", at, (), (), fault)]
    if not groups:
        raise ValueError(f"{folder} is empty: there is nothing to grade.")
    kept = []
    for key in sorted(groups):
        *earlier, last = sorted(groups[key], key=_attempt)
        if key[1]:
            notes = [f"{_at(e.path, folder)} is another attempt" for e in earlier]
            kept.append(last._replace(notes=(*last.notes, *notes)))
        else:  # of no known assignment: one row for each, so that none is lost
            kept += [*earlier, last]
    yield from _named(kept)


def read_submission(
    path: Path, folder: Path, assignments: list[Assignment]
) -> Submission | None:
    """Read one file, find out what it is, and repair it.

    Args:
        path: The file.
        folder: Of all submissions.
        assignments: From ``read_assignments``.

    Returns:
        The submission, with a fault in words if it cannot be graded; None for a file
        that is no notebook and does not claim to be one.
    """
    claims = _bare(path.name) != path.name
    student = _student(path, folder, assignments)
    fault, cells = "", []
    if path.is_symlink() or not path.is_file():
        fault = "it is a link or a device, not a file"
    elif path.stat().st_size > LARGEST:
        fault = f"it is larger than {LARGEST:,} bytes"
    else:
        try:
            cells = load(path.read_bytes())
        except (ValueError, RecursionError, MemoryError, OSError) as error:
            fault = readable(" ".join(str(error).split())[:200]) or type(error).__name__
    if fault and not claims:
        return None
    best = max(assignments, key=lambda a: likeness(cells, a), default=None)
    if not fault and (best is None or not likeness(cells, best)):
        fault = "it is none of this course's exercise notebooks"
    if fault:
        named = (a.stem for a in assignments if a.stem in path.name)
        stem = next(named, "")
        fault = f"{readable(path.name)}: {fault}."
        return Submission(student, stem, path, (), (), fault)
    kept, notes = repaired(cells, best)
    others = [a.stem for a in assignments if a is not best and answered(cells, a)]
    if others:
        notes.append(f"it holds answers of {', '.join(others)} too; ask for them apart")
    if not answered(cells, best):
        notes.append(BLANK)
    return Submission(student, best.stem, path, tuple(kept), tuple(notes))


def _at(path: Path, folder: Path) -> str:
    """Name a file as a teacher finds it."""
    return readable(path.relative_to(folder).as_posix())


def _hidden(path: Path, folder: Path) -> bool:
    parts = path.relative_to(folder).parts
    rubbish = ("__MACOSX", "Thumbs.db", ".DS_Store", ".ipynb_checkpoints", ".git")
    return any(p.startswith("._") or p in rubbish for p in parts)


def _student(path: Path, folder: Path, assignments: list[Assignment]) -> str:
    """Find out whose a file is: by its folder, or else by its name.

    Numbers of a platform stay, as two students may share a name; where the rest says
    nothing, each file is somebody of its own.
    """
    first, *rest = path.relative_to(folder).parts
    if rest:
        return readable(first)
    name = _COPY.sub("", _bare(first))
    canvas = _CANVAS.match(name)
    if canvas:
        return readable(f"{canvas['who']}_{canvas['id']}")
    name = _NUMBER.sub("", name)
    parts = [re.escape(a.stem) for a in assignments] + [r"ex(?:ercise)?s?[ _-]?\d+"]
    for part in parts:
        name = re.sub(rf"(^|[ _-]+){part}($|[ _-]+)", " ", name, flags=re.IGNORECASE)
    return readable(name.strip(" _-")) or readable(path.name)


def _bare(name: str) -> str:
    """Take the ending away, in any case, with what a browser may have put behind."""
    return re.sub(r"\.ipynb(\.\w+)?$", "", name, flags=re.IGNORECASE)


def _named(submissions: list[Submission]) -> list[Submission]:
    """Call each student by name, without a platform's number, where that is enough."""
    short = {s.student: _MOODLE.sub("", s.student).strip() for s in submissions}
    short = {raw: re.sub(r"_\d{3,}$", "", name) or raw for raw, name in short.items()}
    count = Counter(name.casefold() for name in short.values())
    names = {raw: n if count[n.casefold()] == 1 else raw for raw, n in short.items()}
    return [s._replace(student=names[s.student]) for s in submissions]


def _attempt(submission: Submission) -> tuple:
    """Order attempts: read before unread, answered before blank, then the latest."""
    found = _NUMBER.search(_bare(submission.path.name))
    number = int((found[1] or found[2])[:9]) if found else 0
    try:
        time = submission.path.stat().st_mtime
    except OSError:
        time = 0.0
    blank = BLANK in submission.notes
    return not submission.fault, not blank, number, time, str(submission.path)
