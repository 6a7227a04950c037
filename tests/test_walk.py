"""The walk: each stage named, each door in its place, each step recomputed."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from coursekit.position import METHODS, NoPosition, Sinusoidal
from coursekit.walk import SENTENCE, Walk, stage_shapes, walk

STAGES = [
    "tokens",
    "ids",
    "embeddings",
    "positioned",
    "query",
    "key",
    "value",
    "rotated_query",
    "rotated_key",
    "scores",
    "logits",
    "weights",
    "output",
]

words = st.sampled_from(["a", "dog", "bites", "the", "man", "."])
texts = st.lists(words, min_size=1).map(" ".join)


class Doors(NoPosition):
    """Open all three doors at once, each with a change that is easy to see."""

    def embed(self, x, positions):
        return x + positions.unsqueeze(-1)

    def rotate(self, x, positions):
        return x * (1 + positions.unsqueeze(-1))

    def bias(self, query, query_positions, key_positions):
        self.query = query
        return 10 * query_positions[:, None] + key_positions.float()


# Properties


def test_the_stages_have_the_names_of_the_course_in_their_order():
    assert list(Walk._fields) == STAGES


@given(text=texts)
def test_no_position_changes_nothing_at_any_door(text):
    steps = walk(text, NoPosition())
    assert torch.equal(steps.positioned, steps.embeddings)
    assert torch.equal(steps.rotated_query, steps.query)
    assert torch.equal(steps.rotated_key, steps.key)
    assert torch.equal(steps.logits, steps.scores)


def test_the_two_words_the_are_equal_without_positions_and_differ_with_them():
    plain, told = walk(SENTENCE, NoPosition()), walk(SENTENCE, Sinusoidal())
    assert plain.tokens[0] == plain.tokens[3] == "the"
    for stage in ("embeddings", "positioned", "output"):
        first, second = getattr(plain, stage)[0, [0, 3]]
        assert_close(first, second)
    for stage in ("query", "key", "value", "scores", "weights"):
        first, second = getattr(plain, stage)[0][:, [0, 3]].unbind(1)
        assert_close(first, second)
    assert torch.equal(told.embeddings, plain.embeddings)
    for stage in ("positioned", "output"):
        first, second = getattr(told, stage)[0, [0, 3]]
        assert (first - second).abs().max() > 0.1


def test_another_order_of_the_words_only_reorders_the_walk_without_positions():
    order = [4, 3, 2, 1, 0]
    reordered = "man the bites dog the"
    one, other = (walk(text, NoPosition()) for text in (SENTENCE, reordered))
    assert torch.equal(other.embeddings, one.embeddings[:, order])
    assert_close(other.output, one.output[:, order])
    one, other = (walk(text, Sinusoidal()) for text in (SENTENCE, reordered))
    assert torch.equal(other.embeddings, one.embeddings[:, order])
    assert (other.output - one.output[:, order]).abs().max() > 0.1


def test_the_method_is_all_that_differs_between_two_walks_of_one_seed():
    plain, told = walk(SENTENCE, NoPosition()), walk(SENTENCE, Sinusoidal())
    assert torch.equal(told.ids, plain.ids)
    assert torch.equal(told.embeddings, plain.embeddings)
    assert not torch.allclose(told.weights, plain.weights)


def test_the_same_seed_walks_the_same_way_and_another_seed_another():
    one, again = (walk(SENTENCE, Sinusoidal(), seed=3) for _ in range(2))
    other = walk(SENTENCE, Sinusoidal(), seed=4)
    for stage in STAGES[2:]:
        assert torch.equal(getattr(one, stage), getattr(again, stage))
        assert not torch.allclose(getattr(one, stage), getattr(other, stage))
    default, zero = walk(SENTENCE, NoPosition()), walk(SENTENCE, NoPosition(), seed=0)
    assert torch.equal(default.output, zero.output)


def test_a_walk_leaves_the_global_random_state_alone():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    walk(SENTENCE, NoPosition(), seed=9)
    assert torch.equal(torch.get_rng_state(), before)


def test_embeddings_have_features_of_size_one():
    text = " ".join(f"word{index}" for index in range(400))
    features = walk(text, NoPosition(), d_model=64).embeddings
    # The standard deviation of 25,600 draws is known to 0.5 %.
    assert features.std().item() == pytest.approx(1.0, rel=0.02)
    assert features.mean().item() == pytest.approx(0.0, abs=0.02)


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_can_be_walked(name):
    position = METHODS[name](d_model=16, num_heads=2, max_length=8)
    steps = walk(SENTENCE, position)
    assert steps.output.shape == (1, 5, 16)
    assert torch.isfinite(steps.output).all()


# Oracles


@given(
    text=texts,
    heads=st.integers(1, 3),
    head_dim=st.integers(1, 4),
    seed=st.integers(0, 99),
)
def test_each_stage_agrees_with_loops_over_the_stages_before(
    text, heads, head_dim, seed
):
    width = heads * head_dim
    doors = Doors()
    steps = walk(text, doors, d_model=width, num_heads=heads, seed=seed)
    tokens = text.split()
    length, distinct = len(tokens), sorted(set(tokens))
    assert steps.tokens == tokens
    assert steps.ids.tolist() == [distinct.index(token) for token in tokens]

    generator = torch.Generator().manual_seed(seed)
    table = torch.randn(len(distinct), width, generator=generator).double()
    maps = torch.randn(3, width, width, generator=generator).double()
    maps = maps / math.sqrt(width)
    want = torch.stack([table[index] for index in steps.ids.tolist()])[None]
    assert_close(steps.embeddings.double(), want, atol=1e-6, rtol=1e-6)
    counted = torch.arange(length)[None, :, None]
    assert torch.equal(steps.positioned, steps.embeddings + counted)

    for name, matrix in zip(("query", "key", "value"), maps, strict=True):
        want = torch.einsum("bld,de->ble", steps.positioned.double(), matrix)
        want = torch.stack(want.split(head_dim, dim=-1), dim=1)
        have = getattr(steps, name).double()
        assert_close(have, want, atol=1e-4, rtol=1e-4)  # float32 sums

    times = 1 + torch.arange(length)[None, None, :, None]
    assert torch.equal(steps.rotated_query, steps.query * times)
    assert torch.equal(steps.rotated_key, steps.key * times)
    assert torch.equal(doors.query, steps.rotated_query)
    check_scores_to_output(steps, heads, head_dim)


def check_scores_to_output(steps, heads, head_dim):
    """Recompute the last four stages of one walk in float64."""
    query, key, value = (
        x[0].double() for x in (steps.rotated_query, steps.rotated_key, steps.value)
    )
    length = query.shape[1]
    row = torch.arange(length, dtype=torch.float64)
    for head in range(heads):
        scores = torch.einsum("qd,kd->qk", query[head], key[head]) / math.sqrt(head_dim)
        # Sums are float32, of terms as large as the longest query times key.
        unit = 1e-6 * (1 + query[head].norm() * key[head].norm()).item()
        assert_close(steps.scores[0, head].double(), scores, atol=unit, rtol=0)
        bias = 10 * row[:, None] + row
        logits = steps.scores[0, head].double() + bias
        assert_close(steps.logits[0, head].double(), logits, atol=1e-4, rtol=1e-6)
        weights = torch.softmax(steps.logits[0, head].double(), dim=1)
        assert_close(steps.weights[0, head].double(), weights, atol=1e-5, rtol=1e-4)
        output = steps.weights[0, head].double() @ value[head]
        part = slice(head * head_dim, (head + 1) * head_dim)
        assert_close(steps.output[0, :, part].double(), output, atol=1e-4, rtol=1e-4)


def test_the_shapes_told_are_those_of_the_stages():
    steps = walk(SENTENCE, Sinusoidal(), d_model=12, num_heads=3)
    told = stage_shapes(steps)
    by_hand = {
        "tokens": "(5,)",
        "ids": "(5,)",
        "embeddings": "(1, 5, 12)",
        "positioned": "(1, 5, 12)",
        "query, key": "(1, 3, 5, 4)",
        "rotated": "(1, 3, 5, 4)",
        "scores": "(1, 3, 5, 5)",
        "logits": "(1, 3, 5, 5)",
        "weights": "(1, 3, 5, 5)",
        "output": "(1, 5, 12)",
    }
    assert list(told.items()) == list(by_hand.items())


def test_the_sentence_of_the_course_has_one_word_twice():
    assert SENTENCE.split() == ["the", "dog", "bites", "the", "man"]


# Boundaries


def test_one_token_attends_to_itself():
    steps = walk("dog", Sinusoidal())
    assert torch.equal(steps.weights, torch.ones(1, 2, 1, 1))
    value = steps.value.transpose(1, 2).flatten(-2)
    assert_close(steps.output, value)
    assert stage_shapes(steps)["scores"] == "(1, 2, 1, 1)"


def test_sizes_are_sixteen_features_and_two_heads_unless_given():
    steps = walk("dog", NoPosition())
    assert steps.embeddings.shape == (1, 1, 16)
    assert steps.query.shape == (1, 2, 1, 8)
    assert walk("dog", NoPosition(), d_model=3, num_heads=3).query.shape == (1, 3, 1, 1)


def test_all_stages_are_float32():
    for stage in walk(SENTENCE, Sinusoidal())[2:]:
        assert stage.dtype == torch.float32


# Messages


@pytest.mark.parametrize("text", ["", "  \n"])
def test_a_text_without_a_token_is_refused(text):
    assert walk(".", NoPosition()).tokens == ["."]
    with pytest.raises(
        ValueError, match="number of tokens in text is 0, .* at least 1"
    ):
        walk(text, NoPosition())


def test_heads_that_do_not_divide_the_width_are_refused():
    walk("dog", NoPosition(), d_model=16, num_heads=4)
    with pytest.raises(ValueError, match="not split into 3 heads.*multiple"):
        walk("dog", NoPosition(), d_model=16, num_heads=3)


@pytest.mark.parametrize("width", [0, -4, 2.0])
def test_a_width_that_counts_nothing_is_refused(width):
    walk("dog", NoPosition(), d_model=1, num_heads=1)
    with pytest.raises(ValueError, match=f"d_model is {width}, .* at least 1"):
        walk("dog", NoPosition(), d_model=width)


def test_a_text_that_is_not_a_string_is_refused():
    with pytest.raises(ValueError, match="text is list, .* from a string"):
        walk(["the", "dog"], NoPosition())


@pytest.mark.parametrize("position", ["rope", Sinusoidal, None])
def test_what_is_no_method_is_refused(position):
    with pytest.raises(ValueError, match=r"position is .*METHODS\[name\]"):
        walk(SENTENCE, position)
    walk(SENTENCE, Sinusoidal())
