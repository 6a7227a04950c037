"""Train a RoPE model short, and read on with other frequencies: texts and passkeys.

``python -m coursekit.extension FOLDER`` makes the shipped study: each model read with
all ``SCALINGS`` at 1, 2, 4 and 8 times its length, on text also after a short tuning.
"""

import argparse
import copy
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import torch
from tqdm.auto import tqdm

from coursekit import __version__, _require, reference
from coursekit.context_extension import Scaled, from_config
from coursekit.position import Rope
from coursekit.results import Score, load_run, save_run, save_table, shipped_table
from coursekit.tasks import Batch, passkey_task
from coursekit.training import accuracy, nll_by_length, train
from coursekit.transformer import TinyTransformer

_FITTED = {"rope_type": "yarn", "truncate": False, "beta_slow": 0.5, "beta_fast": 4.0}
_TURNS = {"rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 32.0}
SCALINGS = {
    "plain": {},
    "interpolation": {"rope_type": "linear"},
    "ntk": {"rope_type": "ntk"},
    "dynamic": {"rope_type": "dynamic"},
    "yarn": _FITTED,
    "yarn_bare": _FITTED | {"attention_factor": 1.0},
    "yarn_published": {"rope_type": "yarn", "truncate": False},
    "yarn_rounded": {"rope_type": "yarn"},
    "turns_1_32": _TURNS,
}
"""Entries of a config.json, but for the factor. The last three have YaRN's published
limits, 1 and 32 turns: as a ramp over the pairs, with the edges of the released code,
and as the ramp over turns of the paper, without an attention factor."""
KINDS = ("text", "passkey", "nodecoys")  # scored in nats; as a share right; so, too
TUNED = ("plain", "interpolation", "ntk", "yarn")
RATES = {"text_tuned": 3e-4, "text_tuned_fast": 3e-3}  # a tenth of training's; its own
_SHA256 = "df7c3559b7d5c5e62028a7f16e70398db852874f86d4ca593f1a5e8178a18aac"
_VERSIONS = f"coursekit {__version__} torch {torch.__version__}"


class _Plan(NamedTuple):
    """What all runs of a study have in common."""

    train_length: int = 64
    steps: int = 500
    passkey_steps: int = 400
    tuning_steps: int = 50
    passkey_batches: int = 8


def scaled(scaling: str, length: int, train_length: int = 64) -> Scaled:
    """Compute with what the reference model, of 16 features a head, reads a length.

    Each scaling is given the same factor: length / train_length, and 1 within training.

    Args: ``scaling``, a name from ``SCALINGS``; both lengths in positions.
    Returns: Frequencies of 8 pairs, and the attention factor.
    """
    _require_known("scaling", scaling, SCALINGS)
    _require.at_least("train_length", train_length)
    entry = SCALINGS[scaling]
    entry = entry and entry | {"factor": max(1.0, length / train_length)}
    config = {"head_dim": 16, "max_position_embeddings": train_length}
    return from_config(config | {"rope_scaling": entry}, length=length)


def reread(model: TinyTransformer, *settings) -> TinyTransformer:
    """Copy a trained model, and give the copy the frequencies to read a length.

    Args: ``model`` with ``Rope``, not changed; ``settings`` as ``scaled`` takes them.
    Returns: The copy; no parameter differs.
    """
    longer = copy.deepcopy(model)
    longer.position = Rope(**scaled(*settings)._asdict())
    return longer


def tuned(model, scaling: str, train_length: int = 64, **options) -> TinyTransformer:
    """Train a copy on with other frequencies, on texts 4 times as long.

    Args: As in ``scaled``; ``options`` of ``train``.
    Returns: The copy; it keeps the frequencies for 4 times whatever it reads.
    """
    longer = reread(model, scaling, 4 * train_length, train_length)
    train(longer, reference.text_batches(4 * train_length, batch_size=8), **options)
    return longer


def extension_study(kinds=KINDS, seeds=(0, 1, 2), folder=None, **plan) -> list[Score]:
    """Train a model of each kind and seed, and score it with every scaling.

    Args: ``kinds`` from ``KINDS``; ``seeds`` of parameters and batches; ``folder``
        gets a file for each run, and is not asked for one twice; ``plan`` changes
        ``train_length``, 64, or what else all runs have in common.
    Returns: Scores by "kind/scaling", for text also by the names of ``RATES``, sorted.
    Raises: ValueError also for a file that is damaged or made with other settings.
    """
    plan = _Plan(**plan)
    for name, value in plan._asdict().items():
        _require.at_least(name, value, 3 if name == "train_length" else 1)
    runs = list(dict.fromkeys((kind, seed) for kind in kinds for seed in seeds))
    for kind, _ in runs:
        _require_known("kind", kind, KINDS)
    files = {run: Path(folder or "", "runs", f"{run[0]}-{run[1]}.csv") for run in runs}
    done = [run for run in runs if folder and files[run].exists()]
    found = {run: load_run(files[run], _keys(plan, *run), _told(plan)) for run in done}
    for run in tqdm([run for run in runs if run not in done], "runs", delay=5):
        found[run] = _scores(plan, *run)
        if folder:
            save_run(files[run], found[run], _told(plan))
    return sorted(score for scores in found.values() for score in scores)


def shipped_scores() -> list[Score]:
    """Load the study that comes with the package. Returns: Its rows, sorted."""
    return shipped_table("context_extension.csv", _SHA256)


def main(argv: list[str] | None = None) -> None:
    """Make the study, write its table. Args: Words of the command, if not its own."""
    parser = argparse.ArgumentParser("coursekit.extension", description=__doc__)
    parser.add_argument("folder", type=Path, help="for finished runs and the table")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    for name, value in _Plan()._asdict().items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=value)
    options = vars(parser.parse_args(argv))
    torch.set_num_threads(1)
    save_table(options["folder"] / "context_extension.csv", extension_study(**options))


