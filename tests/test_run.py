"""The front door: it sets up once, recovers from anything, and says what went wrong.

A fake Python stands in for the environment, so that nothing is downloaded. It notes
how it is called, and for ``pip install`` it runs what a test wrote into a file.
"""

import ast
import errno
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[1]
posix = pytest.mark.skipif(os.name == "nt", reason="the fake Python is a shell script")

FAKE_PYTHON = """#!/bin/sh
echo "$*" >> "$FAKE/calls.txt"
case "$*" in
    "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
    "-m pip install "*) . "$FAKE/pip.sh" ;;
    "-m pytest"*) echo "threads=$OMP_NUM_THREADS seed=$PYTHONHASHSEED"; exit 5 ;;
    "-m jupyterlab"*) exit 7 ;;
    "-m coursekit.classroom.release"*) exit "${STAMPED:-0}" ;;
    "-m pip wheel "*) . "$FAKE/pip.sh" ;;
    "-P -c "*) cat "$FAKE/found.json" ;;
    *) exit 1 ;;
esac
"""
START = """
import runpy, sys
sys._base_executable = sys.argv.pop(1)
sys.argv.pop(0)
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def load(path=ROOT / "run.py"):
    spec = importlib.util.spec_from_file_location("front_door", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


run = load()


class Course:
    """A small repository with run.py in it, a fake Python, and a place to install."""

    def __init__(self, folder):
        self.repository, self.fake = folder / "reposit\u00f3rio one", folder / "fake"
        self.venv = folder / "an \u00e4 environment"
        self.repository.mkdir()
        self.fake.mkdir()
        for name in ("run.py", "pyproject.toml", "constraints.txt"):
            (self.repository / name).write_bytes((ROOT / name).read_bytes())
        (self.fake / "python").write_text(FAKE_PYTHON)
        (self.fake / "python").chmod(0o755)
        self.pip(":")

    def pip(self, script):
        """Let every pip of this course run a piece of shell."""
        (self.fake / "pip.sh").write_text(script + "\n")

    def start(self, *words, before="", **variables):
        environment = {**os.environ, "FAKE": str(self.fake), "COURSE_CUDA": ""}
        environment |= {"COURSE_VENV": str(self.venv), **variables}
        return subprocess.Popen(
            [sys.executable, "-c", before + START, self.fake / "python"]
            + [self.repository / "run.py", *words],
            env=environment,
            cwd=self.fake,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words, before="", **variables):
        with self.start(*words, before=before, **variables) as process:
            out, err = process.communicate(timeout=60)
        assert "Traceback" not in err
        return process.returncode, out, err

    def calls(self, pattern=""):
        """Return the calls of the fake Python so far, those that match."""
        log = self.fake / "calls.txt"
        lines = log.read_text().splitlines() if log.exists() else []
        return [line for line in lines if re.search(pattern, line)]


@pytest.fixture
def course(tmp_path):
    return Course(tmp_path)


def wait_for(path):
    for _ in range(600):
        if path.exists():
            return
        time.sleep(0.05)
    pytest.fail(f"{path} never came")


# ---- it starts on every Python, and says what it can do ----------------------------


def test_old_pythons_can_read_the_file():
    ast.parse((ROOT / "run.py").read_text("utf-8"), feature_version=(3, 6))


def test_an_old_python_gets_one_sentence():
    old = "import sys; sys.version_info = (3, 10, 2)\n"
    code = f"{old}import runpy; runpy.run_path({str(ROOT / 'run.py')!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert re.fullmatch(r"run.py: this is Python 3.10, .* 3.11 .*\n", done.stderr)


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"]])
def test_without_a_command_it_prints_help(words, capsys):
    assert run.main(words) == 0
    out = capsys.readouterr().out
    assert all(f"run.py {command}" in out for command in run.COMMANDS)


def test_an_unknown_command_lists_the_known(capsys):
    assert run.main(["tset"]) == 2
    assert "tset. Known: lab, test, refresh" in capsys.readouterr().err


# ---- it sets up once ---------------------------------------------------------------


@posix
def test_first_run_installs_and_later_runs_do_not(course):
    code, out, _ = course.run("test", "-k", "rope and 'two words'")
    assert code == 5, "the exit code is the program's"
    assert "threads=1 seed=0" in out
    assert course.calls("^-m pytest") == ["-m pytest -k rope and 'two words'"]
    assert course.calls()[0] == f"-m venv {course.venv}"
    assert course.calls("pip install")[-1].endswith("-e .[lab,test,instructor]")
    (course.fake / "calls.txt").unlink()
    code, out, _ = course.run("lab", "--no-browser")
    assert (code, out) == (7, "")
    assert len(course.calls()) == 1


@posix
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="there is one core alone")
def test_all_tests_share_two_cores_and_chosen_ones_do_not(course):
    course.run("test")
    course.run("test", "tests/test_run.py")
    assert course.calls("^-m pytest") == [
        "-m pytest -n 2 --dist loadfile",
        "-m pytest tests/test_run.py",
    ]


@posix
def test_every_pip_install_is_under_constraints(course):
    course.pip('case "$*" in *without-cuda.txt*) cp "$5" "$FAKE/used.txt" ;; esac')
    course.run("test")
    plain = course.repository / "constraints.txt"
    pips = course.calls("pip install")
    assert pips
    assert all(re.search(r"install -c \S.*\.txt --retries", line) for line in pips)
    assert [f"-c {plain}" in line for line in pips].count(False) == (
        sys.platform == "linux"
    )


@posix
@pytest.mark.skipif(sys.platform != "linux", reason="CUDA comes on Linux alone")
def test_cuda_is_refused_unless_asked_for(course):
    course.pip('case "$*" in *without-cuda.txt*) cp "$5" "$FAKE/used.txt" ;; esac')
    course.run("test")
    used = (course.fake / "used.txt").read_text("utf-8")
    assert "nvidia-cublas<0 ;" in used
    assert not re.search(r"^(nvidia|cuda|triton)[^<]*==", used, re.M)
    assert "torch==" in used
    (course.fake / "used.txt").unlink()
    other = str(course.venv) + " with CUDA"
    course.run("test", COURSE_CUDA="1", COURSE_VENV=other)
    assert not (course.fake / "used.txt").exists()


@posix
def test_a_reader_gets_no_grader_until_a_command_needs_it(course):
    course.run("lab")
    assert course.calls("pip install")[-1].endswith("-e .[lab,test]")
    course.run("exercises", "--variant", "3")
    assert course.calls("pip install")[-1].endswith("-e .[lab,test,instructor]")
    solutions = course.repository / "solutions"
    wanted = f"-m coursekit.classroom.exercises {solutions} --variant 3"
    assert course.calls("coursekit.classroom") == [wanted]
    before = len(course.calls("pip install"))
    course.run("lab")
    course.run("grade", "class")
    assert len(course.calls("pip install")) == before  # it serves readers, too
    wanted = f"-m coursekit.classroom.grade {solutions} class"
    assert course.calls("coursekit.classroom")[1:] == [wanted]
    with open(course.repository / "constraints.txt", "a") as stream:
        stream.write("# changed\n")
    course.run("lab")
    assert course.calls("pip install")[-1].endswith("-e .[lab,test,instructor]")
    assert len(course.calls("-m venv")) == 1


@posix
def test_changed_constraints_update_the_environment_in_place(course):
    course.run("test")
    kept = course.venv / "kept"
    kept.touch()
    with open(course.repository / "constraints.txt", "a") as stream:
        stream.write("# changed\n")
    course.run("test")
    assert len(course.calls("-e ..lab,test")) == 2
    assert kept.exists()
    assert len(course.calls("-m venv")) == 1


@posix
@pytest.mark.parametrize("line", [0, 1], ids=["other Python", "moved"])
def test_an_environment_for_something_else_is_made_again(course, line):
    course.run("test")
    (course.venv / "old").touch()
    stamp = course.venv / run.STAMP
    lines = stamp.read_text("utf-8").splitlines()
    lines[line] += "0"
    stamp.write_text("\n".join(lines) + "\n", "utf-8")
    course.run("test")
    assert not (course.venv / "old").exists()
    assert len(course.calls("-m venv")) == 2


@posix
def test_an_environment_that_lost_its_python_is_made_again(course):
    course.run("test")
    (course.venv / "bin/python").unlink()
    assert course.run("test")[0] == 5
    assert len(course.calls("-m venv")) == 2


@posix
def test_a_relative_folder_and_an_empty_folder_will_do(course):
    (course.fake / "empty one").mkdir()
    assert course.run("test", COURSE_VENV="empty one")[0] == 5
    assert (course.fake / "empty one/bin/python").exists()


def test_without_course_venv_the_folder_is_beside_run_py(monkeypatch):
    monkeypatch.setenv("COURSE_VENV", "")
    assert run.environment_folder() == ROOT / ".venv"


@posix
@pytest.mark.parametrize("content", ["thesis.tex", "pyvenv.cfg"])
def test_a_folder_of_somebody_else_is_left_alone(course, content):
    course.venv.mkdir()
    (course.venv / content).write_text("mine")
    code, _, err = course.run("test")
    assert code == 1
    assert re.search(f"holds {content}.* COURSE_VENV, and run", err)
    assert [path.name for path in course.venv.iterdir()] == [content]
    (course.venv / content).unlink()
    assert course.run("test")[0] == 5


@posix
def test_a_file_is_no_folder(course):
    course.venv.write_text("mine")
    code, _, err = course.run("test")
    assert (code, course.venv.read_text()) == (1, "mine")
    assert "is a file. Name a new or empty folder" in err


# ---- it says what went wrong, and the next run recovers ----------------------------

FAULTS = {
    "no network, Linux": (
        "Failed to establish a new connection: [Errno -3] Temporary failure in name "
        "resolution; ERROR: No matching distribution found for torch==2.13.0",
        "no connection to the package index. Connect to the internet",
    ),
    "no network, Windows": (
        "NewConnectionError: [Errno 11001] getaddrinfo failed",
        "no connection to the package index. Connect to the internet",
    ),
    "no network, macOS": (
        "[Errno 8] nodename nor servname provided, or not known",
        "no connection to the package index. Connect to the internet",
    ),
    "a slow network": (
        "ReadTimeoutError: HTTPSConnectionPool: Read timed out.",
        "no connection to the package index. Connect to the internet",
    ),
    "a proxy": (
        "ProxyError: Cannot connect to proxy.",
        "or set your proxy",
    ),
    "a full disk": (
        "Read timed out, retrying; ERROR: OSError: [Errno 28] No space left on device",
        "the disk is full. The environment in .* takes 1.3 GB: make room",
    ),
    "permissions": (
        "ERROR: Could not install: [Errno 13] Permission denied: /x",
        "may not be written. Name a folder of your own in COURSE_VENV",
    ),
    "CUDA": (
        "ERROR: No matching distribution found for cuda-toolkit==13.0.3",
        "about 3 GB of CUDA .* COURSE_CUDA=1 to accept",
    ),
    "no build for this Python": (
        "ERROR: No matching distribution found for torch==2.13.0",
        r"no torch==2.13.0 for Python 3\.\d+ .* Try another Python",
    ),
    "something new": (
        "ERROR: the moon is too close",
        "ended with\n    ERROR: the moon is too close\nRun the same command again",
    ),
}


@posix
@pytest.mark.parametrize(("printed", "sentence"), FAULTS.values(), ids=FAULTS)
def test_a_failing_pip_is_told_in_a_sentence_and_forgotten(course, printed, sentence):
    course.pip(f"echo '{printed}'; touch '{course.venv}/half'; exit 1")
    code, _, err = course.run("test")
    assert code == 1
    assert err.startswith("run.py: ")
    assert re.search(sentence, err)
    assert not course.calls("^-m pytest")
    course.pip(":")
    assert course.run("test")[0] == 5
    assert not (course.venv / "half").exists()


@posix
def test_no_venv_module_names_the_package(course):
    before = "import sys; sys.modules['ensurepip'] = None\n"
    code, _, err = course.run("test", before=before)
    assert code == 1
    assert "sudo apt install python3-venv) and run the same command again" in err
    assert course.run("test")[0] == 5


@posix
@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_a_lone_run_py_asks_for_the_repository(course, name):
    (course.repository / name).unlink()
    code, _, err = course.run("test")
    assert code == 1
    assert f"{name} is missing beside run.py. Take the whole repository" in err
    assert not course.venv.exists()


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.ENOSPC, "the disk is full. The environment in"),
        (errno.EACCES, "/somewhere may not be written. Name a folder of your own"),
        (errno.EROFS, "/somewhere may not be written. Name a folder of your own"),
        (errno.EIO, f"{os.strerror(errno.EIO)}: /somewhere. Mend that and run"),
    ],
)
def test_a_fault_of_the_system_is_told_in_a_sentence(
    number, sentence, monkeypatch, tmp_path, capsys
):
    def refuse(path, text):
        raise OSError(number, os.strerror(number), "/somewhere")

    monkeypatch.setenv("COURSE_VENV", str(tmp_path / "new"))
    monkeypatch.setattr(run, "write_whole", refuse)
    assert run.main(["test"]) == 1
    assert sentence in capsys.readouterr().err


@posix
def test_a_log_that_cannot_be_written_does_not_hide_the_reason(course):
    log = course.venv / run.LOG
    course.pip(f"rm -f '{log}'; mkdir -p '{log}'; echo No space left on device; exit 1")
    code, _, err = course.run("test")
    assert code == 1
    assert "the disk is full" in err


# ---- it can be killed, and called twice --------------------------------------------


@posix
def test_a_killed_set_up_is_made_again(course):
    # pip outlives its run.py for two seconds: the next run must wait for it to end.
    slow = "touch '{0}/half' '{1}/started'; sleep 2; touch '{0}/late'"
    course.pip(slow.format(course.venv, course.fake))
    with course.start("test") as process:
        wait_for(course.fake / "started")
        process.kill()
    assert (course.venv / run.STAMP).read_text() == run.UNFINISHED
    course.pip(":")
    code, out, _ = course.run("test")
    assert code == 5
    assert "Waiting for another run.py" in out
    assert not (course.venv / "half").exists()
    assert not (course.venv / "late").exists()
    assert course.run("test")[1].count("\n") == 1


@posix
def test_a_stopped_set_up_ends_pip_and_is_made_again(course):
    course.pip(f"touch '{course.fake}/started'; exec sleep 60")
    with course.start("test") as process:
        wait_for(course.fake / "started")
        process.send_signal(signal.SIGTERM)
        err = process.communicate(timeout=30)[1]
    assert process.returncode == 130
    assert err == "run.py: stopped. The next run starts afresh.\n"
    course.pip(":")
    code, out, _ = course.run("test")
    assert code == 5
    assert "Waiting" not in out


@posix
def test_two_runs_at_once_install_once(course):
    course.pip(f"touch '{course.fake}/started'; sleep 0.5")
    with course.start("test") as first:
        wait_for(course.fake / "started")
        code, out, _ = course.run("test")
        first.communicate(timeout=30)
    assert (first.returncode, code) == (5, 5)
    assert "Waiting for another run.py" in out
    assert len(course.calls("-m venv")) == 1
    assert len(course.calls("-e ..lab,test")) == 1


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "file"
    run.write_whole(path, "one\n")
    with pytest.raises(TypeError):
        run.write_whole(path, None)
    assert path.read_bytes() == b"one\n"
    assert list(tmp_path.iterdir()) == [path]


# ---- what it starts ----------------------------------------------------------------


def test_lab_opens_the_first_notebook_with_token_on_localhost(monkeypatch, tmp_path):
    (tmp_path / "notebooks").mkdir()
    for name in ("02_second.ipynb", "01_first.ipynb"):
        (tmp_path / "notebooks" / name).touch()
    monkeypatch.setattr(run, "REPOSITORY", tmp_path)
    command = run.lab_command("/venv/python", ["--no-browser", "--port", "8890"])
    assert command[:3] == ["/venv/python", "-m", "jupyterlab"]
    assert f"--ServerApp.root_dir={tmp_path}" in command
    assert "--ServerApp.ip=127.0.0.1" in command
    assert "--LabApp.default_url=/lab/tree/notebooks/01_first.ipynb" in command
    assert command[-3:] == ["--no-browser", "--port", "8890"]
    assert not re.search("token|password|disable_check", " ".join(command))


def test_lab_gives_way_to_what_the_reader_asks_for():
    words = ["--ServerApp.root_dir=/x", "--ip=::1", "notebooks/02_second.ipynb"]
    command = " ".join(map(str, run.lab_command("python", words)))
    assert command.count("root_dir") == command.count("ip=") == 1
    assert "default_url" not in command


def test_lab_opens_without_any_notebook(monkeypatch, tmp_path):
    monkeypatch.setattr(run, "REPOSITORY", tmp_path)
    assert "default_url" not in " ".join(run.lab_command("python", []))


def test_children_are_kept_apart_from_other_pythons(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/other")
    monkeypatch.setenv("MPLBACKEND", "TkAgg")
    variables = run.child_environment(Path("/venv"))
    assert "PYTHONPATH" not in variables
    assert "MPLBACKEND" not in variables
    assert variables["PATH"].startswith(str(run.python_of(Path("/venv")).parent))


# ---- refresh -----------------------------------------------------------------------


@pytest.fixture
def folders(tmp_path, monkeypatch):
    for name in ("notebooks/01_walk", "notebooks/02_clock", "solutions/02_clock"):
        path = tmp_path / f"{name}.ipynb"
        path.parent.mkdir(exist_ok=True)
        path.touch()
    monkeypatch.setattr(run, "REPOSITORY", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        ([], ["notebooks/01_walk", "notebooks/02_clock", "solutions/02_clock"]),
        (["01_walk"], ["notebooks/01_walk"]),
        (["02_clock"], ["notebooks/02_clock", "solutions/02_clock"]),
        (["solutions/02_clock.ipynb"], ["solutions/02_clock"]),
    ],
)
def test_refresh_takes_all_or_stems_or_paths(names, chosen, folders, monkeypatch):
    monkeypatch.chdir(folders)
    found = run.chosen_notebooks(names)
    assert found == [folders / f"{name}.ipynb" for name in chosen]


def test_refresh_lists_the_notebooks_there_are(folders, capsys):
    assert run.main(["refresh", "05_rope"]) == 1
    assert "05_rope is not a notebook. Give a path, or one of: 01_walk, 02_clock" in (
        capsys.readouterr().err
    )


GOOD = [
    "import sys, time\nfrom tqdm.auto import tqdm",
    "for i in range(20):\n    print(i, flush=True)\n    time.sleep(0.01)",
    "for _ in tqdm(range(2)):\n    pass",
    "print(sorted({'a', 'b'}), {'c', 'd', 'e', '\u00e9'})\nprint('x', end='')\n3 + 4",
]


def write_notebook(path, sources):
    cells = [nbformat.v4.new_markdown_cell("# Title", id="title")]
    for number, source in enumerate(sources):
        cells.append(nbformat.v4.new_code_cell(source, id=f"code-{number}"))
        cells[-1].metadata["execution"] = {"iopub.execute_input": "2020-01-01"}
    strange = {"name": "nosuch", "display_name": "strange", "language": "python"}
    metadata = {"kernelspec": strange, "widgets": {"old": {}}}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata=metadata)
    path.write_text(nbformat.writes(notebook), "utf-8")


def test_refresh_twice_changes_no_byte_and_a_failure_nothing(tmp_path):
    bad = {
        "raises": (["x = 1", "x / 0"], r"code cell 2 \(x / 0\) raised ZeroDivisionErr"),
        "warns": (
            ["import sys", "print('oh', file=sys.stderr)"],
            r"code cell 2 \(print.* printed to stderr: oh\.",
        ),
        "dies": (
            ["import os\nos._exit(3)"],
            r"code cell 1 \(import os\) ended the ker",
        ),
    }
    good = tmp_path / "good.ipynb"
    write_notebook(good, GOOD)
    for name, (sources, _) in bad.items():
        write_notebook(tmp_path / f"{name}.ipynb", sources)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}

    def refresh(*names):
        paths = [str(tmp_path / f"{name}.ipynb") for name in names]
        return subprocess.run(
            [sys.executable, ROOT / "run.py", "_refresh", *paths],
            env={**os.environ, **run.REPEATABLE},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )

    done = refresh(*bad, "good")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    for name, (_, sentence) in bad.items():
        assert re.search(rf"{name}.ipynb: .*{sentence}.* left as it was", done.stderr)
        assert (tmp_path / f"{name}.ipynb").read_bytes() == before.pop(
            tmp_path / f"{name}.ipynb"
        )
    assert re.search(r"good.ipynb: changed, \d+\.\d s", done.stdout)
    once = good.read_bytes()
    done = refresh("good")
    assert (done.returncode, good.read_bytes()) == (0, once)
    assert "the same" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [f"{name}.ipynb" for name in bad] + ["good.ipynb"]
    )
    check_refreshed(json.loads(once))
    assert b"\r" not in once
    assert once.endswith(b"}\n")


def check_refreshed(notebook):
    assert notebook["metadata"] == {
        "kernelspec": {
            "display_name": "Python 3 (ipykernel)",
            "language": "python",
            "name": "python3",
        },
        "language_info": {"name": "python"},
    }
    ids = [cell["id"] for cell in notebook["cells"]]
    assert ids == ["title", *(f"code-{number}" for number in range(len(GOOD)))]
    cells = notebook["cells"][1:]
    assert [cell["execution_count"] for cell in cells] == [1, 2, 3, 4]
    assert all(cell["metadata"] == {} for cell in cells)
    assert len(cells[1]["outputs"]) == 1
    kinds = [output["output_type"] for output in cells[3]["outputs"]]
    assert kinds == ["stream", "execute_result"]
    assert "widget-view" not in json.dumps(notebook)


def test_only_neighbours_of_the_same_stream_are_joined():
    def piece(name, text):
        return nbformat.v4.new_output("stream", name=name, text=text)

    picture = nbformat.v4.new_output("display_data", {"text/plain": "figure"})
    outputs = [piece("stdout", "a"), piece("stdout", "b"), picture]
    joined = run.merged([*outputs, piece("stdout", "c")])
    assert [output.get("text") for output in joined] == ["ab", None, "c"]


# ---- release -----------------------------------------------------------------------


@posix
def test_a_release_is_stamped_and_then_built(course):
    course.pip('case "$3" in wheel) echo "a wheel" > "$6/coursekit.whl" ;; esac')
    code, out, _ = course.run("release", "ada/course")
    assert code == 0
    assert "dist/coursekit.whl: built" in out
    (call,) = course.calls("classroom.release")
    assert call.endswith(f"release {course.repository} ada/course")
    dist = course.repository / "dist"
    assert [path.name for path in dist.iterdir()] == ["coursekit.whl"]
    assert course.run("release")[0] == 0


@posix
@pytest.mark.parametrize(
    ("words", "stamped", "code"), [(["--check"], 0, 0), (["x"], 1, 1), (["-h"], 0, 0)]
)
def test_what_is_checked_or_refused_is_not_built(course, words, stamped, code):
    assert course.run("release", *words, STAMPED=str(stamped))[0] == code
    assert not course.calls("pip wheel")
    assert not (course.repository / "dist").exists()


@posix
def test_a_wheel_that_cannot_be_built_leaves_nothing(course):
    course.pip("case \"$3\" in wheel) echo 'No space left on device'; exit 1 ;; esac")
    code, _, err = course.run("release")
    assert code == 1
    assert "the disk is full" in err
    assert list((course.repository / "dist").iterdir()) == []


# ---- the doctor --------------------------------------------------------------------


class Patient(Course):
    """A course with an environment, and what its Python would answer to the doctor."""

    def __init__(self, folder):
        super().__init__(folder)
        pinned = {name: [min(run.pins(name))] for name in run.SHOWN}
        course = self.repository / "coursekit" / "__init__.py"
        self.found = {"versions": pinned, "course": str(course)}
        self.found |= {"cuda": None, "kernel": "python"}
        self.variables = {"PATH": "/usr/bin:/bin", "PYTHONPATH": ""}

    def doctor(self, **variables):
        (self.fake / "found.json").write_text(json.dumps(self.found))
        before = self.calls("^-m ")
        files = set(self.venv.rglob("*")) if self.venv.is_dir() else None
        code, out, err = self.run("doctor", **{**self.variables, **variables})
        assert err == ""
        assert self.calls("^-m ") == before  # it only asks, and installs nothing
        assert files == (set(self.venv.rglob("*")) if self.venv.is_dir() else None)
        return code, out


@pytest.fixture
def patient(tmp_path):
    patient = Patient(tmp_path)
    patient.run("test")
    return patient


@posix
def test_before_there_is_an_environment_the_doctor_says_so(tmp_path):
    patient = Patient(tmp_path)
    code, out = patient.doctor()
    assert code == 0
    assert f"{patient.venv}: none yet; python run.py lab makes it" in out
    assert out.endswith("No fault found.\n")
    assert not patient.venv.exists()


@posix
def test_the_doctor_tells_all_versions_of_a_healthy_environment(patient):
    code, out = patient.doctor()
    assert (code, out.splitlines()[-1]) == (0, "No fault found.")
    words = ["course", "Python", "environment", *run.SHOWN, "system", "free disk"]
    assert [line[:12].strip() for line in out.splitlines()[:-1]] == [
        *words,
        "bubblewrap",
    ]
    assert f"torch        {patient.found['versions']['torch'][0]}\n" in out
    assert f"{patient.venv}: ready" in out
    patient.run("exercises")  # with the extras of teachers
    assert patient.doctor()[0] == 0


PACKAGES = {
    "elsewhere": (
        {"course": "/other/coursekit/__init__.py"},
        "coursekit is imported from /other/coursekit/__init__.py, and not from",
    ),
    "not installed": ({"course": None}, "coursekit is imported from nowhere"),
    "CUDA": ({"cuda": "12.8"}, "torch is the build for CUDA 12.8"),
    "no kernel": ({"kernel": ""}, "kernel python3 is missing"),
    "another kernel": (
        {"kernel": "/usr/bin/python3"},
        "kernel python3 is /usr/bin/python3",
    ),
    "two versions": (
        {"numpy": ["1.26.4", "2.4.6"]},
        "numpy is there in two versions, 1.26.4 and 2.4.6",
    ),
    "two of another": ({"pillow": ["12", "13"]}, "pillow is there in two versions"),
    "untested": ({"matplotlib": ["3.9"]}, r"matplotlib is 3.9, and 3[.\d]+ is tested"),
    "gone": ({"jupyterlab": []}, "jupyterlab is missing, and .* is tested"),
}


@posix
@pytest.mark.parametrize(("planted", "sentence"), PACKAGES.values(), ids=PACKAGES)
def test_the_doctor_finds_a_fault_among_the_packages(patient, planted, sentence):
    for name, value in planted.items():
        place = patient.found if name in patient.found else patient.found["versions"]
        place[name] = value
    code, out = patient.doctor()
    faults = re.findall("^fault: (.*)$", out, re.M)
    assert code == 1
    assert len(faults) == 1
    assert re.match(f"(the notebooks' )?{sentence}", faults[0])
    assert faults[0].endswith(
        f"Remove the folder {patient.venv}, and run: python run.py lab"
    )
    assert out.endswith("\n1 to mend.\n")


@posix
def test_cuda_that_was_asked_for_is_no_fault_and_a_local_version_neither(patient):
    patient.found["cuda"] = "12.8"
    patient.found["versions"]["torch"][0] += "+cpu"
    patient.found["kernel"] = str(run.python_of(patient.venv))
    assert patient.doctor(COURSE_CUDA="1")[0] == 0


ENVIRONMENTS = {
    "unfinished": (lambda text: run.UNFINISHED, "was stopped half-way. Run: python"),
    "another Python": (
        lambda text: text.replace("python 3.", "python 3.9", 1),
        r"was made for python 3\.9\d+, and this is python 3\.\d+\. Start run.py with",
    ),
    "moved": (
        lambda text: re.sub("(?m)^/.*$", "/old", text),
        "was made as /old and moved. Run, to make it again: python run.py lab",
    ),
    "outdated": (
        lambda text: re.sub("(?m)^[0-9a-f]{64}$", "0" * 64, text),
        "older than pyproject.toml or constraints.txt. Run, to bring it up to date",
    ),
}


@posix
@pytest.mark.parametrize(("plant", "sentence"), ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_the_doctor_finds_a_fault_of_the_environment(patient, plant, sentence):
    stamp = patient.venv / run.STAMP
    stamp.write_text(plant(stamp.read_text("utf-8")), "utf-8")
    code, out = patient.doctor()
    assert code == 1
    assert re.search(f"fault: {re.escape(str(patient.venv))} .*{sentence}", out) or (
        re.search(f"fault: the set-up of .* {sentence}", out)
    )
    assert out.endswith("\n1 to mend.\n")


@posix
def test_the_doctor_finds_a_lost_python_and_one_that_does_not_run(patient):
    run.python_of(patient.venv).write_text("#!/bin/sh\nexit 1\n")
    code, out = patient.doctor()
    assert code == 1
    assert "bin/python does not run. Remove the folder" in out
    run.python_of(patient.venv).unlink()
    code, out = patient.doctor()
    assert code == 1
    assert "has lost its Python. Run, to make it again: python run.py lab" in out


@posix
def test_an_environment_that_is_just_being_made_is_no_fault(patient):
    (patient.venv / run.STAMP).write_text(run.UNFINISHED)
    with open(patient.venv / run.LOCK, "a+b") as lock:
        assert run.try_lock(lock)
        code, out = patient.doctor()
    assert code == 0
    assert "being set up by another run.py" in out


@posix
def test_the_doctor_looks_at_what_is_around(patient):
    other = patient.fake / "other"
    other.mkdir()
    (other / "jupyter").write_text("#!/bin/sh\n")
    (other / "jupyter").chmod(0o755)
    code, out = patient.doctor(PATH=f"{other}:/usr/bin:/bin", PYTHONPATH="/mine")
    assert code == 1
    assert "fault: PYTHONPATH is set to /mine" in out
    assert f"fault: the word jupyter starts {other}/jupyter, of another env" in out
    assert out.endswith("\n2 to mend.\n")
    path = f"{run.python_of(patient.venv).parent}:/usr/bin:/bin"
    (patient.venv / "bin/jupyter").write_bytes((other / "jupyter").read_bytes())
    (patient.venv / "bin/jupyter").chmod(0o755)
    assert patient.doctor(PATH=path)[0] == 0


@posix
def test_the_doctor_leaves_a_folder_of_somebody_else_and_a_lone_run_py(tmp_path):
    patient = Patient(tmp_path)
    patient.venv.mkdir()
    (patient.venv / "thesis.tex").write_text("mine")
    code, out = patient.doctor()
    assert code == 1
    assert "is not an environment that run.py made: it holds thesis.tex" in out
    (patient.venv / "thesis.tex").unlink()
    (patient.repository / "constraints.txt").unlink()
    code, out = patient.doctor()
    assert code == 1
    assert "constraints.txt is missing beside run.py" in out


@pytest.mark.parametrize(("free", "faults"), [(1.9e9, 1), (2e9, 0)])
def test_a_disk_that_is_nearly_full_is_a_fault(free, faults, monkeypatch, tmp_path):
    for name in ("PYTHONPATH", "PYTHONHOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(run, "free_bytes", lambda folder: free)
    found = run.surrounding_faults(tmp_path, False)
    assert len(found) == faults
    assert all("has 1.9 GB left, and 2 GB are needed. Make room" in f for f in found)


def test_free_space_is_told_for_a_folder_that_is_not_there_yet(tmp_path):
    assert run.free_bytes(tmp_path / "a" / "b") > 0


def test_the_probe_sees_this_very_environment():
    import torch

    done = subprocess.run(
        [sys.executable, "-P", "-c", run.PROBE], capture_output=True, text=True
    )
    found = json.loads(done.stdout)
    assert found["versions"]["torch"] == [torch.__version__]
    assert found["cuda"] == torch.version.cuda
    assert Path(found["course"]).name == "__init__.py"
    assert Path(found["kernel"]).stem.startswith("python")


def test_the_doctor_takes_no_words(capsys):
    assert run.main(["doctor", "now"]) == 1
    assert "doctor takes no further words, but there is now" in capsys.readouterr().err
