"""Submissions: whose they are, of what, and what is repaired before they run."""

import json
import os

import pytest

from coursekit.classroom.notebooks import Assignment, read_assignments
from coursekit.classroom.submissions import find_submissions, read_submission

FIRST = Assignment(
    "01_first",
    ("twice",),
    {
        "imports": "import torch",
        "twice": "def twice(x):\n    raise",
        "check-twice": "c",
    },
    frozenset({"imports", "check-twice"}),
)
SECOND = Assignment(
    "02_second",
    ("half",),
    {"imports": "import torch", "half": "def half(x):\n    raise", "check-half": "h"},
    frozenset({"imports", "check-half"}),
)
BOTH = [FIRST, SECOND]


def cell(source, **more):
    return {"cell_type": "code", "metadata": {}, "outputs": [], "source": source} | more


def notebook(*cells, **more):
    return json.dumps({"cells": list(cells), "metadata": {}, "nbformat": 4} | more)


def put(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return list(find_submissions(folder, BOTH))


TWICE = notebook(cell("import torch"), cell("def twice(x):\n    return 2 * x"))
HALF = notebook(cell("def half(x):\n    return x / 2"))


# Whose it is


@pytest.mark.parametrize(
    ("file", "student"),
    [
        ("ada/01_first.ipynb", "ada"),
        ("ada/deep/down/anything.ipynb", "ada"),
        ("Ada Lovelace_4711_assignsubmission_file_/01_first.ipynb", "Ada Lovelace"),
        ("Ada Lovelace_4711_assignsubmission_file/x.ipynb", "Ada Lovelace"),
        ("lovelaceada_4711_815_01_first.ipynb", "lovelaceada"),
        ("team_3_01_first.ipynb", "team_3"),
        ("2024_11_05_gil_ex1.ipynb", "2024_11_05_gil"),
        ("alex12_ex1.ipynb", "alex12"),
        ("ivy_ex1.IPYNB", "ivy"),
        (".kim_ex1.ipynb", ".kim"),
        ("lovelaceada_LATE_4711_815_01_first-3.ipynb", "lovelaceada"),
        ("ada_ex1 (1).ipynb", "ada"),
        ("Ada Lovelace - 01_first.ipynb", "Ada Lovelace"),
        ("01_first ada (12).ipynb", "ada"),
        ("Copy of 01_first_ada.ipynb", "ada"),
        ("ada-exercise_1.ipynb.txt", "ada"),
        ("01_first (2).ipynb", "01_first (2).ipynb"),
        ("Zoë Ångström_ex1.ipynb", "Zoë Ångström"),
    ],
)
def test_the_student_is_found_in_folder_or_file_name(tmp_path, file, student):
    (found,) = put(tmp_path, {file: TWICE})
    assert (found.student, found.stem, found.fault) == (student, "01_first", "")


@pytest.mark.parametrize(
    "pair",
    [
        (
            "A L_101_assignsubmission_file/x.ipynb",
            "A L_102_assignsubmission_file/x.ipynb",
        ),
        ("li_111_9001_01_first.ipynb", "li_222_9002_01_first.ipynb"),
        ("team_3_01_first.ipynb", "team_4_01_first.ipynb"),
        ("2024_11_05_gil_ex1.ipynb", "2024_11_05_hal_ex1.ipynb"),
        ("alex12_ex1.ipynb", "alex34_ex1.ipynb"),
        ("Eve/x.ipynb", "eve/x.ipynb"),
    ],
)
def test_two_students_are_never_taken_for_one(tmp_path, pair):
    found = put(tmp_path, dict.fromkeys(pair, TWICE))
    assert len(found) == 2
    assert len({s.student for s in found}) == 2
    assert not [s for s in found if "another attempt" in str(s.notes)]


def test_an_answer_wins_over_a_later_blank_copy(tmp_path):
    blank = notebook(cell("def twice(x):\n    raise"))
    files = {"ada/old/01_first (9).ipynb": blank, "ada/work/01_first.ipynb": TWICE}
    (found,) = put(tmp_path / "a", files)
    assert found.path.parent.name == "work"
    assert found.notes[-1] == "ada/old/01_first (9).ipynb is another attempt"
    (other,) = put(tmp_path / "b", {"eve/01_first.ipynb": blank})
    assert "no answer was written" in other.notes


def test_a_second_assignment_in_one_notebook_is_named(tmp_path):
    text = notebook(
        cell("def twice(x):\n    return 2 * x"),
        cell("c", id="check-twice"),
        cell("def half(x):\n    return x / 2"),
    )
    (found,) = put(tmp_path, {"ada/x.ipynb": text})
    assert "it holds answers of 02_second too; ask for them apart" in found.notes


def test_half_characters_and_other_encodings_are_read(tmp_path):
    half = TWICE.replace("return", "'\\ud83d'; return")
    files = {"ada/x.ipynb": half, "ben/x.ipynb": TWICE.encode("utf-16")}
    files[os.fsdecode(b"mal\xff/x.ipynb")] = TWICE
    found = put(tmp_path, files)
    assert [s.fault for s in found] == ["", "", ""]
    for one in found:
        "".join([one.student, *(c.source for c in one.cells)]).encode()


def test_files_that_name_nobody_are_never_one_student(tmp_path):
    found = put(tmp_path, {"01_first.ipynb": TWICE, "01_first (1).ipynb": TWICE})
    assert len(found) == 2


def test_a_student_may_hand_in_several_assignments(tmp_path):
    found = put(tmp_path, {"ada/a.ipynb": TWICE, "ada/b.ipynb": HALF})
    assert [s.stem for s in found] == ["01_first", "02_second"]


def test_the_last_attempt_counts_and_the_others_are_named(tmp_path):
    files = {f"ada_ex1{n}.ipynb": TWICE for n in ("", " (1)", " (2)", " (10)")}
    (found,) = put(tmp_path, files)
    assert found.path.name == "ada_ex1 (10).ipynb"
    assert sum("another attempt" in note for note in found.notes) == 3


def test_what_cannot_be_read_does_not_hide_what_can(tmp_path):
    files = {"ada/01_first.ipynb": TWICE, "ada/01_first (1).ipynb": "{"}
    (found,) = put(tmp_path, files)
    assert not found.fault
    assert found.notes[-1] == "ada/01_first (1).ipynb is another attempt"


def test_rubbish_of_systems_is_passed_over(tmp_path):
    files = {
        "ada/.ipynb_checkpoints/01_first-checkpoint.ipynb": TWICE,
        "__MACOSX/ada/._01_first.ipynb": b"\0",
        ".DS_Store": b"\0",
        "ada/01_first.ipynb": TWICE,
    }
    (found,) = put(tmp_path, files)
    assert found.student == "ada"


# What it is


def test_nothing_that_is_handed_in_stops_the_reading(tmp_path):
    files = {
        "a/x.ipynb": "",
        "b/x.ipynb": b"PK\x03\x04rest",
        "c/x.ipynb": b"\xff\xfe\x00",
        "d/x.ipynb": '{"cells": [',
        "e/x.ipynb": "[" * 200_000,
        "f/x.ipynb": "[1, 2]",
        "g/x.ipynb": '{"cells": {"a": 1}}',
        "h/x.ipynb": notebook(cell("import pandas")),
        "i/x.ipynb": '{"cells": [null, 7, {"cell_type": "code", "source": null}]}',
        "j/report.pdf": "%PDF",
        "k/x.ipynb": '{"cells": [{"metadata": 3, "source": [1, null]}]}',
    }
    (tmp_path / "l").mkdir()
    (tmp_path / "m").mkdir()
    (tmp_path / "m/x.ipynb").symlink_to("/etc/hostname")
    found = put(tmp_path, files)
    assert [s.student for s in found] == list("abcdefghijklm")
    assert all(s.fault and "\n" not in s.fault for s in found)
    said = {s.student: s.fault for s in found}
    assert "it is empty" in said["a"]
    assert "zip archive" in said["b"]
    assert "UTF-8" in said["c"]
    assert "no notebook" in said["d"]
    assert "none of this course" in said["h"]
    assert "report.pdf" in said["j"]
    assert "nothing" in said["l"]
    assert "link" in said["m"]


def test_a_notebook_of_countless_parts_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr("coursekit.classroom.notebooks.PARTS", 20)
    (found,) = put(tmp_path, {"ada/x.ipynb": '{"cells": [' + "{}," * 30 + "{}]}"})
    assert "more than 20 parts" in found.fault


def test_a_large_file_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr("coursekit.classroom.submissions.LARGEST", 10)
    (found,) = put(tmp_path, {"ada/01_first.ipynb": TWICE})
    assert "larger than 10 bytes" in found.fault
    assert found.stem == "01_first"


def test_a_notebook_is_known_by_what_it_defines_whatever_its_name(tmp_path):
    (found,) = put(tmp_path, {"ada/01_first.ipynb": HALF})
    assert found.stem == "02_second"


def test_old_notebooks_with_sheets_are_read(tmp_path):
    sheet = {"cells": [cell("", input=["def twice(x):\n", "    return 2 * x"])]}
    del sheet["cells"][0]["source"]
    old = json.dumps({"worksheets": [sheet], "nbformat": 3})
    (found,) = put(tmp_path, {"ada/old.ipynb": old})
    assert found.cells[-1].source == "def twice(x):\n    return 2 * x"


# What is repaired


@pytest.mark.parametrize(
    "named",
    [
        {"metadata": {"nbgrader": {"grade_id": "check-twice"}}},
        {"id": "check-twice"},
        {"metadata": {"id": "check-twice"}},
        {"source": "c", "id": "9f"},
    ],
)
def test_a_cell_is_known_by_any_of_its_names_or_by_its_text(tmp_path, named):
    text = notebook(cell("def twice(x): pass"), cell("c") | named)
    (found,) = put(tmp_path, {"ada/x.ipynb": text})
    assert [c.role for c in found.cells] == ["imports", "twice", "check-twice"]


def test_an_answer_is_known_by_its_name_in_whatever_cell(tmp_path):
    text = notebook(
        cell("h = 1", id="twice"), cell("def twice(x):\n    pass", id="check-twice")
    )
    (found,) = put(tmp_path, {"ada/x.ipynb": text})
    assert [c.role for c in found.cells][-1] == "twice"


def test_lost_and_changed_cells_are_named_and_imports_come_back(tmp_path):
    text = notebook(
        cell("def twice(x):\n    pass", id="twice"),
        cell("def twice(x):\n    pass", id="twice"),
        cell("pass", id="check-twice"),
    )
    (found,) = put(tmp_path, {"ada/x.ipynb": text})
    assert found.cells[0] == ("imports", "import torch")
    assert found.notes == (
        "cell twice is there more than once",
        "cell check-twice was changed, and ran as one of the student's",
        "cell imports was deleted",
    )


def test_a_whole_notebook_needs_no_repair(tmp_path):
    text = notebook(
        cell("import torch", id="imports"),
        cell("def twice(x):\n    return 2 * x", id="twice"),
        cell("c", id="check-twice"),
    )
    (found,) = put(tmp_path, {"ada/x.ipynb": text})
    assert found.notes == ()


# Messages


def test_a_folder_without_anything_is_refused(tmp_path):
    with pytest.raises(ValueError, match="is empty: there is nothing to grade"):
        list(find_submissions(tmp_path, BOTH))
    with pytest.raises(ValueError, match="is not a folder. Unpack"):
        list(find_submissions(tmp_path / "none", BOTH))
    with pytest.raises(ValueError, match="Run: python run.py exercises"):
        read_assignments(tmp_path)


def test_a_file_of_another_kind_is_no_submission(tmp_path):
    (tmp_path / "notes.txt").write_text("dear teacher")
    assert read_submission(tmp_path / "notes.txt", tmp_path, BOTH) is None
