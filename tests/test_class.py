"""A class of forty, ten variants, and nbgrader itself: slow, a step of its own."""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from classroom.class_of_forty import (
    FORTY,
    SOLUTION,
    answers,
    filled,
    given,
    write_class,
)

from coursekit.classroom.exercises import exercise_of, write_exercises
from coursekit.classroom.grading import grade_folder, grade_submission
from coursekit.classroom.notebooks import Cell, read_assignments
from coursekit.classroom.sandbox import Limits, bubblewrap
from coursekit.classroom.submissions import Submission
from coursekit.classroom.variants import variant_constants
from coursekit.slips import EXERCISES

pytestmark = pytest.mark.slow
SOLUTIONS = Path(__file__).resolve().parents[1] / "solutions"
WRAPS = {"bare": [], "bubblewrap": bubblewrap()}


def rows(path):
    with open(path, encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture(scope="module", params=WRAPS)
def table(request, tmp_path_factory):
    if request.param == "bubblewrap" and not WRAPS["bubblewrap"]:
        pytest.skip("there is no bubblewrap here")
    place = tmp_path_factory.mktemp(request.param)
    write_class(place / "class", SOLUTIONS)
    write_exercises(SOLUTIONS, place / "exercises")
    made = grade_folder(
        *(place / "class", place / "out", read_assignments(place / "exercises")),
        seed=11,
        limits=Limits(seconds=5),
        wrap=WRAPS[request.param],
        jobs=2,
    )
    pages = list((place / "out/feedback").glob("*.html"))
    return rows(made), pages


def test_the_batch_ends_with_a_row_and_a_page_for_each_of_forty(table):
    found, pages = table
    assert len(FORTY) == len(found) == len(pages) == 40


@pytest.mark.parametrize("file", FORTY)
def test_each_ends_with_the_mark_written_beside_it(table, file):
    _, mark, notes = FORTY[file]
    folder, _, name = file.rpartition("/")
    student = re.sub("_.*", "", folder or name)
    (row,) = (row for row in table[0] if row["student"] == student)
    assert row["file"] == file
    assert float(row["score"]) == mark, row["notes"]
    assert re.search(notes, row["notes"])


def told(function, constants):
    """Write a right answer for constants, as the source of a cell."""
    named = "".join(f", {key}={value!r}" for key, value in constants.items())
    return (
        f"def {function}(*inputs):\n    from coursekit.slips import EXERCISES\n"
        f"    return EXERCISES[{function!r}].right(*inputs{named})"
    )


@pytest.mark.parametrize("seed", range(10))
def test_in_a_variant_its_own_answers_pass_and_the_public_ones_do_not(tmp_path, seed):
    stem = sorted(path.stem for path in SOLUTIONS.glob("*.ipynb"))[seed % 8]
    write_exercises(SOLUTIONS, tmp_path, seed)
    assignment = next(a for a in read_assignments(tmp_path) if a.stem == stem)
    names = assignment.exercises
    public = answers(SOLUTIONS, stem)
    own = {name: told(name, variant_constants(name, seed)) for name in names}
    imports = Cell("imports", assignment.sources["imports"])
    for sources, wanted in ((own, 1), (public, 0)):
        cells = (imports, *(Cell(name, sources[name]) for name in names))
        submission = Submission("ada", stem, tmp_path, cells, ())
        marks, notes = grade_submission(
            *(submission, assignment, seed, 3, Limits(), WRAPS["bubblewrap"])
        )
        assert [mark.share for mark in marks] == [wanted] * len(names), marks
        assert [n for n in notes if "look at it" not in n] == []


def test_nbgrader_s_own_cycle_grades_an_exercise(tmp_path):
    """The same folder works in an nbgrader course, as on a JupyterHub."""
    stem = sorted(path.stem for path in SOLUTIONS.glob("*.ipynb"))[1]
    source, handed = tmp_path / "source" / stem, tmp_path / "submitted/ada" / stem
    source.mkdir(parents=True)
    handed.mkdir(parents=True)
    (source / f"{stem}.ipynb").write_bytes((SOLUTIONS / f"{stem}.ipynb").read_bytes())
    stub = "c.ClearSolutions.code_stub = {'python': 'raise NotImplementedError'}\n"
    (tmp_path / "nbgrader_config.py").write_text(f"c = get_config()\n{stub}")

    def nbgrader(*words):
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            [sys.executable, "-m", "nbgrader", *words],
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-3000:]

    nbgrader("generate_assignment", stem)
    released = (tmp_path / "release" / stem / f"{stem}.ipynb").read_text("utf-8")
    assert released.strip() == exercise_of(SOLUTIONS / f"{stem}.ipynb").strip()
    right = answers(SOLUTIONS, stem)
    right.pop("shift_matrix")
    notebook = json.dumps(filled(given(SOLUTIONS), right))
    (handed / f"{stem}.ipynb").write_text(notebook, encoding="utf-8")
    nbgrader("autograde", stem)
    nbgrader("export")
    (row,) = (r for r in rows(tmp_path / "grades.csv") if r["student_id"] == "ada")
    assert (float(row["score"]), float(row["max_score"])) == (4, 5)


def test_the_answers_of_the_solutions_carry_no_marks():
    for path in SOLUTIONS.glob("*.ipynb"):
        for name, source in answers(SOLUTIONS, path.stem).items():
            assert name in EXERCISES
            assert not SOLUTION.search(source)
