"""Notation in one place: text, code and tests use the same names."""

import importlib
import inspect
import json
import re
from pathlib import Path

import pytest

from coursekit.notation import NOTATION, notation_table

ROOT = Path(__file__).resolve().parents[1]
GLOSSARY = (ROOT / "glossary.md").read_text("utf-8")
METHODS = ["attention", "sinusoidal", "learned", "relative", "rope", "alibi"]
# Arguments that are no quantities of the field: sizes of a search, switches, sources.
PLAIN = {"dtype", "bidirectional", "new_length", "scale"}


def public_functions(name):
    module = importlib.import_module(f"coursekit.{name}")
    return [
        function
        for word, function in vars(module).items()
        if inspect.isfunction(function)
        and function.__module__ == module.__name__
        and not word.startswith("_")
    ]


def symbol_tables():
    """Return notebook and name of each row in a table of symbols."""
    found = []
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            text = "".join(cell["source"])
            for table in re.findall(
                r"^\| (?:paper|symbol) \|.*\n(?:\|.*\n?)+", text, re.M
            ):
                for row in table.splitlines()[2:]:
                    names = re.findall(r"`([a-z_]+)", row.split(" | ")[1])
                    found += [(path.stem, name) for name in names[:1]]
    return found


def test_the_glossary_shows_the_table_of_the_package():
    assert notation_table() in GLOSSARY


@pytest.mark.parametrize("name", METHODS)
def test_arguments_of_methods_have_names_of_the_notation(name):
    for function in public_functions(name):
        names = set(inspect.signature(function).parameters) - PLAIN
        unknown = {n for n in names if n not in NOTATION}
        unknown = {n for n in unknown if n.rpartition("_")[2] not in NOTATION}
        told = function.__doc__
        assert all(n in told for n in unknown), (function.__name__, unknown)


def test_notebooks_explain_symbols_by_names_of_the_notation():
    rows = symbol_tables()
    assert len({stem for stem, _ in rows}) >= 6
    unknown = [(stem, name) for stem, name in rows if name not in NOTATION]
    allowed = {"position", "angle", "pair", "i", "position_keys"}  # one of several
    assert {name for _, name in unknown} <= allowed, unknown


def test_terms_are_sorted_and_have_anchors_of_their_own():
    terms = re.findall(r"^### (.+)$", GLOSSARY, re.M)
    assert terms == sorted(terms, key=str.lower)
    anchors = [re.sub(r"[^\w -]", "", term.lower()).replace(" ", "-") for term in terms]
    assert len(set(anchors)) == len(anchors) >= 30


def test_every_entry_has_a_shape_and_a_meaning_and_no_bar():
    for name, entry in NOTATION.items():
        assert entry.shape
        assert entry.meaning
        assert "|" not in "".join(entry), name
        assert name.isidentifier()
