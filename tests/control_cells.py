"""The controls of a notebook, without running what they do not need."""

import io
import json
import symtable
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import matplotlib.pyplot as plt
from IPython.core.inputtransformer2 import TransformerManager

from coursekit import controls, plots

ROOT = Path(__file__).resolve().parents[1]
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
CALL = "controls.explore("


def code_cells(path: Path) -> list[dict]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def control_cells(path: Path) -> list[dict]:
    return [c for c in code_cells(path) if CALL in "".join(c["source"])]


def python(cell: dict) -> str:
    return TransformerManager().transform_cell("".join(cell["source"]))


def scopes(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from scopes(child)


def names(text: str) -> tuple[set[str], set[str]]:
    """Return the names that a cell makes, and those that it takes from before."""
    top = symtable.symtable(text, "cell", "exec")
    made = {s.get_name() for s in top.get_symbols() if s.is_assigned()}
    made |= {s.get_name() for s in top.get_symbols() if s.is_imported()}
    used = {
        symbol.get_name()
        for scope in scopes(top)
        for symbol in scope.get_symbols()
        if symbol.is_referenced() and (scope is top or symbol.is_global())
    }
    return made, used - made


def needed(cells: list[dict], last: int) -> list[str]:
    """Return the cells that the one at ``last`` rests on, and itself, in order."""
    kept, wanted = [python(cells[last])], names(python(cells[last]))[1]
    for cell in reversed(cells[1:last]):
        made, used = names(python(cell))
        if made & wanted:
            kept.insert(0, python(cell))
            wanted = (wanted - made) | used
    return [python(cells[0]), *kept]


def run_controls(path: Path) -> list[tuple[Callable, dict]]:
    """Run what the controls of a notebook rest on; return each draw and its choices."""
    found, cells = [], code_cells(path)

    def keep(draw, /, *, alt, **choices):
        found.append((draw, choices))

    for number, cell in enumerate(cells):
        if CALL in "".join(cell["source"]):
            show = patch.object(plots, "show", lambda fig, *, alt: plt.close(fig))
            with show, patch.object(controls, "explore", keep):
                place = {"__name__": "__main__"}
                for text in needed(cells, number):
                    exec(compile(text, path.name, "exec"), place)
    return found


def answers(draw: Callable, choices: dict) -> Callable[[dict], bytes]:
    """Return what a control calls at each move: the PNG of some values."""
    figure = draw(**{name: values[0] for name, values in choices.items()})
    figure.savefig(io.BytesIO())
    frames = [ax.get_position(original=True) for ax in figure.axes]
    plt.close(figure)
    return lambda values: controls._picture(draw, values, frames)
