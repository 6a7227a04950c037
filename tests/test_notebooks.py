"""What nbval does not see: order of execution, figures, alt text, paths, shape."""

import base64
import json
import re
import struct
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
EXECUTED = LESSONS + sorted((ROOT / "solutions").glob("*.ipynb"))
MACHINE = re.compile(r"(?<![\w./-])/(?:work|home|root|tmp|opt|Users)/[\w.-]+|[A-Z]:\\")


def read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def text_of(cell: dict) -> str:
    return "".join(cell["source"])


def cells(notebook: dict, kind: str) -> list[dict]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == kind]


def words(cell: dict) -> int:
    """Count words of prose: formulas, links and table rules are not words."""
    text = re.sub(r"\$\$.*?\$\$|\$[^$]*\$", " x ", text_of(cell), flags=re.DOTALL)
    text = re.sub(r"\]\([^)]*\)|<[^>]+>|https?://\S+", " ", text)
    return len(re.findall(r"[^\W_][\w'’.,-]*", text))


def execution_faults(notebook: dict) -> list[str]:
    counts = [cell.get("execution_count") for cell in cells(notebook, "code")]
    if counts != list(range(1, len(counts) + 1)):
        return [f"not run from top to bottom: {counts}"]
    return []


def output_faults(notebook: dict) -> list[str]:
    faults = []
    for cell in cells(notebook, "code"):
        tags = cell["metadata"].get("tags", [])
        for output in cell["outputs"]:
            error = output["output_type"] == "error"
            if error and "raises-exception" not in tags:
                faults.append(f"{cell['id']}: error {output['ename']}")
            if output.get("name") == "stderr":
                faults.append(f"{cell['id']}: text on stderr")
            if MACHINE.search(json.dumps(output)):
                faults.append(f"{cell['id']}: a path of a machine")
    return faults


def metadata_faults(notebook: dict) -> list[str]:
    faults = []
    ids = [cell.get("id") for cell in notebook["cells"]]
    if None in ids or len(set(ids)) != len(ids):
        faults.append("cell ids are missing or repeated")
    if set(notebook["metadata"]) != {"kernelspec", "language_info"}:
        faults.append(f"notebook metadata {sorted(notebook['metadata'])}")
    if notebook["metadata"].get("language_info") != {"name": "python"}:
        faults.append("language_info carries a version")
    if notebook["metadata"].get("kernelspec", {}).get("name") != "python3":
        faults.append("the kernel is not python3")
    for cell in notebook["cells"]:
        noise = set(cell["metadata"]) - {"tags", "nbgrader"}
        if noise:
            faults.append(f"{cell.get('id')}: metadata {sorted(noise)}")
    return faults


def figure_faults(notebook: dict) -> list[str]:
    faults = []
    for cell in cells(notebook, "code"):
        shown = len(re.findall(r"\bplots\.show\(", text_of(cell)))
        pictures = [o for o in cell["outputs"] if "image/png" in o.get("data", {})]
        if shown and not pictures:
            faults.append(f"{cell['id']}: a plotting cell without a figure")
        if re.search(r"plt\.show|%matplotlib|savefig", text_of(cell)):
            faults.append(f"{cell['id']}: shows a figure past plots.show")
        for picture in pictures:
            alt = picture["metadata"].get("image/png", {}).get("alt", "")
            if len(alt.split()) < 5:
                faults.append(f"{cell['id']}: a figure without alt text")
            faults += [f"{cell['id']}: {w}" for w in picture_faults(picture)]
    return faults


def picture_faults(output: dict) -> list[str]:
    raw = base64.b64decode("".join(output["data"]["image/png"]))
    if raw[:8] != b"\x89PNG\r\n\x1a\n" or len(raw) < 2_000:
        return ["the picture is broken or empty"]
    width, height = struct.unpack(">II", raw[16:24])
    return [f"{width} pixels wide"] if width > 1_200 or height > 1_200 else []


def written(notebook: dict) -> list[dict]:
    """Return the cells that somebody wrote; the Colab cell is stamped by a command."""
    return [cell for cell in notebook["cells"] if cell["id"] != "colab"]


