"""Typical wrong answers, each with the hint meant for it: one catalogue, three uses.

A check compares a failing answer with the slips of its exercise and says which one it
looks like; the tests of the checks try every slip; a bug hunt takes its faults here.
Each stem has its module, with a tuple ``EXERCISES``; the types are in ``exercise``.
"""

from coursekit.slips import (
    alibi,
    attention,
    context_extension,
    extrapolation,
    learned,
    relative,
    rope,
    sinusoidal,
)
from coursekit.slips.exercise import Exercise

STEMS = (
    attention,
    sinusoidal,
    learned,
    relative,
    rope,
    alibi,
    extrapolation,
    context_extension,
)

EXERCISES: dict[str, Exercise] = {
    exercise.name: exercise for stem in STEMS for exercise in stem.EXERCISES
}
"""Each exercise by the name of the function that the learner writes."""
