"""Train any model of tokens, and score it: one protocol for all experiments."""

from collections.abc import Callable, Iterable
from functools import partial

import torch
from torch import Tensor, distributed, nn
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import LambdaLR
from tqdm.auto import tqdm

from coursekit import _require
from coursekit.tasks import UNASKED, Batch

PIECE = 8_192
"""Tokens that are scored at once: enough to be fast, few enough to fit anywhere."""


def train(
    model: nn.Module,
    make_batch: Callable[[torch.Generator], Batch],
    *,
    steps: int,
    learning_rate: float = 3e-3,
    position_rate: float = 1.0,
    seed: int = 0,
) -> list[float]:
    """Train in place: AdamW, a short warm-up, a linear decay over the last 30 %.

    Args:
        model: Ids (batch, length) to logits (batch, length, vocab).
        make_batch: Draws a batch with the generator that it is given.
        steps: Number of batches.
        learning_rate: The highest of the schedule.
        position_rate: Times that for the parameters of ``model.position``.
        seed: Of the batches; that of the model is its maker's.

    Returns:
        The loss of each step, in nats per asked token.

    Raises:
        ValueError: If ``steps`` is below 1, or a rate not above 0.
    """
    _require.at_least("steps", steps)
    optimizer = _optimizer(model, learning_rate, position_rate)
    schedule = LambdaLR(optimizer, partial(_share_of_rate, steps=steps))
    generator, losses = torch.Generator().manual_seed(seed), []
    bar = {"leave": False, "delay": 5, "mininterval": 1}
    if rank_and_world()[0] > 0:
        bar["disable"] = True  # else it stays with TQDM_DISABLE of the environment
    for _ in tqdm(range(steps), "steps", **bar):
        inputs, targets = _beside(model, make_batch(generator))
        loss = cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.detach())
    return torch.stack(losses).tolist()


@torch.no_grad()
def accuracy(model: nn.Module, batch: Batch) -> float:
    """Count how often the most likely token is the one asked for.

    Args:
        model: Ids (batch, length) to logits (batch, length, vocab).
        batch: With at least one target.

    Returns:
        A share of the asked tokens, 0 to 1.

    Raises:
        ValueError: If nothing is asked.
    """
    inputs, targets = _beside(model, batch)
    asked = targets != UNASKED
    if not asked.any():
        raise ValueError(
            f"targets are all {UNASKED}, but accuracy is a share of the tokens that "
            f"are asked for. Pass a batch with at least one target."
        )
    return (model(inputs).argmax(-1) == targets)[asked].double().mean().item()


@torch.no_grad()
def nll_by_length(
    model: nn.Module, ids: Tensor, lengths: Iterable[int]
) -> dict[int, float]:
    """Score the same tokens at each length, cut into windows side by side.

    With other tokens at each length, the difference would be one of texts as well.

    Args:
        model: Ids (batch, length) to logits (batch, length, vocab).
        ids: (tokens + 1,), as the last token has a next one too.
        lengths: Of the windows; each divides the number of tokens.

    Returns:
        The mean negative log-likelihood at each length, in nats per token.

    Raises:
        ValueError: If ``ids`` are not one row, or a length does not divide it.
    """
    found = {}
    for length in lengths:
        _require.at_least("length", length)
        if ids.dim() != 1 or len(ids) <= length or (len(ids) - 1) % length:
            raise ValueError(
                f"ids are {tuple(ids.shape)} and length is {length}, but all windows "
                f"must be full, with one token after the last. Pass one row of "
                f"{length} times the number of windows, plus 1."
            )
        windows = [part.view(-1, length) for part in (ids[:-1], ids[1:])]
        pieces = [part.split(max(1, PIECE // length)) for part in windows]
        sums = [_nll_sum(model, Batch(*pair)) for pair in zip(*pieces, strict=True)]
        found[length] = sum(sums) / (len(ids) - 1)
    return found


def rank_and_world() -> tuple[int, int]:
    """Number this process among those that work together; (0, 1) if it is alone.

    Returns:
        Its number, from 0, and how many there are.
    """
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


def _optimizer(model, learning_rate, position_rate) -> torch.optim.AdamW:
    """Set up AdamW, with a rate of their own for the parameters of the position."""
    _require.positive("learning_rate", learning_rate)
    _require.positive("position_rate", position_rate)
    model_part, position_part = [], []
    for name, parameter in model.named_parameters():
        of_position = name.startswith("position.")
        (position_part if of_position else model_part).append(parameter)
    groups = [
        {"params": model_part, "lr": learning_rate},
        {"params": position_part, "lr": learning_rate * position_rate},
    ]
    options = {"betas": (0.9, 0.98), "weight_decay": 0.01}
    return torch.optim.AdamW(groups, **options, fused=True)  # same sums, less time


def _share_of_rate(step: int, steps: int) -> float:
    """Rise over the first 5 % of the steps, stay at 1, fall over the last 30 %."""
    rise, fall = max(1, round(0.05 * steps)), max(1, round(0.3 * steps))
    return max(0.0, min(1.0, (step + 1) / rise, (steps - step) / fall))


def _beside(model: nn.Module, batch: Batch) -> Batch:
    """Move a batch to the device of the model."""
    device = next(model.parameters()).device
    return Batch(*(part.to(device) for part in batch))


def _nll_sum(model: nn.Module, batch: Batch) -> float:
    """Add up the negative log-likelihood of all targets."""
    inputs, targets = _beside(model, batch)
    logits = model(inputs).flatten(0, 1)
    return cross_entropy(logits, targets.flatten(), reduction="sum").item()
