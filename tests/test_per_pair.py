"""Each pair slowed by an amount of its own: YaRN, Llama 3, LongRoPE."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from coursekit.per_pair import (
    llama3_frequencies,
    longrope_attention_factor,
    longrope_frequencies,
    unscaled_frequencies,
    yarn_attention_factor,
    yarn_frequencies,
)
from coursekit.sinusoidal import pair_frequencies

dims = st.integers(1, 40).map(lambda pairs: 2 * pairs)
bases = st.floats(100.0, 1e7)
factors = st.floats(1.0, 64.0)
lengths = st.sampled_from([64, 512, 4096, 32_768])
YARN = {"factor": 4.0, "trained_length": 4096}
LONGROPE = {"short": [1.0, 1.5], "long": [2.0, 30.0], "trained_length": 8}


def turns_in_training(pair, dim, base, length):
    """Turns that pair number ``pair`` (any real number) makes in ``length``."""
    wavelength = 2 * math.pi * math.pow(base, 2 * pair / dim)
    return length / wavelength


def pair_that_turns(turns, dim, base, length):
    """Find by halving the index whose pair turns so often; later ones turn less."""
    low, high = -20.0 * dim, 20.0 * dim
    for _ in range(100):
        middle = (low + high) / 2
        more = turns_in_training(middle, dim, base, length) > turns
        low, high = (middle, high) if more else (low, middle)
    return low


def yarn_by_hand(dim, base, factor, length, fast, slow, rounded):
    start = pair_that_turns(fast, dim, base, length)
    stop = pair_that_turns(slow, dim, base, length)
    if rounded:
        start, stop = math.floor(start), math.ceil(stop)
    start, stop = max(start, 0), min(stop, dim - 1)
    rows = []
    for pair in range(dim // 2):
        own = 1 / math.pow(base, 2 * pair / dim)
        if pair <= start:
            part = 0.0
        elif pair >= stop:
            part = 1.0
        else:
            part = (pair - start) / (stop - start)
        rows.append((1 - part) * own + part * own / factor)
    return torch.tensor(rows, dtype=torch.float64)


def llama3_by_hand(dim, base, factor, low, high, length):
    rows = []
    for pair in range(dim // 2):
        own = 1 / math.pow(base, 2 * pair / dim)
        turns = turns_in_training(pair, dim, base, length)
        if turns < low:
            rows.append(own / factor)
        elif turns > high:
            rows.append(own)
        else:
            smooth = (turns - low) / (high - low)
            rows.append((1 - smooth) * own / factor + smooth * own)
    return torch.tensor(rows, dtype=torch.float64)


# Properties


@given(dims, bases, factors, lengths)
def test_every_pair_lies_between_kept_and_fully_slowed(dim, base, factor, length):
    plain = pair_frequencies(dim, base)
    for scale in (yarn_frequencies, llama3_frequencies):
        scaled = scale(dim, base, factor=factor, trained_length=length)
        assert (scaled <= plain).all()
        assert (scaled >= plain / factor * (1 - 1e-12)).all()


@pytest.mark.parametrize("scale", [yarn_frequencies, llama3_frequencies])
def test_a_fast_pair_stays_and_a_slow_pair_is_slowed_fully(scale):
    scaled = scale(128, 10_000.0, factor=8.0, trained_length=4096)
    ratio = scaled / pair_frequencies(128, 10_000.0)
    assert ratio[0] == 1
    torch.testing.assert_close(ratio[-1].item(), 1 / 8)
    assert (ratio.diff() <= 0).all()


@pytest.mark.parametrize("scale", [yarn_frequencies, llama3_frequencies])
def test_factor_one_changes_nothing(scale):
    plain = pair_frequencies(64, 500_000.0)
    scaled = scale(64, 500_000.0, factor=1.0, trained_length=8192)
    assert torch.equal(scaled, plain)


def test_yarn_ramp_moves_when_the_extended_length_is_given_for_the_trained_one():
    plain = pair_frequencies(128)
    right = yarn_frequencies(128, factor=40.0, trained_length=4096)
    wrong = yarn_frequencies(128, factor=40.0, trained_length=163_840)
    slowed = torch.tensor(1 / 40, dtype=torch.float64)
    assert torch.isclose(right / plain, slowed).sum() == 64 - 46
    assert not torch.isclose(wrong / plain, slowed).any()


def test_yarn_factor_for_32_times_is_applied_once_and_scores_get_its_square():
    factor = yarn_attention_factor(32)
    cos = torch.tensor([0.8], dtype=torch.float64)
    assert factor == pytest.approx(1.3466, abs=5e-5)
    assert factor**2 == pytest.approx(1.8133, abs=5e-5)
    assert torch.equal(cos * factor, cos * (0.1 * math.log(32) + 1))


def test_equal_scales_cancel():
    assert yarn_attention_factor(40, mscale=0.707, mscale_all_dim=0.707) == 1.0


def test_llama3_scaling_reaches_the_lowest_frequency():
    scaled = llama3_frequencies(128, 500_000.0, factor=8.0)
    plain = pair_frequencies(128, 500_000.0)
    assert plain[-1].item() == pytest.approx(2.455e-6, rel=1e-3)
    assert scaled[-1].item() == pytest.approx(3.069e-7, rel=1e-3)


def test_longrope_uses_one_list_for_all_positions_of_a_text():
    short = longrope_frequencies(4, **LONGROPE, length=8)
    long = longrope_frequencies(4, **LONGROPE, length=9)
    plain = pair_frequencies(4)
    torch.testing.assert_close(plain / short, torch.tensor([1.0, 1.5]).double())
    torch.testing.assert_close(plain / long, torch.tensor([2.0, 30.0]).double())


# Oracles


@given(
    dims,
    bases,
    factors,
    lengths,
    st.sampled_from([(32.0, 1.0), (16.0, 2.0), (4.0, 0.5), (1.5, 1.5)]),
    st.booleans(),
)
def test_yarn_equals_the_released_formula_pair_by_pair(
    dim, base, factor, length, betas, rounded
):
    fast, slow = betas
    want = yarn_by_hand(dim, base, factor, length, fast, slow, rounded)
    mine = yarn_frequencies(
        dim,
        base,
        factor=factor,
        trained_length=length,
        beta_fast=fast,
        beta_slow=slow,
        rounded=rounded,
    )
    # The halving finds an edge to 1e-12 pairs, and a flat ramp is .001 pairs wide.
    torch.testing.assert_close(mine, want, rtol=1e-8, atol=0)


@given(
    dims,
    bases,
    factors,
    lengths,
    st.sampled_from([(1.0, 4.0), (0.5, 32.0), (2.0, 3.0)]),
)
def test_llama3_equals_its_three_cases_pair_by_pair(dim, base, factor, length, limits):
    low, high = limits
    mine = llama3_frequencies(
        dim,
        base,
        factor=factor,
        low_factor=low,
        high_factor=high,
        trained_length=length,
    )
    want = llama3_by_hand(dim, base, factor, low, high, length)
    torch.testing.assert_close(mine, want, rtol=1e-11, atol=0)


@pytest.mark.parametrize("factor", [1, 1.5, 4.0, 40.0])
@pytest.mark.parametrize(
    ("mscale", "over"), [(1.0, 0.5), (0.707, 1.0), (None, 0.5), (0.5, None), (0.5, 0)]
)
def test_yarn_attention_factor_equals_the_formula(factor, mscale, over):
    want = 1 + math.log(factor) / 10
    if mscale and over:
        want = (10 + mscale * math.log(factor)) / (10 + over * math.log(factor))
    mine = yarn_attention_factor(factor, mscale=mscale, mscale_all_dim=over)
    assert mine == pytest.approx(want, rel=1e-14)


@pytest.mark.parametrize(("factor", "length"), [(32.0, 4096), (4, 2048), (1.5, 2)])
def test_longrope_attention_factor_equals_the_formula(factor, length):
    want = math.pow(math.log(length * factor, length), 0.5)
    mine = longrope_attention_factor(factor, trained_length=length)
    assert mine == pytest.approx(want, rel=1e-14)


@given(dims, bases, st.integers(1, 9))
def test_longrope_divides_pair_by_pair(dim, base, length):
    short = [1 + pair / 7 for pair in range(dim // 2)]
    long = [2 + pair * pair for pair in range(dim // 2)]
    mine = longrope_frequencies(
        dim, base, short=short, long=long, trained_length=5, length=length
    )
    for pair in range(dim // 2):
        divisor = long[pair] if length in (6, 7, 8, 9) else short[pair]
        want = 1 / (divisor * math.pow(base, 2 * pair / dim))
        assert mine[pair].item() == pytest.approx(want, rel=1e-12)


# Boundaries


def test_llama3_defaults_are_those_of_llama_3_1():
    spelled = llama3_by_hand(128, 10_000.0, 8.0, 1.0, 4.0, 8192)
    torch.testing.assert_close(llama3_frequencies(128, factor=8.0), spelled)


def test_yarn_slows_all_pairs_when_none_turns_once_in_training():
    plain = pair_frequencies(64)
    scaled = yarn_frequencies(64, factor=4.0, trained_length=2)
    torch.testing.assert_close(scaled, plain / 4)


def test_yarn_keeps_all_pairs_when_each_turns_often_in_training():
    plain = pair_frequencies(8, 2.0)
    scaled = yarn_frequencies(8, 2.0, factor=4.0, trained_length=10**6)
    assert torch.equal(scaled, plain)


def test_yarn_with_both_edges_on_one_pair_jumps_there():
    one_turn = math.ceil(2 * math.pi)  # after 7 positions the first pair turned once
    scaled = yarn_frequencies(4, factor=2.0, trained_length=one_turn - 1)
    torch.testing.assert_close(scaled, pair_frequencies(4) / torch.tensor([1.0, 2.0]))


def test_yarn_with_both_edges_between_two_pairs_jumps_there():
    betas = {"beta_fast": 1.0, "beta_slow": 1.0, "rounded": False}
    scaled = yarn_frequencies(128, **YARN, **betas)
    edge = pair_that_turns(1.0, 128, 10_000.0, 4096)
    plain = pair_frequencies(128)
    kept = torch.arange(64) < edge
    torch.testing.assert_close(scaled, plain.where(kept, plain / 4))


def test_gpt_oss_edges_differ_from_rounded_ones():
    gpt_oss = {"factor": 32.0, "trained_length": 4096}
    rounded = yarn_frequencies(64, 150_000.0, **gpt_oss)
    exact = yarn_frequencies(64, 150_000.0, **gpt_oss, rounded=False)
    assert not torch.allclose(rounded, exact, rtol=1e-3, atol=0)


def test_results_are_float64_and_one_pair_is_enough():
    for result in (
        unscaled_frequencies(2, 100.0),
        yarn_frequencies(2, **YARN),
        llama3_frequencies(2, factor=8.0),
        longrope_frequencies(2, short=[1], long=[2], trained_length=4, length=1),
    ):
        assert result.shape == (1,)
        assert result.dtype == torch.float64


# Messages


def test_the_width_is_even():
    for scale in (yarn_frequencies, llama3_frequencies):
        assert scale(6, **YARN).shape == (3,)
        with pytest.raises(ValueError, match="dim is 7, .* must be even"):
            scale(7, **YARN)
    with pytest.raises(ValueError, match="dim is 7"):
        longrope_frequencies(7, **LONGROPE, length=1)


@pytest.mark.parametrize("wrong", [0.25, 0, -1.0, math.nan, math.inf, True])
def test_the_factor_is_a_number_of_at_least_one(wrong):
    for scale in (yarn_frequencies, llama3_frequencies):
        with pytest.raises(ValueError, match=f"factor is {wrong}"):
            scale(8, factor=wrong, trained_length=64)
    with pytest.raises(ValueError, match=f"factor is {wrong}"):
        yarn_attention_factor(wrong)
    with pytest.raises(ValueError, match=f"factor is {wrong}"):
        longrope_attention_factor(wrong, trained_length=64)


def test_a_scale_given_as_a_factor_is_turned_around():
    with pytest.raises(ValueError, match=r"at least 1\. Use 4 if frequencies scale"):
        yarn_attention_factor(0.25)


@pytest.mark.parametrize("wrong", [0, -4, 2.5, True])
def test_lengths_count(wrong):
    with pytest.raises(ValueError, match=f"trained_length is {wrong}"):
        yarn_frequencies(8, factor=2.0, trained_length=wrong)
    with pytest.raises(ValueError, match=f"trained_length is {wrong}"):
        llama3_frequencies(8, factor=2.0, trained_length=wrong)
    with pytest.raises(ValueError, match=f"length is {wrong}"):
        longrope_frequencies(4, **LONGROPE, length=wrong)


def test_yarn_needs_pairs_that_slow_down_and_edges_in_order():
    assert yarn_frequencies(8, 1.5, **YARN).shape == (4,)
    for base in (1.0, 0.5):
        with pytest.raises(ValueError, match=f"base is {base}, .* base above 1"):
            yarn_frequencies(8, base, **YARN)
    assert yarn_frequencies(8, **YARN, beta_fast=2.0, beta_slow=2.0).shape == (4,)
    with pytest.raises(ValueError, match=r"a beta_fast of 2\.1 or more"):
        yarn_frequencies(8, **YARN, beta_fast=2.0, beta_slow=2.1)


@pytest.mark.parametrize("name", ["beta_fast", "beta_slow"])
def test_turns_are_above_zero(name):
    with pytest.raises(ValueError, match=f"{name} is 0"):
        yarn_frequencies(8, **YARN, **{name: 0})


def test_scales_are_not_negative():
    assert yarn_attention_factor(4, mscale=0.1, mscale_all_dim=0.1) == 1
    with pytest.raises(ValueError, match="mscale is -1"):
        yarn_attention_factor(4, mscale=-1, mscale_all_dim=1)
    with pytest.raises(ValueError, match="mscale_all_dim is -1"):
        yarn_attention_factor(4, mscale=1, mscale_all_dim=-1)


def test_llama3_limits_are_in_order():
    assert llama3_frequencies(8, factor=2, low_factor=1, high_factor=1.1).shape == (4,)
    with pytest.raises(ValueError, match=r"high_factor is 2, .* above 2\. Use 8"):
        llama3_frequencies(8, factor=2, low_factor=2, high_factor=2)
    for name in ("low_factor", "high_factor"):
        with pytest.raises(ValueError, match=f"{name} is 0"):
            llama3_frequencies(8, factor=2, **{name: 0})


@pytest.mark.parametrize("name", ["short", "long"])
def test_longrope_lists_have_a_divisor_for_each_pair(name):
    fits = {**LONGROPE, "length": 3}
    assert longrope_frequencies(4, **fits).shape == (2,)
    with pytest.raises(ValueError, match=f"{name} has 3 entries, .* has 2 pairs"):
        longrope_frequencies(4, **{**fits, name: [1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match=rf"{name}\[1\] is 0"):
        longrope_frequencies(4, **{**fits, name: [1.0, 0]})


def test_longrope_attention_needs_two_trained_positions():
    assert longrope_attention_factor(2, trained_length=2) == math.sqrt(2)
    with pytest.raises(ValueError, match="trained_length is 1"):
        longrope_attention_factor(2, trained_length=1)
