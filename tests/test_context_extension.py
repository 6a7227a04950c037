"""Other frequencies for RoPE, and the frequencies of published models."""

import copy
import math

import pytest
import torch
from golden_entries import all_entries, assert_met, entries_of, group_of, wave
from hypothesis import given
from hypothesis import strategies as st

from coursekit.context_extension import (
    Scaled,
    dynamic_ntk_frequencies,
    from_config,
    interpolated_frequencies,
    llama3_frequencies,
    longrope_attention_factor,
    longrope_frequencies,
    ntk_frequencies,
    proportional_frequencies,
    yarn_attention_factor,
    yarn_frequencies,
)
from coursekit.rope import adjacent_from_halves, apply_rope
from coursekit.sinusoidal import pair_frequencies

dims = st.integers(2, 40).map(lambda pairs: 2 * pairs)
bases = st.floats(100.0, 1e7)
factors = st.floats(1.0, 64.0)
DYNAMIC = {"factor": 2.0, "trained_length": 16}
HEADS = {"hidden_size": 4096, "num_attention_heads": 32}

LLAMA_3_1 = HEADS | {
    "max_position_embeddings": 131_072,
    "rope_theta": 500_000.0,
    "rope_scaling": {
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
        "rope_type": "llama3",
    },
}
QWEN_2_5 = {
    "hidden_size": 3584,
    "num_attention_heads": 28,
    "max_position_embeddings": 131_072,
    "rope_theta": 1_000_000.0,
    "rope_scaling": {
        "factor": 4.0,
        "original_max_position_embeddings": 32_768,
        "type": "yarn",
    },
}
CODE_LLAMA = HEADS | {
    "max_position_embeddings": 16_384,
    "rope_theta": 1_000_000,
    "rope_scaling": None,
}
GEMMA_3 = {
    "head_dim": 256,
    "hidden_size": 2560,
    "num_attention_heads": 8,
    "max_position_embeddings": 131_072,
    "rope_theta": 1_000_000.0,
    "rope_local_base_freq": 10_000.0,
    "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
}
GEMMA_3_NESTED = {
    "head_dim": 256,
    "max_position_embeddings": 131_072,
    "rope_parameters": {
        "full_attention": {
            "factor": 8.0,
            "rope_theta": 1_000_000.0,
            "rope_type": "linear",
        },
        "sliding_attention": {"rope_theta": 10_000.0, "rope_type": "default"},
    },
}
PHI_3 = {
    "hidden_size": 3072,
    "num_attention_heads": 32,
    "max_position_embeddings": 131_072,
    "original_max_position_embeddings": 4096,
    "rope_theta": 10_000.0,
    "rope_scaling": {
        "short_factor": [1 + pair / 50 for pair in range(48)],
        "long_factor": [1 + pair for pair in range(48)],
        "type": "su",
    },
}
DEEPSEEK = {
    "hidden_size": 2048,
    "num_attention_heads": 16,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "max_position_embeddings": 163_840,
    "rope_theta": 10_000,
    "rope_scaling": {
        "beta_fast": 32,
        "beta_slow": 1,
        "factor": 40,
        "mscale": 0.707,
        "mscale_all_dim": 0.5,
        "original_max_position_embeddings": 4096,
        "type": "yarn",
    },
}
GPT_OSS = {
    "head_dim": 64,
    "hidden_size": 2880,
    "num_attention_heads": 64,
    "max_position_embeddings": 131_072,
    "rope_theta": 150_000,
    "rope_scaling": {
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "factor": 32.0,
        "original_max_position_embeddings": 4096,
        "rope_type": "yarn",
        "truncate": False,
    },
}


