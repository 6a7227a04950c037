"""Exercises: made from the solutions, empty, complete, and other ones in a variant."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from coursekit import checks
from coursekit.classroom import exercises as module
from coursekit.classroom.exercises import exercise_of, main, write_exercises
from coursekit.classroom.variants import card_line, variant_constants, with_constants
from coursekit.slips import EXERCISES

ROOT = Path(__file__).resolve().parents[1]
SOLUTIONS = sorted((ROOT / "solutions").glob("*.ipynb"))
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
STEMS = [path.stem for path in SOLUTIONS]
ROLES = ("card", "known", "check", "hints", "change")


def cells(path):
    return nbformat.read(path, as_version=4).cells


def of_exercise(path):
    """Return name → role → source, of the exercises in a notebook."""
    found = {}
    for cell in cells(path):
        role, _, name = cell.id.partition("-")
        if role in ROLES and name in EXERCISES:
            found.setdefault(name, {})[role] = cell.source
        if cell.id in EXERCISES:
            found.setdefault(cell.id, {})["answer"] = cell.source
    return found


# What is there


def test_each_lesson_has_its_exercises_and_their_solutions():
    assert [path.stem for path in LESSONS] == STEMS
    made = sorted(path.stem for path in (ROOT / "exercises").glob("*.ipynb"))
    assert made == STEMS


def test_every_exercise_of_the_catalogue_has_its_place(capsys):
    found = {path.stem: list(of_exercise(path)) for path in SOLUTIONS}
    for stem, names in found.items():
        assert 3 <= len(names) <= 5
        assert all(EXERCISES[name].stem == stem[3:] for name in names)
    everything = sorted(name for names in found.values() for name in names)
    assert everything == sorted(EXERCISES)
    assert len(everything) >= 30


@pytest.mark.parametrize("path", SOLUTIONS, ids=STEMS)
def test_every_exercise_is_complete(path):
    for name, parts in of_exercise(path).items():
        assert set(parts) == {*ROLES, "answer"}, name
        card = parts["card"]
        for word in ("**Goal.**", "**Given.**", "**Known answer.**"):
            assert card.count(word) == 1, (name, word)
        assert re.search(r"^\*\d+ minutes · difficulty [123] of 3\*$", card, re.M), name
        assert card_line(name, None) in card
        assert parts["hints"].count("<details><summary>Hint") >= 2
        assert f'checks.known("{name}"' in parts["known"]
        assert parts["check"].startswith(f"checks.check_{name}({name})\n")
        assert f'\nchecks.hidden("{name}", {name}, seed=' in parts["check"]
        assert parts["answer"].count("### BEGIN SOLUTION") == 1


@pytest.mark.parametrize("path", SOLUTIONS, ids=STEMS)
def test_no_constant_is_told_but_on_its_line(path):
    """Or a variant, which changes the line alone, would contradict its own card."""
    for name, parts in of_exercise(path).items():
        card = re.sub(r"^\*\*Constants\.\*\*.*$", "", parts["card"], flags=re.M)
        stub = re.sub(r"(?s)### BEGIN.*### END", "", parts["answer"])
        text = "\n".join((card, parts["hints"], stub))
        for choices in EXERCISES[name].constants.values():
            for value in choices:
                if isinstance(value, int | float) and abs(value) >= 100:
                    told = rf"(?<![\d,.]){value:g}\b|(?<![\d.]){value:,.0f}\b"
                    assert not re.search(told, text), (name, value)


# What a learner gets


@pytest.mark.parametrize("path", SOLUTIONS, ids=STEMS)
def test_exercises_are_what_the_solutions_make(path):
    made = ROOT / "exercises" / path.name
    assert made.read_bytes() == exercise_of(path).encode()


@pytest.mark.parametrize("path", SOLUTIONS, ids=STEMS)
def test_an_exercise_holds_no_answer_no_hidden_test_and_no_output(path):
    notebook = nbformat.reads(exercise_of(path), as_version=4)
    nbformat.validate(notebook)
    text = json.dumps(notebook)
    for word in ("BEGIN", "hidden(", "seed="):
        assert word not in text
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert not cell.outputs
            assert cell.execution_count is None
            if cell.metadata.nbgrader.solution:
                assert cell.source.endswith("\n    raise NotImplementedError")
                assert '"""' in cell.source


