"""What every notebook carries: the Colab cell, the badge, and the links around it.

The address of the repository and the tag stand in one place (``release``). Here they
become text: between marks that Markdown does not show, and in the cell ``colab``.
"""

import json
import re
from typing import NamedTuple

from coursekit.classroom.colab import colab_cell

CELL = "colab"
BEGIN, END = "<!-- links -->", "<!-- /links -->"
BADGE = "https://colab.research.google.com/assets/colab-badge.svg"
_BLOCK = re.compile(rf"{BEGIN}\n.*?\n{END}", re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\([^)]*\.(?:ipynb|md)\)")
_MEASURED = "## What we measured"


class Course(NamedTuple):
    """What the stamps are made from; all of it is read by ``release.read_course``."""

    version: str
    address: str  # https://github.com/OWNER/REPO, or "" before the first release
    lessons: tuple[str, ...]  # stems such as 05_rope, in reading order
    exercises: tuple[str, ...]  # stems that have exercises and solutions

    def on_colab(self, folder: str, stem: str) -> str:
        """Return the address at which Colab opens a notebook of the tag."""
        slug = self.address.removeprefix("https://github.com/")
        at = f"{slug}/blob/v{self.version}/{folder}/{stem}.ipynb"
        return f"https://colab.research.google.com/github/{at}"


def links(course: Course, folder: str, stem: str, *, top: bool) -> str:
    """Write the links of a notebook, between their marks.

    Relative links open in JupyterLab and on a code host. In Colab they need a notebook
    that came from a code host, so absolute ones stand beside them after a release.

    Args:
        course: What there is to link to.
        folder: "notebooks", or "solutions", whose text the exercises share.
        stem: Of the notebook.
        top: Whether the badge comes first.

    Returns:
        The block, with its marks.
    """
    lesson = folder == "notebooks"
    ours = course.lessons if lesson else course.exercises
    home = folder if lesson else "exercises"  # where Colab is to go: never to answers
    at = ours.index(stem)
    row = [("← " + _words(name), home, name) for name in ours[at - 1 : at] if at]
    row.append(("map", "", "README"))
    if not lesson:
        row.append(("lesson", "notebooks", stem))
    elif stem in course.exercises:
        row += [("exercises", "exercises", stem), ("solutions", "solutions", stem)]
    row += [(_words(name) + " →", home, name) for name in ours[at + 1 : at + 2]]
    lines = [" · ".join(f"[{word}]({_near(home, *to)})" for word, *to in row)]
    if course.address:
        far = [(word, *to) for word, *to in row if to[0]]
        far = [f"[{word}]({course.on_colab(*to)})" for word, *to in far]
        lines.append("In Colab: " + " · ".join(far))
        if top:
            badge = f"[![Open in Colab]({BADGE})]({course.on_colab(home, stem)})"
            lines.insert(0, badge)
    return "\n\n".join((BEGIN, *lines, END))  # no comment swallows a line


def _near(home: str, folder: str, name: str) -> str:
    if not folder:
        return f"../{name}.md"
    return f"{name}.ipynb" if folder == home else f"../{folder}/{name}.ipynb"


def _words(stem: str) -> str:
    return stem.partition("_")[2].replace("_", " ")


def stamped(text: str, course: Course, folder: str, stem: str) -> str:
    """Stamp one notebook: cell and links; all else stays, and twice changes nothing.

    Args:
        text: The notebook as JSON.
        course: What the stamps are made from.
        folder: "notebooks" or "solutions".
        stem: Of the notebook.

    Returns:
        The notebook as JSON, in the form that nbformat writes.

    Raises:
        ValueError: If it is no notebook that starts and ends with text, or if its
            marks or its cell were spoilt by hand.
    """
    notebook = _read(text, f"{folder}/{stem}.ipynb")
    cells = notebook["cells"]
    texts = [cell for cell in cells if cell["cell_type"] == "markdown"]
    if len(texts) < 2 or texts[0] is not cells[0]:
        raise ValueError(
            f"{folder}/{stem}.ipynb does not start with a title and end with another "
            f"text, between which the cells stand. Add the text cell that is missing."
        )
    for cell, top in ((texts[0], True), (texts[-1], False)):
        block = links(course, folder, stem, top=top)
        _write(cell, _with_block(_source(cell), block, f"{folder}/{stem}.ipynb", top))
    _put_cell(cells, colab_cell(course.version, course.address), folder, stem)
    ours = {"ensure_ascii": False, "indent": 1, "sort_keys": True}
    return json.dumps(notebook, **ours, separators=(",", ": ")) + "\n"