def length_faults(notebook: dict) -> list[str]:
    faults = [] if len(written(notebook)) <= 60 else ["more than 60 cells"]
    for cell in cells(notebook, "code"):
        lines = text_of(cell).splitlines()
        if len(lines) > 15:
            faults.append(f"{cell['id']}: {len(lines)} lines of code")
        if any(len(line) > 88 for line in lines):
            faults.append(f"{cell['id']}: a line over 88 characters")
    for cell in cells(notebook, "markdown"):
        if words(cell) > 120 and "What we measured" not in text_of(cell):
            faults.append(f"{cell['id']}: {words(cell)} words")
    return faults


def opening_faults(notebook: dict) -> list[str]:
    first, second = written(notebook)[:2]
    text = text_of(first)
    faults = [] if text.startswith("# ") else ["the first cell has no title"]
    for wanted in ("You will be able to", "minutes", "oor", "?"):
        if wanted not in text:
            faults.append(f"the first cell does not say {wanted!r}")
    if second["cell_type"] != "code" or "plots.use_house_style()" not in text_of(
        second
    ):
        faults.append("the second cell is not the imports")
    elif len(text_of(second).splitlines()) > 12:
        faults.append("the imports take more than 12 lines")
    opening = "".join(text_of(cell) for cell in written(notebook)[2:6])
    if "SENTENCE" not in opening or "plot_walk" not in opening:
        faults.append("the walk on the course's sentence does not come first")
    return faults


def beat_faults(notebook: dict) -> list[str]:
    text = "\n".join(text_of(cell) for cell in cells(notebook, "markdown"))
    sections = [s for s in re.findall(r"^## (.+)$", text, re.MULTILINE)]
    claims = [s for s in sections if s not in ("What we measured", "Your turn")]
    faults = [] if 3 <= len(claims) <= 6 else [f"{len(claims)} sections: {claims}"]
    for wanted in ("**Predict", "**Figure 1.**", "<details>", "## What we measured"):
        if wanted not in text:
            faults.append(f"no {wanted}")
    if text.count("<details>") != text.count("</details>"):
        faults.append("a folded answer is not closed")
    figures = [int(n) for n in re.findall(r"\*\*Figure (\d+)\.\*\*", text)]
    if figures != list(range(1, len(figures) + 1)):
        faults.append(f"figures are numbered {figures}")
    shown = sum(
        "image/png" in output.get("data", {})
        for cell in cells(notebook, "code")
        for output in cell["outputs"]
    )
    if len(figures) != shown:
        faults.append(f"{shown} figures but {len(figures)} captions")
    asserting = [c for c in cells(notebook, "code") if "assert " in text_of(c)]
    if len(asserting) < 8:
        faults.append(f"only {len(asserting)} cells assert something")
    return faults


def word_faults(notebook: dict) -> list[str]:
    banned = re.compile(r"\btheta\b|autoreload|TODO|\bQ\d\d\b|sys\.path|import \*")
    return [
        f"{cell['id']}: {found.group()!r}"
        for cell in notebook["cells"]
        if (found := banned.search(text_of(cell)))
    ]


def link_faults(notebook: dict, path: Path) -> list[str]:
    text = "\n".join(text_of(cell) for cell in cells(notebook, "markdown"))
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", text)
    faults = [f"{t} leads nowhere" for t in targets if not (path.parent / t).exists()]
    lessons = sorted(path.parent.glob("*.ipynb"))
    here = lessons.index(path)
    around = lessons[max(here - 1, 0) : here] + lessons[here + 1 : here + 2]
    faults += [f"no link to {n.name}" for n in around if n.name not in targets]
    return faults + ([] if "../README.md" in targets else ["no link to the map"])


GENERAL = [execution_faults, output_faults, metadata_faults, figure_faults]
LESSON = [length_faults, opening_faults, beat_faults, word_faults]


@pytest.mark.parametrize("guard", GENERAL, ids=lambda guard: guard.__name__)
@pytest.mark.parametrize("path", EXECUTED, ids=lambda path: path.stem)
def test_a_committed_notebook_is_whole(path, guard):
    assert guard(read(path)) == []


