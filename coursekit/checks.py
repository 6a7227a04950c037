"""Exercise checks: one line back, what was proved or which slip it looks like.

Each check tries the answer on inputs drawn anew at every call, so a table that was
typed in does not pass. It goes from shape and kind, to properties, to the oracle,
and compares a failing answer with typical slips before it says what is wrong.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from coursekit.attention import attention, causal_mask
from coursekit.rope import apply_rope
from coursekit.sinusoidal import (
    pair_frequencies,
    position_angles,
    shift_matrix,
    sinusoidal_encoding,
)

_TOLERANCE = 1e-4  # a float32 answer at small positions is closer than this


class CheckFailed(Exception):
    """An answer was refused; the message names what was wrong and the likely slip."""

    def _render_traceback_(self) -> list[str]:
        """Show one line in a notebook: the learner's code did not crash."""
        return [f"✗ {self}"]


def check_attention(answer: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
    """Check a function (query, key, value) → output, without bias or mask.

    Args:
        answer: Takes (batch, heads, length, head_dim) tensors and returns the
            output, (batch, heads, query, value_dim).

    Raises:
        CheckFailed: With the likely slip.
    """
    fresh = _fresh()
    query = torch.randn(2, 3, 4, 6, generator=fresh)
    key = torch.randn(2, 3, 5, 6, generator=fresh)
    value = torch.randn(2, 3, 5, 7, generator=fresh)
    got = _tensor("attention", answer, (query, key, value), (2, 3, 4, 7))
    scores = query @ key.transpose(-2, -1)
    slips = {
        "The scores are not divided: put 1/√head_dim before the softmax.": scores,
        "The scores are divided by head_dim; its square root is meant.": scores / 6,
        "The scores are multiplied by √head_dim; divide by it.": scores * 6**0.5,
    }
    wrong = {hint: logits.softmax(-1) @ value for hint, logits in slips.items()}
    scaled = scores * 6**-0.5
    wrong[
        "The softmax runs over the queries; each row over the keys must sum to 1."
    ] = scaled.softmax(-2) @ value
    wrong["The softmax is missing: weights are positive and sum to 1."] = scaled @ value
    wrong["The softmax runs over the heads; it belongs to the keys, dim=-1."] = (
        scaled.softmax(1) @ value
    )
    _compare("attention", got, attention(query, key, value).output, wrong)
    _passed("attention", "shape, scale and softmax axis; equal to the formula")


def check_causal_mask(answer: Callable[[Tensor, Tensor], Tensor]) -> None:
    """Check a function (query_positions, key_positions) → mask, True = may attend.

    Args:
        answer: Takes two rows of positions, of unequal length, and returns a boolean
            tensor (query, key).

    Raises:
        CheckFailed: With the likely slip.
    """
    start = _number(_fresh(), 3, 9)
    keys = torch.arange(start + 4)
    queries = keys[start:]
    got = _tensor("causal_mask", answer, (queries, keys), (4, start + 4))
    want = causal_mask(queries, keys)
    row = torch.arange(4).unsqueeze(-1)
    wrong = {
        "It is the other way round: True means that a query may attend.": ~want,
        "A query does not see itself; its own position is not later: use <=.": (
            keys < queries.unsqueeze(-1)
        ),
        "Queries look into the future; a key may not be later than its query.": (
            keys >= queries.unsqueeze(-1)
        ),
        "Row 0 is taken for position 0: queries are the last positions here, as with "
        "a cache. Compare positions, not indices.": keys <= row,
        "Nothing is blocked.": torch.ones_like(want),
    }
    if got.dtype != torch.bool:
        raise CheckFailed(
            f"causal_mask: the result is {got.dtype}, but a mask is boolean. A "
            f"comparison such as a <= b gives one."
        )
    _compare("causal_mask", got, want, wrong)
    padded = torch.tensor([0, 0, 0, 1, 2, 5, 9])[: start + 4]
    mixed = _tensor("causal_mask", answer, (padded[2:6], padded), (4, len(padded)))
    if not torch.equal(mixed, causal_mask(padded[2:6], padded)):
        raise CheckFailed(
            "causal_mask: it is right for 0, 1, 2, … but not for positions with "
            "repeats and gaps, as padding makes them. Compare positions, not indices."
        )
    _passed("causal_mask", "boolean, and right by position, not by index")


def check_pair_frequencies(answer: Callable[[int], Tensor]) -> None:
    """Check a function dim → (dim / 2,) frequencies, base 10000.

    Args:
        answer: Takes an even number of features.

    Raises:
        CheckFailed: With the likely slip.
    """
    dim = 2 * _number(_fresh(), 4, 12)
    got = _tensor("pair_frequencies", answer, (dim,), (dim // 2,))
    wrong = {
        hint: _frequencies(dim, **changes) for hint, changes in _FREQUENCY_SLIPS.items()
    }
    _compare("pair_frequencies", got, pair_frequencies(dim), wrong, relative=True)
    _passed("pair_frequencies", "one for each pair, falling from 1, base 10000")


def check_sinusoidal_encoding(answer: Callable[[Tensor, int], Tensor]) -> None:
    """Check a function (positions, d_model) → (length, d_model), base 10000.

    Args:
        answer: Takes a row of positions, which need not start at 0, and an even
            number of features.

    Raises:
        CheckFailed: With the likely slip.
    """
    fresh = _fresh()
    d_model = 2 * _number(fresh, 3, 8)
    length = d_model + _number(fresh, 1, 6)
    positions = torch.arange(length) + _number(fresh, 2, 20)
    name, shape = "sinusoidal_encoding", (length, d_model)
    at_zero = _tensor(name, answer, (torch.arange(length), d_model), shape)
    got = _tensor(name, answer, (positions, d_model), shape)
    want = sinusoidal_encoding(positions, d_model)
    _compare(name, got, want, _encoding_slips(positions, d_model))
    mixed = 3 * positions[torch.randperm(length, generator=fresh)]
    got = _tensor(name, answer, (mixed, d_model), shape)
    if not _close(got, sinusoidal_encoding(mixed, d_model), relative=False):
        raise CheckFailed(
            f"{name}: it is right for positions in a row, but not for others, such as "
            f"{mixed[:3].tolist()}. Use the positions that are given, not their first."
        )
    _compare(name, at_zero, sinusoidal_encoding(torch.arange(length), d_model), {})
    _passed(name, "sines in even columns, equal to the formula from any start")


def check_shift_matrix(answer: Callable[[int, int], Tensor]) -> None:
    """Check a function (offset, d_model) → (d_model, d_model), base 10000.

    Args:
        answer: Takes an offset and an even number of features.

    Raises:
        CheckFailed: With the likely slip.
    """
    fresh = _fresh()
    d_model, offset = 2 * _number(fresh, 3, 8), _number(fresh, 2, 9)
    got = _tensor("shift_matrix", answer, (offset, d_model), (d_model, d_model))
    want = shift_matrix(offset, d_model)
    wrong = {
        "It turns backwards: it takes position p to p - offset. Transpose it, or "
        "change the sign of both sines.": want.T,
        "It is the identity: the offset has no effect.": torch.eye(d_model),
        "It moves by one position, whatever the offset.": shift_matrix(1, d_model),
        "It pairs feature i with i + d_model/2; here 2i and 2i + 1 are a pair.": (
            _halves(want)
        ),
        "One sine lost its minus, so it stretches instead of turning.": want.abs(),
    }
    _compare("shift_matrix", got, want, wrong)
    _passed("shift_matrix", "a rotation, equal to the formula for a drawn offset")


def check_apply_rope(answer: Callable[[Tensor, Tensor], Tensor]) -> None:
    """Check a function (x, positions) → x with adjacent pairs turned, base 10000.

    Args:
        answer: Takes (length, head_dim) and a row of positions that start anywhere.

    Raises:
        CheckFailed: With the likely slip.
    """
    fresh = _fresh()
    length, width = _number(fresh, 4, 8), 2 * _number(fresh, 3, 7)
    x = torch.randn(length, width, generator=fresh)
    positions = torch.arange(length) + _number(fresh, 2, 20)
    name, first = "apply_rope", torch.zeros(length, dtype=torch.int64)
    still = _tensor(name, answer, (x, first), (length, width))
    got = _tensor(name, answer, (x, positions), (length, width))
    want = apply_rope(x, position_angles(positions, width))
    _finite(name, still)
    if not torch.allclose(still.double(), x.double(), atol=1e-5):
        raise CheckFailed(
            f"{name}: position 0 moved, but angle 0 must leave x as it is. Have cosine "
            f"and sine changed places, or do your positions start at 1?"
        )
    _compare(name, got, want, _rope_slips(x, positions))
    _passed(name, "position 0 stays, adjacent pairs turn by any positions")


_FREQUENCY_SLIPS = {
    "The base looks like 1000; the paper has 10000.": {"base": 1e3},
    "The exponent is doubled: arange(0, d, 2) already counts features, so do not "
    "multiply by 2 again.": {"power": 2.0},
    "The exponent is halved: use 2i/d for pair i, not i/d.": {"power": 0.5},
    "The minus sign of the exponent is lost, so frequencies grow.": {"power": -1.0},
    "The exponent runs to 1 (division by d/2 - 1), a convention of other code; the "
    "paper divides by d/2.": {"last": True},
}


def _frequencies(dim: int, base=1e4, power=1.0, last=False) -> Tensor:
    """Make frequencies with one slip, each spelled out as a parameter."""
    pairs = torch.arange(dim // 2, dtype=torch.float64)
    return base ** (-power * pairs / (dim / 2 - last))


def _table(positions: Tensor, frequencies: Tensor) -> Tensor:
    """Lay sines and cosines in alternating columns."""
    angles = positions.to(torch.float64).unsqueeze(-1) * frequencies
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(-2)


def _encoding_slips(positions: Tensor, d_model: int) -> dict[str, Tensor]:
    """Make the tables that typical slips give."""
    right = _table(positions, _frequencies(d_model))
    own = 1e4 ** (-torch.arange(d_model, dtype=torch.float64) / d_model)
    angles = positions.to(torch.float64).unsqueeze(-1) * own
    wrong = {
        hint: _table(positions, _frequencies(d_model, **changes))
        for hint, changes in _FREQUENCY_SLIPS.items()
    }
    index = torch.arange(d_model)
    wrong |= {
        "Every column has its own exponent; a sine and its cosine share one.": (
            torch.where(index % 2 == 0, angles.sin(), angles.cos())
        ),
        "The numbers are right but ordered as all sines, then all cosines; here they "
        "alternate.": torch.cat((right[:, 0::2], right[:, 1::2]), -1),
        "Sine and cosine have changed places; even columns hold the sine.": (
            right.unflatten(-1, (-1, 2)).flip(-1).flatten(-2)
        ),
        "Positions are counted from 0 again; the positions given start later.": (
            _table(positions - positions[0], _frequencies(d_model))
        ),
        "Each position is one too large. Do you count from 1?": (
            _table(positions + 1, _frequencies(d_model))
        ),
        "Angles are taken as degrees; sin and cos want radians.": (
            _table(positions * math.pi / 180, _frequencies(d_model))
        ),
    }
    return wrong


def _rope_slips(x: Tensor, positions: Tensor) -> dict[str, Tensor]:
    """Turn by each typical slip."""
    width, angles = x.shape[-1], position_angles(positions, x.shape[-1])
    first, second = x.chunk(2, dim=-1)
    partner = torch.cat((-second, first), dim=-1)
    twice, apart = angles.repeat(1, 2), angles.repeat_interleave(2, dim=-1)
    wrong = {
        hint: apply_rope(x, positions[:, None] * _frequencies(width, **changes))
        for hint, changes in _FREQUENCY_SLIPS.items()
    }
    return wrong | {
        "It turns clockwise: the minus belongs to a·cos - b·sin.": apply_rope(
            x, -angles
        ),
        "It pairs feature i with i + head_dim/2; here 2i and 2i + 1 are a pair.": (
            x * twice.cos() + partner * twice.sin()
        ),
        "Angles are laid out for adjacent pairs, partners for halves: that is no "
        "rotation, and lengths change.": x * apart.cos() + partner * apart.sin(),
        "Positions are counted from 0 again; the positions given start later.": (
            apply_rope(x, position_angles(positions - positions[0], width))
        ),
    }


def _halves(matrix: Tensor) -> Tensor:
    """Reorder a matrix on adjacent pairs to one on halves."""
    index = torch.arange(len(matrix)).unflatten(0, (-1, 2)).T.flatten()
    return matrix[index][:, index]


def _fresh() -> torch.Generator:
    """Seed a generator anew, without touching the learner's own random state."""
    generator = torch.Generator()
    generator.seed()
    return generator


def _number(generator: torch.Generator, low: int, high: int) -> int:
    """Draw a whole number, low included, high not."""
    return int(torch.randint(low, high, (), generator=generator))


def _tensor(name: str, answer: Callable, inputs: tuple, shape: tuple) -> Tensor:
    """Run the answer and return a tensor of the shape, or say what came instead."""
    if not callable(answer):
        raise CheckFailed(
            f"{name}: the answer is {type(answer).__name__}, but a function is "
            f"checked. Hand over its name, without brackets."
        )
    # Copies: an answer that works in place may not change what it is compared with.
    own = [x.clone() if isinstance(x, Tensor) else x for x in inputs]
    try:
        got = answer(*own)
    except NotImplementedError:
        raise CheckFailed(f"{name}: not done yet. Replace the stub.") from None
    except Exception as error:
        raise CheckFailed(
            f"{name}: it stopped with {type(error).__name__}: {error}. Run it alone on "
            f"a small input to see where."
        ) from None
    got = getattr(got, "output", got)  # the house's own attention returns its steps
    try:
        got = torch.as_tensor(got).detach().cpu().to_dense()
    except Exception:
        raise CheckFailed(
            f"{name}: the result is {type(got).__name__}, but a tensor of shape "
            f"{shape} was expected. Is there a return?"
        ) from None
    if got.is_complex():
        raise CheckFailed(
            f"{name}: the result is {got.dtype}, but real numbers were expected. Take "
            f".real, or torch.view_as_real for pairs."
        )
    if got.shape != shape:
        raise CheckFailed(
            f"{name}: the result has shape {tuple(got.shape)}, but {shape} was "
            f"expected. Check the order of the axes."
        )
    return got


def _compare(
    name: str, got: Tensor, want: Tensor, wrong: dict[str, Tensor], relative=False
) -> None:
    """Accept what is close to the oracle; else name the slip or the worst place."""
    if _close(got, want, relative):
        return
    _finite(name, got)
    for hint, value in wrong.items():
        if _close(got, value, relative) and not _close(value, want, relative):
            raise CheckFailed(f"{name}: {hint}")
    gap = (got.double() - want.double()).abs()
    place = tuple(int(i) for i in torch.unravel_index(gap.argmax(), gap.shape))
    raise CheckFailed(
        f"{name}: at {place} it is {got[place].item():.4g}, but "
        f"{want[place].item():.4g} was expected. Compare a small case by hand."
    )


def _finite(name: str, got: Tensor) -> None:
    """Refuse NaN and infinity by their name."""
    if not torch.isfinite(got.double()).all():
        raise CheckFailed(
            f"{name}: the result holds NaN or infinity. Is there a division by 0, or a "
            f"softmax over a row with nothing in it?"
        )


def _close(got: Tensor, want: Tensor, relative: bool) -> bool:
    """Compare in float64, absolutely or by ratio."""
    got, want = got.double(), want.double()
    bound = {"atol": 0.0, "rtol": 1e-5} if relative else {"atol": _TOLERANCE, "rtol": 0}
    return torch.allclose(got, want, **bound)


def _passed(name: str, proved: str) -> None:
    """Print the one line of a right answer."""
    print(f"✓ {name}: {proved}.")
