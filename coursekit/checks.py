"""Exercise checks: one line back, what was proved or which slip it looks like.

There is one ``check_<name>(answer)`` for each exercise of ``coursekit.slips``. Each
tries the answer on inputs drawn anew at every call, so a table that was typed in does
not pass. It looks at shape and kind, at the properties and at the right values, and
compares a failing answer with the catalogue of slips before it says what is wrong.
The constants of a variant are passed by name: ``check_<name>(answer, base=500.0)``.
"""

import copy
import io
import math
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from coursekit.slips import EXERCISES
from coursekit.slips.exercise import Exercise, no_inputs

_VISIBLE = (0, 0, 0)  # the sizes of the draws here, and in grading
_HIDDEN = (1, 2, 3, 4)
_PRINTED = 1_000_000  # characters: more is a flood
_LARGEST = 1_000_000  # values: no right result has more
_LIKELY = 0.05  # an answer that is so much closer to a slip than to the right result


class Verdict(NamedTuple):
    """The share of draws with a right result, and the line to show."""

    share: float
    line: str


class CheckFailed(Exception):
    """An answer was refused; the message names what was wrong and the likely slip."""

    def _render_traceback_(self) -> list[str]:
        """Show one line in a notebook: the learner's code did not crash."""
        return [f"✗ {self}"]


def hidden(name: str, answer: Any, seed: int, **constants: Any) -> float:
    """Grade an answer on other sizes than those of the visible check.

    Args:
        name: Name of the exercise.
        answer: The learner's function, or number.
        seed: Settles the inputs.
        **constants: Those of the variant; the public ones unless given.

    Returns:
        The share of draws with a right result, above 0 and at most 1.

    Raises:
        CheckFailed: If no draw is right, with the likely slip.
        ValueError: If there is no such exercise or constant.
    """
    share, line = judge(
        name, collect(name, answer, seed, **constants), seed, **constants
    )
    if share == 0:
        raise CheckFailed(line)
    print(f"✓ {line}" if share == 1 else f"{share:.0%} of the inputs right; {line}")
    return share


def known(name: str, *inputs: Any, **constants: Any) -> None:
    """Print the right result of a small case, to compare with by eye.

    Args:
        name: Name of the exercise.
        *inputs: A small case; none for an exercise that asks for one number.
        **constants: Those of the variant; the public ones unless given. A question
            without inputs is answered for other constants than a card may have.

    Raises:
        ValueError: If there is no such exercise or constant, or if a question without
            inputs is asked with the constants of a card.
    """
    exercise = _find(name)
    named = _constants(exercise, constants)
    if exercise.draw is no_inputs and all(
        value in exercise.constants[key] for key, value in named.items()
    ):
        raise ValueError(
            f"{name} with {_told(named)} is what is asked. Give a smaller case: other "
            f"values of {sorted(named)}."
        )
    result = exercise.right(*inputs, **named)
    given = [_short(value) for value in inputs] or [_told(named)]
    print(f"{name}({', '.join(given)}) = {_short(result)}")


def collect(name: str, answer: Any, seed: int, **constants: Any) -> list[dict]:
    """Run an answer on the hidden draws and keep plain numbers, for ``judge``.

    The two are apart so that a grader can judge in a process that the learner's code
    has never touched.

    Args:
        name: Name of the exercise.
        answer: The learner's function, or number.
        seed: Settles the inputs.
        **constants: Those of the variant; the public ones unless given.

    Returns:
        One entry for each draw, fit for JSON: ``kind``, ``shape`` and ``values``, or
        the ``fault`` that came instead.

    Raises:
        ValueError: If there is no such exercise or constant.
    """
    exercise = _find(name)
    draws = _draws(exercise, seed, _HIDDEN, _constants(exercise, constants))
    return [_kept(got) for got in _results(exercise, answer, draws)]


def judge(name: str, collected: Any, seed: int, **constants: Any) -> Verdict:
    """Judge what ``collect`` kept: the second half of ``hidden``.

    Args:
        name: Name of the exercise.
        collected: From ``collect``, with the same seed; what has another form counts
            as no result.
        seed: Settles the inputs.
        **constants: Those of the variant; the public ones unless given.

    Returns:
        The share of draws with a right result, from 0 to 1, and the line to show.

    Raises:
        ValueError: If there is no such exercise or constant.
    """
    exercise = _find(name)
    named = _constants(exercise, constants)
    draws = _draws(exercise, seed, _HIDDEN, named)
    entries = collected if isinstance(collected, list) else []
    entries = [*entries, *[None] * len(draws)][: len(draws)]
    return _verdict(exercise, draws, [_restored(name, e) for e in entries], named)


