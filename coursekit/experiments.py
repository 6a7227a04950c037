"""Train short, test long: each method, each seed, on one machine or on many.

As a command, ``python -m coursekit.experiments FOLDER`` or, shared by processes,
``torchrun --nproc-per-node 2 -m coursekit.experiments FOLDER``.
"""

import argparse
import os
from collections.abc import Iterable
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import NamedTuple

import torch
from torch import distributed
from tqdm.auto import tqdm

from coursekit import __version__, _require, reference
from coursekit.results import Score, load_run, save_run, save_table
from coursekit.training import accuracy, nll_by_length, rank_and_world, train

__all__ = ["Score", "accuracy", "length_sweep", "main", "nll_by_length", "train"]


class _Plan(NamedTuple):
    """What all runs of a sweep have in common."""

    train_length: int
    test_lengths: tuple[int, ...]
    steps: int
    device: str
    versions: str


def length_sweep(
    methods: Iterable[str] = tuple(reference.GRID),
    *,
    train_length: int = 64,
    test_lengths: Iterable[int] = (64, 128, 256, 512, 1024),
    seeds: Iterable[int] = (0, 1, 2),
    steps: int = 500,
    device: str = "cpu",
    folder: Path | str | None = None,
) -> list[Score]:
    """Train the reference model on one length, and score it at others.

    A run is one method with one seed. Processes that torchrun started share the runs,
    and each of them gets all scores.

    Args:
        methods: Names from ``reference.GRID``.
        train_length: Characters of each of the 32 windows of a batch.
        test_lengths: Each divides 8 times the longest, the characters that are scored.
        seeds: Of the parameters and the batches.
        steps: Batches of each run.
        device: "cpu", or "cuda" where there is one.
        folder: Gets a file for each finished run; a run found there is not repeated.

    Returns:
        Nats per held-out character, sorted by method, seed and length.

    Raises:
        ValueError: If an argument does not fit, or a file in ``folder`` is damaged or
            was made with other settings.
    """
    versions = f"coursekit {__version__} torch {torch.__version__}"
    plan = _Plan(train_length, tuple(test_lengths), steps, device, versions)
    runs = list(dict.fromkeys(product(methods, seeds)))  # each once
    _refuse_what_cannot_run(plan, runs)
    files = {run: Path(folder or "", "runs", f"{run[0]}-{run[1]}.csv") for run in runs}
    found = {run: _loaded(plan, run, files[run]) for run in runs if folder}
    found = _gathered({run: scores for run, scores in found.items() if scores})
    rank, world = rank_and_world()
    missing = [run for run in runs if run not in found]
    bar = {"disable": True} if rank > 0 else {}
    for run in tqdm(missing[rank::world], "runs", delay=5, **bar):
        found[run] = _scores(plan, *run)
        if folder:
            save_run(files[run], found[run], _settings(plan))
    return sorted(score for scores in _gathered(found).values() for score in scores)


def main(argv: list[str] | None = None) -> None:
    """Run the sweep as a command, and write its table into the folder.

    Args:
        argv: The words after the command; those of the process unless given.

    Raises:
        ValueError: As ``length_sweep``.
    """
    parser = argparse.ArgumentParser("coursekit.experiments", description=__doc__)
    parser.add_argument("folder", type=Path, help="for finished runs and the table")
    parser.add_argument("--methods", nargs="+", default=list(reference.GRID))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--train-length", type=int, default=64)
    lengths = {"type": int, "default": [64, 128, 256, 512, 1024]}
    parser.add_argument("--test-lengths", nargs="+", **lengths)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    options = vars(parser.parse_args(argv))
    together = "TORCHELASTIC_RUN_ID" in os.environ  # torchrun started this process
    torch.set_num_threads(1)
    if together:
        _join(options["device"])
    scores = length_sweep(**options)
    if rank_and_world()[0] == 0:
        save_table(options["folder"] / "length_sweep.csv", scores)
    if together:
        distributed.destroy_process_group()


def _scores(plan: _Plan, method: str, seed: int) -> list[Score]:
    """Make one run; nothing in it depends on the other runs or on the process."""
    model = reference.reference_model(
        method, seed=seed, train_length=plan.train_length
    ).to(plan.device)
    make_batch = reference.text_batches(plan.train_length)
    rate = reference.POSITION_RATE.get(method, 1.0)
    train(model, make_batch, steps=plan.steps, position_rate=rate, seed=seed)
    ids, scores = reference.scored_ids(plan.test_lengths), []
    for reading, _, length in _rows(plan, method, seed):
        longer = reference.lengthened(model, reading, length)
        score = round(nll_by_length(longer, ids, [length])[length], 6)
        scores.append(Score(reading, seed, length, score, plan.steps, plan.versions))
    return scores


def _rows(plan: _Plan, method: str, seed: int) -> list[tuple[str, int, int]]:
    """List method, seed and length of the rows of a run."""
    names = reference.readings(method)
    return [(name, seed, length) for name in names for length in plan.test_lengths]


def _settings(plan: _Plan) -> str:
    """Write in one line what must be equal in runs that stand in one table."""
    lengths = " ".join(map(str, plan.test_lengths))
    return (
        f"{plan.steps} steps of {plan.train_length} characters; tested at {lengths}; "
        f"{plan.device}; {plan.versions}"
    )


def _loaded(plan: _Plan, run: tuple[str, int], path: Path) -> list[Score]:
    """Read the scores of a finished run, none if it is not finished."""
    if not path.exists():
        return []
    return load_run(path, _rows(plan, *run), _settings(plan))


def _gathered(found: dict) -> dict:
    """Unite what the processes have found, so that all of them know the same."""
    world = rank_and_world()[1]
    if world == 1:
        return found
    everyone: list[dict] = [{}] * world
    distributed.all_gather_object(everyone, found)
    return {run: scores for part in everyone for run, scores in part.items()}


def _join(device: str) -> None:
    """Meet the other processes; a day's patience, as some have more to do."""
    _refuse_device(device)
    backend = "nccl" if device == "cuda" else "gloo"
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    distributed.init_process_group(backend, timeout=timedelta(days=1))


def _refuse_what_cannot_run(plan: _Plan, runs: list[tuple[str, int]]) -> None:
    """Check the settings of all runs before the first of them spends its time."""
    _refuse_device(plan.device)
    _require.at_least("train_length", plan.train_length)
    _require.at_least("steps", plan.steps)
    reference.scored_ids(plan.test_lengths)
    for method in {method for method, _ in runs}:
        reference.reference_model(method)


def _refuse_device(device: str) -> None:
    """Refuse a device that this machine does not have."""
    if device != "cpu" and not (device == "cuda" and torch.cuda.is_available()):
        raise ValueError(
            f"device is {device!r}, but this machine has no such one for torch. "
            f'Use "cpu".'
        )


if __name__ == "__main__":
    main()
