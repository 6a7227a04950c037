"""The three lists of packages agree: pyproject, its conda twin and the constraints."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PYPI_NAMES = {"pytorch": "torch", "matplotlib-base": "matplotlib"}
CHANNELS = ["conda-forge", "nodefaults"]
EXTRAS = ("lab", "test", "instructor")  # what the commands install
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CONDA = (ROOT / "environment.yml").read_text("utf-8")
CONSTRAINTS = (ROOT / "constraints.txt").read_text("utf-8")


def course_requirements(project, extras=EXTRAS):
    lines = list(project["dependencies"])
    for extra in extras:
        lines += project["optional-dependencies"][extra]
    return bounds(lines)


def bounds(lines):
    """Return name → specifiers, each a sorted list such as ['<3', '>=2.0']."""
    found = map(Requirement, lines)
    return {canonicalize_name(r.name): sorted(map(str, r.specifier)) for r in found}


def twin_faults(project, conda):
    """Return a sentence for each thing in which environment.yml is no twin."""
    environment = yaml.safe_load(conda)
    faults = []
    if environment["channels"] != CHANNELS:
        faults.append(f"channels are {environment['channels']}, not {CHANNELS}")
    plain = [line for line in environment["dependencies"] if isinstance(line, str)]
    other = [line for line in environment["dependencies"] if not isinstance(line, str)]
    if other != [{"pip": ["-e ."]}]:
        faults.append(f"besides conda packages there is {other}, not pip: -e .")
    for line in plain:
        if not re.fullmatch(r"[a-z0-9_.-]+(([<>]=?|==|!=)[0-9.]+,?)+", line):
            faults.append(f"{line!r} is not a name with bounds that conda reads")
            return faults
    found = {PYPI_NAMES.get(name, name): spec for name, spec in bounds(plain).items()}
    wanted = course_requirements(project)
    wanted["python"] = [project["requires-python"]]
    found.pop("pip", None)  # conda needs it for the line -e .
    for name in sorted(wanted.keys() | found.keys()):
        if wanted.get(name) != found.get(name):
            faults.append(
                f"{name}: pyproject has {wanted.get(name, 'none')}, "
                f"environment.yml {found.get(name, 'none')}"
            )
    return faults


def constraint_faults(project, constraints):
    """Return a sentence for each dependency that no pin of the constraints fits."""
    lines = [line for line in constraints.splitlines() if not line.startswith("#")]
    pins = [Requirement(line) for line in lines if line.strip()]
    faults = []
    extras = tuple(project["optional-dependencies"])
    for name, wanted in course_requirements(project, extras).items():
        versions = [
            str(specifier).removeprefix("==")
            for pin in pins
            if canonicalize_name(pin.name) == name
            for specifier in pin.specifier
        ]
        allowed = Requirement(name + ",".join(wanted)).specifier
        if not versions or not all(version in allowed for version in versions):
            faults.append(f"{name}: pinned to {versions}, which {wanted} does not fit")
    return faults


def test_environment_yml_is_the_twin_of_pyproject():
    assert twin_faults(PROJECT, CONDA) == []


@pytest.mark.parametrize(
    ("right", "wrong", "fault"),
    [
        ("ipywidgets>=7.7.1,<9", "ipywidgets>=8,<9", "ipywidgets: pyproject has"),
        ("  - tqdm>=4.66 # progress bars\n", "", "tqdm: .* environment.yml none"),
        ("  - tqdm", "  - pandas>=2\n  - tqdm", "pandas: pyproject has none"),
        ("pytorch>=2.6", "pytorch>=2.13", "torch: pyproject has"),
        ("pytorch>=2.6", "torch2>=2.6", "torch: .* environment.yml none"),
        ("pytorch>=2.6", "pytorch=>2.6", "not a name with bounds"),
        ("numpy>=2.0,<3", "numpy", "not a name with bounds"),
        ("python>=3.11", "python>=3.10", "python: pyproject has"),
        ("conda-forge", "defaults", "channels are"),
        ("  - nodefaults", "  - pytorch\n  - nodefaults", "channels are"),
        ("- -e .", "- -e .[lab]", "besides conda packages"),
        ("- -e .", "- torch>=2.6", "besides conda packages"),
    ],
)
def test_the_comparison_finds_a_planted_fault(right, wrong, fault):
    assert right in CONDA
    faults = twin_faults(PROJECT, CONDA.replace(right, wrong, 1))
    assert re.search(fault, "\n".join(faults))


def test_constraints_pin_every_dependency_within_its_bounds():
    assert constraint_faults(PROJECT, CONSTRAINTS) == []


def test_torch_is_pinned_to_the_tested_version_everywhere():
    # Without the pin a bare range takes a newer build, on Linux one with CUDA.
    assert re.findall(r"^torch==.*$", CONSTRAINTS, re.M) == ["torch==2.13.0"]


@pytest.mark.parametrize(
    ("right", "wrong", "fault"),
    [
        ("\ntorch==2.13.0", "\ntorch==2.5.1", r"torch: pinned to \['2.5.1'\]"),
        ("\ntorch==2.13.0", "\ntorchaudio==2.13.0", r"torch: pinned to \[\]"),
        ("jupyterlab==4", "jupyterlab==5", "jupyterlab: pinned to"),
    ],
)
def test_the_constraints_check_finds_a_planted_fault(right, wrong, fault):
    assert right in CONSTRAINTS
    faults = constraint_faults(PROJECT, CONSTRAINTS.replace(right, wrong, 1))
    assert re.search(fault, "\n".join(faults))


def test_no_file_of_the_set_up_names_a_package_index():
    # Who sits behind a mirror would otherwise meet a host that cannot be reached.
    files = ("run.py", "pyproject.toml", "environment.yml")
    for name in (*files, "constraints.txt", "constraints-colab.txt"):
        text = (ROOT / name).read_text("utf-8")
        text = re.sub(r"(?m)^Repository = .*", "", text)  # where the course itself is
        assert not re.search(r"https?://|index-url|find-links", text), name


def test_the_readme_activates_the_environment_that_the_file_names():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    named = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    assert f"conda activate {named['name']}" in readme