def _public(exercise: Exercise) -> Callable:
    """Make the check of one exercise."""

    def check(answer: Any, **constants: Any) -> None:
        named = _constants(exercise, constants)
        draws = _draws(exercise, torch.Generator().seed(), _VISIBLE, named)
        results = _results(exercise, answer, draws)
        share, line = _verdict(exercise, draws, results, named)
        if share < 1:
            raise CheckFailed(line)
        print(f"✓ {line}")

    check.__name__ = check.__qualname__ = f"check_{exercise.name}"
    check.__doc__ = (
        f"Check {exercise.name}: {exercise.given}.\n\n"
        f"Args:\n    answer: The learner's function.\n"
        f"    **constants: Those of a variant, of {list(exercise.constants)}.\n\n"
        f"Raises:\n    CheckFailed: With the likely slip.\n"
    )
    return check


globals().update({f"check_{name}": _public(EXERCISES[name]) for name in EXERCISES})


def _told(constants: dict[str, Any]) -> str:
    """Write constants as a call would."""
    return ", ".join(f"{name}={value!r}" for name, value in constants.items())


def _short(value: Any) -> str:
    """Write a value as nested lists, numbers to four digits."""
    if isinstance(value, Tensor):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_short, value))}]"
    return f"{value + 0:.4g}" if isinstance(value, float) else repr(value)  # no -0


def _find(name: str) -> Exercise:
    """Return the exercise of the name, or say which there are."""
    if name not in EXERCISES:
        raise ValueError(f"{name!r} is no exercise. Use one of {sorted(EXERCISES)}.")
    return EXERCISES[name]


def _constants(exercise: Exercise, given: dict[str, Any]) -> dict[str, Any]:
    """Fill up the constants with the public ones, or refuse an unknown name."""
    public = {name: choices[0] for name, choices in exercise.constants.items()}
    if unknown := sorted(given.keys() - public.keys()):
        raise ValueError(
            f"{exercise.name} has no constant {', '.join(unknown)}. It has "
            f"{sorted(public)}."
        )
    return public | given


def _draws(
    exercise: Exercise, seed: int, sizes: tuple[int, ...], named: dict
) -> list[tuple]:
    """Draw inputs of each size; an exercise without inputs needs one draw."""
    generator = torch.Generator().manual_seed(seed)
    draws = [exercise.draw(generator, size, **named) for size in sizes]
    return draws if draws[0] else draws[:1]


def _results(exercise: Exercise, answer: Any, draws: list[tuple]) -> list:
    """Run the answer on each draw; after the first fault it is not run again."""
    results = []
    try:
        for inputs in draws:
            results.append(_run(exercise, answer, inputs))
    except CheckFailed as fault:
        results += [str(fault)] * (len(draws) - len(results))
    return results


def _run(exercise: Exercise, answer: Any, inputs: tuple) -> Tensor:
    """Run the answer and return plain numbers, or say what came instead."""
    name = exercise.name
    if inputs and not callable(answer):
        raise CheckFailed(
            f"{name}: the answer is {_kind(answer)}, but a function is checked. Hand "
            f"over its name, without brackets."
        )
    sink = _Sink(name)
    with warnings.catch_warnings(), redirect_stdout(sink), redirect_stderr(sink):
        warnings.simplefilter("ignore")
        try:
            # Copies: an answer may work in place and may not change the inputs here.
            got = answer(*copy.deepcopy(inputs)) if callable(answer) else answer
        except CheckFailed as flood:
            raise flood from None
        except NotImplementedError:
            raise CheckFailed(f"{name}: not done yet. Replace the stub.") from None
        except KeyboardInterrupt:
            raise CheckFailed(
                f"{name}: it was interrupted. Is there a loop without an end?"
            ) from None
        except BaseException as error:  # SystemExit too: the check lives on
            raise CheckFailed(
                f"{name}: it stopped with {_kind(error)}: {_words(error)}. Run it "
                f"alone on a small input to see where."
            ) from None
        return _plain(exercise, got, inputs)


