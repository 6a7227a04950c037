"""Transformer-XL and DeBERTa: properties, slow oracles, edges, words."""

from decimal import Decimal, getcontext

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from coursekit.disentangled import (
    deberta_bucket,
    disentangled_scores,
    relative_shift,
    transformer_xl_terms,
)
from coursekit.measures import offset_spread
from coursekit.relative import relative_positions

getcontext().prec = 40


def draw(seed, *shape, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=dtype)


def square(length):
    return relative_positions(torch.arange(length), torch.arange(length))


def xl_inputs(queries=3, keys=5, heads=2, head_dim=4, batch=2):
    query = draw(0, batch, heads, queries, head_dim)
    key = draw(1, batch, heads, keys, head_dim)
    rows = draw(2, heads, queries + keys, head_dim)
    return query, key, rows, draw(3, heads, head_dim), draw(4, heads, head_dim)


def deberta_inputs(queries=4, keys=4, heads=2, head_dim=3, batch=2, span=2):
    query = draw(0, batch, heads, queries, head_dim)
    key = draw(1, batch, heads, keys, head_dim)
    rows = (heads, 2 * span + 1, head_dim)
    offsets = relative_positions(torch.arange(keys)[-queries:], torch.arange(keys))
    return query, key, draw(2, *rows), draw(3, *rows), span - offsets.clamp(-span, span)


# Properties


def test_of_the_four_terms_only_the_last_depends_on_the_offset_alone():
    terms = transformer_xl_terms(*xl_inputs(6, 6))
    spread = {name: offset_spread(term) for name, term in terms._asdict().items()}
    assert spread.pop("global_position") < 1e-15
    assert min(spread.values()) > 0.5


def test_the_global_terms_do_not_depend_on_the_query():
    inputs = xl_inputs()
    other = (inputs[0] + 1, *inputs[1:])
    before, after = transformer_xl_terms(*inputs), transformer_xl_terms(*other)
    assert torch.equal(before.global_content, after.global_content)
    assert torch.equal(before.global_position, after.global_position)
    assert not torch.equal(before.content_position, after.content_position)


@given(st.lists(st.integers(-600, 600), min_size=1, max_size=9))
def test_deberta_buckets_are_odd_and_rise_with_the_offset(offsets):
    offsets = torch.tensor(offsets).sort().values
    bucket = deberta_bucket(offsets, 32, 512)
    assert torch.equal(deberta_bucket(-offsets, 32, 512), -bucket)
    assert (bucket.diff() >= 0).all()


def test_deberta_keeps_near_offsets_and_ends_at_the_last_bucket():
    assert deberta_bucket(torch.arange(-16, 17), 32, 512).tolist() == [*range(-16, 17)]
    far = torch.tensor([510, 511, 512, 10_000])
    assert deberta_bucket(far, 32, 512).tolist() == [31, 31, 31, 31]


def test_scaling_three_terms_by_three_widths_keeps_the_variance_near_one():
    query, key = draw(0, 1, 1, 64, 64), draw(1, 1, 1, 64, 64)
    rows, index = (draw(2, 1, 129, 64), draw(3, 1, 129, 64)), square(64) + 64
    total = sum(disentangled_scores(query, key, *rows, index))
    assert_close(total.var().item(), 1.0, rtol=0.15, atol=0)  # 4,096 scores, one draw


def test_gradients_flow_to_every_input():
    inputs = [x.requires_grad_() for x in xl_inputs(2, 3, 1, 2, 1)]
    assert torch.autograd.gradcheck(lambda *x: tuple(transformer_xl_terms(*x)), inputs)
    *inputs, index = deberta_inputs(2, 3, 1, 2, 1)
    inputs = [x.requires_grad_() for x in inputs]
    assert torch.autograd.gradcheck(
        lambda *x: tuple(disentangled_scores(*x, index)), inputs
    )


def test_dtype_and_device_are_those_of_the_query():
    for place in ({"dtype": torch.bfloat16}, {"device": "meta"}):
        terms = transformer_xl_terms(*(x.to(**place) for x in xl_inputs()))
        *inputs, index = deberta_inputs()
        index = index.to(place.get("device", "cpu"))
        terms += disentangled_scores(*(x.to(**place) for x in inputs), index)
        want = inputs[0].to(**place)
        assert {(x.dtype, x.device) for x in terms} == {(want.dtype, want.device)}
    offsets = square(4).to("meta")
    assert deberta_bucket(offsets, 8, 32).device.type == "meta"


