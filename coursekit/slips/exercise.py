"""The types of the catalogue: an exercise, its slips and its properties."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor


class Slip(NamedTuple):
    """A typical wrong answer; ``hint`` may name constants, as in ``{base:g}``."""

    name: str
    hint: str
    wrong: Callable  # the same signature as the right answer


class Property(NamedTuple):
    """What every right result has: ``holds(got, *inputs, **constants)``."""

    hint: str
    holds: Callable


def no_inputs(generator: torch.Generator, size: int, **constants: Any) -> tuple:
    """Draw nothing: the exercise asks for one number.

    Args:
        generator: Not used.
        size: Not used.
        **constants: Not used.

    Returns:
        No inputs.
    """
    return ()


def as_it_is(result: Any, *inputs: Any) -> Any:
    """Compare the result itself.

    Args:
        result: What the answer returned.
        *inputs: What it was given.

    Returns:
        ``result``.
    """
    return result


class Exercise(NamedTuple):
    """One exercise as data.

    ``right``, conventions and slips are called ``function(*inputs, **constants)``, the
    learner's answer ``answer(*inputs)``: its card tells the constants. ``right`` also
    settles shape and kind: a boolean result asks for booleans, a whole one for whole
    numbers. Without inputs the exercise asks for one number, or a function of nothing.
    """

    name: str  # of the function that the learner writes: check_<name>
    stem: str
    given: str  # the signature with shapes, in words
    right: Callable
    slips: tuple[Slip, ...]  # at least 5, no two with the same result
    proved: str  # what ✓ says
    # draw(generator, size, **constants) → inputs; size 0 is visible, 1, 2, … hidden
    draw: Callable = no_inputs
    conventions: dict[str, Callable] = {}  # also right: words → function
    properties: tuple[Property, ...] = ()
    constants: dict[str, tuple] = {}  # of variants: name → choices, the public first
    variant_slips: tuple[Slip, ...] = ()  # right for the public constants, not for all
    view: Callable = as_it_is  # view(result, *inputs) → what is compared
    tolerance: float = 1e-4  # a float32 result at small positions is closer
    relative: bool = False  # the tolerance is a share of the right value


def whole(generator: torch.Generator, low: int, high: int) -> int:
    """Draw a whole number.

    Args:
        generator: Source of randomness.
        low: Smallest number.
        high: One past the largest.

    Returns:
        A number of at least ``low`` and below ``high``.
    """
    return int(torch.randint(low, high, (), generator=generator))


def wholes(generator: torch.Generator, low: int, high: int, count: int) -> Tensor:
    """Draw a row of different whole numbers, in any order.

    Args:
        generator: Source of randomness.
        low: Smallest number.
        high: One past the largest.
        count: How many; at most high - low.

    Returns:
        (count,) int64, without repeats.
    """
    return torch.randperm(high - low, generator=generator)[:count] + low