@pytest.mark.parametrize("guard", LESSON, ids=lambda guard: guard.__name__)
@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_follows_the_house(path, guard):
    assert guard(read(path)) == []


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_links_of_a_lesson_lead_somewhere(path):
    assert link_faults(read(path), path) == []


@pytest.mark.parametrize("path", EXECUTED, ids=lambda path: path.stem)
def test_a_notebook_is_written_with_unix_line_ends(path):
    raw = path.read_bytes()
    assert b"\r" not in raw
    assert raw.endswith(b"\n")


def test_there_are_lessons_numbered_from_one():
    numbers = [int(path.stem[:2]) for path in LESSONS]
    assert numbers == list(range(1, len(numbers) + 1))
    assert numbers


def test_each_picture_of_the_readme_comes_from_a_cell_of_a_lesson():
    named = re.findall(
        r"!\[[^\]]+\]\(([^)]+\.png)\)", (ROOT / "README.md").read_text("utf-8")
    )
    shown = {
        base64.b64decode("".join(output["data"]["image/png"]))
        for path in LESSONS
        for cell in cells(read(path), "code")
        for output in cell["outputs"]
        if "image/png" in output.get("data", {})
    }
    assert named
    for name in named:
        assert (ROOT / name).read_bytes() in shown, (
            f"{name} is not what a cell draws now"
        )


# The guards themselves must be able to fail: each planted fault is found.


def planted(change) -> dict:
    notebook = read(LESSONS[0])
    change(notebook)
    return notebook


def first_figure(notebook: dict) -> dict:
    return next(
        output
        for cell in cells(notebook, "code")
        for output in cell["outputs"]
        if "image/png" in output.get("data", {})
    )


def plotting_cell(notebook: dict) -> dict:
    return next(c for c in cells(notebook, "code") if "plots.show(" in text_of(c))


PLANTED = {
    "cell not run": (
        execution_faults,
        lambda n: cells(n, "code")[1].update(execution_count=None),
    ),
    "error output": (
        output_faults,
        lambda n: cells(n, "code")[1]["outputs"].append(
            {"output_type": "error", "ename": "E", "evalue": "", "traceback": []}
        ),
    ),
    "stderr": (
        output_faults,
        lambda n: cells(n, "code")[1]["outputs"].append(
            {"output_type": "stream", "name": "stderr", "text": ["warn"]}
        ),
    ),
    "machine path": (
        output_faults,
        lambda n: cells(n, "code")[1]["outputs"].append(
            {"output_type": "stream", "name": "stdout", "text": ["/home" + "/me/x"]}
        ),
    ),
    "repeated id": (
        metadata_faults,
        lambda n: n["cells"][1].update(id=n["cells"][0]["id"]),
    ),
    "time stamps": (
        metadata_faults,
        lambda n: n["cells"][1]["metadata"].update(execution={}),
    ),
    "python version": (
        metadata_faults,
        lambda n: n["metadata"]["language_info"].update(version="3"),
    ),
    "figure removed": (figure_faults, lambda n: plotting_cell(n).update(outputs=[])),
    "figure without alt": (
        figure_faults,
        lambda n: first_figure(n)["metadata"].clear(),
    ),
    "figure broken": (
        figure_faults,
        lambda n: first_figure(n)["data"].update({"image/png": "aGVsbG8="}),
    ),
    "long code": (
        length_faults,
        lambda n: cells(n, "code")[1].update(source=["x = 1\n"] * 16),
    ),
    "long text": (
        length_faults,
        lambda n: cells(n, "markdown")[1].update(source=["word " * 121]),
    ),
    "no title": (opening_faults, lambda n: n["cells"][0].update(source=["Hello"])),
    "caption lost": (
        beat_faults,
        lambda n: [
            c.update(source=[text_of(c).replace("**Figure 1.**", "")])
            for c in cells(n, "markdown")
        ],
    ),
    "banned word": (
        word_faults,
        lambda n: n["cells"][2].update(source=["the" + "ta = 1"]),
    ),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(fault):
    guard, change = PLANTED[fault]
    assert guard(read(LESSONS[0])) == []
    assert guard(planted(change)) != []
