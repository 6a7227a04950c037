"""The catalogue: every slip is refused with its hint, every right answer accepted."""

import importlib
import re
from functools import partial
from itertools import combinations, permutations, product

import pytest
import torch

from coursekit import checks
from coursekit.attention import attention, causal_mask
from coursekit.slips import EXERCISES, STEMS
from coursekit.slips.exercise import Exercise, no_inputs, whole, wholes

PLANNED = 8  # stems; the totals are asked for when all are there
PARTS = [stem.__name__.rsplit(".", 1)[1] for stem in STEMS]
RIGHT = {
    name: answers
    for part in PARTS
    for name, answers in importlib.import_module(f"right_answers.{part}").RIGHT.items()
}
SLIPS = [(name, slip.name) for name in EXERCISES for slip in EXERCISES[name].slips]
OF_VARIANTS = [(n, s.name) for n in EXERCISES for s in EXERCISES[n].variant_slips]
ANSWERS = [(name, answer) for name in RIGHT for answer in RIGHT[name]]


def public(exercise):
    return {name: choices[0] for name, choices in exercise.constants.items()}


def variant(exercise, number):
    """Take the constants that are ``number`` places further in their lists."""
    return {
        name: choices[number % len(choices)]
        for name, choices in exercise.constants.items()
    }


def every_variant(exercise):
    choices = product(*exercise.constants.values())
    return [dict(zip(exercise.constants, values, strict=True)) for values in choices]


def handed_in(exercise, function, constants):
    """Make what a learner would hand over: the constants are written into it."""
    if exercise.draw is no_inputs:
        return function(**constants)
    return partial(function, **constants)


def check(name, answer, **constants):
    getattr(checks, f"check_{name}")(answer, **constants)


def refusal(name, answer, **constants):
    with pytest.raises(checks.CheckFailed) as failure:
        check(name, answer, **constants)
    return str(failure.value)


