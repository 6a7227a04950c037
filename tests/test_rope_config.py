"""What is read in a published config.json, and what is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coursekit.rope_config import read

HEADS = {"hidden_size": 512, "num_attention_heads": 8}
NESTED = {
    "head_dim": 32,
    "global_head_dim": 64,
    "rope_theta": 7.0,
    "rope_parameters": {
        "full_attention": {
            "partial_rotary_factor": 0.25,
            "rope_theta": 1e6,
            "rope_type": "proportional",
        },
        "sliding_attention": {"rope_type": "default", "rope_theta": None},
    },
}


def found(config, **how):
    return read(config, **how)[2]


# Properties


@given(st.sampled_from(["rope_type", "type"]), st.booleans(), st.booleans())
def test_the_older_and_newer_spellings_say_the_same(name, newer, inside):
    entry = {name: "linear", "factor": 4.0}
    config = HEADS | {"rope_parameters" if newer else "rope_scaling": entry}
    (entry if inside else config)["rope_theta"] = 5e5
    rope_type, keys, values = read(config)
    assert (rope_type, keys) == ("linear", {"factor": "factor"})
    assert (values["base"], values["factor"], values["dim"]) == (5e5, 4.0, 64)


def test_nothing_in_the_dictionary_is_changed():
    before = json.dumps(NESTED)
    read(NESTED, kind="full_attention")
    read(NESTED, kind="sliding_attention")
    assert json.dumps(NESTED) == before


def test_null_is_the_same_as_absent():
    nulls = {"head_dim": None, "rope_scaling": None, "rope_theta": None}
    assert read(HEADS | nulls) == read(HEADS)
    entry = {"rope_type": "yarn", "factor": 2.0}
    more = entry | {"beta_fast": None, "attention_factor": None, "type": None}
    assert read(HEADS | {"rope_scaling": more}) == read(HEADS | {"rope_scaling": entry})


# Widths


@pytest.mark.parametrize(
    ("config", "dim"),
    [
        (HEADS, 64),
        (HEADS | {"head_dim": 128}, 128),
        ({"head_dim": 128}, 128),
        (HEADS | {"partial_rotary_factor": 0.5}, 32),
        (HEADS | {"rope_parameters": {"partial_rotary_factor": 0.25}}, 16),
        ({"hidden_size": 6144, "num_attention_heads": 64, "rotary_pct": 0.25}, 24),
        (HEADS | {"head_dim": 192, "qk_rope_head_dim": 64}, 64),
        (
            HEADS
            | {
                "head_dim": 128,
                "qk_rope_head_dim": 64,
                "partial_rotary_factor": 0.5,
            },
            64,
        ),
        ({"n_embd": 4096, "n_head": 16, "rotary_dim": 64}, 64),
        (HEADS | {"head_dim": 128, "rotary_dim": 64}, 64),
    ],
)
def test_the_features_that_turn_are_counted(config, dim):
    assert found(config)["dim"] == dim


def test_the_share_inside_the_entry_comes_before_the_one_beside_it():
    config = HEADS | {"partial_rotary_factor": 0.5}
    config["rope_parameters"] = {"partial_rotary_factor": 0.25}
    assert found(config)["dim"] == 16


def test_proportional_keeps_the_whole_width_and_hands_on_the_share():
    values = found(NESTED, kind="full_attention")
    assert (values["dim"], values["rotated_share"]) == (64, 0.25)
    assert found(NESTED, kind="sliding_attention")["dim"] == 32


def test_the_text_part_is_found_in_a_config_with_pictures():
    inner = HEADS | {"rope_theta": 1e6}
    assert read({"text_config": inner, "vision_config": {}}) == read(inner)
    assert read(HEADS | {"text_config": {"head_dim": 8}}) == read(HEADS)


# Bases


@pytest.mark.parametrize(
    ("config", "base"),
    [
        (HEADS, 10_000.0),
        (HEADS | {"rope_theta": 5e5}, 5e5),
        (HEADS | {"rotary_emb_base": 10_000_000}, 10_000_000),
        (HEADS | {"rope_theta": 5e5, "rotary_emb_base": 3.0}, 5e5),
        (HEADS | {"rope_theta": 5e5, "rope_parameters": {"rope_theta": 1e6}}, 1e6),
    ],
)
def test_the_base_comes_from_the_entry_then_from_beside_it(config, base):
    assert found(config)["base"] == base


# Lengths and factors


def yarn(beside=(), **inside):
    return HEADS | dict(beside) | {"rope_scaling": {"type": "yarn"} | inside}


@pytest.mark.parametrize("rope_type", ["yarn", "longrope", "su"])
def test_no_factor_is_the_ratio_of_the_lengths_where_there_are_two(rope_type):
    lengths = {
        "max_position_embeddings": 131_072,
        "original_max_position_embeddings": 4096,
    }
    values = found(HEADS | lengths | {"rope_scaling": {"type": rope_type}})
    assert (values["factor"], values["trained_length"]) == (32.0, 4096)


def test_an_explicit_factor_wins_over_the_ratio():
    beside = {"max_position_embeddings": 131_072}
    config = yarn(beside, factor=4.0, original_max_position_embeddings=4096)
    assert found(config)["factor"] == 4.0


@pytest.mark.parametrize(
    ("beside", "inside"),
    [({}, {}), ({"max_position_embeddings": 64}, {})]
    + [
        (
            {"max_position_embeddings": 32},
            {"original_max_position_embeddings": 64},
        )
    ],
)
def test_no_factor_is_one_where_the_lengths_give_none(beside, inside):
    assert found(yarn(beside, **inside))["factor"] == 1.0


@pytest.mark.parametrize("rope_type", ["linear", "dynamic", "llama3", "proportional"])
def test_no_factor_is_one_for_every_other_type(rope_type):
    lengths = {"max_position_embeddings": 64, "original_max_position_embeddings": 16}
    values = found(HEADS | lengths | {"rope_scaling": {"type": rope_type}})
    assert values["factor"] == 1.0


@pytest.mark.parametrize(
    ("beside", "inside", "trained"),
    [(None, None, 64), (16, None, 16), (None, 8, 8), (16, 8, 16)],
)
def test_the_trained_length_is_the_original_one(beside, inside, trained):
    lengths = {
        "max_position_embeddings": 64,
        "original_max_position_embeddings": beside,
    }
    config = yarn(lengths, original_max_position_embeddings=inside)
    assert found(config)["trained_length"] == trained


# Kinds of attention


def test_a_key_beside_the_kinds_holds_for_each():
    config = HEADS | {"rope_parameters": {"rope_theta": 3.0, "a": {}, "b": {}}}
    assert found(config, kind="a")["base"] == 3.0
    own = {"rope_parameters": {"rope_theta": 3.0, "a": {"rope_theta": 5.0}, "b": {}}}
    assert found(HEADS | own, kind="a")["base"] == 5.0


def test_the_older_gemma_3_form_has_two_kinds():
    config = HEADS | {"rope_theta": 1e6, "rope_local_base_freq": 1e4}
    config["rope_scaling"] = {"rope_type": "linear", "factor": 8.0}
    assert read(config, kind="full_attention")[0] == "linear"
    rope_type, _, values = read(config, kind="sliding_attention")
    assert (rope_type, values["base"], values["factor"]) == ("default", 1e4, 1.0)


# Messages


@pytest.mark.parametrize("kind", [None, "local"])
def test_without_a_kind_of_the_config_the_message_names_them(kind):
    words = f"kind is {kind!r}.* full_attention and sliding_attention"
    with pytest.raises(ValueError, match=words):
        read(NESTED, kind=kind)
    gemma = HEADS | {"rope_local_base_freq": 1e4}
    with pytest.raises(ValueError, match=words):
        read(gemma, kind=kind)


def test_a_kind_where_there_is_one_entry_is_refused():
    with pytest.raises(ValueError, match=r"one entry for all\. Use kind=None"):
        read(HEADS, kind="full_attention")


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"hidden_size": 512},
        {"num_attention_heads": 8},
        {"hidden_size": 100, "num_attention_heads": 8},
        HEADS | {"partial_rotary_factor": 0},
        HEADS | {"partial_rotary_factor": 1.5},
    ],
)
def test_a_width_that_cannot_be_found_is_refused(config):
    with pytest.raises(ValueError, match="Add head_dim, or"):
        read(config)


def test_only_dictionaries_are_read():
    with pytest.raises(ValueError, match=r"config is \[\], .* json\.load"):
        read([])
    with pytest.raises(ValueError, match=r"rope_scaling is 4\.0"):
        read(HEADS | {"rope_scaling": 4.0})


def test_keys_are_named_as_in_the_file_beside_ours():
    entry = {"rope_type": "llama3", "low_freq_factor": 1.0, "strange": 2}
    _, keys, values = read(HEADS | {"rope_scaling": entry})
    assert keys == {"low_factor": "low_freq_factor", "strange": "strange"}
    assert values["low_factor"] == 1.0
