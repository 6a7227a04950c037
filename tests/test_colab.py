"""Colab: its first cell, what that prints there, and what would break there."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from IPython.core.inputtransformer2 import TransformerManager
from packaging.requirements import Requirement
from packaging.version import Version

from coursekit import __version__
from coursekit.classroom.colab import colab_cell, report

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("notebooks", "solutions", "exercises")
NOTEBOOKS = [p for f in FOLDERS for p in sorted((ROOT / f).glob("*.ipynb"))]
PACKAGE = sorted((ROOT / "coursekit").rglob("*.py"))
ADDRESS = "https://github.com/ada/course"
LONG = f"https://github.com/{'o' * 39}/{'r' * 70}"

# The lowest that Colab offers: its snapshot of 2026-08-19, and its runtime 2026.07.
COLAB = {"python": "3.12.13", "torch": "2.11.0", "numpy": "2.0.2"}
COLAB |= {"matplotlib": "3.10.0", "tqdm": "4.67.3", "ipywidgets": "7.7.1"}
# What ipywidgets 8 brought: dir() of 8.1.9 without that of 7.7.1.
ONLY_IN_8 = {
    *("ColorsInput", "DatetimePicker", "FloatsInput", "IntsInput", "Stack"),
    *("NaiveDatetimePicker", "TagsInput", "TimePicker", "TypedTuple"),
}
# A fresh kernel; coursekit is there, or a pip that can or cannot bring it.
KERNEL = """
import sys
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config
installed, pip_works, source = sys.argv[1:]
config = Config()
config.HistoryManager.enabled = False
shell = InteractiveShell.instance(config=config)
if installed == "False":
    sys.modules["coursekit"] = None
def pip(line):
    print("pip", line)
    if pip_works == "True":
        del sys.modules["coursekit"]
shell.register_magic_function(pip, "line", "pip")
result = shell.run_cell(source)
assert result.success
print("now", sorted(n for n in shell.user_ns if n in ("coursekit", "report")))
"""


def run_cell(address: str, *, installed: bool, pip_works: bool = True) -> str:
    """Run the Colab cell in an empty folder, and return what it printed."""
    source = colab_cell(__version__, address)
    done = subprocess.run(
        [sys.executable, "-P", "-c", KERNEL, str(installed), str(pip_works), source],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


# Property


@pytest.mark.parametrize("address", ["", ADDRESS])
def test_where_the_course_is_installed_the_cell_prints_nothing(address):
    assert run_cell(address, installed=True) == "now ['coursekit']\n"


def test_elsewhere_it_installs_the_tag_alone_and_tells_the_versions():
    out = run_cell(ADDRESS, installed=False).splitlines()
    tag = f"v{__version__}"
    assert out[0] == f"pip install -q --no-deps {ADDRESS}/archive/refs/tags/{tag}.zip"
    assert out[1] == report()
    assert out[2:] == ["now ['report']"]


def test_an_install_that_fails_is_told_in_one_sentence():
    out = run_cell(ADDRESS, installed=False, pip_works=False).splitlines()
    assert out[1:] == [
        "Not installed: the course needs the internet and Python 3.11 or newer.",
        "now []",
    ]


def test_before_a_release_the_cell_says_where_the_course_is():
    out = run_cell("", installed=False).splitlines()
    wheel = f"coursekit-{__version__}-py3-none-any.whl"
    assert len(out) == 2
    assert out[0].startswith(f"The course is not installed here: put {wheel}, which")
    assert f"%pip install --no-deps {wheel} in a cell of its own" in out[0]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_no_notebook_does_what_colab_cannot(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    assert breaks("\n".join(code)) == []


@pytest.mark.parametrize("path", PACKAGE, ids=lambda p: p.stem)
def test_the_package_does_nothing_that_colab_cannot(path):
    assert breaks(path.read_text(encoding="utf-8")) == []


def breaks(code: str) -> list[str]:
    """Return what in some code breaks in Colab."""
    faults = re.findall(r"^\s*%(?:load|reload)_ext\b.*|^\s*%autoreload\b.*", code, re.M)
    for node in ast.walk(ast.parse(TransformerManager().transform_cell(code))):
        name = getattr(node, "attr", None) or getattr(node, "name", None)
        if name in ONLY_IN_8 or getattr(node, "id", None) in ONLY_IN_8:
            faults.append(f"{name or node.id} is not in ipywidgets 7.7.1")
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names]
            module = getattr(node, "module", None) or ""
            faults += [n for n in names if n in ONLY_IN_8 and module]
            if module.startswith("google.colab") or "google.colab" in names:
                faults.append("google.colab is nowhere else")
    return faults


@pytest.mark.parametrize(
    "code",
    [
        "%load_ext autoreload",
        "if x:\n    %autoreload 2",
        "import ipywidgets as w\nw.Stack([])",
        "from ipywidgets import TagsInput",
        "from google.colab import drive",
        "import google.colab",
    ],
)
def test_what_breaks_in_colab_is_found(code):
    assert breaks("import ipywidgets as w\n%pip list\nw.HBox()") == []
    assert breaks(code) != []


# Oracle


def lower_bounds() -> dict[str, Version]:
    """Return name → lowest version of what a notebook needs, read by another parser."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    widgets = [r for r in project["optional-dependencies"]["lab"] if "widgets" in r]
    python = "python" + project["requires-python"]
    lines = map(Requirement, [*project["dependencies"], *widgets, python])
    found = {r.name: [s for s in r.specifier if s.operator == ">="] for r in lines}
    return {name: Version(lowest.version) for name, (lowest,) in found.items()}


