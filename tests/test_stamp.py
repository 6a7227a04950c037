"""Stamps: one address and one version, in all notebooks and pages; and links that lead.

``python run.py release`` writes what is tested here.
"""

import json
import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import nbformat
import pytest

from coursekit.classroom import release as module
from coursekit.classroom.address import (
    address_of,
    read_course,
    with_address,
    with_colab,
    with_version,
)
from coursekit.classroom.colab import colab_cell
from coursekit.classroom.release import faults, main, release, texts
from coursekit.classroom.stamp import BEGIN, END, Course, links, stamped

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("notebooks", "solutions", "exercises")
NOTEBOOKS = [p for f in FOLDERS for p in sorted((ROOT / f).glob("*.ipynb"))]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *(p for f in ("coursekit", "tests") for p in sorted((ROOT / f).rglob("*.md"))),
]
STEMS = ("01_walk", "02_clock_hands", "03_rope")
COURSE = Course("1.2.3", "", STEMS, STEMS)
RELEASED = COURSE._replace(address="https://github.com/ada/course")
COLAB = "https://colab.research.google.com/github/ada/course/blob/v1.2.3"
TITLE = "# Title\n\n[map of the course](../README.md) · next: [x](y.ipynb)\n\nText."
MEASURED = """## What we measured

| claim | number | cell |
| --- | --- | --- |
| a row [1] of it | 3 [2] | [1], [2] |

Sources [1].

[← A](a.ipynb) · [map](../README.md) · [B →](b.ipynb)"""


def in_words(path):
    return path.relative_to(ROOT).as_posix()


def source(cell) -> str:
    return "".join(cell["source"])


def notebook(first=TITLE, last=MEASURED, *, run=True) -> str:
    """Return the text of a notebook with two code cells, as nbformat writes it."""
    new = nbformat.v4
    cells = [new.new_markdown_cell(first, id="title")]
    for number, code in enumerate(("import torch", "1 + 1"), start=1):
        cell = new.new_code_cell(code, id=f"code-{number}")
        if run:
            cell.execution_count = number
            data = {"text/plain": f"{number}é"}
            cell.outputs = [
                new.new_output("execute_result", data, execution_count=number)
            ]
        cells.append(cell)
    cells.append(new.new_markdown_cell(last, id="measured"))
    return nbformat.writes(new.new_notebook(cells=cells)) + "\n"


def stamp(text, course=COURSE, folder="notebooks", stem="02_clock_hands"):
    return json.loads(stamped(text, course, folder, stem))


@pytest.fixture
def course(tmp_path):
    """Return a small course of three lessons in a folder of its own."""
    (tmp_path / "coursekit").mkdir()
    (tmp_path / "coursekit/__init__.py").write_text('"""A."""\n__version__ = "1.2.3"\n')
    for name in ("pyproject.toml", "CITATION.cff"):
        shutil.copy(ROOT / name, tmp_path / name)
    project = (tmp_path / "pyproject.toml").read_text("utf-8")
    project = re.sub(r"\[project\.urls\]\n.*\n\n", "", project)
    (tmp_path / "pyproject.toml").write_text(project, "utf-8")
    citation = (tmp_path / "CITATION.cff").read_text("utf-8")
    citation = re.sub(r"repository-code.*\n", "", citation)
    (tmp_path / "CITATION.cff").write_text(citation, "utf-8")
    rows = "".join(f"| [{stem}](notebooks/{stem}.ipynb) | 5 |\n" for stem in STEMS)
    (tmp_path / "README.md").write_text(f"# A\n\n| n | m |\n| - | - |\n{rows}\nEnd.\n")
    for folder in ("notebooks", "solutions"):
        (tmp_path / folder).mkdir()
        for stem in STEMS:
            (tmp_path / folder / f"{stem}.ipynb").write_text(notebook(), "utf-8")
    return tmp_path


