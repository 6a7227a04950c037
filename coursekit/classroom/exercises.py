"""Exercise notebooks, made from the solutions by nbgrader's own preprocessors.

python -m coursekit.classroom.exercises SOLUTIONS FOLDER [--variant SEED] [--source]
"""

import argparse
import sys
from pathlib import Path

import nbformat

from coursekit._files import write_whole
from coursekit.classroom.variants import with_constants

STUB = "raise NotImplementedError"


def exercise_of(
    solution: Path, seed: int | None = None, *, source: bool = False
) -> str:
    """Make the text of an exercise notebook: no answers, no hidden tests, no outputs.

    Args:
        solution: A notebook with nbgrader's marks.
        seed: Of the variant; None for the public constants.
        source: Keep answers and hidden tests and change the constants alone, for an
            nbgrader course that makes its exercises itself.

    Returns:
        The notebook as JSON; the same bytes in each run, on every Python.

    Raises:
        ValueError: If the notebook is not one of solutions, or nbgrader refuses it.
    """
    try:
        text = solution.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{solution} cannot be read: {error}") from None
    return exercise_from(text, solution.stem, seed, source=source)


def exercise_from(
    text: str, stem: str, seed: int | None = None, *, source: bool = False
) -> str:
    """Make an exercise of the text of a solution, as ``exercise_of`` does of its file.

    Args:
        text: A notebook with nbgrader's marks, as JSON.
        stem: Its name.
        seed: Of the variant; None for the public constants.
        source: Keep answers and hidden tests.

    Returns:
        The notebook as JSON.

    Raises:
        ValueError: If the notebook is not one of solutions, or nbgrader refuses it.
    """
    try:
        notebook = nbformat.reads(text, as_version=4)
        nbformat.validate(notebook)
    except Exception as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"{stem}.ipynb cannot be read: {said}") from None
    for cell in notebook.cells:
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        cell.source = with_constants(grade_id, cell.source, seed)
    done = _without_outputs(notebook) if source else _released(notebook, stem)
    return nbformat.writes(done) + "\n"


def write_exercises(
    solutions: Path, folder: Path, seed: int | None = None, *, source: bool = False
) -> list[Path]:
    """Make all exercise notebooks; a file that holds the right bytes is not touched.

    Args:
        solutions: Folder of the solution notebooks.
        folder: Where the exercises go; it is made if need be.
        seed: Of the variant; None for the public constants.
        source: As for ``exercise_of``.

    Returns:
        The files that were written anew.

    Raises:
        ValueError: If there is no notebook in ``solutions``. Nothing is written then,
            nor if one of them is faulty.
    """
    paths = sorted(solutions.glob("*.ipynb"))
    if not paths:
        raise ValueError(
            f"{solutions} holds no notebooks. Name the folder of solutions."
        )
    texts = {path.name: exercise_of(path, seed, source=source) for path in paths}
    folder.mkdir(parents=True, exist_ok=True)
    paths = {folder / name: text for name, text in texts.items()}
    return [path for path, text in paths.items() if write_whole(path, text)]


def _without_outputs(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return notebook


def _released(notebook: nbformat.NotebookNode, stem: str) -> nbformat.NotebookNode:
    """Do what ``nbgrader generate_assignment`` does, without its database."""
    from nbgrader import preprocessors as steps
    from traitlets.config import Config

    config = Config()
    config.ClearSolutions.code_stub = {"python": STUB}
    resources = {"unique_key": stem, "metadata": {"name": stem, "path": ""}}
    for step in (
        steps.LockCells,
        steps.ClearSolutions,
        steps.ClearOutput,
        steps.CheckCellMetadata,
        steps.ComputeChecksums,
        steps.ClearHiddenTests,
        steps.ClearMarkScheme,
        steps.ComputeChecksums,
        steps.CheckCellMetadata,
    ):
        try:
            notebook, resources = step(config=config).preprocess(notebook, resources)
        except RuntimeError as error:
            raise ValueError(f"{stem}: nbgrader refuses it: {error}") from None
    return notebook


def main(words: list[str] | None = None) -> int:
    """Run the command. Args: Its words, if not its own. Returns: Its exit code."""
    parser = argparse.ArgumentParser(prog="run.py exercises", description=__doc__)
    parser.add_argument("solutions", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("folder", type=Path, nargs="?", help="where they go")
    parser.add_argument(
        "--variant",
        type=int,
        metavar="SEED",
        help="other constants, which last year's answers do not fit; to exercises-SEED",
    )
    parser.add_argument(
        "--source",
        action="store_true",
        help="keep hidden tests, for the source folder of an nbgrader course",
    )
    given = parser.parse_args(words)
    folder = given.folder
    if folder is None:
        parts = ["exercises", given.variant, "source" if given.source else None]
        name = "-".join(str(part) for part in parts if part is not None)
        folder = given.solutions.parent / name
    try:
        changed = write_exercises(
            given.solutions, folder, given.variant, source=given.source
        )
    except ValueError as error:
        print(f"run.py exercises: {error}", file=sys.stderr)
        return 1
    print(f"{folder}: {len(changed)} of {len(list(folder.glob('*.ipynb')))} changed")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
