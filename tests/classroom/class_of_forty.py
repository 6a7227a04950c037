"""Forty submissions of notebook 02, with the mark that each deserves written beside it.

Each maker gets the exercise notebook with all five answers right, and spoils it.
"""

import copy
import json
import re
import zipfile
from pathlib import Path

import nbformat

from coursekit.classroom.exercises import exercise_of

STEM = "02_sinusoidal"
SOLUTION = re.compile(r"^ *### (BEGIN|END) SOLUTION\n?", re.MULTILINE)
FORTY: dict[str, tuple] = {}  # file → maker, mark, words of its notes


def given(solutions: Path, seed=None) -> dict:
    """Return the exercise notebook as handed out."""
    text = exercise_of(solutions / f"{STEM}.ipynb", seed)
    return json.loads(json.dumps(nbformat.reads(text, as_version=4)))


def answers(solutions: Path, stem: str = STEM) -> dict[str, str]:
    """Return the right answer of each exercise, from the solutions."""
    cells = nbformat.read(solutions / f"{stem}.ipynb", as_version=4).cells
    return {
        cell.id: SOLUTION.sub("", cell.source)
        for cell in cells
        if cell.metadata["nbgrader"]["solution"]
    }


def filled(notebook: dict, sources: dict[str, str]) -> dict:
    """Write answers into a notebook."""
    notebook = copy.deepcopy(notebook)
    for cell in notebook["cells"]:
        if cell["id"] in sources:
            cell["source"] = sources[cell["id"]]
    return notebook


def code(source: str) -> dict:
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": f"mine-{abs(hash(source))}",
        "metadata": {},
        "outputs": [],
        "source": source,
    }


def at(notebook: dict, cell_id: str) -> int:
    return next(i for i, cell in enumerate(notebook["cells"]) if cell["id"] == cell_id)


def hand_in(file: str, mark: float, notes: str = ""):
    """Name the file of a submission, its mark, and what its notes must say."""

    def _keep(maker):
        FORTY[file] = maker, mark, notes
        return maker

    return _keep


def with_cell(source: str):
    """Put a cell of the student's own after the imports."""

    def _maker(right):
        right["cells"].insert(at(right, "imports") + 1, code(source))
        return right

    return _maker


def with_answer(name: str, body: str, arguments: str = "*inputs"):
    """Replace one answer."""
    return lambda right: filled(right, {name: f"def {name}({arguments}):\n{body}"})


def all_wrong(before: str):
    """Answer everything with zeros, after a cell that meddles."""

    def _maker(right):
        names = [c["id"] for c in right["cells"] if c["source"].startswith("def ")]
        wrong = {n: f"def {n}(*inputs):\n    return torch.zeros(3)" for n in names}
        return with_cell(before)(filled(right, wrong))

    return _maker


def without_metadata(right):
    for cell in right["cells"]:
        cell["metadata"] = {}
    right["metadata"] = {}
    return right


def without_ids(right):
    for cell in right["cells"]:
        del cell["id"]
    return right | {"nbformat": 4, "nbformat_minor": 4}


def as_colab(right):
    for cell in right["cells"]:
        cell["metadata"]["id"] = cell.pop("id")
        if cell["cell_type"] == "code":
            cell["metadata"]["outputId"] = "0b1c2d3e"
    right["metadata"]["colab"] = {"provenance": []}
    return right | {"nbformat": 4, "nbformat_minor": 0}


def twice(cell_id: str, source: str | None = None):
    """Repeat a cell with all its ids, as a copy and paste does."""

    def _maker(right):
        place = at(right, cell_id)
        again = copy.deepcopy(right["cells"][place])
        again["source"] = again["source"] if source is None else source
        right["cells"].insert(place + 1, again)
        return right

    return _maker


def without(*cell_ids: str):
    def _maker(right):
        right["cells"] = [c for c in right["cells"] if c["id"] not in cell_ids]
        return right

    return _maker


def checks_that_pass(right):
    right = all_wrong("")(right)
    for cell in right["cells"]:
        if cell["id"].startswith("check-"):
            cell["source"] = "pass"
    return right


def more_points(right):
    for cell in right["cells"]:
        if "points" in cell["metadata"].get("nbgrader", {}):
            cell["metadata"]["nbgrader"]["points"] = 300
    return right