def test_no_lower_bound_is_above_what_colab_has():
    """Or pip would replace, under a running kernel, what is already loaded."""
    bounds = lower_bounds()
    assert set(bounds) == set(COLAB)
    assert {n: b for n, b in bounds.items() if b > Version(COLAB[n])} == {}


def test_the_emulation_has_the_versions_of_colab():
    text = (ROOT / "constraints-colab.txt").read_text("utf-8")
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)$", text, re.M))
    same = {n: pins[n] for n in COLAB if n not in ("python", "numpy", "torch")}
    assert same == {name: COLAB[name] for name in same}
    assert pins["numpy"] == "2.1.3"
    tested = (ROOT / "constraints.txt").read_text("utf-8")
    assert f"\ntorch=={pins['torch']}\n" in tested
    assert Version(pins["torch"]) >= Version(COLAB["torch"])
    for name, bound in lower_bounds().items():
        assert name == "python" or Version(pins[name]) >= bound


def test_the_report_names_the_bounds_of_pyproject():
    ancient = dict.fromkeys(["Python", *lower_bounds()], "0.1")
    del ancient["python"], ancient["ipywidgets"]
    told = report(ancient)
    for name, bound in lower_bounds().items():
        named = {"python": "Python"}.get(name, name)
        sentence = f"{named} 0.1 (the course needs {bound} or newer)"
        assert (sentence in told) == (name != "ipywidgets")


# Boundary


@pytest.mark.parametrize("address", ["", ADDRESS, LONG])
def test_the_cell_keeps_to_the_length_of_a_cell(address):
    lines = colab_cell("10.11.12", address).splitlines()
    assert len(lines) <= 15
    assert max(map(len, lines)) <= 88


def test_a_long_address_stays_whole():
    lines = colab_cell("1.0.0", LONG).splitlines()
    start = next(i for i, line in enumerate(lines) if "address = (" in line)
    code = "\n".join(line[4:] for line in lines[start : start + 4])
    names: dict[str, str] = {}
    exec(code, names)
    assert names["address"] == LONG


NEW = {"Python": "3.11.0", "torch": "2.6.0+cpu", "numpy": "2.0.0"}
NEW |= {"matplotlib": "3.10", "tqdm": "4.66"}


@pytest.mark.parametrize(
    ("name", "version", "told"),
    [
        ("Python", "3.10.14", "Python 3.10.14 (the course needs 3.11 or newer)"),
        ("torch", "2.5.1+cu121", "torch 2.5.1+cu121 (the course needs 2.6 or newer)"),
        ("numpy", "1.26.4", "numpy 1.26.4 (the course needs 2.0 or newer)"),
        ("matplotlib", "3.9.4", "matplotlib 3.9.4 (the course needs 3.10 or newer)"),
        ("matplotlib", "none", "matplotlib none (the course needs 3.10 or newer)"),
        ("numpy", "2", ""),
        ("torch", "2.13.0.dev2026", ""),
    ],
)
def test_what_is_too_old_is_told_and_its_nearest_neighbour_not(name, version, told):
    assert report(NEW).count("\n") == 0
    lines = report(NEW | {name: version}).splitlines()
    assert len(lines) == (2 if told else 1)
    assert f"{name} {version}" in lines[0]
    if told:
        assert lines[1].startswith(f"This runtime has {told}: choose Runtime, Change")


def test_two_things_too_old_are_told_in_one_sentence():
    lines = report(NEW | {"torch": "2.5", "numpy": "1.26"}).splitlines()
    assert len(lines) == 2
    assert lines[1].count("the course needs") == 2
