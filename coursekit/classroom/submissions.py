"""Submissions as Classroom, Canvas, Moodle or e-mail give them: whose, of what, cells.

Nothing in here runs a student's code, and nothing that a student hands in stops it:
what cannot be read becomes a submission with a fault in words.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

LARGEST = 30_000_000  # bytes: a notebook with pictures has 5
PARTS = 300_000  # braces: such a notebook has some thousands
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_ZIP = b"PK\x03\x04"
_MOODLE = re.compile(r"_\d+_assignsubmission_.*$")
_CANVAS = re.compile(r"^(?P<who>[^\W\d_][^_]*?)(?:_LATE)?_(?P<id>\d{3,})_\d{3,}_")
_COPY = re.compile(r"^(?:copy of |kopie van |copie de |kopie von )+", re.IGNORECASE)
_NUMBER = re.compile(r"(?: ?\((\d+)\)|-(\d+))$")
_BLANK = "no answer was written"
_ROLES = ("title", "colab", "imports", "end")


class Cell(NamedTuple):
    """A code cell that is to run: where it came from, and its text."""

    role: str  # the id that it has in the exercise, or ""
    source: str


class Assignment(NamedTuple):
    """What the teacher handed out: the cells of one exercise notebook by their ids."""

    stem: str
    exercises: tuple[str, ...]  # names, in order
    sources: dict[str, str]  # id → text of each code cell
    restored: frozenset[str]  # ids of the cells that are not the student's to change


class Submission(NamedTuple):
    """One notebook of one student, repaired, or the reason why there is none."""

    student: str  # a name if no other has it, or all that is known
    stem: str  # of the assignment, or "" where that is not known
    path: Path
    cells: tuple[Cell, ...]
    notes: tuple[str, ...]  # what was repaired
    fault: str = ""


def read_assignments(exercises: Path) -> list[Assignment]:
    """Read the exercise notebooks that were handed out.

    Args:
        exercises: Folder of them.

    Returns:
        One for each notebook, in the order of their names.

    Raises:
        ValueError: If there is none.
    """
    found = []
    for path in sorted(exercises.glob("*.ipynb")):
        code = [c for c in _load(path.read_bytes()) if c["cell_type"] == "code"]
        sources = {_own_ids(cell)[0]: _text(cell) for cell in code}
        locked = {
            _own_ids(cell)[0]
            for cell in code
            if cell["metadata"].get("nbgrader", {}).get("locked")
        }
        named = [i for i in sources if i not in locked]
        found.append(Assignment(path.stem, tuple(named), sources, frozenset(locked)))
    if not found:
        raise ValueError(f"{exercises} has no notebooks. Run: python run.py exercises")
    return found


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
            cells = _load(path.read_bytes())
        except (ValueError, RecursionError, MemoryError, OSError) as error:
            fault = readable(" ".join(str(error).split())[:200]) or type(error).__name__
    if fault and not claims:
        return None
    best = max(assignments, key=lambda a: _likeness(cells, a), default=None)
    if not fault and (best is None or not _likeness(cells, best)):
        fault = "it is none of this course's exercise notebooks"
    if fault:
        named = (a.stem for a in assignments if a.stem in path.name)
        stem = next(named, "")
        fault = f"{readable(path.name)}: {fault}."
        return Submission(student, stem, path, (), (), fault)
    kept, notes = _repaired(cells, best)
    others = [a.stem for a in assignments if a is not best and _answered(cells, a)]
    if others:
        notes.append(f"it holds answers of {', '.join(others)} too; ask for them apart")
    if not _answered(cells, best):
        notes.append(_BLANK)
    return Submission(student, best.stem, path, tuple(kept), tuple(notes))


def _at(path: Path, folder: Path) -> str:
    """Name a file as a teacher finds it."""
    return readable(path.relative_to(folder).as_posix())


def _load(data: bytes) -> list[dict]:
    """Return the cells of a notebook, each with type, metadata and source."""
    if not data.strip():
        raise ValueError("it is empty")
    if data.count(b"{") > PARTS:
        raise ValueError(f"it has more than {PARTS:,} parts")
    if data.startswith(_ZIP):
        raise ValueError("it is a zip archive; unpack it and put the notebook here")
    try:
        text = data.decode("utf-16" if data[:2] in _UTF16 else "utf-8-sig")
        content = json.loads(text)
    except UnicodeDecodeError:
        raise ValueError("it is no text in UTF-8") from None
    except UnicodeError:
        raise ValueError("it is no text that can be read") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is no notebook: {error}") from None
    cells = content.get("cells") if isinstance(content, dict) else None
    if cells is None and isinstance(content, dict):  # nbformat 3 had sheets
        sheets = content.get("worksheets")
        cells = sheets[0].get("cells") if _is_list_of_dicts(sheets) else None
    if not isinstance(cells, list):
        raise ValueError("it is no notebook: it has no cells")
    return [_cell(cell) for cell in cells if isinstance(cell, dict)]


def readable(text: str) -> str:
    """Replace what no file can hold: half characters, names in another encoding.

    Args:
        text: Anything that a student wrote.

    Returns:
        The text, fit for UTF-8.
    """
    return text.encode("utf-8", "replace").decode()


def _is_list_of_dicts(thing: Any) -> bool:
    return isinstance(thing, list) and bool(thing) and isinstance(thing[0], dict)


def _cell(cell: dict) -> dict:
    """Give a cell the three things that are used, whatever it holds."""
    source = cell.get("source", cell.get("input", ""))
    if isinstance(source, list):
        source = "".join(str(line) for line in source)
    metadata = cell.get("metadata")
    metadata = dict(metadata) if isinstance(metadata, dict) else {}
    if not isinstance(metadata.get("nbgrader"), dict):
        metadata["nbgrader"] = {}
    return {
        "cell_type": cell.get("cell_type"),
        "id": cell.get("id"),
        "metadata": metadata,
        "source": readable(source) if isinstance(source, str) else "",
    }


def _text(cell: dict) -> str:
    return cell["source"]


def _own_ids(cell: dict) -> list[str]:
    """Return the names that a cell may be known by: of nbgrader, Jupyter or Colab."""
    data = cell["metadata"]
    found = (data["nbgrader"].get("grade_id"), cell["id"], data.get("id"))
    return [one for one in found if isinstance(one, str)]


def _role(cell: dict, assignment: Assignment) -> str:
    """Say which cell of the exercise this is: by its ids, or by what is written."""
    source = _text(cell)
    for name in assignment.exercises:  # what defines the function is the answer
        if re.search(rf"^def {name}\b|^{name}\s*=", source, re.MULTILINE):
            return name
    known = (i for i in _own_ids(cell) if i in assignment.sources)
    return next(known, "") or next(
        (i for i, text in assignment.sources.items() if text.strip() == source.strip()),
        "",
    )


def _likeness(cells: list[dict], assignment: Assignment) -> int:
    """Count the cells that belong to an assignment; titles and imports say little."""
    roles = {_role(cell, assignment) for cell in cells if cell["cell_type"] == "code"}
    return len(roles - {"", *_ROLES})


def _answered(cells: list[dict], assignment: Assignment) -> bool:
    """Tell whether something was written into at least one answer."""
    for cell in cells:
        role = _role(cell, assignment) if cell["cell_type"] == "code" else ""
        blank = assignment.sources.get(role, "").strip()
        if role in assignment.exercises and _text(cell).strip() != blank:
            return True
    return False


def _repaired(
    cells: list[dict], assignment: Assignment
) -> tuple[list[Cell], list[str]]:
    """Return the code cells in order, locked ones as they were handed out."""
    kept, notes, seen = [], [], set()
    for cell in cells:
        if cell["cell_type"] != "code" or not _text(cell).strip():
            continue
        role, source = _role(cell, assignment), _text(cell)
        if role and role in seen:
            notes.append(f"cell {role} is there more than once")
        if role and role not in _own_ids(cell):
            notes.append(f"cell {role} had lost its id")
        seen.add(role)
        original = assignment.sources.get(role, "")
        if role in assignment.restored and source.strip() != original.strip():
            notes.append(f"cell {role} was changed, and ran as one of the student's")
        kept.append(Cell(role, source))
    lost = [i for i in assignment.sources if i not in seen and i != "colab"]
    notes += [f"cell {i} was deleted" for i in lost]
    if "imports" in lost:
        kept.insert(0, Cell("imports", assignment.sources["imports"]))
    return kept, list(dict.fromkeys(notes))


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
    blank = _BLANK in submission.notes
    return not submission.fault, not blank, number, time, str(submission.path)