def run(notebook, answers):
    """Run an exercise notebook as a learner would; return what each check said."""
    names, said = {}, {}
    for cell in notebook.cells:
        if cell.cell_type != "code" or cell.id == "colab":
            continue
        role, _, name = cell.id.partition("-")
        source = answers.get(cell.id, cell.source)
        try:
            exec(compile(source, cell.id, "exec"), names)
        except checks.CheckFailed as failure:
            said[name] = str(failure)
        else:
            if role == "check":
                said[name] = "✓"
    return said


@pytest.mark.parametrize("path", SOLUTIONS, ids=STEMS)
def test_a_blank_exercise_says_that_it_is_not_done_yet(path, capsys):
    said = run(nbformat.reads(exercise_of(path), as_version=4), {})
    assert set(said) == set(of_exercise(path))
    for name, line in said.items():
        assert line == f"{name}: not done yet. Replace the stub."


@pytest.mark.parametrize("path", SOLUTIONS, ids=STEMS)
def test_the_solutions_pass_where_they_belong_and_not_in_a_variant(path, capsys):
    marks = re.compile(r"^ *### (BEGIN|END) SOLUTION\n?", re.M)
    parts = of_exercise(path)
    right = {name: marks.sub("", p["answer"]) for name, p in parts.items()}
    said = run(nbformat.reads(exercise_of(path), as_version=4), right)
    assert set(said.values()) == {"✓"}
    for seed in range(3):
        said = run(nbformat.reads(exercise_of(path, seed), as_version=4), right)
        assert set(said) == set(parts)
        passed = [name for name, line in said.items() if line == "✓"]
        assert not passed


# Variants


@pytest.mark.parametrize("name", EXERCISES)
def test_a_variant_has_constants_of_its_own(name):
    public = variant_constants(name, None)
    assert public == {k: v[0] for k, v in EXERCISES[name].constants.items()}
    seen = [variant_constants(name, seed) for seed in range(40)]
    assert public, "without constants there is no variant"
    assert all(constants != public for constants in seen)
    assert len({str(constants) for constants in seen}) >= min(
        2, len(next(iter(EXERCISES[name].constants.values()))) - 1
    )


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others():
    path = SOLUTIONS[1]
    assert exercise_of(path, 3) == exercise_of(path, 3)
    assert len({exercise_of(path, seed) for seed in range(10)}) >= 9


def test_the_same_seed_gives_the_same_constants_in_another_process():
    code = (
        "from coursekit.classroom.variants import *; from coursekit.slips import *;"
        "print([variant_constants(n, 11) for n in EXERCISES])"
    )
    other = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    here = [variant_constants(name, 11) for name in EXERCISES]
    assert other.stdout == f"{here}\n"


def test_constants_reach_card_check_and_hidden_test_but_not_a_question_s_case():
    card = "text\n\n**Constants.** `base` = 10000.0\n\nmore 10000.0"
    base = variant_constants("pair_frequencies", 1)["base"]
    changed = with_constants("card-pair_frequencies", card, 1)
    assert changed == f"text\n\n**Constants.** `base` = {base}\n\nmore 10000.0"
    check = (
        "checks.check_pair_frequencies(pair_frequencies)\n### BEGIN HIDDEN TESTS\n"
        'checks.hidden("pair_frequencies", pair_frequencies, seed=7)\n### END'
    )
    changed = with_constants("check-pair_frequencies", check, 1)
    assert changed.count(f", base={base})\n") == 2
    known = 'x = f(1)\nchecks.known("pair_frequencies", g(4))'
    changed = with_constants("known-pair_frequencies", known, 1)
    assert changed == f"{known[:-1]}, base={base})"
    case = 'checks.known("times_read", length=3, row=1, texts=3)'
    assert with_constants("known-times_read", case, 1) == case
    assert with_constants("title", card, 1) == card
    assert with_constants("card-pair_frequencies", card, None) == card