def bytes_of(folder) -> dict:
    return {p: p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


# Property: one place


def test_every_badge_link_and_cell_of_the_course_agrees_with_the_one_place():
    assert faults(ROOT) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=in_words)
def test_the_colab_cell_comes_first_everywhere(path):
    course = read_course(ROOT)
    cells = json.loads(path.read_text("utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code[0]["id"] == "colab"
    assert source(code[0]) == colab_cell(course.version, course.address)
    assert code[0]["outputs"] == []


@pytest.mark.parametrize("slug", [None, "ada/course", "grace-hopper/pos.enc_2"])
def test_stamping_twice_changes_no_byte(course, slug):
    assert release(course, slug)
    once = bytes_of(course)
    assert faults(course) == []
    assert release(course, slug) == []
    assert release(course) == []  # the address is now that of pyproject.toml
    assert bytes_of(course) == once


def test_another_version_or_address_reaches_every_place(course):
    release(course, "ada/course")
    before = "".join(texts(course).values())
    init = course / "coursekit/__init__.py"
    init.write_text(init.read_text().replace("1.2.3", "1.2.4"))
    assert len(faults(course)) == 8  # README, CITATION and six notebooks
    release(course, "grace/other")
    after = "".join(texts(course).values())
    assert faults(course) == []
    assert "ada/course" not in after
    assert "v1.2.3" not in after
    assert after.count("v1.2.4") == before.count("v1.2.3") > 0
    assert after.count("grace/other") == before.count("ada/course") > 0
    assert "version: 1.2.4" in (course / "CITATION.cff").read_text("utf-8")


@pytest.mark.parametrize(
    "link",
    [
        "https://colab.research.google.com/github/bob/x/blob/v1.2.3/notebooks/a.ipynb",
        f"{COLAB[:-1]}2/notebooks/01_walk.ipynb",
        "https://github.com/ada/course/blob/main/README.md",
        "https://github.com/ada/course/archive/refs/tags/v1.2.zip",
    ],
)
def test_a_link_to_another_repository_or_tag_is_found(course, link):
    path = course / "README.md"
    release(course, "ada/course")
    right = "https://github.com/ada/course/blob/v1.2.3/README.md and /issues"
    path.write_text(path.read_text("utf-8") + f"[here]({right})\n", "utf-8")
    assert faults(course) == []
    path.write_text(path.read_text("utf-8") + f"[here]({link})\n", "utf-8")
    assert faults(course) == [f"README.md leads to {link}, which is not ours."]


# Property: what stays


@pytest.mark.parametrize("used", [COURSE, RELEASED], ids=["before", "released"])
def test_outputs_ids_and_all_other_cells_stay(used):
    before, after = json.loads(notebook()), stamp(notebook(), used)
    assert [c["id"] for c in after["cells"]] == [
        *("title", "colab", "code-1", "code-2", "measured"),
    ]
    del after["cells"][1]
    for old, new in zip(before["cells"][1:3], after["cells"][1:3], strict=True):
        assert new["source"] == old["source"]
        assert new["outputs"][0]["data"] == old["outputs"][0]["data"]
    nbformat.validate(after)
    assert before["metadata"] == after["metadata"]


def test_executions_are_counted_on_and_the_table_of_cells_with_them():
    cells = stamp(notebook())["cells"]
    assert [c["execution_count"] for c in cells[1:4]] == [1, 2, 3]
    assert [c["outputs"][0]["execution_count"] for c in cells[2:4]] == [2, 3]
    text = source(cells[-1])
    assert "| a row [1] of it | 3 [2] | [2], [3] |" in text
    assert "Sources [1]." in text


def test_what_was_not_run_stays_not_run():
    cells = stamp(notebook(run=False))["cells"]
    assert [c["execution_count"] for c in cells[1:4]] == [None] * 3


def test_a_row_of_links_by_hand_gives_way_and_prose_with_a_link_stays():
    prose = f"{TITLE}\n\nSee [there](z.ipynb) first."
    first, last = (source(stamp(notebook(prose))["cells"][i]) for i in (0, -1))
    assert "y.ipynb" not in first
    assert first.endswith("Text.\n\nSee [there](z.ipynb) first.")
    assert first.startswith(f"# Title\n\n{BEGIN}\n")
    assert "b.ipynb" not in last
    assert last.endswith(f"Sources [1].\n\n{links_of(last)}")


def links_of(text) -> str:
    return re.search(f"{BEGIN}.*{END}", text, re.DOTALL)[0]


def test_a_solution_has_the_marks_of_nbgrader_and_a_lesson_none():
    assert stamp(notebook())["cells"][1]["metadata"] == {}
    metadata = stamp(notebook(), folder="solutions")["cells"][1]["metadata"]
    assert metadata == {
        "nbgrader": {
            "grade": False,
            "grade_id": "colab",
            "locked": True,
            "schema_version": 3,
            "solution": False,
            "task": False,
        }
    }


# Property: links


def test_a_lesson_leads_to_its_neighbours_its_exercises_and_the_map():
    assert links(COURSE, "notebooks", "02_clock_hands", top=True).split("\n\n") == [
        BEGIN,
        "[← walk](01_walk.ipynb) · [map](../README.md) · "
        "[exercises](../exercises/02_clock_hands.ipynb) · "
        "[solutions](../solutions/02_clock_hands.ipynb) · [rope →](03_rope.ipynb)",
        END,
    ]


@pytest.mark.parametrize("used", [COURSE, RELEASED], ids=["before", "released"])
@pytest.mark.parametrize("top", [True, False])
@pytest.mark.parametrize("stem", STEMS)
def test_exercises_lead_to_their_lesson_and_to_no_solution(stem, top, used):
    text = links(used, "solutions", stem, top=top)
    assert f"[lesson](../notebooks/{stem}.ipynb)" in text
    assert "[map](../README.md)" in text
    assert "solution" not in text


def test_after_a_release_each_link_to_a_notebook_has_its_twin_for_colab():
    for folder, home in (("notebooks", "notebooks"), ("solutions", "exercises")):
        for stem in STEMS:
            _, badge, near, far, _ = links(RELEASED, folder, stem, top=True).split(
                "\n\n"
            )
            assert "[![Open in Colab](https://colab.research" in badge
            assert badge.endswith(f"({COLAB}/{home}/{stem}.ipynb)")
            near = [w for w in re.findall(r"\[(.*?)\]\((.*?)\)", near)]
            far = dict(re.findall(r"\[(.*?)\]\((.*?)\)", far))
            assert list(far) == [word for word, _ in near if word != "map"]
            for word, target in near:
                if word != "map":
                    resolved = Path("/", home, target)
                    parts = [p for p in resolved.parts if p not in ("/", "..")]
                    assert far[word] == f"{COLAB}/{'/'.join(parts[-2:])}"


def test_the_badge_stands_at_the_top_alone():
    cells = stamp(notebook(), RELEASED)["cells"]
    assert source(cells[0]).count("Open in Colab") == 1
    assert "Open in Colab" not in source(cells[-1])
    assert "In Colab: [← walk]" in source(cells[-1])
    assert "olab" not in source(stamp(notebook())["cells"][0])


def written(path) -> str:
    """Return the Markdown of a file, without code."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        kept = (source(c) for c in cells if c["cell_type"] == "markdown")
        text = "\n\n".join(kept)
    return re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)


def anchors(path) -> set[str]:
    """Return where one can jump to: headings as GitHub or JupyterLab names them."""
    text = written(path)
    found = set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text))
    for heading in re.findall(r"(?m)^#{1,6} +(.+?) *#*$", text):
        plain = re.sub(r"[*_]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip()
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        found.add(heading.replace(" ", "-") if path.suffix == ".ipynb" else slug)
    return found


def dead(path) -> list[str]:
    """Return the links and anchors of a file that lead nowhere."""
    found = []
    text = written(path)
    targets = re.findall(r"\]\(\s*<?([^)\s>]+)", text)
    targets += re.findall(r"(?:href|src)=\"([^\"]+)\"", text)
    for target in targets:
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = unquote(target).partition("#")
        at = (path.parent / name) if name else path
        if not at.exists() or (anchor and anchor not in anchors(at)):
            found.append(target)
    return found


@pytest.mark.parametrize("path", NOTEBOOKS + PAGES, ids=in_words)
def test_every_link_and_anchor_leads_somewhere(path):
    assert dead(path) == []


@pytest.mark.parametrize(
    ("link", "leads"),
    [
        ("other.md", True),
        ("other.md#two-words-and-code", True),
        ("#Big-Title", True),
        ("https://example.org/nothing#x", True),
        ("other.md#two-word", False),
        ("missing.md", False),
        ("../other.md", False),
        ("#big-title", False),
    ],
)
def test_a_dead_link_or_anchor_is_found(tmp_path, link, leads):
    (tmp_path / "other.md").write_text("# Two *words*, and code!\n")
    path = tmp_path / "a.ipynb"
    path.write_text(notebook(f"# Big Title\n\nSee [it]({link}) and `[x](y)`.", "End"))
    assert (dead(path) == []) is leads


# Boundary


def test_the_ends_of_the_course_have_one_neighbour():
    first = links(RELEASED, "notebooks", "01_walk", top=False)
    last = links(RELEASED, "solutions", "03_rope", top=False)
    assert ("←" in first, "→" in first) == (False, True)
    assert ("←" in last, "→" in last) == (True, False)


def test_a_lesson_without_exercises_has_no_link_to_them():
    lone = COURSE._replace(lessons=("01_walk",), exercises=())
    text = links(lone, "notebooks", "01_walk", top=True)
    assert text == f"{BEGIN}\n\n[map](../README.md)\n\n{END}"


def test_a_release_marks_the_pages_once(course):
    release(course, "ada/course")
    readme = (course / "README.md").read_text("utf-8")
    assert readme.count(COLAB) == 3
    assert readme.endswith("<!-- /colab -->.\n\nEnd.\n")
    project = (course / "pyproject.toml").read_text("utf-8")
    assert project.count('Repository = "https://github.com/ada/course"') == 1
    citation = (course / "CITATION.cff").read_text("utf-8")
    assert citation.count('repository-code: "https://github.com/ada/course"') == 1
    (course / "CITATION.cff").unlink()
    assert release(course, "ada/course") == []


def test_before_a_release_nothing_leads_to_a_code_host(course):
    before = (course / "pyproject.toml").read_bytes()
    release(course)
    assert (course / "pyproject.toml").read_bytes() == before
    assert "github" not in "".join(texts(course).values())
    assert "puts into `dist/`" in (course / "README.md").read_text("utf-8")


# Message


@pytest.mark.parametrize(
    "slug",
    ["course", "a/b/c", "/b", "a/", "-a/b", "a b/c", "a/..", "a/b.git", "a/b)", ""]
    + ["https://github.com/a/b", "a/b\n"],
)
def test_a_slug_of_another_form_is_refused_and_writes_nothing(course, slug, capsys):
    assert address_of("a/b") == "https://github.com/a/b"
    before = bytes_of(course)
    with pytest.raises(ValueError, match="is not OWNER/REPO, the last two parts"):
        release(course, slug)
    assert main([str(course), "--", slug]) == 1
    assert "python run.py release ada/course" in capsys.readouterr().err
    assert bytes_of(course) == before


@pytest.mark.parametrize(
    ("first", "last", "said"),
    [
        (f"{BEGIN}\n\nx", "End", "Remove both and what is between them"),
        (f"# T\n\n{END}\n\n{BEGIN}", "End", "Remove both and what is between them"),
        ("# T", f"{BEGIN}\n\n{END}\n\n{BEGIN}\n\n{END}", "each on a line of its own"),
    ],
)
def test_spoilt_marks_are_told(first, last, said):
    with pytest.raises(ValueError, match=said):
        stamp(notebook(first, last))
    stamp(notebook(f"# T\n\n{BEGIN}\n\nold\n\n{END}", "End"))


def test_a_cell_that_was_moved_or_doubled_is_told():
    whole = stamp(notebook())
    cells = whole["cells"]
    for wrong in (
        [cells[0], cells[2], cells[1], *cells[3:]],
        [*cells[:2], *cells[1:]],
    ):
        with pytest.raises(ValueError, match="colab is not the first code cell, or is"):
            stamp(json.dumps(whole | {"cells": wrong}))
    assert stamp(json.dumps(whole))["cells"] == cells


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cells": [{}]}', '{"cells": 3}'])
def test_what_is_no_notebook_is_told(text):
    with pytest.raises(ValueError, match="02_clock_hands.ipynb is no notebook: .*"):
        stamp(text)


def test_a_notebook_without_a_text_at_each_end_is_told():
    whole = json.loads(notebook())
    for cells in (whole["cells"][1:], whole["cells"][:3], []):
        with pytest.raises(ValueError, match="does not start with a title and end"):
            stamp(json.dumps(whole | {"cells": cells}))


def test_a_page_without_a_place_for_its_stamp_is_told():
    with pytest.raises(ValueError, match="README.md has no table with links to note"):
        with_colab("# Title\n", RELEASED)
    with pytest.raises(ValueError, match="README.md: the links to Colab stand between"):
        with_colab("<!-- colab -->\n", RELEASED)
    with pytest.raises(ValueError, match=r"has no place for the address: before the"):
        with_address('[project]\nname = "x"\n', RELEASED.address)
    assert with_address("[project]\n", "") == "[project]\n"
    assert with_version("version: 1\n", COURSE) == "version: 1.2.3\n"


def test_a_fault_in_one_file_writes_none(course, capsys):
    before = bytes_of(course)
    (course / "solutions/03_rope.ipynb").write_text("{}")
    assert main([str(course), "ada/course"]) == 1
    assert "solutions/03_rope.ipynb is no notebook" in capsys.readouterr().err
    (course / "solutions/03_rope.ipynb").write_text(notebook(), "utf-8")
    assert bytes_of(course) == before
    (course / "coursekit/__init__.py").write_text("")
    assert main([str(course)]) == 1
    assert "has no line __version__" in capsys.readouterr().err
    (course / "README.md").unlink()
    assert main([str(course)]) == 1
    (course / "coursekit/__init__.py").unlink()
    assert main([str(course)]) == 1
    assert "__init__.py cannot be read" in capsys.readouterr().err


def test_the_check_changes_nothing(course, capsys):
    before = bytes_of(course)
    assert main([str(course), "--check"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 8
    assert said[0] == (
        "run.py release: README.md is not as stamped. Run: python run.py release"
    )
    assert bytes_of(course) == before
    assert main([str(course)]) == 0
    assert main([str(course), "--check"]) == 0
    assert "All agree: version 1.2.3, no address yet" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main([str(course), "ada/course", "--check"])


def test_exercises_are_made_again_from_stamped_solutions(course):
    shutil.rmtree(course / "solutions")
    (course / "solutions").mkdir()
    first = sorted((ROOT / "solutions").glob("*.ipynb"))[0]
    shutil.copy(first, course / "solutions" / first.name)
    (course / "exercises").mkdir()
    release(course, "ada/course")
    cells = json.loads((course / "exercises" / first.name).read_text("utf-8"))["cells"]
    assert cells[1]["id"] == "colab"
    assert "v1.2.3" in source(cells[1])
    assert f"{COLAB}/exercises/{first.name}" in source(cells[0])
    assert module.faults(course) == []