def _scores(plan: _Plan, kind: str, seed: int) -> list[Score]:
    """Make one run; nothing in it depends on the other runs."""
    model, longer, scores = reference.reference_model("rope", seed=seed), {}, []
    steps = plan.steps if kind == "text" else plan.passkey_steps
    train(model, _batches(plan, kind), steps=steps, seed=seed)
    for method, _, length in _keys(plan, kind, seed):
        how, _, scaling = method.partition("/")
        if how in RATES and method not in longer:
            options = {"steps": plan.tuning_steps, "learning_rate": RATES[how]}
            options |= {"seed": 100 + seed, "train_length": plan.train_length}
            longer[method] = tuned(model, scaling, **options)
        reader = longer.get(method) or reread(model, scaling, length, plan.train_length)
        made = steps + plan.tuning_steps * (how in RATES), _VERSIONS
        score = round(_score(plan, kind, reader, length), 6)
        scores.append(Score(method, seed, length, score, *made))
    return scores


def _batches(plan: _Plan, kind: str) -> Callable[[torch.Generator], Batch]:
    """Choose what a model of this kind is trained on."""
    if kind == "text":
        return reference.text_batches(plan.train_length)
    sizes, decoys = (32, plan.train_length), kind == "passkey"
    return lambda generator: passkey_task(*sizes, decoys=decoys, generator=generator)


def _score(plan: _Plan, kind: str, model: TinyTransformer, length: int) -> float:
    """Score one held-out text, or batches of 64 passkeys, the same for every model."""
    if kind == "text":
        ids = reference.scored_ids([8 * plan.train_length])
        return nll_by_length(model, ids, [length])[length]
    asked = {"decoys": kind == "passkey", "generator": torch.Generator()}
    asked["generator"].manual_seed(10_000)
    batches = [passkey_task(64, length, **asked) for _ in range(plan.passkey_batches)]
    return sum(accuracy(model, batch) for batch in batches) / len(batches)


def _keys(plan: _Plan, kind: str, seed: int) -> list[tuple[str, int, int]]:
    """List method, seed and length of the rows of a run."""
    names = [f"{kind}/{name}" for name in SCALINGS]
    names += [f"{how}/{n}" for how in RATES for n in TUNED if kind == "text"]
    lengths = [times * plan.train_length for times in (1, 2, 4, 8)]
    return [(name, seed, length) for name in names for length in lengths]


def _told(plan: _Plan) -> str:
    """Write in one line what must be equal in runs that stand in one table."""
    told = [f"{name} {value}" for name, value in plan._asdict().items()]
    return "; ".join((*told, _VERSIONS))


def _require_known(name: str, value: str, known: Iterable[str]) -> None:
    """Refuse a name that is not among those to compare."""
    if value not in known:
        told = f"{name} is {value!r}, but there is none of this name to compare. "
        raise ValueError(f"{told}Use one of {', '.join(known)}.")


if __name__ == "__main__":
    main()
