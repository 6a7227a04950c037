"""The argument checks: each lets its neighbour pass and says how to mend."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from coursekit import _require


def message_of(check, *arguments):
    """Return what a check says when it refuses."""
    with pytest.raises(ValueError, match="must|are a tensor") as refused:
        check(*arguments)
    return str(refused.value)


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (_require.at_least, 0),
        (_require.even, 7),
        (_require.positive, -2.0),
    ],
)
def test_each_message_names_the_argument_tells_its_value_and_offers_a_mend(
    check, value
):
    told = message_of(check, "d_model", value)
    assert told.startswith(f"d_model is {value}, but ")
    assert " Use " in told
    assert told.endswith(".")


@given(value=st.integers(-20, 20), least=st.integers(-3, 3))
def test_at_least_agrees_with_counting_up_from_the_least(value, least):
    counted_up = value in range(least, 100)
    if counted_up:
        _require.at_least("n", value, least)
    else:
        assert f"at least {least}" in message_of(_require.at_least, "n", value, least)


@given(value=st.integers(-20, 40))
def test_even_agrees_with_laying_features_out_in_pairs(value):
    if value > 0 and value == 2 * len(range(0, value - 1, 2)):
        _require.even("head_dim", value)
    else:
        message_of(_require.even, "head_dim", value)


@given(value=st.floats())
def test_positive_agrees_with_a_logarithm_that_exists(value):
    try:
        exists = math.isfinite(math.log(value))
    except ValueError:
        exists = False
    if exists:
        _require.positive("base", value)
    else:
        message_of(_require.positive, "base", value)


@given(
    shape=st.lists(st.integers(0, 3), min_size=0, max_size=4).map(tuple),
    wanted=st.lists(st.integers(0, 3), min_size=1, max_size=3).map(tuple),
)
def test_ends_with_agrees_with_comparing_the_axes_from_the_back(shape, wanted):
    fits = len(shape) >= len(wanted)
    for back in range(1, len(wanted) + 1):
        fits = fits and shape[-back] == wanted[-back]
    if fits:
        _require.ends_with("angles", torch.zeros(shape), wanted)
    else:
        told = message_of(_require.ends_with, "angles", torch.zeros(shape), wanted)
        assert str(wanted) in told
        assert str(shape) in told


@given(value=st.integers(1, 20), count=st.integers(1, 20))
def test_multiple_agrees_with_dealing_features_to_the_parts_in_turn(value, count):
    parts = [len(range(part, value, count)) for part in range(count)]
    if len(set(parts)) == 1:
        _require.multiple("d_model", value, "num_heads", count)
        return
    told = message_of(_require.multiple, "d_model", value, "num_heads", count)
    assert f"d_model is {value} and num_heads is {count}, " in told
    mend = int(told.split("Use d_model = ")[1].split(",")[0])
    assert mend > value
    _require.multiple("d_model", mend, "num_heads", count)


@pytest.mark.parametrize("value", [1, 2, np.int64(1), np.int32(5)])
def test_a_count_may_be_any_whole_number_of_python_or_numpy(value):
    _require.at_least("num_heads", value)


@pytest.mark.parametrize("value", [0, -1, 1.0, 2.5, "1", None, True])
def test_a_count_below_one_or_not_whole_is_refused(value):
    with pytest.raises(ValueError, match="whole number of at least 1. Use 1 or more"):
        _require.at_least("num_heads", value)


def test_the_least_itself_passes_and_one_below_is_refused():
    _require.at_least("length", 3, 3)
    with pytest.raises(ValueError, match="length is 2, .* at least 3. Use 3 or more"):
        _require.at_least("length", 2, 3)


@pytest.mark.parametrize(
    ("value", "mend"), [(1, "Use 2"), (3, "Use 2 or 4"), (7, "Use 6 or 8")]
)
def test_an_odd_width_is_refused_with_the_even_widths_beside_it(value, mend):
    _require.even("head_dim", value + 1)
    with pytest.raises(
        ValueError, match=f"head_dim is {value}, but features turn .* even. {mend}.$"
    ):
        _require.even("head_dim", value)


@pytest.mark.parametrize("value", [0, -2, 2.0])
def test_even_refuses_what_is_no_width_at_all(value):
    with pytest.raises(ValueError, match="whole number of at least 1"):
        _require.even("head_dim", value)


def test_neither_the_features_nor_their_parts_may_be_none_at_all():
    _require.multiple("d_model", 1, "num_heads", 1)
    with pytest.raises(ValueError, match="d_model is 0, .* at least 1"):
        _require.multiple("d_model", 0, "num_heads", 1)
    with pytest.raises(ValueError, match="num_heads is 0, .* at least 1"):
        _require.multiple("d_model", 1, "num_heads", 0)


@pytest.mark.parametrize("value", [5e-324, 1, 10_000.0, 1.7e308, np.float32(2)])
def test_any_finite_number_above_zero_is_positive(value):
    _require.positive("base", value)


@pytest.mark.parametrize("value", [0, 0.0, -1.0, math.inf, math.nan, True, "2", None])
def test_what_is_not_a_finite_number_above_zero_is_refused(value):
    with pytest.raises(ValueError, match=r"base is .* finite number above 0"):
        _require.positive("base", value)


def test_ends_with_names_what_is_no_tensor():
    _require.ends_with("key", torch.zeros(2, 3), (3,))
    with pytest.raises(ValueError, match=r"key is <class 'list'>, but .* \(3,\)"):
        _require.ends_with("key", [1, 2, 3], (3,))


def test_ends_with_shows_the_shape_found_and_the_shape_wanted():
    _require.ends_with("key", torch.zeros(4, 3, 2), (3, 2))
    with pytest.raises(ValueError, match=r"key has shape \(4, 2, 3\).*\(3, 2\).*order"):
        _require.ends_with("key", torch.zeros(4, 2, 3), (3, 2))


@pytest.mark.parametrize(
    "positions",
    [
        torch.arange(3),
        torch.arange(0),
        torch.zeros(2, 3),
        torch.zeros(3, dtype=torch.bfloat16),
        torch.zeros(3, dtype=torch.uint8),
    ],
)
def test_one_row_or_a_row_for_each_sequence_are_positions(positions):
    _require.positions("positions", positions)


@pytest.mark.parametrize(
    "positions",
    [
        torch.tensor(3),
        torch.zeros(1, 2, 3),
        torch.zeros(3, dtype=torch.bool),
        torch.zeros(3, dtype=torch.complex64),
        [0, 1, 2],
        3,
        None,
    ],
)
def test_what_is_not_one_or_two_axes_of_real_numbers_is_refused(positions):
    with pytest.raises(ValueError, match=r"positions is .*torch.arange\(length\)"):
        _require.positions("positions", positions)


def test_a_batch_of_rows_is_told_from_one_row():
    _require.rows("ids", torch.zeros(1, 3))
    with pytest.raises(ValueError, match=r"ids have shape \(3,\).*ids\[None\]"):
        _require.rows("ids", torch.zeros(3))


@pytest.mark.parametrize("shape", [(4,), (1, 4), (2, 4)])
def test_a_position_for_each_token_is_taken(shape):
    _require.a_position_each(torch.zeros(shape), torch.zeros(2, 4, 6))
    _require.a_position_each(torch.zeros(shape), torch.zeros(2, 3, 4, 6))


@pytest.mark.parametrize("shape", [(1,), (5,), (3, 4), (2, 1), (4, 2)])
def test_positions_that_would_broadcast_are_refused(shape):
    with pytest.raises(ValueError, match=r"each token has one position.*\(4,\)"):
        _require.a_position_each(torch.zeros(shape), torch.zeros(2, 4, 6))


def test_every_named_axis_is_compared():
    with pytest.raises(ValueError, match="key has shape"):
        _require.ends_with("key", torch.zeros(5, 4), (6, 4))
    _require.ends_with("key", torch.zeros(6, 4), (6, 4))