class _Sink(io.TextIOBase):
    """Swallow what an answer prints, and stop it at a flood."""

    def __init__(self, name: str) -> None:
        self.name, self.count = name, 0

    def write(self, text: str) -> int:
        self.count += len(text)
        if self.count > _PRINTED:
            raise CheckFailed(
                f"{self.name}: it prints more than {_PRINTED:,} characters. Take the "
                f"print out of the loop."
            )
        return len(text)


def _plain(exercise: Exercise, got: Any, inputs: tuple) -> Tensor:
    """Turn a result into a bool, int64 or float64 tensor, or say what it is."""
    name = exercise.name
    try:
        seen = exercise.view(got, *inputs)
        seen = seen.copy() if isinstance(seen, np.ndarray) else seen  # or read-only
        seen = torch.as_tensor(seen).detach()
        shape, dtype, count = tuple(seen.shape), seen.dtype, seen.numel()
        plain = None
        if count <= _LARGEST and not dtype.is_complex:
            # By way of a list: what comes back is a plain tensor and nothing else.
            kind = torch.float64 if dtype.is_floating_point else torch.int64
            kind = torch.bool if dtype == torch.bool else kind
            values = seen.cpu().to_dense().tolist()
            plain = torch.tensor(values, dtype=kind).reshape(shape)
    except BaseException:  # whatever a class of the learner's may raise
        mend = "Is there a return?"
        if isinstance(got, list | tuple):
            mend = "torch.stack makes one tensor of a list of rows."
        raise CheckFailed(
            f"{name}: the result is {_kind(got)}, but numbers were expected: "
            f"{exercise.given}. {mend}"
        ) from None
    if dtype.is_complex:
        raise CheckFailed(
            f"{name}: the result is {dtype}, but real numbers were expected. Take "
            f".real, or torch.view_as_real for pairs."
        )
    if plain is None:
        raise CheckFailed(
            f"{name}: the result has shape {shape}, larger than any right one. Check "
            f"the axes."
        )
    return plain


def _kind(thing: Any) -> str:
    """Name the type of anything."""
    return type(thing).__name__


def _words(error: BaseException) -> str:
    """Put the message of an error on one short line."""
    try:
        text = " ".join(str(error).split())
    except BaseException:  # whatever a class of the learner's may raise
        text = "no message"
    return text if len(text) <= 200 else f"{text[:200]} …"


def _kept(got: Tensor | str) -> dict:
    """Write a result as plain data."""
    if isinstance(got, str):
        return {"fault": got}
    kind, shape = str(got.dtype).removeprefix("torch."), list(got.shape)
    return {"kind": kind, "shape": shape, "values": got.flatten().tolist()}


def _restored(name: str, entry: Any) -> Tensor | str:
    """Read what ``_kept`` wrote, or say that it is something else."""
    try:
        if "fault" in entry:
            return " ".join(entry["fault"].split())[:400]
        dtypes = {str(dtype).removeprefix("torch."): dtype for dtype in _KINDS}
        values = torch.tensor(entry["values"], dtype=dtypes[entry["kind"]])
        return values.reshape(entry["shape"])
    except Exception:  # it comes from a process of the learner's
        return f"{name}: the result could not be read. Does the code touch coursekit?"


def _verdict(
    exercise: Exercise, draws: list[tuple], results: list, named: dict
) -> Verdict:
    """Return the share of right results, and the line to show."""
    functions = {"": exercise.right, **exercise.conventions}
    gaps = {}
    for words, function in functions.items():
        wants = [_expected(exercise, function, inputs, named) for inputs in draws]
        pairs = zip(results, wants, strict=True)
        gaps[words] = [_gap(*pair, exercise.relative) for pair in pairs]
    hits = {w: [gap <= exercise.tolerance for gap in gaps[w]] for w in gaps}
    seen = max(hits, key=lambda words: sum(hits[words]))
    share = sum(hits[seen]) / len(draws)
    if share == 1:
        words = f" (convention seen: {seen})" if seen else ""
        return Verdict(
            share, f"{exercise.name}: {exercise.proved.format(**named)}{words}."
        )
    first = hits[seen].index(False)
    got, inputs = results[first], draws[first]
    if isinstance(got, str):
        return Verdict(share, got)
    want = _expected(exercise, functions[seen], inputs, named)
    broken = _broken(exercise, got, want, inputs, named)
    bound, missed = exercise.tolerance * len(draws), sum(gaps[seen])
    if inputs and want.is_floating_point() and missed < math.inf:
        bound = max(bound, _LIKELY * missed)
    slip = _likely(exercise, draws, results, named, bound)
    told = " ".join(filter(None, (broken, slip))) or _worst(got, want, inputs)
    return Verdict(share, f"{exercise.name}: {told}")


