"""How much there is, counted and printed: run.py test tests/test_counts.py -s."""

import importlib
import re
from pathlib import Path

import nbformat
from classroom.class_of_forty import FORTY

from coursekit.slips import EXERCISES, STEMS

ROOT = Path(__file__).resolve().parents[1]
PARTS = [stem.__name__.rpartition(".")[2] for stem in STEMS]
RIGHT = {
    name: answers
    for part in PARTS
    for name, answers in importlib.import_module(f"right_answers.{part}").RIGHT.items()
}


def in_notebook(path):
    cells = nbformat.read(path, as_version=4).cells
    return [cell.id for cell in cells if cell.id in EXERCISES]


def minutes(path):
    cells = nbformat.read(path, as_version=4).cells
    found = [re.search(r"^\*(\d+) minutes", cell.source, re.M) for cell in cells]
    return sum(int(match[1]) for match in found if match)


def test_there_is_as_much_as_was_promised():
    total = {"exercises": 0, "slips": 0, "right": 0, "minutes": 0}
    print(f"\n{'notebook':24}{'exercises':>10}{'slips':>7}{'right':>7}{'minutes':>9}")
    for path in sorted((ROOT / "solutions").glob("*.ipynb")):
        names = in_notebook(path)
        row = {
            "exercises": len(names),
            "slips": sum(len(EXERCISES[name].slips) for name in names),
            "right": sum(len(RIGHT[name]) for name in names),
            "minutes": minutes(path),
        }
        print(f"{path.stem:24}" + "{:10}{:7}{:7}{:9}".format(*row.values()))
        total = {key: total[key] + row[key] for key in total}
        assert 3 <= row["exercises"] <= 5
    print(f"{'all':24}" + "{:10}{:7}{:7}{:9}".format(*total.values()))
    print(f"submissions with the mark that they deserve: {len(FORTY)}")
    assert total["exercises"] == len(EXERCISES) >= 30
    assert total["slips"] > 350  # README says so; 150 were promised
    assert len(FORTY) == 40
    for name, exercise in EXERCISES.items():
        assert len(exercise.slips) >= 5, name
        assert len(RIGHT[name]) >= 3, name


def test_the_guide_tells_what_the_cards_tell():
    guide = (ROOT / "teachers.md").read_text("utf-8")
    assert len(guide.splitlines()) <= 150
    rows = dict(re.findall(r"^\| \d\d \| `(\w+)` \| (\d+ \| \d) \|", guide, re.M))
    told = {}
    for path in sorted((ROOT / "solutions").glob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            role, _, name = cell.id.partition("-")
            if role == "card":
                pattern = r"^\*(\d+) minutes · difficulty (\d)"
                found = re.search(pattern, cell.source, re.M)
                told[name] = f"{found[1]} | {found[2]}"
        head = nbformat.read(path, as_version=4).cells[0].source
        assert f"about {minutes(path)} minutes" in head
    assert rows == told