def test_compiled_functions_give_the_same_numbers():
    def everything(offsets, x, deberta):
        bucket = deberta_bucket(offsets, 8, 32)
        return bucket, *transformer_xl_terms(*x), *disentangled_scores(*deberta)

    given = square(40), xl_inputs(), deberta_inputs()
    compiled = torch.compile(everything, fullgraph=True, backend="eager")
    for mine, want in zip(compiled(*given), everything(*given), strict=True):
        assert torch.equal(mine, want)


# Oracles


@given(rows=st.integers(1, 6), keys=st.integers(1, 6))
def test_the_shift_is_a_gather(rows, keys):
    x = draw(rows, 2, rows, rows + keys)
    want = torch.empty(2, rows, keys, dtype=torch.float64)
    for i in range(rows):
        for j in range(keys):
            want[:, i, j] = x[:, i, j + rows - i]
    assert torch.equal(relative_shift(x), want)


def test_the_shift_of_the_first_release_leaves_rubbish_above_the_diagonal():
    x = torch.tensor([[0, 1, 2], [10, 11, 12], [20, 21, 22]])
    padded = torch.cat((torch.zeros(3, 1, dtype=x.dtype), x), dim=1)
    released = padded.view(4, 3)[1:]
    assert released.tolist() == [[2, 0, 10], [11, 12, 0], [20, 21, 22]]
    # Columns -2, -1, 0 become -3 to 2: the future has values of its own.
    both = torch.cat((torch.full((3, 1), -1), x, x + 100), dim=1)[:, :6]
    shifted = relative_shift(both)
    assert torch.equal(shifted.tril(), released.tril())
    assert shifted.tolist() == [[2, 100, 101], [11, 12, 110], [20, 21, 22]]


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (3, 3), (1, 5), (3, 5)])
def test_the_four_terms_agree_with_a_loop_over_pairs(queries, keys):
    query, key, rows, u, v = xl_inputs(queries, keys)
    terms = transformer_xl_terms(query, key, rows, u, v)
    past = keys - queries
    for b in range(2):
        for h in range(2):
            for i in range(queries):
                for j in range(keys):
                    row = rows[h, j - (past + i) + keys]  # row 0 is offset -keys
                    here, there = query[b, h, i], key[b, h, j]
                    want = [here @ there, here @ row, u[h] @ there, v[h] @ row]
                    mine = [term[b, h, i, j] for term in terms]
                    for a, b_ in zip(mine, want, strict=True):
                        assert_close(a, b_ / 2, atol=1e-12, rtol=0)  # √4


def test_the_terms_are_the_products_of_an_absolute_score_made_relative():
    query, key, rows, u, v = xl_inputs(4, 4, batch=1)
    whole = sum(transformer_xl_terms(query, key, rows, u, v))
    content = (query + u[:, None]) @ key.mT
    position = relative_shift((query + v[:, None]) @ rows.mT)
    assert_close(whole, (content + position) / 2, atol=1e-12, rtol=0)


def bucket_by_logarithm(offset, bucket_size, max_position):
    """Follow the released formula, with logarithms of forty digits."""
    middle, distance = bucket_size // 2, min(abs(offset), max_position - 1)
    if distance > middle:
        share = (Decimal(distance) / middle).ln()
        share /= (Decimal(max_position - 1) / middle).ln()
        exact = share * (middle - 1) - Decimal("1e-25")
        distance = middle + int(exact.to_integral_value("ROUND_CEILING"))
    return distance if offset > 0 else -distance


@pytest.mark.parametrize(
    ("bucket_size", "max_position"),
    [(256, 512), (8, 32), (2, 3), (3, 9), (6, 28), (8, 33), (10, 406), (32, 600)],
)
def test_deberta_buckets_are_those_of_exact_logarithms(bucket_size, max_position):
    reach = max_position + 5
    offsets = torch.arange(-reach, reach + 1)
    want = [bucket_by_logarithm(o, bucket_size, max_position) for o in offsets.tolist()]
    mine = deberta_bucket(offsets, bucket_size, max_position)
    assert mine.dtype == torch.int64
    assert mine.tolist() == want


