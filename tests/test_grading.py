"""Grading: a worker apart, a judge here, a table that loses nobody."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from coursekit import checks
from coursekit.classroom import grading
from coursekit.classroom.feedback import feedback_pages
from coursekit.classroom.grade import main
from coursekit.classroom.grading import grade_folder
from coursekit.classroom.jobs import run_job
from coursekit.classroom.notebooks import Assignment
from coursekit.classroom.sandbox import Limits, NotStarted, bubblewrap
from coursekit.classroom.worker import run_cell

posix = pytest.mark.skipif(os.name != "posix", reason="the limits are those of POSIX")
NAME = "pair_frequencies"
RIGHT = f"def {NAME}(dim):\n    return 10_000.0 ** (-torch.arange(0, dim, 2) / dim)"
SLIP = f"def {NAME}(dim):\n    return 1_000.0 ** (-torch.arange(0, dim, 2) / dim)"
IMPORTS = ("imports", "import torch\n\nfrom coursekit import checks")
ONE = Assignment(
    "02_sinusoidal",
    (NAME,),
    {"imports": IMPORTS[1], NAME: "raise", f"check-{NAME}": "checks.check()"},
    frozenset({"imports", f"check-{NAME}"}),
)
JOB = {NAME: {"seed": 3, "constants": {}}}
SHORT = Limits(seconds=2)
WRAP = bubblewrap()


def share(*sources, wrap=None, limits=SHORT):
    cells = [IMPORTS, *(("", source) for source in sources)]
    collected, notes = run_job(cells, JOB, limits, WRAP if wrap is None else wrap)
    return checks.judge(NAME, collected.get(NAME), 3).share, " · ".join(notes)


# The worker


def test_a_right_answer_is_collected_and_judged():
    assert share(RIGHT) == (1.0, "")


@posix
def test_one_worker_after_another_until_the_answers_are_in():
    """All that ends a worker in one notebook; it costs three starts."""
    hang = (
        "while True:\n    try:\n        while True: pass\n    except BaseException: 0"
    )
    marks, notes = share("import os; os._exit(0)", "1 / 0", hang, RIGHT)
    assert marks == 1
    assert "cell 2: it ended the kernel" in notes
    assert "cell 3: ZeroDivisionError: division by zero" in notes
    assert "cell 4: it ran for longer than 2 s" in notes


@posix
def test_a_cell_takes_no_more_memory_than_its_share():
    marks, notes = share("x = bytearray(8 * 10**9)", RIGHT)
    assert (marks, "MemoryError" in notes) == (1, True)


def test_magics_and_a_lost_network_do_no_harm():
    cells = "%matplotlib inline", "%pip install -q nothing-at-all", RIGHT
    marks, notes = share(*cells, limits=Limits(seconds=20))
    assert (marks, notes) == (1, "")


def test_an_empty_copy_below_the_answer_does_not_hide_it():
    stub = f"def {NAME}(dim):\n    raise NotImplementedError"
    assert share(RIGHT, stub) == (1.0, "")
    assert share(stub)[0] == 0
    assert share(RIGHT, SLIP)[0] == 0  # the last real answer counts, not the best


@pytest.mark.skipif(not WRAP, reason="there is no bubblewrap here")
def test_inside_bubblewrap_there_is_no_network_no_home_and_nobody_else():
    secret = Path(__file__)
    marks, notes = share(
        f"open({str(secret)!r}).read()",
        "import socket\nsocket.create_connection(('192.0.2.1', 80), 1)",
        "import os\nassert os.getuid() == 65534\nassert len(os.listdir('/proc')) < 90\n"
        "assert sum(n.isdigit() for n in os.listdir('/proc')) < 6",
        "open('/usr/mine', 'w')",
        "open('mine', 'w').write('here I may')",
        RIGHT,
    )
    assert marks == 1
    assert "cell 2: FileNotFoundError" in notes
    assert re.search("cell 3: OSError.*unreachable", notes)
    assert "cell 5: OSError: [Errno 30]" in notes
    assert "cell 4" not in notes
    assert "cell 6" not in notes


def test_nothing_runs_on_when_a_submission_is_graded(tmp_path):
    flag = tmp_path / "alive"
    code = f"import time\nwhile 1: time.sleep(.1); open({str(flag)!r}, 'a').close()"
    spawn = (
        f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {code!r}])"
    )
    share(spawn, "import time; time.sleep(1.8)", RIGHT, wrap=[])
    assert flag.exists(), "the child never lived"
    flag.unlink(missing_ok=True)
    time.sleep(0.5)
    assert not flag.exists()


def test_what_a_cell_raises_is_told_whatever_it_is():
    class Odd(Exception):
        def __str__(self):
            raise self

    class Shell:
        def run_cell(self, source, store_history):
            raise Odd

    assert run_cell(Shell(), "", 1) == "Odd"


# The batch


def notebook(*sources, ids=True):
    cells = [
        {
            "cell_type": "code",
            "metadata": {},
            "source": source,
            "id": ("imports", NAME)[i] if ids and i < 2 else f"x{i}",
        }
        for i, source in enumerate(sources)
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4})


@pytest.fixture
def room(tmp_path):
    """Three students: one right, one with a slip, one who hands in rubbish."""
    folder = tmp_path / "handed in"
    texts = {"ada": notebook(IMPORTS[1], RIGHT), "ben": notebook(IMPORTS[1], SLIP)}
    texts["=cmd()"] = "{"
    for name, text in texts.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "02_sinusoidal.ipynb").write_text(text)
    return folder


def rows(path):
    with open(path, encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream))


def graded(room, **more):
    more = {"seed": 5, "limits": SHORT, "wrap": WRAP, **more}
    return rows(grade_folder(room, room.with_name("out"), [ONE], **more))


def test_each_student_has_a_row_and_a_page(room):
    table = graded(room)
    assert [(r["student"], r["score"], r["max_score"]) for r in table] == [
        ("'=cmd()", "0", "1"),  # no formula for a spreadsheet
        ("ada", "1", "1"),
        ("ben", "0", "1"),
    ]
    assert "it is no notebook" in table[0]["notes"]
    pages = room.with_name("out") / "feedback"
    found = sorted(p.name for p in pages.iterdir())
    assert found == sorted(row["page"] for row in table)
    assert [re.sub("-.*", "", name) for name in found] == ["ada", "ben", "cmd"]
    assert table[1]["file"] == "ada/02_sinusoidal.ipynb"
    ben = next(pages.glob("ben-*.html"))
    assert "base looks ten times too small" in ben.read_text()
    lines = rows(room.with_name("out") / "exercises.csv")
    assert [(r["student"], r["share"]) for r in lines][1:] == [
        ("ada", "1"),
        ("ben", "0"),
    ]


def test_what_was_graded_is_not_run_again_unless_it_changed(room, monkeypatch):
    first = graded(room)
    ran = []
    monkeypatch.setattr(grading, "run_job", lambda *a: (ran.append(a), ({}, []))[1])
    assert graded(room) == first
    assert not ran
    (room / "ben/02_sinusoidal.ipynb").write_text(notebook(IMPORTS[1], RIGHT))
    graded(room)
    assert len(ran) == 1
    graded(room, limits=Limits(seconds=3))
    assert len(ran) == 3  # all that can be read
    with pytest.raises(
        ValueError, match="marks for the variant None, but these are to"
    ):
        graded(room, variant=4)


def test_the_seed_is_drawn_once_for_a_folder(room):
    graded(room, seed=None)
    place = room.with_name("out") / "batch.json"
    first = json.loads(place.read_text())["seed"]
    graded(room, seed=None)
    assert json.loads(place.read_text())["seed"] == first


@pytest.mark.parametrize("fault", [NotStarted("no room"), RuntimeError("\ud83d")])
def test_a_fault_of_this_machine_is_no_mark_and_is_not_kept(room, monkeypatch, fault):
    def fails(*arguments):
        raise fault

    with monkeypatch.context() as patch:
        patch.setattr(grading, "run_job", fails)
        table = graded(room)
        assert [r["score"] for r in table] == ["0", "", ""]
        assert "not graded, run it again" in table[1]["notes"]
    assert [r["score"] for r in graded(room)] == ["0", "1", "0"]


def test_a_worker_that_cannot_start_is_no_fault_of_the_student():
    with pytest.raises(NotStarted):
        run_job([IMPORTS], JOB, SHORT, ["/bin/false"])


def test_what_a_student_writes_to_the_pipe_is_weighed():
    lines = [
        b'{"fault": "x", "cell": ' + b"9" * 4300 + b"}",
        b'{"fault": "\\ud83d", "cell": 1}',
        *(b'{"cell": true}', b"[" * 900, b'{"collected": 3}', b"7", b""),
        b'{"exercise": [1], "collected": 3}',
    ]
    forged = (
        f"import os\nlines = {lines!r}\nfor n in range(3, 30):\n    try:\n"
        "        os.write(n, b'\\n' + b'\\n'.join(lines) + b'\\n')\n"
        "    except OSError:\n        pass"
    )
    marks, notes = share(forged, RIGHT)
    assert marks == 1
    notes.encode()


def test_a_submission_that_ended_the_grader_thrice_is_left_to_a_person(room):
    graded(room)
    marks = room.with_name("out") / "marks"
    for place in marks.glob("*.json"):
        if json.loads(place.read_text())["student"] == "ada":
            place.unlink()
            place.with_suffix(".started").write_bytes(b"xxx")
    ada = graded(room)[1]
    assert ada["score"] == ""
    assert "it ended the grader 3 times; grade it by hand" in ada["notes"]


@posix
@pytest.mark.parametrize("number", [2, 15, 9], ids=["Ctrl-C", "SIGTERM", "SIGKILL"])
def test_interrupted_grading_goes_on_where_it_stopped(room, number):
    slow = notebook(IMPORTS[1], RIGHT, "import time; time.sleep(60)")
    (room / "zoe").mkdir()
    (room / "zoe/02_sinusoidal.ipynb").write_text(slow)
    out = room.with_name("out")
    command = [sys.executable, "-m", "coursekit.classroom.grade"]
    command += [str(Path(__file__).parents[1] / "solutions"), str(room)]
    command += ["--to", str(out), "--seed", "5", "--seconds", "90"]
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),  # as with &
    )
    for _ in range(600):
        if len(list(out.glob("marks/*.json"))) == 3:
            break
        time.sleep(0.1)
    time.sleep(1)
    process.send_signal(number)
    said = process.communicate(timeout=30)[1]
    assert process.returncode == (-9 if number == 9 else 130)
    assert number == 9 or "The same command goes on from here" in said
    before = {p: p.stat().st_mtime_ns for p in out.glob("marks/*.json")}
    assert len(before) == 3
    assert not (out / "grades.csv").exists()
    (room / "zoe/02_sinusoidal.ipynb").write_text(notebook(IMPORTS[1], RIGHT))
    subprocess.run(command, check=True, capture_output=True)
    table = rows(out / "grades.csv")
    assert [r["score"] for r in table] == ["0", "1", "0", "1"]
    assert {p: p.stat().st_mtime_ns for p in before} == before


def test_a_page_shows_what_a_student_wrote_as_text(tmp_path):
    record = {
        "student": "<b>",
        "assignment": "02",
        "file": "f",
        "notes": ["<i>note"],
        "fault": "",
        "marks": [{"exercise": "e", "share": 0.5, "line": "<script>alert(1)</script>"}],
        "answers": {"e": "</pre><script>x</script>"},
    }
    others = [
        {**record, "student": name} for name in ("a/b", "a:b", "A/B", "..", "x" * 300)
    ]
    feedback_pages([record, *others], tmp_path / "pages")
    pages = list((tmp_path / "pages").iterdir())
    assert len(pages) == 6
    for page in pages:
        text = page.read_text()
        assert "<script>" not in text
        assert "<i>" not in text
        assert "0.5 of 1" in text


def test_nothing_is_written_beside_the_submissions(room):
    def everything():
        return {p: p.is_file() and p.read_bytes() for p in room.rglob("*")}

    before = everything()
    graded(room)
    assert everything() == before


# Messages


def test_marks_may_not_lie_among_the_submissions(room):
    for out in (room, room / "out"):
        with pytest.raises(ValueError, match="lies in the folder of submissions"):
            grade_folder(room, out, [ONE])
    with pytest.raises(ValueError, match="jobs is 0. Give the number"):
        grade_folder(room, room.with_name("out"), [ONE], jobs=0)


def test_the_command_says_what_is_wrong(tmp_path, capsys):
    solutions = Path(__file__).parents[1] / "solutions"
    assert main([str(solutions), str(tmp_path / "none")]) == 1
    assert "is not a folder. Unpack what" in capsys.readouterr().err
    assert main([str(solutions), str(tmp_path), "--no-sandbox"]) == 1
    said = capsys.readouterr().err
    assert "WARNING: the students' code runs as you" in said
    assert "You asked for no sandbox" in said
    assert "there is nothing to grade" in said
