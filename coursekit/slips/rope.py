"""Slips of the stem rope: pairs, angles, sense of rotation."""

import torch

from coursekit.rope import apply_rope
from coursekit.sinusoidal import position_angles
from coursekit.slips.exercise import Exercise, Property, Slip, whole, wholes
from coursekit.slips.sinusoidal import (
    BASES,
    doubled_exponent,
    growing,
    halved_exponent,
    last_is_one,
    tenth_of_base,
)

# apply_rope(x, positions) -> x with adjacent pairs turned


def _x_and_positions(generator, size, base):
    """Draw features and positions in any order; position 0 is among them."""
    length = whole(generator, 5 + 3 * size, 8 + 3 * size)
    width = 2 * whole(generator, 3 + 2 * size, 7 + 2 * size)
    positions = wholes(generator, 2, 40, length)
    positions[whole(generator, 1, length)] = 0
    return torch.randn(length, width, generator=generator), positions


def _rope(x, positions, base):
    return apply_rope(x, position_angles(positions, x.shape[-1], base))


def _with(frequencies):
    """Turn by other frequencies."""
    return lambda x, positions, base: apply_rope(
        x, positions[:, None] * frequencies(x.shape[-1], base).double()
    )


def _clockwise(x, positions, base):
    return _rope(x, -positions, base)


def _swapped(x, positions, base):
    return apply_rope(x, torch.pi / 2 - position_angles(positions, x.shape[-1], base))


def _by_halves(x, angles):
    first, second = x.chunk(2, dim=-1)
    return x * angles.cos() + torch.cat((-second, first), dim=-1) * angles.sin()


def _halves(x, positions, base):
    angles = position_angles(positions, x.shape[-1], base)
    return _by_halves(x, angles.repeat(1, 2))


def _mixed_layouts(x, positions, base):
    angles = position_angles(positions, x.shape[-1], base)
    return _by_halves(x, angles.repeat_interleave(2, dim=-1))


def _by_index(x, positions, base):
    return _rope(x, torch.arange(len(x)), base)


def _from_one(x, positions, base):
    return _rope(x, positions + 1, base)


def _still_at_zero(got, x, positions, base):
    still = positions == 0
    return torch.allclose(got[still], x[still].double(), atol=1e-4)


def _keeps_lengths(got, x, positions, base):
    return torch.allclose(got.norm(dim=-1), x.norm(dim=-1).double(), atol=1e-3)


APPLY_ROPE = Exercise(
    name="apply_rope",
    stem="rope",
    given="(x, positions), x (length, head_dim) and a row of any positions → x with "
    "adjacent pairs turned",
    right=_rope,
    draw=_x_and_positions,
    constants={"base": BASES},
    proved="position 0 stays, adjacent pairs turn by any positions",
    properties=(
        Property("a rotation must keep the length of each row.", _keeps_lengths),
        Property(
            "position 0 moved, but angle 0 must leave x as it is.", _still_at_zero
        ),
    ),
    slips=(
        Slip(
            "tenth of the base",
            "The base looks ten times too small; it is {base:.0f} here.",
            _with(tenth_of_base),
        ),
        Slip(
            "doubled exponent",
            "The exponent is doubled: arange(0, d, 2) already counts features, so do "
            "not multiply by 2 again.",
            _with(doubled_exponent),
        ),
        Slip(
            "halved exponent",
            "The exponent is halved: use 2i/d for pair i, not i/d.",
            _with(halved_exponent),
        ),
        Slip(
            "growing",
            "The minus sign of the exponent is lost, so frequencies grow.",
            _with(growing),
        ),
        Slip(
            "last is one",
            "The exponent runs to 1 (division by d/2 - 1), a convention of other "
            "code; the paper divides by d/2.",
            _with(last_is_one),
        ),
        Slip(
            "clockwise",
            "It turns clockwise: the minus belongs to a·cos - b·sin.",
            _clockwise,
        ),
        Slip(
            "cosine and sine swapped",
            "Cosine and sine have changed places.",
            _swapped,
        ),
        Slip(
            "pairs of halves",
            "It pairs feature i with i + head_dim/2; here 2i and 2i + 1 are a pair.",
            _halves,
        ),
        Slip(
            "mixed layouts",
            "Angles are laid out for adjacent pairs, partners for halves: that is no "
            "rotation, and lengths change.",
            _mixed_layouts,
        ),
        Slip(
            "by index",
            "Rows are counted 0, 1, 2, …; use the positions that are given.",
            _by_index,
        ),
        Slip(
            "from one",
            "Each position is one too large. Do you count from 1?",
            _from_one,
        ),
    ),
)

EXERCISES = (APPLY_ROPE,)
