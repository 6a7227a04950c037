"""The argument checks, in one voice: what was wrong, what is right, the mend."""

import math
from numbers import Integral, Real

import torch
from torch import Tensor


def at_least(name: str, value: int, least: int = 1) -> None:
    """Refuse a ``value`` that is not a whole number of at least ``least``."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < least:
        raise ValueError(
            f"{name} is {value!r}, but it counts something, so it must be a whole "
            f"number of at least {least}. Use {least} or more."
        )


def even(name: str, value: int) -> None:
    """Refuse a ``value`` that does not split into pairs."""
    at_least(name, value)
    if value % 2:
        below = f"{value - 1} or " if value > 1 else ""
        raise ValueError(
            f"{name} is {value}, but features turn in pairs, so it must be even. "
            f"Use {below}{value + 1}."
        )


def positive(name: str, value: float) -> None:
    """Refuse a ``value`` that is not a finite number above zero."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    try:
        fits = number and 0 < float(value) < math.inf
    except OverflowError:  # a whole number beyond every float
        fits = False
    if not fits:
        raise ValueError(
            f"{name} is {value!r}, but it must be a finite number above 0, because "
            f"it is divided by or raised to a power. Use a number such as 2.0."
        )


def ends_with(name: str, tensor: Tensor, shape: tuple[int, ...]) -> None:
    """Refuse a ``tensor`` whose last axes are not ``shape``."""
    found = tuple(tensor.shape) if isinstance(tensor, Tensor) else None
    if found is None or found[-len(shape) :] != tuple(shape):
        was = f"has shape {found}" if found is not None else f"is {type(tensor)}"
        raise ValueError(
            f"{name} {was}, but it must be a tensor whose shape ends with "
            f"{tuple(shape)} to fit its partners. Check the order of the axes."
        )


def positions(name: str, tensor: Tensor) -> None:
    """Refuse what is not one row of real positions, or one row per batch entry."""
    fits = (
        isinstance(tensor, Tensor)
        and tensor.dim() in (1, 2)
        and tensor.dtype != torch.bool
        and not tensor.is_complex()
    )
    if not fits:
        shaped = isinstance(tensor, Tensor)
        was = f"{tuple(tensor.shape)} {tensor.dtype}" if shaped else f"{tensor!r}"
        raise ValueError(
            f"{name} is {was}, but positions are a tensor of real numbers, (length,) "
            f"for all rows or (batch, length) for each. Use torch.arange(length)."
        )


def a_position_each(positions_: Tensor, x: Tensor) -> None:
    """Refuse positions that would broadcast to other tokens than those of ``x``."""
    positions("positions", positions_)
    length = x.shape[-2]
    fits = [(length,), (1, length), (x.shape[0], length)]
    if tuple(positions_.shape) not in fits:
        raise ValueError(
            f"positions are {tuple(positions_.shape)} and x is {tuple(x.shape)}, but "
            f"each token has one position, so they must be {fits[0]} or {fits[2]}. "
            f"With a cache, pass the positions of the new tokens alone."
        )
    if not x.is_floating_point():
        raise ValueError(
            f"x is {x.dtype}, but a code between -1 and 1 would be cut to a whole "
            f"number. Use x.float()."
        )


def multiple(name: str, value: int, part: str, count: int) -> None:
    """Refuse a ``value`` that does not split into ``count`` equal parts."""
    at_least(name, value)
    at_least(part, count)
    if value % count:
        raise ValueError(
            f"{name} is {value} and {part} is {count}, but each part gets the same "
            f"number of features, so {part} must divide {name}. Use {name} = "
            f"{value - value % count + count}, or another {part}."
        )


def rows(name: str, tensor: Tensor) -> None:
    """Refuse a ``tensor`` that is not a batch of rows, (batch, length)."""
    if tensor.dim() != 2:
        raise ValueError(
            f"{name} have shape {tuple(tensor.shape)}, but they must be (batch, "
            f"length), a row for each sequence. Use {name}[None] for a single one."
        )