@pytest.mark.parametrize(("queries", "keys"), [(4, 4), (1, 5), (2, 5)])
def test_deberta_terms_agree_with_a_loop_over_pairs(queries, keys):
    query, key, by_query, by_key, index = deberta_inputs(queries, keys)
    terms = disentangled_scores(query, key, by_query, by_key, index)
    batched = index.expand(2, 1, -1, -1)
    for whole, part in zip(
        terms, disentangled_scores(query, key, by_query, by_key, batched), strict=True
    ):
        assert torch.equal(whole, part)
    for b in range(2):
        for h in range(2):
            for i in range(queries):
                for j in range(keys):
                    row, here, there = index[i, j], query[b, h, i], key[b, h, j]
                    want = here @ there, here @ by_key[h, row], by_query[h, row] @ there
                    for term, value in zip(terms, want, strict=True):
                        mine = term[b, h, i, j]
                        assert_close(mine, value / 3, atol=1e-12, rtol=0)  # √(3·3)


def test_both_public_codes_agree_and_the_paper_differs():
    query, key, by_query, by_key, index = deberta_inputs(batch=1)
    term = disentangled_scores(query, key, by_query, by_key, index).position_content
    scores = key @ by_query.mT / 3  # (batch, heads, key, rows)
    turned = (4 - index).expand(1, 2, 4, 4)  # the span is 2
    first = scores.gather(-1, turned).mT
    assert_close(term, first, atol=1e-12, rtol=0)
    paper = scores.gather(-1, index.expand(1, 2, 4, 4)).mT
    assert (term - paper).abs().max() > 0.1


# Boundaries


def test_one_query_and_one_key_have_two_columns():
    assert relative_shift(torch.tensor([[7, 8]])).tolist() == [[8]]
    with pytest.raises(ValueError, match=r"x is \(1, 1\).*more columns than rows"):
        relative_shift(torch.tensor([[7]]))


@pytest.mark.parametrize(("size", "least"), [(2, 3), (8, 6), (9, 6)])
def test_the_last_position_lies_past_the_exact_buckets(size, least):
    half = size // 2
    offsets = torch.tensor([half, half + 1])
    assert deberta_bucket(offsets, size, least).tolist()[0] == half
    with pytest.raises(ValueError, match=f"max_position is {least - 1}"):
        deberta_bucket(offsets, size, least - 1)


def test_deberta_needs_two_buckets_and_drops_fractions():
    offsets = torch.tensor([-1.9, -0.5, 0.5, 2.5, float("inf")])
    assert deberta_bucket(offsets, 8, 32).tolist() == [-1, 0, 0, 2, 7]
    with pytest.raises(ValueError, match="bucket_size is 1"):
        deberta_bucket(offsets, 1, 32)


# Messages


@pytest.mark.parametrize(
    ("place", "name", "shape"),
    [
        (1, "key", (2, 2, 5, 3)),
        (1, "key", (2, 1, 5, 4)),
        (2, "position_keys", (2, 9, 4)),
        (2, "position_keys", (1, 8, 4)),
        (3, "u", (1, 4)),
        (3, "u", (2, 1)),
        (4, "v", (1, 4)),
        (4, "v", (4,)),
    ],
)
def test_sizes_that_do_not_fit_transformer_xl_are_refused(place, name, shape):
    inputs = list(xl_inputs())
    assert transformer_xl_terms(*inputs)[0].shape == (2, 2, 3, 5)
    inputs[place] = torch.zeros(shape, dtype=torch.float64)
    with pytest.raises(ValueError, match=f"^{name} has shape"):
        transformer_xl_terms(*inputs)


@pytest.mark.parametrize(
    ("place", "name", "shape"),
    [
        (1, "key", (2, 1, 4, 3)),
        (2, "position_query", (2, 4, 3)),
        (2, "position_query", (1, 5, 3)),
        (3, "position_key", (2, 5, 1)),
        (4, "relative_index", (4, 3)),
        (4, "relative_index", (2, 4, 4)),
        (4, "relative_index", (2, 2, 4, 4)),
        (4, "relative_index", (3, 1, 4, 4)),
    ],
)
def test_sizes_that_do_not_fit_deberta_are_refused(place, name, shape):
    inputs = list(deberta_inputs())
    assert disentangled_scores(*inputs)[0].shape == (2, 2, 4, 4)
    inputs[place] = torch.zeros(shape, dtype=inputs[place].dtype)
    with pytest.raises(ValueError, match=f"^{name} has shape"):
        disentangled_scores(*inputs)