@pytest.mark.parametrize(("name", "slip_name"), SLIPS)
def test_a_slip_is_refused_with_its_own_hint(name, slip_name):
    exercise = EXERCISES[name]
    (slip,) = (s for s in exercise.slips if s.name == slip_name)
    for number in range(10):
        constants = variant(exercise, number // 5)
        answer = handed_in(exercise, slip.wrong, constants)
        told = refusal(name, answer, **constants)
        by_chance_public = number > 4 and "but your card has others" in told
        assert slip.hint.format(**constants) in told or by_chance_public
        assert "\n" not in told


@pytest.mark.parametrize(("name", "slip_name"), OF_VARIANTS)
def test_a_slip_of_variants_is_right_for_the_public_constants_alone(name, slip_name):
    exercise = EXERCISES[name]
    (slip,) = (s for s in exercise.variant_slips if s.name == slip_name)
    check(name, handed_in(exercise, slip.wrong, public(exercise)))
    hinted = []
    for constants in every_variant(exercise)[1:]:
        answer = handed_in(exercise, slip.wrong, constants)
        for _ in range(5):
            told = refusal(name, answer, **constants)
            hinted.append(slip.hint.format(**constants) in told)
            assert hinted[-1] or "but your card has others" in told, told
    assert any(hinted)


@pytest.mark.parametrize(("name", "slip_name"), SLIPS)
def test_a_slip_gets_less_than_half_of_the_hidden_points(name, slip_name, capsys):
    exercise = EXERCISES[name]
    (slip,) = (s for s in exercise.slips if s.name == slip_name)
    answer = handed_in(exercise, slip.wrong, public(exercise))
    try:
        points = checks.hidden(name, answer, seed=len(slip_name))
    except checks.CheckFailed:
        points = 0
    assert points < 0.5


@pytest.mark.parametrize(("name", "answer"), ANSWERS)
def test_a_right_answer_in_other_words_is_accepted(name, answer, capsys):
    exercise = EXERCISES[name]
    for number in range(4):
        constants = variant(exercise, number)
        check(name, handed_in(exercise, answer, constants), **constants)
        line = capsys.readouterr().out
        assert line.startswith(f"✓ {name}: ")
        assert line.count("\n") == 1


@pytest.mark.parametrize(("name", "answer"), ANSWERS)
def test_a_right_answer_gets_all_hidden_points(name, answer, capsys):
    exercise = EXERCISES[name]
    for seed in range(3):
        constants = variant(exercise, seed)
        answer_ = handed_in(exercise, answer, constants)
        assert checks.hidden(name, answer_, seed, **constants) == 1.0


@pytest.mark.parametrize("name", EXERCISES)
def test_the_reference_and_each_convention_are_accepted_and_named(name, capsys):
    exercise = EXERCISES[name]
    for number in range(10):
        constants = variant(exercise, number)
        check(name, handed_in(exercise, exercise.right, constants), **constants)
        proved = exercise.proved.format(**constants)
        assert capsys.readouterr().out == f"✓ {name}: {proved}.\n"
        for words, function in exercise.conventions.items():
            check(name, handed_in(exercise, function, constants), **constants)
            assert words in capsys.readouterr().out


@pytest.mark.parametrize("name", EXERCISES)
def test_no_two_functions_of_an_exercise_give_the_same_results(name):
    exercise = EXERCISES[name]
    functions = {"right": exercise.right, **exercise.conventions}
    functions |= {slip.name: slip.wrong for slip in exercise.slips}
    assert len(functions) == 1 + len(exercise.conventions) + len(exercise.slips)
    for number, constants in enumerate(every_variant(exercise)):
        draws = checks._draws(exercise, number, checks._VISIBLE, constants)
        results = {
            key: [checks._expected(exercise, f, inputs, constants) for inputs in draws]
            for key, f in functions.items()
        }
        for one, other in combinations(results, 2):
            pairs = zip(results[one], results[other], strict=True)
            gaps = [checks._gap(*pair, exercise.relative) for pair in pairs]
            assert max(gaps) > exercise.tolerance, (one, other, constants)


@pytest.mark.parametrize("name", EXERCISES)
def test_functions_of_the_catalogue_leave_their_inputs_as_they_are(name):
    exercise = EXERCISES[name]
    functions = [exercise.right, *exercise.conventions.values()]
    functions += [slip.wrong for slip in exercise.slips]
    constants = public(exercise)
    (inputs,) = checks._draws(exercise, 3, (0,), constants)
    before = str(inputs)
    for function in functions:
        function(*inputs, **constants)
        assert str(inputs) == before


@pytest.mark.parametrize("name", [n for n in EXERCISES if EXERCISES[n].constants])
def test_the_public_answer_does_not_pass_a_variant(name):
    exercise = EXERCISES[name]
    answer = handed_in(exercise, exercise.right, public(exercise))
    for constants in every_variant(exercise)[1:]:
        told = refusal(name, answer, **constants)
        assert "but your card has others" in told


@pytest.mark.parametrize("name", EXERCISES)
def test_every_property_holds_for_the_reference(name):
    exercise = EXERCISES[name]
    for seed in range(10):
        constants = variant(exercise, seed)
        sizes = checks._VISIBLE + checks._HIDDEN
        for inputs in checks._draws(exercise, seed, sizes, constants):
            got = checks._expected(exercise, exercise.right, inputs, constants)
            for hint, holds in exercise.properties:
                assert holds(got, *inputs, **constants), hint


@pytest.mark.parametrize("name", EXERCISES)
def test_some_slip_breaks_each_property(name):
    exercise = EXERCISES[name]
    constants = public(exercise)
    told = [
        refusal(name, handed_in(exercise, slip.wrong, constants))
        for slip in exercise.slips
    ]
    for hint, _ in exercise.properties:
        assert any(hint in line for line in told), hint


@pytest.mark.parametrize("name", EXERCISES)
def test_hidden_inputs_have_other_sizes_than_visible_ones(name):
    exercise = EXERCISES[name]
    constants = public(exercise)

    def sizes(draws):
        return [str([getattr(x, "shape", x) for x in inputs]) for inputs in draws]

    if exercise.draw is not no_inputs:
        visible = checks._draws(exercise, 1, checks._VISIBLE, constants)
        hidden = checks._draws(exercise, 1, checks._HIDDEN, constants)
        assert not set(sizes(visible)) & set(sizes(hidden))


def test_hints_are_plain_sentences():
    for exercise in EXERCISES.values():
        hints = [slip.hint for slip in exercise.slips]
        assert len(set(hints)) == len(hints)
        for hint in hints + [p.hint for p in exercise.properties]:
            assert hint[-1] in ".?", hint
            assert len(hint) <= 200, hint
            assert "\n" not in hint
        assert not exercise.proved.endswith(".")


def test_numbers_of_exercises_slips_and_right_answers(capsys):
    names = [exercise.name for stem in STEMS for exercise in stem.EXERCISES]
    assert len(set(names)) == len(names) == len(EXERCISES)
    assert set(RIGHT) == set(EXERCISES)
    for name, exercise in EXERCISES.items():
        assert len(exercise.slips) >= 5, name
        assert len(set(RIGHT[name])) >= 3, name
    for stem, part in zip(STEMS, PARTS, strict=True):
        assert {exercise.stem for exercise in stem.EXERCISES} == {part}
    with capsys.disabled():
        print(f"\n{len(EXERCISES)} exercises, {len(SLIPS)} slips, {len(ANSWERS)} right")
    if len(STEMS) == PLANNED:
        assert all(3 <= len(stem.EXERCISES) <= 5 for stem in STEMS)
        assert len(EXERCISES) >= 30
        assert len(SLIPS) >= 150


def test_every_exercise_is_a_value_with_its_check():
    for name, exercise in EXERCISES.items():
        assert isinstance(exercise, Exercise)
        documented = getattr(checks, f"check_{name}").__doc__
        assert exercise.given in documented
        assert re.search("Raises:\n    CheckFailed", documented)


def test_drawn_numbers_stay_within_their_bounds():
    generator = torch.Generator().manual_seed(0)
    assert {whole(generator, 2, 5) for _ in range(99)} == {2, 3, 4}
    row = wholes(generator, 3, 9, 6)
    assert sorted(row.tolist()) == [3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("place", [0, 2, 4])
def test_different_outputs_are_those_of_a_real_causal_layer(place):
    words = torch.randn(5, 8, generator=torch.Generator().manual_seed(1)).double()
    mask = causal_mask(torch.arange(5), torch.arange(5))
    seen = set()
    for order in permutations(range(5)):
        x = words[list(order)][None, None]
        output = attention(x, x, x.flip(-1), mask=mask).output[0, 0, place]
        seen.add(tuple((output * 1e6).round().long().tolist()))
    right = EXERCISES["different_outputs"].right
    assert len(seen) == right(length=5, place=place)