def _read(text: str, name: str) -> dict:
    try:
        notebook = json.loads(text)
        [(cell["cell_type"], cell["source"]) for cell in notebook["cells"]]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{name} is no notebook: {error}. Restore it.") from None
    return notebook


def _source(cell: dict) -> str:
    return "".join(cell["source"])


def _write(cell: dict, source: str) -> None:
    cell["source"] = source.splitlines(keepends=True)


def _with_block(text: str, block: str, name: str, top: bool) -> str:
    """Put the block in its place: under the title, or at the very end."""
    if BEGIN in text or END in text:
        if text.count(BEGIN) != 1 or text.count(END) != 1 or not _BLOCK.search(text):
            raise ValueError(
                f"{name}: the links stand between {BEGIN} and {END}, each on a line "
                f"of its own and once in a cell. Remove both and what is between them."
            )
        return _BLOCK.sub(lambda found: block, text)
    kept = [part for part in text.strip().split("\n\n") if not _only_links(part)]
    kept.insert(1 if top else len(kept), block)
    return "\n\n".join(kept)


def _only_links(paragraph: str) -> bool:
    """Tell whether a paragraph is a row of links written by hand, to be replaced."""
    rest = _LINK.sub("", paragraph)
    return rest != paragraph and not re.sub(r"next:|previous:|[\s·|]", "", rest)


def _put_cell(cells: list[dict], source: str, folder: str, stem: str) -> None:
    """Write the Colab cell, or put it before all code and count the others on."""
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    ours = [cell for cell in cells if cell.get("id") == CELL]
    if ours and (len(ours) > 1 or ours[0] is not code[0]):
        raise ValueError(
            f"{folder}/{stem}.ipynb: the cell {CELL} is not the first code cell, or "
            f"is there twice. Remove it; it is put back in its place."
        )
    if ours:
        return _write(ours[0], source)
    first = next((cell for cell in code if cell.get("execution_count")), None)
    count_on(cells)
    cell = {"cell_type": "code", "id": CELL, "metadata": {}, "outputs": []}
    cell["execution_count"] = 1 if first else None
    if folder != "notebooks":
        role = {"grade": False, "locked": True, "solution": False, "task": False}
        cell["metadata"]["nbgrader"] = {**role, "grade_id": CELL, "schema_version": 3}
    _write(cell, source)
    return cells.insert(cells.index(code[0]) if code else 1, cell)


def count_on(cells: list[dict]) -> None:
    """Count all executions one on, and with them the cells that a table names.

    The last column of *What we measured* names cells by these numbers.

    Args:
        cells: Of a notebook, changed in place.
    """
    for cell in cells:
        for one in (cell, *cell.get("outputs", ())):
            if one.get("execution_count"):
                one["execution_count"] += 1
        if cell["cell_type"] == "markdown" and _MEASURED in _source(cell):
            rows = [_row_on(row) for row in _source(cell).split("\n")]
            _write(cell, "\n".join(rows))


def _row_on(row: str) -> str:
    if not re.fullmatch(r"\|.*\|\s*", row):
        return row
    *most, last, end = row.rsplit("|", 2)
    last = re.sub(r"\[(\d+)\]", lambda found: f"[{int(found[1]) + 1}]", last)
    return "|".join((*most, last, end))