@pytest.mark.parametrize("path", SOLUTIONS, ids=STEMS)
def test_the_source_of_a_variant_keeps_answers_and_hidden_tests(path):
    text = exercise_of(path, 5, source=True)
    assert text.count("### BEGIN HIDDEN TESTS") == len(of_exercise(path))
    assert '"outputs": []' in text
    assert exercise_of(path, 5) != text


# Writing


def test_writing_twice_changes_nothing(tmp_path):
    folder = tmp_path / "exercises"
    assert len(write_exercises(ROOT / "solutions", folder)) == len(SOLUTIONS)
    assert write_exercises(ROOT / "solutions", folder) == []
    (folder / SOLUTIONS[0].name).write_text("spoilt")
    assert [p.name for p in write_exercises(ROOT / "solutions", folder)] == [
        SOLUTIONS[0].name
    ]


def test_the_command_names_its_folder_after_the_variant(tmp_path, capsys):
    solutions = tmp_path / "solutions"
    solutions.mkdir()
    (solutions / "01.ipynb").write_bytes(SOLUTIONS[0].read_bytes())
    for words, name in (
        ([], "exercises"),
        (["--variant", "12"], "exercises-12"),
        (["--variant", "12", "--source"], "exercises-12-source"),
    ):
        assert main([str(solutions), *words]) == 0
        assert (tmp_path / name / "01.ipynb").is_file()
        assert f"{name}: 1 of 1 changed" in capsys.readouterr().out


# Messages


def test_a_faulty_solution_writes_nothing(tmp_path, capsys):
    solutions = tmp_path / "solutions"
    solutions.mkdir()
    assert main([str(solutions)]) == 1
    assert "holds no notebooks. Name the folder of" in capsys.readouterr().err
    (solutions / "01.ipynb").write_bytes(SOLUTIONS[0].read_bytes())
    (solutions / "02.ipynb").write_text("{}")
    assert main([str(solutions)]) == 1
    said = capsys.readouterr().err
    assert "02.ipynb cannot be read" in said
    assert said.count("\n") == 1
    assert not (tmp_path / "exercises").exists()


def test_a_mark_that_is_not_closed_is_refused(tmp_path):
    notebook = nbformat.read(SOLUTIONS[0], as_version=4)
    cell = next(c for c in notebook.cells if c.metadata.nbgrader.solution)
    cell.source = cell.source.replace("### END SOLUTION", "")
    path = tmp_path / "01.ipynb"
    nbformat.write(notebook, path)
    with pytest.raises(ValueError, match="nbgrader refuses it"):
        exercise_of(path)


def test_a_cell_without_a_place_for_its_constants_is_refused():
    with pytest.raises(ValueError, match="has no line for its constants"):
        with_constants("card-pair_frequencies", "no line", 1)
    with pytest.raises(ValueError, match="'rhyme' is no exercise"):
        variant_constants("rhyme", 1)


# Oracle


def test_nbgrader_s_own_command_makes_the_same_bytes(tmp_path):
    stem = STEMS[0]
    source = tmp_path / "source" / stem
    source.mkdir(parents=True)
    (source / f"{stem}.ipynb").write_bytes(SOLUTIONS[0].read_bytes())
    stub = f"c.ClearSolutions.code_stub = {{'python': {module.STUB!r}}}\n"
    (tmp_path / "nbgrader_config.py").write_text(f"c = get_config()\n{stub}")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", "generate_assignment", stem],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},  # it calls alembic by name
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    made = (tmp_path / "release" / stem / f"{stem}.ipynb").read_text("utf-8")
    assert made.strip() == exercise_of(SOLUTIONS[0]).strip()
