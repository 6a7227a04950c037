"""The house holds: who imports whom, sizes, docstrings, names, one stem each."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "coursekit"

# A module may import only what stands in its row (and torch and the standard library).
IMPORTS = {
    "_require": set(),
    "tokens": set(),
    "attention": {"_require"},
    "sinusoidal": {"_require"},
    "learned": {"_require"},
    "relative": {"_require"},
    "disentangled": {"_require"},
    "rope": {"_require"},
    "alibi": {"_require", "relative"},
    "per_pair": {"_require", "sinusoidal"},
    "rope_config": set(),
    "context_extension": {"_require", "sinusoidal", "per_pair", "rope_config"},
    "doors": set(),
    "position_bias": {"_require", "doors", "relative", "alibi"},
    "position": {"_require", "sinusoidal", "learned", "rope", "doors", "position_bias"},
    "walk": {"_require", "tokens", "attention", "position"},
    "places": {"attention", "position"},
    "ways": {"attention"},
    "transformer": {
        *("_require", "attention", "rope", "position", "places", "ways"),
    },
    "tasks": {"_require"},
    "_shipped": set(),
    "_files": set(),
    "corpus": {"_require", "_shipped"},
    "tables": {"_require", "_shipped"},
    "training": {"_require", "tasks"},
    "results": {"_shipped", "_files"},
    "reference": {
        *("_require", "learned", "position", "position_bias", "transformer"),
        *("tasks", "corpus"),
    },
    "experiments": {"__version__", "_require", "reference", "results", "training"},
    "extension": {
        *("__version__", "_require", "context_extension", "position"),
        *("tasks", "training", "results", "reference", "transformer"),
    },
    "measures": {"_require"},
    "notation": set(),
    "plots": set(),
    "controls": {"plots"},
}
MODULES = sorted(path.stem for path in PACKAGE.glob("*.py") if path.stem != "__init__")
STUDIES = ["tasks", "training", "results", "reference", "experiments", "extension"]
SLIPS = sorted(path.stem for path in (PACKAGE / "slips").glob("*.py"))
CLASSROOM = sorted(
    f"classroom/{path.stem}"
    for path in (PACKAGE / "classroom").glob("*.py")
    if path.stem != "__init__"
)
SMALL = [name for name in MODULES if name not in ("checks", "slips", "classroom")]
BANNED = ("theta", "seq_len", "n_embd", "utils", "helpers")
FORBIDDEN_FILES = ("utils.py", "helpers.py", "common.py")


def source(name: str) -> str:
    return (PACKAGE / f"{name}.py").read_text(encoding="utf-8")


def course_imports(text: str) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            parts = node.module.split(".")
            if parts[0] == "coursekit":
                found |= {parts[1]} if parts[1:] else {n.name for n in node.names}
        if isinstance(node, ast.Import):
            names = [n.name.split(".") for n in node.names]
            found |= {p[-1] for p in names if p[0] == "coursekit"}
    return found


def functions(name: str) -> list[ast.FunctionDef]:
    return [
        n for n in ast.walk(ast.parse(source(name))) if isinstance(n, ast.FunctionDef)
    ]


def body_lines(function: ast.FunctionDef) -> int:
    first = function.body[0]
    documented = ast.get_docstring(function) is not None
    start = first.end_lineno + 1 if documented else first.lineno
    return function.end_lineno - start + 1


@pytest.mark.parametrize("name", SMALL)
def test_a_module_imports_only_the_modules_above_it(name):
    assert name in IMPORTS, f"{name} is new: give it a row in IMPORTS"
    assert course_imports(source(name)) <= IMPORTS[name]


def test_the_import_finder_sees_every_form():
    text = "from coursekit import a\nfrom coursekit.b import c\nimport coursekit.d\n"
    assert course_imports(text) == {"a", "b", "d"}


@pytest.mark.parametrize("name", SMALL + CLASSROOM)
def test_a_module_fits_on_two_hundred_lines(name):
    assert len(source(name).splitlines()) <= 200


def code_lines(text: str) -> int:
    """Count lines that are neither blank, nor comment, nor docstring."""
    documented = set()
    for node in ast.walk(ast.parse(text)):
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
        if isinstance(node, kinds) and ast.get_docstring(node) is not None:
            first = node.body[0]
            documented |= set(range(first.lineno, first.end_lineno + 1))
    lines = enumerate(text.splitlines(), start=1)
    kept = [n for n, line in lines if line.strip() and not line.strip().startswith("#")]
    return len(set(kept) - documented)


def test_methods_stay_within_two_thousand_lines_of_code_and_studies_within_less():
    methods = [name for name in SMALL if name not in STUDIES]
    assert sum(code_lines(source(name)) for name in methods) <= 2_000
    assert sum(code_lines(source(name)) for name in STUDIES) <= 800


@pytest.mark.parametrize("name", SLIPS)
def test_a_stem_of_slips_has_methods_alone_and_right_answers(name):
    text = source(f"slips/{name}")
    outside = set(STUDIES) | {"checks", "plots", "corpus", "tables"}
    assert course_imports(text).isdisjoint(outside)
    assert "print(" not in text
    assert "\n    assert " not in text
    assert {word for word in BANNED if re.search(rf"\b{word}\b", text)} == set()
    long = [f.name for f in functions(f"slips/{name}") if body_lines(f) > 25]
    assert long == []
    if name not in ("__init__", "exercise"):
        assert (ROOT / "tests" / "right_answers" / f"{name}.py").is_file()


def test_only_code_is_counted_as_code():
    text = '"""Module\n\ndoc."""\n\n# why\nx = 1\n\ndef f():\n    """Doc."""\n    x\n'
    assert code_lines(text) == 3


@pytest.mark.parametrize("name", MODULES)
def test_a_function_body_fits_on_twenty_five_lines(name):
    limit = 25 if name in SMALL else 40
    long = {f.name: body_lines(f) for f in functions(name) if body_lines(f) > limit}
    assert long == {}


@pytest.mark.parametrize("name", SMALL + CLASSROOM)
def test_public_functions_document_arguments_and_result(name):
    public = [f for f in functions(name) if not f.name.startswith("_")]
    tree = ast.parse(source(name))
    top = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
    short_plots = {f.name for f in public if f.name.startswith("plot_")}
    for function in public:
        text = ast.get_docstring(function)
        assert text, function.name
        if function.name not in top - short_plots or name == "_require":
            continue
        wants = [] if not function.args.args else ["Args:"]
        wants += ["Returns:"] if not returns_nothing(function) else []
        missing = [word for word in wants if word not in text]
        assert missing == [], f"{function.name} lacks {missing}"


def returns_nothing(function: ast.FunctionDef) -> bool:
    return isinstance(function.returns, ast.Constant) and function.returns.value is None


@pytest.mark.parametrize("name", MODULES)
def test_names_are_the_fields_words(name):
    names = {n.id for n in ast.walk(ast.parse(source(name))) if isinstance(n, ast.Name)}
    names |= {
        n.arg for n in ast.walk(ast.parse(source(name))) if isinstance(n, ast.arg)
    }
    assert names.isdisjoint(BANNED)


@pytest.mark.parametrize("name", SMALL)
def test_nothing_in_the_package_prints_or_asserts(name):
    tree = ast.parse(source(name))
    calls = {
        getattr(n.func, "id", "") for n in ast.walk(tree) if isinstance(n, ast.Call)
    }
    assert "print" not in calls
    assert not [n for n in ast.walk(tree) if isinstance(n, ast.Assert)]


@pytest.mark.parametrize("name", MODULES)
def test_each_module_has_its_test_file(name):
    assert (ROOT / "tests" / f"test_{name}.py").is_file()


def test_the_house_has_no_drawer_for_odds_and_ends():
    assert not [f for f in FORBIDDEN_FILES if (PACKAGE / f).exists()]


def hidden(path: Path) -> bool:
    return any(
        p.startswith(".") and p != ".ci" or p == "__pycache__" for p in path.parts
    )


def tracked() -> list[Path]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:  # an archive without its history
        files = [p for p in ROOT.rglob("*") if p.is_file()]
        return [p for p in files if not hidden(p.relative_to(ROOT))]
    return [
        ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).is_file()
    ]


def test_no_text_names_a_machine_path_or_a_registry():
    home = re.compile(r"(?<![\w./-])/(?:work|home|root|Users)/[\w.-]+")
    hosts = re.compile(r"(?:pypi|npmjs|debian|anaconda)\.org", re.IGNORECASE)
    faults = []
    for path in tracked():
        if path.suffix in (".png", ".npz", ".csv", ".json") or path == Path(__file__):
            continue
        text = path.read_text(encoding="utf-8")
        found = home.findall(text) + hosts.findall(text)
        faults += [f"{path.relative_to(ROOT)}: {word}" for word in found]
    assert faults == []


def test_the_readme_is_short_and_its_links_lead_somewhere():
    for name in ("README.md", "CONTRIBUTING.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 120
        targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", text)
        assert [t for t in targets if not (ROOT / t).exists()] == []