def unspoilt(right):
    return right


hand_in("Ada_101_assignsubmission_file_/02_sinusoidal.ipynb", 5)(unspoilt)
hand_in("Ben/02_sinusoidal.ipynb", 0)(
    lambda right: filled(
        right,
        {
            c["id"]: re.sub(
                r"(?s)(def .*?\"\"\"\n).*",
                r"\1    raise NotImplementedError",
                c["source"],
            )
            for c in right["cells"]
            if c["source"].startswith("def ")
        },
    )
)
hand_in("Cleo/02_sinusoidal.ipynb", 4)(
    with_answer(
        "pair_frequencies",
        "    return 10_000.0 ** (-2.0 * torch.arange(0, dim, 2) / dim)",
        "dim",
    )
)
hand_in("Dan/02_sinusoidal.ipynb", 5)(
    with_answer(
        "pair_frequencies",
        "    import numpy as np\n"
        "    return np.exp(-np.log(10_000.0) * np.arange(0, dim, 2) / dim)",
        "dim",
    )
)
hand_in("Eve/02_sinusoidal.ipynb", 5, "ran for longer")(
    with_cell("while True:\n    pass")
)
hand_in("Finn/02_sinusoidal.ipynb", 4)(
    with_answer("shift_matrix", "    while True:\n        pass")
)
LOOP = (
    "while True:\n    try:\n        while True:\n            pass\n"
    "    except BaseException:\n        pass"
)
hand_in("Gus/02_sinusoidal.ipynb", 5, "ran for longer")(with_cell(LOOP))
hand_in("Hal/02_sinusoidal.ipynb", 4)(
    with_answer("shift_matrix", "    " + LOOP.replace("\n", "\n    "))
)
hand_in("Ida/02_sinusoidal.ipynb", 5, "ended the kernel")(
    with_cell("import os\nos._exit(0)")
)
hand_in("Jan/02_sinusoidal.ipynb", 4)(
    with_answer("shift_matrix", "    import os\n    os.kill(os.getpid(), 9)")
)
hand_in("Kim/02_sinusoidal.ipynb", 5)(with_cell("import os\nos.kill(os.getppid(), 9)"))
hand_in("Leo/02_sinusoidal.ipynb", 0, "no notebook")(lambda right: '{"cells": [{"ce')
hand_in("Mia/02_sinusoidal.ipynb", 0, "empty")(lambda right: "")
hand_in("Ned/02_sinusoidal.ipynb", 0, "zip archive")("zip")
hand_in("Ola/02_sinusoidal.ipynb", 0, "none of this course")(
    lambda right: (
        right | {"cells": [code("import pandas as pd"), code("pd.DataFrame()")]}
    )
)
hand_in("Pam/02_sinusoidal.ipynb", 4, "SyntaxError")(
    lambda right: filled(right, {"shift_matrix": "def shift_matrix(offset, d_model:\n"})
)
hand_in("Quin/02_sinusoidal.ipynb", 5)(with_cell("raise SystemExit"))
hand_in("Rex/02_sinusoidal.ipynb", 5, "more than once")(
    twice(
        "shift_matrix",
        "def shift_matrix(offset, d_model):\n    raise NotImplementedError",
    )
)
hand_in("Sam/02_sinusoidal.ipynb", 5, "more than once")(twice("check-shift_matrix"))
hand_in("Tom/02_sinusoidal.ipynb", 5, "check-shift_matrix was deleted")(
    without("check-shift_matrix")
)
hand_in("Uma/02_sinusoidal.ipynb", 4, "shift_matrix was deleted")(
    without("shift_matrix")
)
hand_in("Vic/02_sinusoidal.ipynb", 5)(without_metadata)
hand_in("Wes/02_sinusoidal.ipynb", 5)(without_ids)
hand_in("Xan_ex2 (1).ipynb", 5)(as_colab)
hand_in("Yul/whatever (1).ipynb", 5)(unspoilt)
hand_in("Zoe/02_sinusoidal.ipynb", 0, "was changed")(checks_that_pass)
hand_in("Abe/02_sinusoidal.ipynb", 0)(
    all_wrong(
        "import numpy as np\n"
        "for module in np, np.testing, torch, torch.testing:\n"
        "    for name in 'allclose', 'assert_allclose', 'equal', 'assert_close':\n"
        "        setattr(module, name, lambda *a, **k: True)\n"
        "for name in '__lt__', '__le__', '__eq__', '__sub__':\n"
        "    setattr(torch.Tensor, name, lambda self, other: torch.zeros(()).bool())"
    )
)
hand_in("Bea/02_sinusoidal.ipynb", 0)(
    all_wrong(
        "import coursekit.checks as c\n"
        "for name in dir(c):\n"
        "    if name.startswith('check_') or name in ('judge', 'hidden'):\n"
        "        setattr(c, name, lambda *a, **k: (1.0, 'perfect'))\n"
        "c._gap = lambda *a, **k: 0.0"
    )
)
hand_in("Cid/02_sinusoidal.ipynb", 0, "coursekit.slips")(
    all_wrong(
        "import coursekit.slips as s\n"
        "for name, e in list(s.EXERCISES.items()):\n"
        "    s.EXERCISES[name] = e._replace(tolerance=1e9, slips=(), properties=(),\n"
        "        draw=lambda *a, **k: (), right=lambda *a, **k: torch.zeros(3))"
    )
)
hand_in("Dot/02_sinusoidal.ipynb", 0)(
    all_wrong(
        "class Same(float):\n"
        "    __eq__ = lambda *a: True\n"
        "    __lt__ = __le__ = __gt__ = __ge__ = __eq__\n"
        "    __hash__ = float.__hash__\n"
        "torch.zeros = lambda *a: Same('nan')"
    )
)
hand_in("Eli/02_sinusoidal.ipynb", 5)(with_cell("print('x' * 2_900_000)"))
hand_in("Fay/02_sinusoidal.ipynb", 4)(
    with_answer("shift_matrix", "    while True:\n        print('on and on' * 99)")
)
hand_in("Gil/02_sinusoidal.ipynb", 5, "MemoryError|memory|RuntimeError")(
    with_cell("full = torch.zeros(10**9, 8)\nfull += 1")
)
hand_in("Hob/02_sinusoidal.ipynb", 4)(
    with_answer("pair_frequencies", "    return [1, 0.1, 0.01, 0.001]", "dim")
)
hand_in("Ivy/02_sinusoidal.ipynb", 2)(
    lambda right: with_answer("pair_frequencies", "    return None")(
        with_answer("shift_matrix", "    return 'a matrix'")(
            with_answer("recover_offset", "    yield 1")(right)
        )
    )
)
hand_in("Joy/02_sinusoidal.ipynb", 5)(more_points)
hand_in("Kai/02_sinusoidal.ipynb", 0)(
    all_wrong(
        "import json, os\n"
        "line = {'exercise': 'shift_matrix', 'collected': [{'kind': 'float64',\n"
        "        'shape': [1], 'values': [0.0]}] * 4, 'end': True}\n"
        "for n in range(3, 64):\n"
        "    try:\n"
        "        os.write(n, (json.dumps(line) + '\\n').encode())\n"
        "    except OSError:\n"
        "        pass"
    )
)
hand_in("Lux/02_sinusoidal.ipynb", 5)(
    with_cell(
        "import sys\n"
        "for name in [n for n in sys.modules if n.startswith('coursekit')]:\n"
        "    del sys.modules[name]"
    )
)
hand_in("mo_LATE_4711_815_02_sinusoidal-2.ipynb", 5, "another attempt")(unspoilt)
hand_in("Nan/report.pdf", 0, "no notebook found")(lambda right: "%PDF-1.7")

# Not one of the forty: an earlier attempt of mo's, which does not count.
EARLIER = "mo_4711_814_02_sinusoidal-1.ipynb"


def write_class(folder: Path, solutions: Path) -> None:
    """Write all forty into a folder."""
    right = filled(given(solutions), answers(solutions))
    blank = given(solutions)
    for file, (maker, _, _) in FORTY.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        if maker == "zip":
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("02_sinusoidal.ipynb", json.dumps(right))
            continue
        made = maker(copy.deepcopy(right))
        text = made if isinstance(made, str) else json.dumps(made)
        path.write_text(text, encoding="utf-8")
    (folder / EARLIER).write_text(json.dumps(blank), encoding="utf-8")
    (folder / ".DS_Store").write_text("of no interest", encoding="utf-8")