def _expected(
    exercise: Exercise, function: Callable, inputs: tuple, named: dict
) -> Tensor:
    """Run a function of the catalogue; it leaves its inputs as they are."""
    return _plain(exercise, function(*inputs, **named), inputs)


def _gap(got: Tensor | str, want: Tensor, relative: bool) -> float:
    """Return the largest difference; infinity where shape or kind differs."""
    if isinstance(got, str) or not _same_form(got, want):
        return math.inf
    got, want = got.double().reshape(want.shape), want.double()
    gap = (got - want).abs() / (want.abs() if relative else 1.0)
    gap[(got == want) | (got.isnan() & want.isnan())] = 0.0
    return gap.nan_to_num(nan=math.inf).max().item() if gap.numel() else 0.0


def _same_form(got: Tensor, want: Tensor) -> bool:
    """Compare shape and kind; one number may be written in several ways."""
    if want.dim() == 0:
        return got.numel() == 1 and got.dtype != torch.bool
    kinds = {got.dtype, want.dtype}
    whole_for_real = kinds == {torch.int64, torch.float64} and want.is_floating_point()
    return got.shape == want.shape and (len(kinds) == 1 or whole_for_real)


def _likely(
    exercise: Exercise, draws: list, results: list, named: dict, bound: float
) -> str:
    """Return the hint of the slip that is nearest, if one is within the bound."""
    public = _constants(exercise, {})
    slips = exercise.slips + (exercise.variant_slips if named != public else ())
    likely = [(slip.wrong, named, slip.hint.format(**named)) for slip in slips]
    if named != public:
        hint = f"It is right for {_told(public)}, but your card has others."
        likely.insert(0, (exercise.right, public, hint))
    nearest, least = "", bound
    for function, constants, hint in likely:
        missed = 0.0
        for inputs, got in zip(draws, results, strict=True):
            want = _expected(exercise, function, inputs, constants)
            missed += _gap(got, want, exercise.relative)
            if missed > least:
                break
        if missed <= bound and (missed < least or not nearest):
            nearest, least = hint, missed
    return nearest


def _broken(
    exercise: Exercise, got: Tensor, want: Tensor, inputs: tuple, named: dict
) -> str:
    """Say which of form, finiteness and properties does not hold, if one does not."""
    if want.dim() == 0 and got.numel() != 1:
        return f"the result has shape {tuple(got.shape)}, but one number is asked."
    if want.dim() and got.shape != want.shape:
        turned = sorted(got.shape) == sorted(want.shape)
        mend = "Check the order of the axes." if turned else "What is each axis for?"
        return (
            f"the result has shape {tuple(got.shape)}, but {tuple(want.shape)} was "
            f"expected. {mend}"
        )
    if not _same_form(got, want):
        return f"the result is {got.dtype}, but {_KINDS[want.dtype]}"
    if not got.double().isfinite().all():
        return (
            "the result holds NaN or infinity. Is there a division by 0, or a softmax "
            "over a row with nothing in it?"
        )
    got = got.reshape(want.shape).to(want.dtype)  # whole numbers may stand for real
    for hint, holds in exercise.properties:
        if not holds(got, *inputs, **named):
            return hint
    return ""


_KINDS = {
    torch.bool: "a mask is boolean. A comparison such as a <= b gives one.",
    torch.int64: "whole numbers were expected. Use .long() on an index.",
    torch.float64: "real numbers were expected. Use .float().",
}


def _worst(got: Tensor, want: Tensor, inputs: tuple) -> str:
    """Show the place of the largest difference, but not the answer to a question."""
    if not inputs:
        return f"{got.item():.6g} is not it. Work a smaller case by hand first."
    gap = (got.double().reshape(want.shape) - want.double()).abs()
    place = tuple(int(i) for i in torch.unravel_index(gap.argmax(), gap.shape))
    was, right = got.reshape(want.shape)[place].item(), want[place].item()
    where = f"at {place} it is" if place else "it is"
    return (
        f"{where} {was:.4g}, but {right:.4g} was expected. Compare a small case by "
        f"hand."
    )