def config_of(entry):
    """Write the dictionary that a model with an entry's settings would publish."""
    given = dict(entry["params"])
    beside = {
        "head_dim": given.pop("head_dim"),
        "rope_theta": given.pop("base"),
        "max_position_embeddings": given.pop("max_position_embeddings", None),
    }
    half = range(beside["head_dim"] // 2)
    if given["rope_type"] == "longrope":  # the entry holds these formulas as text
        given["short_factor"] = [round(1 + 0.02 * i, 4) for i in half]
        given["long_factor"] = [
            round(1 + 60 * (i / (len(half) - 1)) ** 2, 4) for i in half
        ]
    beside["rope_scaling"] = {
        key: value
        for key, value in given.items()
        if key not in ("seq_len", "positions", "layout")
    }
    return beside


def rotated_halves(x, angles, factor):
    """Turn features i and i + d / 2 as one complex number."""
    real, imaginary = x.double().chunk(2, dim=-1)
    turned = torch.complex(real, imaginary) * torch.polar(
        torch.full_like(angles, factor), angles
    )
    return torch.cat((turned.real, turned.imag), dim=-1)


def by_hand(dim, base, slow=lambda pair: 1.0):
    """List 1 / (slow · base^(2i / dim)) in plain floats."""
    rows = [1 / (slow(i) * math.pow(base, 2 * i / dim)) for i in range(dim // 2)]
    return torch.tensor(rows, dtype=torch.float64)


# Properties


@given(dims, bases, factors)
def test_interpolation_is_the_same_as_dividing_the_positions(dim, base, factor):
    position = 37.0
    slowed = position * interpolated_frequencies(dim, base, factor=factor)
    divided = position / factor * pair_frequencies(dim, base)
    torch.testing.assert_close(slowed, divided)


def test_interpolation_brings_neighbours_closer():
    angle = interpolated_frequencies(128, factor=8)[0]
    assert angle == 0.125
    assert angle.cos().item() == pytest.approx(0.992, abs=5e-4)


@given(dims, bases, factors)
def test_ntk_keeps_the_first_pair_and_interpolates_the_last(dim, base, factor):
    ratio = ntk_frequencies(dim, base, factor=factor) / pair_frequencies(dim, base)
    assert ratio[0] == 1
    assert ratio[-1].item() == pytest.approx(1 / factor, rel=1e-9)


def test_ntk_and_interpolation_multiply():
    ntk = ntk_frequencies(128, factor=4)
    ratio = (ntk / 4) / pair_frequencies(128)
    assert ratio[0].item() == pytest.approx(0.25)
    assert ratio[-1].item() == pytest.approx(0.0625)


def test_ntk_base_for_four_and_eight_times_the_length():
    for factor, base in ((4, 40_890), (8, 82_685)):
        want = pair_frequencies(128, base)
        torch.testing.assert_close(
            ntk_frequencies(128, factor=factor), want, rtol=1e-4, atol=0
        )


def test_dynamic_base_is_put_back_after_a_long_text():
    short, long, again = (
        dynamic_ntk_frequencies(8, **DYNAMIC, length=length) for length in (8, 40, 8)
    )
    assert torch.equal(short, again)
    assert not torch.equal(short, long)


@pytest.mark.parametrize("length", [1, 512, 2047, 2048])
def test_dynamic_ntk_changes_nothing_within_training(length):
    mine = dynamic_ntk_frequencies(64, factor=2, trained_length=2048, length=length)
    assert torch.equal(mine, pair_frequencies(64))


def test_proportional_pairs_turn_as_in_a_whole_head_and_the_rest_stands():
    mine = proportional_frequencies(16, rotated_share=0.5)
    assert torch.equal(mine[:4], pair_frequencies(16)[:4])
    assert torch.equal(mine[4:], torch.zeros(4, dtype=torch.float64))


def test_an_attention_factor_on_query_and_key_scales_the_scores_by_its_square():
    scaled = from_config(QWEN_2_5)
    angles = torch.arange(3).double()[:, None] * scaled.frequencies
    query, key = wave((3, 128), 0.37, 0.1), wave((3, 128), 0.53, 0.2)
    plain = rotated_halves(query, angles, 1.0) @ rotated_halves(key, angles, 1.0).T
    factor = scaled.attention_factor
    once = rotated_halves(query, angles, factor) @ rotated_halves(key, angles, factor).T
    torch.testing.assert_close(once, plain * factor**2)


@pytest.mark.parametrize(
    "config", [LLAMA_3_1, QWEN_2_5, PHI_3, DEEPSEEK, GEMMA_3, GEMMA_3_NESTED, GPT_OSS]
)
def test_from_config_leaves_the_dictionary_as_it_was(config):
    kind = "full_attention" if config in (GEMMA_3, GEMMA_3_NESTED) else None
    before = copy.deepcopy(config)
    first = from_config(config, length=40_000, kind=kind)
    again = from_config(config, length=40_000, kind=kind)
    assert config == before
    assert torch.equal(first.frequencies, again.frequencies)


def test_scaled_comes_apart_in_two():
    frequencies, attention_factor = from_config(CODE_LLAMA)
    assert isinstance(from_config(CODE_LLAMA), Scaled)
    assert frequencies.dtype == torch.float64
    assert attention_factor == 1.0


# Oracles


@given(dims, bases, factors)
def test_interpolation_and_ntk_equal_the_formula_pair_by_pair(dim, base, factor):
    mine = interpolated_frequencies(dim, base, factor=factor)
    torch.testing.assert_close(mine, by_hand(dim, base, lambda i: factor))
    # base'^(2i/d) is base^(2i/d) · factor^(2i/(d-2))
    want = by_hand(dim, base, lambda i: math.pow(factor, 2 * i / (dim - 2)))
    mine = ntk_frequencies(dim, base, factor=factor)
    torch.testing.assert_close(mine, want, rtol=1e-11, atol=0)


@given(dims, bases, factors, st.integers(1, 200))
def test_dynamic_ntk_equals_the_formula_pair_by_pair(dim, base, factor, length):
    trained = 50
    grown = factor * length / trained - (factor - 1) if length > trained else 1.0
    want = by_hand(dim, base, lambda i: math.pow(grown, 2 * i / (dim - 2)))
    mine = dynamic_ntk_frequencies(
        dim, base, factor=factor, trained_length=trained, length=length
    )
    torch.testing.assert_close(mine, want, rtol=1e-11, atol=0)


@given(dims, bases, factors, st.sampled_from([0, 0.25, 0.3, 0.5, 0.99, 1]))
def test_proportional_equals_the_formula_pair_by_pair(dim, base, factor, share):
    mine = proportional_frequencies(dim, base, rotated_share=share, factor=factor)
    turning = 0
    while 2 * (turning + 1) <= share * dim:
        turning += 1
    want = by_hand(dim, base, lambda i: factor if i < turning else math.inf)
    torch.testing.assert_close(mine, want, rtol=1e-12, atol=0)


@pytest.mark.parametrize("entry", entries_of("context_extension"))
def test_golden_numbers_are_met_from_a_config(entry):
    mine = from_config(config_of(entry), length=entry["params"].get("seq_len"))
    if group_of(entry) == "rope_scaling":
        assert_met(entry, "inv_freq", mine.frequencies)
        if "attention_factor" in entry["out"]:
            factor = torch.tensor(mine.attention_factor, dtype=torch.float64)
            assert_met(entry, "attention_factor", factor)
        return
    positions = torch.tensor(entry["params"]["positions"], dtype=torch.float64)
    angles = positions[:, None] * mine.frequencies
    shape = (1, 1, len(positions), entry["params"]["head_dim"])
    query = rotated_halves(wave(shape, 0.37, 0.1), angles, mine.attention_factor)
    key = rotated_halves(wave(shape, 0.53, 0.2), angles, mine.attention_factor)
    assert_met(entry, "q", query)
    assert_met(entry, "k", key)
    assert_met(entry, "scores", query @ key.mT)
    order = adjacent_from_halves(shape[-1])
    turned = apply_rope(wave(shape, 0.37, 0.1)[..., order], angles)
    turned = turned[..., order.argsort()] * mine.attention_factor
    assert_met(entry, "q", turned)


def test_every_golden_entry_of_this_module_is_asked_for():
    groups = [group_of(entry) for entry in all_entries()]
    assert groups.count("rope_scaling") == 16
    assert groups.count("rope_scaled_half") == 4
    assert len(entries_of("context_extension")) == 20


# Published models


def test_llama_3_1():
    mine = from_config(LLAMA_3_1)
    want = llama3_frequencies(128, 500_000.0, factor=8.0)
    assert torch.equal(mine.frequencies, want)
    assert mine.frequencies[-1].item() == pytest.approx(3.069e-7, rel=1e-3)
    assert mine.attention_factor == 1.0


def test_qwen_2_5_with_yarn():
    mine = from_config(QWEN_2_5)
    want = yarn_frequencies(128, 1e6, factor=4.0, trained_length=32_768)
    assert torch.equal(mine.frequencies, want)
    assert mine.attention_factor == yarn_attention_factor(4.0)


def test_code_llama_changes_the_base_alone():
    assert torch.equal(from_config(CODE_LLAMA).frequencies, pair_frequencies(128, 1e6))


@pytest.mark.parametrize("config", [GEMMA_3, GEMMA_3_NESTED])
def test_gemma_3_scales_its_full_attention_alone(config):
    full = from_config(config, kind="full_attention").frequencies
    sliding = from_config(config, kind="sliding_attention").frequencies
    assert torch.equal(full, interpolated_frequencies(256, 1e6, factor=8.0))
    assert torch.equal(sliding, pair_frequencies(256, 1e4))


@pytest.mark.parametrize(("length", "used"), [(None, 0), (4096, 0), (4097, 1)])
def test_phi_3_switches_its_list_and_keeps_its_factor(length, used):
    lists = PHI_3["rope_scaling"]
    mine = from_config(PHI_3, length=length)
    want = longrope_frequencies(
        96,
        short=lists["short_factor"],
        long=lists["long_factor"],
        trained_length=4096,
        length=(1, 4097)[used],
    )
    assert torch.equal(mine.frequencies, want)
    want = longrope_attention_factor(32, trained_length=4096)
    assert mine.attention_factor == want


def test_deepseek_turns_its_own_features_and_divides_its_scales():
    mine = from_config(DEEPSEEK)
    want = yarn_frequencies(64, factor=40, trained_length=4096)
    assert torch.equal(mine.frequencies, want)
    ratio = (0.0707 * math.log(40) + 1) / (0.05 * math.log(40) + 1)
    assert mine.attention_factor == pytest.approx(ratio, rel=1e-14)


def test_gpt_oss_does_not_round_the_edges():
    want = yarn_frequencies(
        64, 150_000.0, factor=32.0, trained_length=4096, rounded=False
    )
    assert torch.equal(from_config(GPT_OSS).frequencies, want)


def test_betas_of_a_config_arrive():
    scaling = QWEN_2_5["rope_scaling"] | {"beta_fast": 16, "beta_slow": 2}
    want = yarn_frequencies(
        128, 1e6, factor=4, trained_length=32_768, beta_fast=16, beta_slow=2
    )
    mine = from_config(QWEN_2_5 | {"rope_scaling": scaling})
    assert torch.equal(mine.frequencies, want)


def test_low_and_high_limits_of_a_config_arrive():
    limits = {"low_freq_factor": 2.0, "high_freq_factor": 3.0}
    scaling = LLAMA_3_1["rope_scaling"] | limits
    mine = from_config(LLAMA_3_1 | {"rope_scaling": scaling})
    want = llama3_frequencies(128, 5e5, factor=8.0, low_factor=2.0, high_factor=3.0)
    assert torch.equal(mine.frequencies, want)


# Boundaries


@pytest.mark.parametrize("length", [2048, 2049])
def test_dynamic_ntk_from_a_config_starts_one_past_the_trained_length(length):
    config = {
        "head_dim": 64,
        "max_position_embeddings": 2048,
        "rope_scaling": {"type": "dynamic", "factor": 2.0},
    }
    plain = from_config(config).frequencies
    assert torch.equal(plain, pair_frequencies(64))
    mine = from_config(config, length=length).frequencies
    assert torch.equal(mine, plain) == (length == 2048)


def test_an_explicit_attention_factor_wins():
    for config in (QWEN_2_5, PHI_3, DEEPSEEK):
        scaling = config["rope_scaling"] | {"attention_factor": 2}
        mine = from_config(config | {"rope_scaling": scaling})
        assert mine.attention_factor == 2.0
        assert torch.equal(mine.frequencies, from_config(config).frequencies)


@pytest.mark.parametrize("rope_type", ["linear", "ntk", "dynamic", "llama3"])
def test_no_factor_is_one(rope_type):
    config = HEADS | {"max_position_embeddings": 64}
    mine, want = (
        from_config(config | {"rope_scaling": {"type": rope_type, "factor": factor}})
        for factor in (None, 1.0)
    )
    assert torch.equal(mine.frequencies, want.frequencies)


def test_the_last_two_pairs_are_the_least_for_ntk():
    assert ntk_frequencies(4, factor=2).shape == (2,)
    with pytest.raises(ValueError, match="dim is 2, .* at least 4"):
        ntk_frequencies(2, factor=2)
    with pytest.raises(ValueError, match="dim is 2, .* at least 4"):
        dynamic_ntk_frequencies(2, **DYNAMIC, length=1)


# Messages


@pytest.mark.parametrize("wrong", [0.5, 0, -2.0, math.nan, math.inf])
def test_the_factor_is_a_number_of_at_least_one(wrong):
    for scale in (interpolated_frequencies, ntk_frequencies):
        assert scale(8, factor=1).shape == (4,)
        with pytest.raises(ValueError, match=f"factor is {wrong}"):
            scale(8, factor=wrong)
    with pytest.raises(ValueError, match=f"factor is {wrong}"):
        dynamic_ntk_frequencies(8, factor=wrong, trained_length=16, length=8)
    with pytest.raises(ValueError, match=f"factor is {wrong}"):
        proportional_frequencies(8, rotated_share=0.5, factor=wrong)


def test_the_width_is_even_and_the_base_above_zero():
    for scale in (interpolated_frequencies, ntk_frequencies):
        with pytest.raises(ValueError, match="dim is 7, .* must be even"):
            scale(7, factor=2)
        with pytest.raises(ValueError, match="base is 0"):
            scale(8, 0, factor=2)
    with pytest.raises(ValueError, match="dim is 7, .* must be even"):
        proportional_frequencies(7, rotated_share=0.5)
    with pytest.raises(ValueError, match="dim is 9, .* must be even"):
        from_config({"head_dim": 9})


@pytest.mark.parametrize("name", ["trained_length", "length"])
def test_lengths_count(name):
    with pytest.raises(ValueError, match=f"{name} is 0"):
        dynamic_ntk_frequencies(8, **{**DYNAMIC, "length": 1, name: 0})
    with pytest.raises(ValueError, match=r"length is 0"):
        from_config(CODE_LLAMA, length=0)


@pytest.mark.parametrize("wrong", [-0.1, 1.1, math.nan])
def test_a_share_is_a_part(wrong):
    with pytest.raises(ValueError, match=f"rotated_share is {wrong}"):
        proportional_frequencies(8, rotated_share=wrong)


def test_an_unknown_type_names_the_known_ones():
    config = HEADS | {"rope_scaling": {"rope_type": "mrope"}}
    with pytest.raises(ValueError, match="'mrope', .* default, linear, ntk, dynamic"):
        from_config(config)


@pytest.mark.parametrize(
    ("rope_type", "key"),
    [
        ("default", "factor"),
        ("linear", "attention_factor"),
        ("linear", "low_freq_factor"),
        ("dynamic", "alpha"),
        ("yarn", "long_factor"),
        ("yarn", "llama_4_scaling_beta"),
        ("longrope", "long_mscale"),
    ],
)
def test_a_key_that_may_change_the_numbers_is_not_passed_over(rope_type, key):
    scaling = {"rope_type": rope_type, key: 2.0}
    with pytest.raises(ValueError, match=f"^{key}: not understood .* {rope_type!r}"):
        from_config(HEADS | {"rope_scaling": scaling})


@pytest.mark.parametrize("key", ["rope_ratio", "global_rope_theta", "use_dynamic_ntk"])
def test_a_key_beside_the_entry_that_changes_the_numbers_is_refused(key):
    assert from_config(HEADS | {key: None}).frequencies.shape == (64,)
    with pytest.raises(ValueError, match=f"^{key}: not understood"):
        from_config(HEADS | {key: 500})


def test_what_a_type_needs_is_named_as_in_the_file():
    scaling = {"rope_type": "longrope", "original_max_position_embeddings": 64}
    with pytest.raises(ValueError, match="no short_factor and no long_factor"):
        from_config(HEADS | {"rope_scaling": scaling})
    with pytest.raises(ValueError, match="no original_max_position_embeddings"):
        from_config(HEADS | {"rope_scaling": {"type": "yarn", "factor": 2.0}})


def test_longrope_lists_of_the_wrong_length_are_refused():
    with pytest.raises(ValueError, match="short has 48 entries, .* has 64 pairs"):
        from_config(PHI_3 | {"head_dim": 128})


def test_an_attention_factor_is_above_zero():
    scaling = QWEN_2_5["rope_scaling"] | {"attention_factor": 0}
    with pytest.raises(ValueError, match="attention_factor is 0"):
        from_config(QWEN_2_5 | {"rope_scaling": scaling})
