"""Slips of the stem sinusoidal: exponents, columns, angles, directions."""

import math

import torch

from coursekit.sinusoidal import (
    pair_frequencies,
    position_angles,
    shift_matrix,
    sinusoidal_encoding,
)
from coursekit.slips.exercise import Exercise, Property, Slip, whole, wholes

BASES = (10_000.0, 2_000.0, 5_000.0, 50_000.0)

# pair_frequencies(dim) -> frequencies


def _width(generator, size, base):
    return (2 * whole(generator, 4 + 8 * size, 12 + 8 * size),)


def tenth_of_base(dim, base):
    """Take a base that is ten times too small."""
    return pair_frequencies(dim, base / 10)


def doubled_exponent(dim, base):
    """Double the feature index that counts in twos already."""
    return base ** (-2.0 * torch.arange(0, dim, 2) / dim)


def halved_exponent(dim, base):
    """Divide the index of the pair by the number of features."""
    return base ** (-torch.arange(dim // 2) / dim)


def growing(dim, base):
    """Lose the minus sign of the exponent."""
    return 1 / pair_frequencies(dim, base)


def last_is_one(dim, base):
    """Let the exponent reach 1."""
    return base ** (-torch.arange(dim // 2) / (dim / 2 - 1))


def _one_each(dim, base):
    return base ** (-torch.arange(dim) / dim)


def _pairs_from_one(dim, base):
    return base ** (-2 * torch.arange(1, dim // 2 + 1) / dim)


_FREQUENCY_SLIPS = (
    Slip(
        "tenth of the base",
        "The base looks ten times too small; it is {base:.0f} here.",
        tenth_of_base,
    ),
    Slip(
        "doubled exponent",
        "The exponent is doubled: arange(0, d, 2) already counts features, so do not "
        "multiply by 2 again.",
        doubled_exponent,
    ),
    Slip(
        "halved exponent",
        "The exponent is halved: use 2i/d for pair i, not i/d.",
        halved_exponent,
    ),
    Slip(
        "growing",
        "The minus sign of the exponent is lost, so frequencies grow.",
        growing,
    ),
    Slip(
        "last is one",
        "The exponent runs to 1 (division by d/2 - 1), a convention of other code; "
        "the paper divides by d/2.",
        last_is_one,
    ),
)

PAIR_FREQUENCIES = Exercise(
    name="pair_frequencies",
    stem="sinusoidal",
    given="(dim), even → (dim / 2,) radians per position",
    right=pair_frequencies,
    draw=_width,
    constants={"base": BASES},
    relative=True,
    tolerance=1e-5,
    proved="one for each pair, falling from 1, base {base:.0f}",
    properties=(
        Property(
            "frequencies must start at 1, for the exponent of pair 0 is 0.",
            lambda got, dim, base: abs(got[0] - 1) < 1e-4,
        ),
    ),
    slips=(
        *_FREQUENCY_SLIPS,
        Slip(
            "one for each feature",
            "There is one for each feature; a sine and its cosine share one.",
            _one_each,
        ),
        Slip(
            "pairs from one",
            "Pairs are counted from 1; the exponent of pair 0 is 0.",
            _pairs_from_one,
        ),
    ),
)

# sinusoidal_encoding(positions, d_model) -> table


def _positions(generator, size, base):
    """Draw positions in any order that do not start at 0."""
    d_model = 2 * whole(generator, 3 + 4 * size, 7 + 4 * size)
    count = d_model + whole(generator, 1, 6)
    positions = wholes(generator, 0, 2 * count, count)
    positions[0] = positions[1] + 1 + positions[1] % 3  # neither 0 nor the smallest
    return positions, d_model


def _table(positions, frequencies):
    angles = positions.double().unsqueeze(-1) * frequencies
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)


def _with(frequencies):
    """Fill the table with other frequencies."""
    return lambda positions, d_model, base: _table(
        positions, frequencies(d_model, base)
    )


def _own_exponents(positions, d_model, base):
    columns = torch.arange(d_model)
    angles = positions.double().unsqueeze(-1) * base ** (-columns / d_model)
    return torch.where(columns % 2 == 0, angles.sin(), angles.cos())


def _all_sines_first(positions, d_model, base):
    angles = position_angles(positions, d_model, base)
    return torch.cat((angles.sin(), angles.cos()), dim=-1)


def _cosine_first(positions, d_model, base):
    angles = position_angles(positions, d_model, base)
    return torch.stack((angles.cos(), angles.sin()), dim=-1).flatten(-2)


def _from_zero(positions, d_model, base):
    return sinusoidal_encoding(torch.arange(len(positions)), d_model, base)


def _minus_the_first(positions, d_model, base):
    return sinusoidal_encoding(positions - positions[0], d_model, base)


def _on_from_the_first(positions, d_model, base):
    row = positions[0] + torch.arange(len(positions))
    return sinusoidal_encoding(row, d_model, base)


def _sorted(positions, d_model, base):
    return sinusoidal_encoding(positions.sort().values, d_model, base)


def _from_one(positions, d_model, base):
    return sinusoidal_encoding(positions + 1, d_model, base)


def _degrees(positions, d_model, base):
    return sinusoidal_encoding(positions * (math.pi / 180), d_model, base)


def _length_of_rows(got, positions, d_model, base):
    return torch.allclose(got.square().sum(-1), torch.tensor(d_model / 2.0).double())


SINUSOIDAL_ENCODING = Exercise(
    name="sinusoidal_encoding",
    stem="sinusoidal",
    given="(positions, d_model), a row of any positions, even d_model → (length, "
    "d_model)",
    right=sinusoidal_encoding,
    draw=_positions,
    constants={"base": BASES},
    proved="sines in even columns, equal to the formula from any start",
    properties=(
        Property(
            "sin² + cos² of a pair must be 1, so each row has length √(d_model/2).",
            _length_of_rows,
        ),
    ),
    slips=(
        *(slip._replace(wrong=_with(slip.wrong)) for slip in _FREQUENCY_SLIPS),
        Slip(
            "own exponents",
            "Every column has its own exponent; a sine and its cosine share one.",
            _own_exponents,
        ),
        Slip(
            "all sines first",
            "The numbers are right but ordered as all sines, then all cosines; here "
            "they alternate.",
            _all_sines_first,
        ),
        Slip(
            "cosine first",
            "Sine and cosine have changed places; even columns hold the sine.",
            _cosine_first,
        ),
        Slip(
            "from zero",
            "Rows are counted from 0 again; use the positions that are given.",
            _from_zero,
        ),
        Slip(
            "minus the first",
            "The first position is taken off all others, so that it is 0; use the "
            "positions that are given.",
            _minus_the_first,
        ),
        Slip(
            "on from the first",
            "It is right for positions in a row, but not for others. Use the positions "
            "that are given, not their first alone.",
            _on_from_the_first,
        ),
        Slip(
            "sorted",
            "The rows are those of sorted positions. Use the positions that are "
            "given, in their order.",
            _sorted,
        ),
        Slip(
            "from one",
            "Each position is one too large. Do you count from 1?",
            _from_one,
        ),
        Slip(
            "degrees",
            "Angles are taken as degrees; sin and cos want radians.",
            _degrees,
        ),
    ),
)

# shift_matrix(offset, d_model) -> matrix, with matrix @ code of p = code of p + offset


def _offset(generator, size, base):
    sign = 1 - 2 * whole(generator, 0, 2)
    low, pairs = 2 + 7 * size, 3 + size
    d_model = 2 * whole(generator, pairs, pairs + 4)
    return sign * whole(generator, low, low + 7), d_model


def _backwards(offset, d_model, base):
    return shift_matrix(-offset, d_model, base)


def _identity(offset, d_model, base):
    return torch.eye(d_model)


def _by_one(offset, d_model, base):
    return shift_matrix(1, d_model, base)


def _pairs_of_halves(offset, d_model, base):
    index = torch.arange(d_model).unflatten(0, (-1, 2)).T.flatten()
    return shift_matrix(offset, d_model, base)[index][:, index]


def _blocks(cos, upper, lower):
    pairs = torch.stack((cos, upper, lower, cos), dim=-1).unflatten(-1, (2, 2))
    return torch.block_diag(*pairs)


def _no_minus(offset, d_model, base):
    angles = offset * pair_frequencies(d_model, base)
    return _blocks(angles.cos(), angles.sin(), angles.sin())


def _cosines_alone(offset, d_model, base):
    angles = offset * pair_frequencies(d_model, base)
    return _blocks(angles.cos(), 0 * angles, 0 * angles)


def _one_angle(offset, d_model, base):
    angles = torch.full((d_model // 2,), float(offset))
    return _blocks(angles.cos(), angles.sin(), -angles.sin())


def _tenth_shift(offset, d_model, base):
    return shift_matrix(offset, d_model, base / 10)


def _doubled_shift(offset, d_model, base):
    angles = offset * doubled_exponent(d_model, base)
    return _blocks(angles.cos(), angles.sin(), -angles.sin())


def _turns(got, offset, d_model, base):
    return torch.allclose(got @ got.T, torch.eye(d_model).double(), atol=1e-3)


SHIFT_MATRIX = Exercise(
    name="shift_matrix",
    stem="sinusoidal",
    given="(offset, d_model), a whole number, even d_model → (d_model, d_model), to "
    "stand before a code",
    right=shift_matrix,
    draw=_offset,
    constants={"base": BASES},
    proved="a rotation, equal to the formula for a drawn offset",
    properties=(Property("a rotation must keep lengths: M Mᵀ = identity.", _turns),),
    slips=(
        Slip(
            "doubled exponent",
            "The exponent is doubled: arange(0, d, 2) already counts features, so do "
            "not multiply by 2 again.",
            _doubled_shift,
        ),
        Slip(
            "backwards",
            "It turns backwards: it takes position p to p - offset. Transpose it, or "
            "change the sign of both sines.",
            _backwards,
        ),
        Slip(
            "identity",
            "It is the identity: the offset has no effect.",
            _identity,
        ),
        Slip(
            "by one",
            "It moves by one position, whatever the offset.",
            _by_one,
        ),
        Slip(
            "pairs of halves",
            "It pairs feature i with i + d_model/2; here 2i and 2i + 1 are a pair.",
            _pairs_of_halves,
        ),
        Slip(
            "no minus",
            "One sine lost its minus, so it stretches instead of turning.",
            _no_minus,
        ),
        Slip(
            "cosines alone",
            "The sines are missing: without them a hand shrinks instead of turning.",
            _cosines_alone,
        ),
        Slip(
            "one angle",
            "All pairs turn by the same angle; each has its own frequency.",
            _one_angle,
        ),
        Slip(
            "tenth of the base",
            "The base looks ten times too small; it is {base:.0f} here.",
            _tenth_shift,
        ),
    ),
)

# hands_that_turn() -> number of pairs


def _count(wavelengths, last):
    return int((wavelengths <= last).sum())


def _wavelengths(base, d_model):
    return 2 * math.pi / pair_frequencies(d_model, base)


def _hands(base, d_model, last):
    return _count(_wavelengths(base, d_model), last)


def _one_radian(base, d_model, last):
    return _count(1 / pair_frequencies(d_model, base), last)


def _half_turns(base, d_model, last):
    return _count(_wavelengths(base, d_model) / 2, last)


def _slow_exponent(base, d_model, last):
    return _count(2 * math.pi / halved_exponent(d_model, base), last)


def _features(base, d_model, last):
    return 2 * _hands(base, d_model, last)


def _those_that_do_not(base, d_model, last):
    return d_model // 2 - _hands(base, d_model, last)


def _last_index(base, d_model, last):
    return _hands(base, d_model, last) - 1


HANDS_THAT_TURN = Exercise(
    name="hands_that_turn",
    stem="sinusoidal",
    given="() → how many of the d_model / 2 hands go round at least once between "
    "positions 0 and `last`",
    right=_hands,
    constants={
        "base": (10_000.0, 2_000.0, 5_000.0),
        "d_model": (64, 80, 96),
        "last": (900, 1_200),
    },
    proved="the wavelength is 2π · base^(2i/d); the other hands stay within a turn",
    slips=(
        Slip(
            "one radian",
            "That counts hands that move by one radian; a full turn is 2π.",
            _one_radian,
        ),
        Slip("half turns", "That counts half turns; a full turn is 2π.", _half_turns),
        Slip(
            "slow exponent",
            "The exponent is halved: use 2i/d for pair i, not i/d.",
            _slow_exponent,
        ),
        Slip(
            "features",
            "That counts features; two of them share a hand.",
            _features,
        ),
        Slip(
            "those that do not",
            "That counts the hands that do not go round.",
            _those_that_do_not,
        ),
        Slip(
            "last index",
            "That is the index of the last such hand; indices start at 0.",
            _last_index,
        ),
    ),
)

# recover_offset(first, second) -> offsets, second minus first

FARTHEST = 300  # no offset is larger, so the slowest hand is enough


def _codes(generator, size, base):
    """Draw the codes of positions far from 0, and of others within FARTHEST.

    In one pair the slowest hand passes the place where atan2 jumps from π to -π.
    """
    d_model, count = 8 + 2 * size, 6 + 3 * size
    first = wholes(generator, 0, 5_000, count)
    offsets = wholes(generator, 20, FARTHEST + 1, count)
    offsets[::2] *= -1
    first[1] = int(math.pi / pair_frequencies(d_model, base)[-1]) - 10
    codes = [sinusoidal_encoding(p, d_model, base) for p in (first, first + offsets)]
    return codes[0], codes[1]


def _hand(code, pair):
    even, odd = code[:, 0::2].double(), code[:, 1::2].double()
    return torch.atan2(even[:, pair], odd[:, pair])


def _within_half_a_turn(angles):
    return torch.remainder(angles + math.pi, 2 * math.pi) - math.pi


def _slowest(first, second, base):
    return pair_frequencies(first.shape[-1], base)[-1]


def _offsets(first, second, base):
    angles = _within_half_a_turn(_hand(second, -1) - _hand(first, -1))
    return angles / _slowest(first, second, base)


def _first_minus_second(first, second, base):
    return -_offsets(first, second, base)


def _distance(first, second, base):
    return _offsets(first, second, base).abs()


def _fastest_hand(first, second, base):
    return _within_half_a_turn(_hand(second, 0) - _hand(first, 0))


def _not_wrapped(first, second, base):
    return (_hand(second, -1) - _hand(first, -1)) / _slowest(first, second, base)


def _one_over_base(first, second, base):
    return _offsets(first, second, base) * _slowest(first, second, base) * base


def _in_degrees(first, second, base):
    return _offsets(first, second, base).rad2deg()


def _difference_of_sines(first, second, base):
    return (second - first)[:, -2] / _slowest(first, second, base)


def _difference_of_arcsines(first, second, base):
    angles = second[:, -2].double().asin() - first[:, -2].double().asin()
    return angles / _slowest(first, second, base)


def _from_nought(first, second, base):
    angles = _hand(second, -1) - _hand(first, -1)
    return torch.remainder(angles, 2 * math.pi) / _slowest(first, second, base)


def _tenth_offset(first, second, base):
    return _offsets(first, second, base / 10)


RECOVER_OFFSET = Exercise(
    name="recover_offset",
    stem="sinusoidal",
    given="(first, second), codes (count, d_model) of positions at most 300 apart → "
    "(count,) offsets, second minus first",
    right=_offsets,
    draw=_codes,
    constants={"base": BASES},
    tolerance=0.1,
    proved="offsets come back from the codes alone, with their signs",
    properties=(
        Property(
            "an offset is larger than 300 positions.",
            lambda got, first, second, base: bool((got.abs() < FARTHEST + 1).all()),
        ),
    ),
    slips=(
        Slip(
            "first minus second",
            "The sign is turned: an offset is second minus first. Or has atan2 the "
            "cosine first? It is atan2(sine, cosine).",
            _first_minus_second,
        ),
        Slip(
            "distance",
            "The sign is lost, as in a dot product, which is the same for both "
            "directions. The sine of the difference keeps it.",
            _distance,
        ),
        Slip(
            "fastest hand",
            "The first hand goes round every 6.28 positions, so it knows no larger "
            "offset. Read the slowest.",
            _fastest_hand,
        ),
        Slip(
            "not wrapped",
            "The difference of two angles can miss a whole turn: bring it between -π "
            "and π before you divide.",
            _not_wrapped,
        ),
        Slip(
            "one over base",
            "The slowest hand does not turn at 1/base, but at base^(-(d_model - 2) / "
            "d_model).",
            _one_over_base,
        ),
        Slip(
            "degrees",
            "The angle is in degrees; frequencies are radians per position.",
            _in_degrees,
        ),
        Slip(
            "difference of sines",
            "The difference of two sines is not the sine of the difference: it depends "
            "on the position. Take angles first: atan2.",
            _difference_of_sines,
        ),
        Slip(
            "difference of arcsines",
            "An arcsine knows half of the circle: both 30° and 150° have the sine 0.5. "
            "Take atan2 of sine and cosine.",
            _difference_of_arcsines,
        ),
        Slip(
            "from nought",
            "Offsets back come out as nearly a whole turn: bring the difference "
            "between -π and π, not between 0 and 2π.",
            _from_nought,
        ),
        Slip(
            "tenth of the base",
            "The base looks ten times too small; it is {base:.0f} here.",
            _tenth_offset,
        ),
    ),
)

EXERCISES = (
    PAIR_FREQUENCIES,
    SINUSOIDAL_ENCODING,
    SHIFT_MATRIX,
    HANDS_THAT_TURN,
    RECOVER_OFFSET,
)
