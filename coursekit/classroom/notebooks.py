"""Notebooks that were handed out, and what is left of them in what came back."""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

PARTS = 300_000  # braces of a file: a notebook with pictures has some thousands
BLANK = "no answer was written"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_ZIP = b"PK\x03\x04"
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
        code = [c for c in load(path.read_bytes()) if c["cell_type"] == "code"]
        sources = {_own_ids(cell)[0]: cell["source"] for cell in code}
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


def load(data: bytes) -> list[dict]:
    """Return the cells of a notebook, each with type, metadata and source.

    Args:
        data: Of a file, whatever it is.

    Returns:
        One dictionary for each cell.

    Raises:
        ValueError: If it is no notebook.
    """
    if not data.strip():
        raise ValueError("it is empty")
    if data.count(b"{") > PARTS:
        raise ValueError(f"it has more than {PARTS:,} parts")
    if data.startswith(_ZIP):
        raise ValueError("it is a zip archive; unpack it and put the notebook here")
    try:
        text = data.decode("utf-16" if data[:2] in _UTF16 else "utf-8-sig")
        content = json.loads(text)
    except UnicodeError:
        raise ValueError("it is no text in UTF-8") from None
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


def _own_ids(cell: dict) -> list[str]:
    """Return the names that a cell may be known by: of nbgrader, Jupyter or Colab."""
    data = cell["metadata"]
    found = (data["nbgrader"].get("grade_id"), cell["id"], data.get("id"))
    return [one for one in found if isinstance(one, str)]


def _role(cell: dict, assignment: Assignment) -> str:
    """Say which cell of the exercise this is: by its ids, or by what is written."""
    source = cell["source"]
    for name in assignment.exercises:  # what defines the function is the answer
        if re.search(rf"^def {name}\b|^{name}\s*=", source, re.MULTILINE):
            return name
    known = (i for i in _own_ids(cell) if i in assignment.sources)
    return next(known, "") or next(
        (i for i, text in assignment.sources.items() if text.strip() == source.strip()),
        "",
    )


def likeness(cells: list[dict], assignment: Assignment) -> int:
    """Count the cells that belong to an assignment; titles and imports say little.

    Args: ``cells`` from ``load``; ``assignment``, one that was handed out.
    Returns: How many different ones there are.
    """
    roles = {_role(cell, assignment) for cell in cells if cell["cell_type"] == "code"}
    return len(roles - {"", *_ROLES})


def answered(cells: list[dict], assignment: Assignment) -> bool:
    """Tell whether something was written into at least one answer.

    Args: ``cells`` from ``load``; ``assignment``, one that was handed out.
    Returns: True if an answer differs from what was handed out.
    """
    for cell in cells:
        role = _role(cell, assignment) if cell["cell_type"] == "code" else ""
        blank = assignment.sources.get(role, "").strip()
        if role in assignment.exercises and cell["source"].strip() != blank:
            return True
    return False


def repaired(cells: list[dict], assignment: Assignment) -> tuple[list[Cell], list[str]]:
    """Give each code cell its role back.

    Args:
        cells: From ``load``.
        assignment: The one that they belong to.

    Returns:
        The cells that are to run, in order, and notes on what was repaired or changed.
    """
    kept, notes, seen = [], [], set()
    for cell in cells:
        if cell["cell_type"] != "code" or not cell["source"].strip():
            continue
        role, source = _role(cell, assignment), cell["source"]
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
