"""The checks: one line for whatever is handed over, and nothing else changes."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from coursekit import checks
from coursekit.attention import attention, causal_mask
from coursekit.sinusoidal import (
    pair_frequencies,
    shift_matrix,
    sinusoidal_encoding,
)
from coursekit.slips import EXERCISES
from coursekit.slips.exercise import Exercise, Slip, no_inputs

FUNCTIONS = [name for name in EXERCISES if EXERCISES[name].draw is not no_inputs]
NUMBERS = [name for name in EXERCISES if EXERCISES[name].draw is no_inputs]


class Untold(Exception):
    def __str__(self):
        raise RuntimeError


class Hostile:
    def __getattr__(self, name):
        raise SystemExit


class AlwaysEqual(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function in (torch.Tensor.__le__, torch.Tensor.__eq__, torch.allclose):
            return True
        return super().__torch_function__(function, types, args, kwargs or {})


def raising(error):
    def answer(*inputs):
        raise error

    return answer


def itself():
    loop = []
    loop.append(loop)
    return loop


def flooding(*inputs):
    for _ in range(1_000):
        print("x" * 10_000_000)


STRANGE_ANSWERS = [
    ("function is checked", None),
    ("function is checked", "sinusoid"),
    ("function is checked", torch.ones(2)),
    ("function is checked", (x for x in "ab")),
    ("not done yet", raising(NotImplementedError())),
    ("stopped with ZeroDivisionError", lambda *_: 1 / 0),
    ("stopped with TypeError", lambda: 0),
    ("stopped with SystemExit", raising(SystemExit(3))),
    ("stopped with GeneratorExit", raising(GeneratorExit())),
    ("stopped with MemoryError", raising(MemoryError())),
    ("stopped with Untold: no message", raising(Untold())),
    ("stopped with ValueError: one two", raising(ValueError("one\ntwo"))),
    ("x …", raising(ValueError("x" * 10_000))),
    ("without an end", raising(KeyboardInterrupt())),
    ("prints more than", flooding),
]

WIDE_AND_EMPTY = torch.sparse_coo_tensor(
    torch.zeros(2, 0), torch.zeros(0), (10**6, 10**6), check_invariants=True
)
STRANGE_RESULTS = [
    ("Is there a return", None),
    ("Is there a return", "table"),
    ("Is there a return", Ellipsis),
    ("Is there a return", NotImplemented),
    ("Is there a return", (x for x in "ab")),
    ("Is there a return", {1: 2}),
    ("Is there a return", print),
    ("Is there a return", Fraction(1, 3)),
    ("Is there a return", 10**400),
    ("Is there a return", Hostile()),
    ("Is there a return", np.array(["a", "b"])),
    ("Is there a return", np.array([None, None])),
    ("Is there a return", torch.ones(2, 3, device="meta")),
    ("torch.stack", [torch.ones(2), torch.ones(2)]),
    ("torch.stack", ["a", "b"]),
    ("torch.stack", itself()),
    ("torch.stack", [[1], [2, 3]]),
    ("real numbers were expected", torch.ones(2, dtype=torch.complex64)),
    ("real numbers were expected", 1j),
    ("larger than any right", torch.zeros(1).expand(10**10)),
    ("larger than any right", WIDE_AND_EMPTY),
    ("shape", torch.zeros(3)),
    ("shape", torch.zeros(0)),
    ("shape", torch.zeros(2, 3, 4, 5, 6)),
    ("shape", []),
    ("shape", range(3)),
    ("shape", torch.eye(3).to_sparse()),
    ("shape", torch.ones(3, dtype=torch.bfloat16, requires_grad=True)),
    ("shape", np.ones((3, 3))[::-1]),
]


def refusal(name, answer):
    with pytest.raises(checks.CheckFailed) as failure:
        getattr(checks, f"check_{name}")(answer)
    assert "\n" not in str(failure.value)
    assert len(str(failure.value)) < 600
    return str(failure.value)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_strange_answer_gets_a_plain_line(name):
    for words, answer in STRANGE_ANSWERS:
        assert words in refusal(name, answer)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_strange_result_gets_a_plain_line(name):
    for words, result in STRANGE_RESULTS:
        told = refusal(name, lambda *_, result=result: result)
        assert words in told
    assert "shape" in refusal(name, lambda *_: 7)


@pytest.mark.parametrize("name", NUMBERS)
def test_a_strange_number_gets_a_plain_line(name):
    for words, answer in STRANGE_ANSWERS[4:]:
        if words != "stopped with TypeError":
            assert words in refusal(name, answer)
    for words, result in STRANGE_RESULTS:
        if not callable(result):
            assert words in refusal(name, result)
        assert words in refusal(name, lambda result=result: result)
    assert "NaN" in refusal(name, math.nan)
    assert "NaN" in refusal(name, math.inf)
    assert "bool" in refusal(name, True)
    assert "is not it" in refusal(name, -12345)
    assert "is not it" in refusal(name, 0.5)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_that_are_not_finite_are_named(name):
    exercise = EXERCISES[name]

    def answer(*inputs):
        got = checks._expected(exercise, exercise.right, inputs, constants)
        return torch.full_like(got.double(), torch.nan)

    constants = checks._constants(exercise, {})
    told = refusal(name, answer)
    assert "NaN" in told or "boolean" in told or "whole numbers" in told


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_small_error_in_one_place_is_found_and_shown(name):
    exercise = EXERCISES[name]

    def answer(*inputs):
        got = checks._expected(exercise, exercise.right, inputs, constants)
        flat = got.view(-1)
        step = 1 if got.dtype == torch.int64 else 3 * exercise.tolerance
        wrong = 2 * step if exercise.relative else step
        flat[-1] = ~flat[-1] if got.dtype == torch.bool else flat[-1] + wrong
        return got

    constants = checks._constants(exercise, {})
    told = refusal(name, answer)
    broken = [p.hint for p in exercise.properties]
    assert "was expected. Compare a small case" in told or any(
        hint in told for hint in broken
    )


def test_a_number_may_be_written_in_several_ways(capsys):
    for name in NUMBERS:
        right = EXERCISES[name].right(**checks._constants(EXERCISES[name], {}))
        kinds = (lambda x: x, float, np.float64, torch.tensor, lambda x: [x])
        for kind in kinds:
            number = kind(right)
            getattr(checks, f"check_{name}")(number)
            getattr(checks, f"check_{name}")(lambda number=number: number)
        assert capsys.readouterr().out.count("✓") == 2 * len(kinds)


def test_an_answer_that_needs_gradients_is_accepted():
    scale = torch.ones((), requires_grad=True)
    checks.check_sinusoidal_encoding(lambda p, d: sinusoidal_encoding(p, d) * scale)


def test_a_read_only_or_turned_array_is_accepted():
    def answer(positions, d_model):
        table = sinusoidal_encoding(positions, d_model).numpy()[::-1].copy()[::-1]
        table.flags.writeable = False
        return table

    checks.check_sinusoidal_encoding(answer)


def test_a_tensor_that_claims_to_be_equal_is_refused():
    def answer(positions, d_model):
        return torch.zeros(len(positions), d_model).as_subclass(AlwaysEqual)

    refusal("sinusoidal_encoding", answer)


def test_a_table_learned_by_heart_does_not_pass():
    fixed = shift_matrix(2, 6)
    for _ in range(20):
        refusal("shift_matrix", lambda offset, d_model: fixed)


def test_a_check_leaves_the_learners_random_state_alone():
    torch.manual_seed(3)
    want = torch.rand(4)
    torch.manual_seed(3)
    checks.check_sinusoidal_encoding(sinusoidal_encoding)
    assert torch.equal(torch.rand(4), want)


def test_a_refusal_shows_one_line_in_a_notebook():
    shown = checks.CheckFailed("attention: wrong")._render_traceback_()
    assert shown == ["✗ attention: wrong"]


def test_an_answer_may_work_in_place_without_changing_the_oracle():
    def scaled_in_place(query, key, value):
        return (query.div_(query.shape[-1] ** 0.5) @ key.mT).softmax(-1) @ value

    def emptied(query, key, value):
        return query.zero_() @ key.zero_().mT @ value.zero_()

    checks.check_attention(scaled_in_place)
    refusal("attention", emptied)


def test_two_calls_of_a_check_draw_other_inputs():
    seen = []

    def watch(offset, d_model):
        seen.append((offset, d_model))
        return shift_matrix(offset, d_model)

    for _ in range(20):
        checks.check_shift_matrix(watch)
    assert len(set(seen)) > 10


def test_what_an_answer_prints_is_not_shown(capsys):
    def talking(dim):
        print("here", dim)
        return pair_frequencies(dim)

    checks.check_pair_frequencies(talking)
    assert capsys.readouterr().out.count("\n") == 1


def test_all_steps_of_attention_are_understood():
    checks.check_attention(attention)


def test_a_mask_of_numbers_is_told_that_masks_are_boolean():
    told = refusal("causal_mask", lambda q, k: causal_mask(q, k).float())
    assert "a mask is boolean" in told


def test_an_answer_near_a_slip_is_told_its_hint():
    def growing_in_float32(positions, d_model):
        turns = 10_000.0 ** (torch.arange(0, d_model, 2) / d_model)
        angles = positions[:, None].float() * turns
        return torch.stack((angles.sin(), angles.cos()), -1).flatten(1)

    for _ in range(10):
        told = refusal("sinusoidal_encoding", growing_in_float32)
        assert "minus sign of the exponent" in told


def test_an_unknown_constant_or_exercise_is_named():
    with pytest.raises(ValueError, match=r"has no constant bass. It has \['base'\]"):
        checks.check_pair_frequencies(pair_frequencies, bass=5.0)
    with pytest.raises(ValueError, match="'rhyme' is no exercise. Use one of"):
        checks.hidden("rhyme", pair_frequencies, 1)


def test_constants_of_a_variant_reach_check_hint_and_line(capsys):
    checks.check_pair_frequencies(lambda d: pair_frequencies(d, 500.0), base=500.0)
    assert "falling from 1, base 500." in capsys.readouterr().out
    with pytest.raises(checks.CheckFailed, match="it is 500 here"):
        checks.check_pair_frequencies(lambda d: pair_frequencies(d, 50.0), base=500.0)


def test_hidden_points_are_the_share_of_right_inputs(capsys):
    assert checks.hidden("pair_frequencies", pair_frequencies, seed=5) == 1.0
    assert capsys.readouterr().out.startswith("✓ pair_frequencies")
    widths = []

    def sometimes(dim):
        widths.append(dim)
        return pair_frequencies(dim, 10_000.0 if len(widths) < 4 else 50.0)

    assert checks.hidden("pair_frequencies", sometimes, seed=5) == 0.75
    assert capsys.readouterr().out.startswith("75% of the inputs right; pair_freq")
    with pytest.raises(checks.CheckFailed, match="not done yet"):
        checks.hidden("pair_frequencies", raising(NotImplementedError()), seed=5)
    assert len(set(widths)) == 4


def test_an_interrupted_answer_is_not_run_on_the_other_inputs():
    runs = []

    def endless(dim):
        runs.append(dim)
        raise KeyboardInterrupt

    with pytest.raises(checks.CheckFailed, match="without an end"):
        checks.hidden("pair_frequencies", endless, seed=5)
    assert len(runs) == 1


@pytest.mark.parametrize("name", EXERCISES)
def test_results_can_be_judged_in_another_process(name, capsys):
    exercise = EXERCISES[name]
    constants = checks._constants(exercise, {})

    def right(*inputs):
        return exercise.right(*inputs, **constants)

    kept = json.loads(json.dumps(checks.collect(name, right, seed=8)))
    share, line = checks.judge(name, kept, seed=8)
    assert share == 1.0
    assert line.startswith(f"{name}: ")
    kept = json.loads(json.dumps(checks.collect(name, lambda *_: math.nan, seed=8)))
    assert checks.judge(name, kept, seed=8).share == 0


FORGED = [
    *(None, 1.0, "right", {}, [], [None], [[]], ["x"], [{"kind": "float64"}]),
    [{"kind": "float64", "shape": [3], "values": [1.0]}],
    [{"kind": "float64", "shape": [-7, "a"], "values": [1.0]}],
    [{"kind": "complex64", "shape": [1], "values": [1.0]}],
    [{"kind": "float64", "shape": [2], "values": ["1", [2]]}],
    [{"kind": "int64", "shape": [1], "values": [10**40]}],
    [{"kind": ["int64"], "shape": [1], "values": [1]}],
    [{"fault": ["no", "words"]}],
    [{"fault": "one\nline " + "x" * 10_000}],
]


@pytest.mark.parametrize("forged", FORGED)
def test_a_forged_result_counts_nothing_and_stops_nothing(forged):
    share, line = checks.judge("pair_frequencies", forged, seed=8)
    assert share == 0
    assert "\n" not in line
    assert len(line) < 500


def test_a_result_more_than_was_asked_does_not_count():
    kept = checks.collect("pair_frequencies", pair_frequencies, seed=8)
    assert checks.judge("pair_frequencies", kept[:3], seed=8).share == 0.75
    assert checks.judge("pair_frequencies", [*kept, kept[0]], seed=8).share == 1


@pytest.mark.parametrize("name", sorted(EXERCISES))
def test_whole_numbers_of_the_right_shape_get_a_line_and_no_traceback(name):
    exercise = EXERCISES[name]
    named = checks._constants(exercise, {})

    def whole(*inputs):
        return checks._expected(exercise, exercise.right, inputs, named).long()

    answer = whole if exercise.draw is not no_inputs else whole()
    collected = checks.collect(name, answer, seed=1)
    assert "\n" not in checks.judge(name, collected, seed=1).line


def test_only_a_turned_shape_is_blamed_on_the_order_of_the_axes():
    queries, keys = torch.tensor([5, 8]), torch.arange(9)
    mask = keys <= queries[:, None]
    shapes = {"Check the order of the axes": mask.T, "What is each axis for": mask[0]}
    for words, got in shapes.items():
        exercise, want = EXERCISES["causal_mask"], mask
        told = checks._broken(exercise, got, want, (queries, keys), {"window": None})
        assert words in told


# A small case to compare with by eye


def test_a_known_case_is_the_right_result_on_one_line(capsys):
    checks.known("sinusoidal_encoding", torch.arange(2), 2)
    row = f"[{math.sin(1):.4g}, {math.cos(1):.4g}]"
    wanted = f"sinusoidal_encoding([0, 1], 2) = [[0, 1], {row}]\n"
    assert capsys.readouterr().out == wanted


def test_a_known_case_follows_the_constants(capsys):
    checks.known("pair_frequencies", 4, base=400.0)
    assert capsys.readouterr().out == "pair_frequencies(4) = [1, 0.05]\n"


def test_a_known_case_of_a_question_is_another_case(capsys):
    checks.known("times_read", length=3, row=1, texts=3)
    assert capsys.readouterr().out == "times_read(length=3, row=1, texts=3) = 2\n"


@pytest.mark.parametrize("constants", [{}, {"length": 48}, {"row": 34, "texts": 24000}])
def test_a_known_case_does_not_answer_the_question(constants):
    with pytest.raises(ValueError, match="is what is asked. Give a smaller case"):
        checks.known("times_read", **constants)


def test_a_known_case_of_nothing_is_refused():
    with pytest.raises(ValueError, match="'rhyme' is no exercise"):
        checks.known("rhyme")
    with pytest.raises(ValueError, match="has no constant bass"):
        checks.known("pair_frequencies", 4, bass=1.0)


def test_a_convention_must_be_kept_for_all_inputs(capsys):
    exercise = Exercise(
        name="twice",
        stem="none",
        given="(x) → 2x or -2x",
        right=lambda x: 2.0 * x,
        draw=lambda generator, size: (torch.randn(3, generator=generator),),
        conventions={"the mirror image": lambda x: -2.0 * x},
        slips=(Slip("none", "Nothing was done.", lambda x: x),),
        proved="doubled",
    )
    check = checks._public(exercise)
    check(lambda x: -2 * x)
    assert capsys.readouterr().out == (
        "✓ twice: doubled (convention seen: the mirror image).\n"
    )
    runs = []

    def either(x):
        runs.append(x)
        return 2 * x * (-1) ** len(runs)

    with pytest.raises(checks.CheckFailed, match="was expected"):
        check(either)
    with pytest.raises(checks.CheckFailed, match="Nothing was done"):
        check(lambda x: x)
