"""Offsets, Shaw, T5: properties, slow oracles, edges, words, faults that shipped."""

from decimal import Decimal, getcontext

import pytest
import torch
from golden_entries import assert_met, entries_of, expected, group_of, wave
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from coursekit.attention import attention, causal_mask
from coursekit.disentangled import deberta_bucket, relative_shift
from coursekit.measures import offset_spread
from coursekit.relative import (
    clipped_index,
    relative_positions,
    relative_scores,
    relative_values,
    t5_bias,
    t5_bucket,
)

getcontext().prec = 40


def draw(seed, *shape, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=dtype)


def square(length):
    return relative_positions(torch.arange(length), torch.arange(length))


positions_list = st.lists(st.integers(-300, 300), min_size=1, max_size=5)


# Properties


@given(query=positions_list, key=positions_list, shift=st.integers(-500, 500))
def test_moving_all_positions_changes_no_offset(query, key, shift):
    query, key = torch.tensor(query), torch.tensor(key)
    moved = relative_positions(query + shift, key + shift)
    assert torch.equal(moved, relative_positions(query, key))


def test_tripling_all_positions_does_change_the_buckets():
    positions = torch.arange(12)
    near = t5_bucket(relative_positions(positions, positions))
    far = t5_bucket(relative_positions(3 * positions, 3 * positions))
    assert not torch.equal(near, far)


def test_offsets_have_the_shape_of_the_causal_mask_and_agree_with_it():
    one, two = torch.tensor([3, 1, 7]), torch.tensor([[3, 1, 7], [0, 5, 2]])
    for query in (one, two):
        for key in (torch.arange(5), torch.arange(10).reshape(2, 5)):
            offsets = relative_positions(query, key)
            assert torch.equal(offsets <= 0, causal_mask(query, key))


def test_shaw_and_t5_depend_on_the_offset_alone():
    query = draw(0, 1, 2, 1, 4).expand(1, 2, 8, 4)
    assert offset_spread(relative_scores(query, draw(1, 7, 4), square(8))) == 0
    bias = t5_bias(draw(2, 32, 2), torch.arange(8), torch.arange(8))
    assert offset_spread(bias) == 0


def test_shaw_depends_on_the_query_and_t5_does_not():
    scores = relative_scores(draw(0, 1, 1, 8, 4), draw(1, 7, 4), square(8))
    assert offset_spread(scores) > 0.1


@given(st.integers(2, 12), st.integers(20, 200), st.booleans())
def test_a_farther_offset_never_has_a_lower_bucket(half, max_distance, bidirectional):
    past = -torch.arange(2 * max_distance)
    bucket = t5_bucket(past, 2 * half, max_distance, bidirectional=bidirectional)
    assert (bucket.diff() >= 0).all()
    last = half - 1 if bidirectional else 2 * half - 1
    assert bucket[0] == 0
    assert (bucket[max_distance:] == last).all()


def test_the_last_bucket_begins_at_91_both_ways_and_at_113_when_causal():
    past = -torch.arange(400)
    assert (t5_bucket(past) == 15).nonzero()[0].item() == 91
    assert (t5_bucket(past, bidirectional=False) == 31).nonzero()[0].item() == 113


def test_one_bucket_of_the_upper_half_is_never_used():
    used = set(t5_bucket(torch.arange(-300, 301)).tolist())
    assert set(range(32)) - used == {16}


def test_the_gradient_of_a_bias_counts_the_pairs_of_each_bucket():
    table = torch.zeros(32, 2, requires_grad=True)
    positions = torch.arange(40)
    t5_bias(table, positions, positions).sum().backward()
    counts = t5_bucket(square(40)).flatten().bincount(minlength=32)
    assert torch.equal(table.grad, counts.unsqueeze(1).expand(32, 2).float())


def test_shaw_lets_the_gradient_through():
    offsets = square(5)
    table = draw(1, 5, 3).requires_grad_()
    query = draw(0, 1, 2, 5, 3).requires_grad_()
    weights = draw(2, 1, 2, 5, 5).requires_grad_()
    check = torch.autograd.gradcheck
    assert check(lambda q, t: relative_scores(q, t, offsets), (query, table))
    assert check(lambda w, t: relative_values(w, t, offsets), (weights, table))


def test_calls_in_a_row_equal_fresh_calls():
    table = draw(0, 32, 2)
    cases = [(0, 6, 128, True), (5, 6, 128, False), (5, 9, 20, True), (0, 6, 128, True)]

    def call(start, length, max_distance, bidirectional):
        positions = torch.arange(start, start + length)
        return t5_bias(
            *(table, positions, torch.arange(length)),
            max_distance=max_distance,
            bidirectional=bidirectional,
        )

    results = [call(*case) for case in cases]
    assert torch.equal(results[0], results[3])
    for case, result in zip(cases, results, strict=True):
        assert torch.equal(call(*case), result)


def test_no_argument_is_changed():
    offsets, positions = square(9), torch.arange(9)
    before = offsets.clone()
    clipped_index(offsets, 2)
    t5_bucket(offsets)
    relative_scores(draw(0, 1, 1, 9, 4), draw(1, 5, 4), offsets)
    t5_bias(draw(0, 32, 2), positions[:1], positions, max_distance=20)
    assert torch.equal(offsets, before)
    assert torch.equal(positions, torch.arange(9))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_results_have_the_dtype_of_what_they_join(dtype):
    query, table = draw(0, 1, 2, 6, 4, dtype=dtype), draw(1, 7, 4)
    assert relative_scores(query, table, square(6)).dtype == dtype
    weights = torch.full((1, 2, 6, 6), 1 / 6, dtype=dtype)
    assert relative_values(weights, table, square(6)).dtype == dtype
    positions = torch.arange(6)
    assert t5_bias(draw(2, 32, 2, dtype=dtype), positions, positions).dtype == dtype


def test_everything_runs_where_values_are_unknown():
    with torch.device("meta"):
        positions = torch.arange(6).expand(2, 6)
        offsets = relative_positions(positions, positions)
        query, table = torch.empty(2, 3, 6, 4), torch.empty(5, 4)
        scores = relative_scores(query, table, offsets)
        values = relative_values(scores, table, offsets)
        bias = t5_bias(torch.empty(32, 3), positions, positions)
    shapes = [tuple(x.shape) for x in (scores, values, bias)]
    assert shapes == [(2, 3, 6, 6), (2, 3, 6, 4), (2, 3, 6, 6)]
    assert {x.device.type for x in (scores, values, bias)} == {"meta"}


def test_compiled_functions_give_the_same_numbers():
    def everything(query, table, buckets, positions):
        offsets = relative_positions(positions, positions)
        scores = relative_scores(query, table, offsets)
        bias = t5_bias(buckets, positions, positions, bidirectional=False)
        return relative_values(scores + bias, table, offsets)

    given = draw(0, 1, 2, 6, 4), draw(1, 5, 4), draw(2, 32, 2), torch.arange(6) * 40
    compiled = torch.compile(everything, fullgraph=True, backend="eager")
    assert torch.equal(compiled(*given), everything(*given))


# Oracles


def bucket_by_logarithm(offset, num_buckets, max_distance, bidirectional):
    """Follow the published formula with logarithms of forty digits."""
    bucket = 0
    if bidirectional:
        num_buckets //= 2
        bucket += num_buckets if offset > 0 else 0
        distance = abs(offset)
    else:
        distance = max(-offset, 0)
    exact = num_buckets // 2
    if distance < exact:
        return bucket + distance
    share = (Decimal(distance) / exact).ln() / (Decimal(max_distance) / exact).ln()
    step = int(share * (num_buckets - exact) + Decimal("1e-25"))
    return bucket + min(exact + step, num_buckets - 1)


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(
    ("num_buckets", "max_distance"),
    [(32, 128), (32, 20), (4, 3), (16, 64), (20, 300), (33, 128), (64, 243)],
)
def test_buckets_are_those_of_exact_logarithms(
    num_buckets, max_distance, bidirectional
):
    reach = 2 * max_distance + 3
    offsets = torch.arange(-reach, reach + 1)
    want = [
        bucket_by_logarithm(offset, num_buckets, max_distance, bidirectional)
        for offset in offsets.tolist()
    ]
    mine = t5_bucket(offsets, num_buckets, max_distance, bidirectional=bidirectional)
    assert mine.dtype == torch.int64
    assert mine.tolist() == want


@given(exact=st.integers(1, 6), growth=st.integers(2, 4))
def test_bucket_edges_on_whole_powers_are_hit_exactly(exact, growth):
    # 2·exact buckets, and a distance that grows by `growth` at each of `exact` steps.
    max_distance = exact * growth**exact
    edges = [exact * growth**step for step in range(exact)]
    for step, edge in enumerate(edges):
        at = torch.tensor([-edge, 1 - edge])
        mine = t5_bucket(at, 2 * exact, max_distance, bidirectional=False)
        assert mine.tolist() == [exact + step, exact + step - 1]


@given(
    query=positions_list,
    key=positions_list,
    sizes=st.sampled_from([(32, 128), (16, 9), (8, 20)]),
    bidirectional=st.booleans(),
)
def test_the_bias_reads_the_bucket_of_each_pair(query, key, sizes, bidirectional):
    num_buckets, max_distance = sizes
    table = draw(0, num_buckets, 2)
    bias = t5_bias(
        *(table, torch.tensor(query), torch.tensor(key)),
        max_distance=max_distance,
        bidirectional=bidirectional,
    )
    for i, here in enumerate(query):
        for j, there in enumerate(key):
            row = bucket_by_logarithm(there - here, *sizes, bidirectional)
            assert torch.equal(bias[:, i, j], table[row])


def test_a_batch_of_positions_is_each_row_by_itself():
    query = torch.tensor([[0, 1, 2], [5, 3, 9], [200, 0, 1]])
    key = torch.tensor([[0, 1, 2, 3], [9, 9, 0, 1], [4, 80, 1, 2]])
    states, table, buckets = draw(0, 3, 2, 3, 4), draw(1, 5, 4), draw(2, 32, 2)
    weights = draw(3, 3, 2, 3, 4)
    offsets = relative_positions(query, key)
    assert offsets.shape == (3, 1, 3, 4)
    bias = t5_bias(buckets, query, key)
    for row in range(3):
        alone = relative_positions(query[row], key[row])
        part = slice(row, row + 1)
        assert torch.equal(offsets[row, 0], alone)
        assert torch.equal(bias[row], t5_bias(buckets, query[row], key[row]))
        for function, first in ((relative_scores, states), (relative_values, weights)):
            whole = function(first, table, offsets)[part]
            assert_close(whole, function(first[part], table, alone))


def shaw_by_hand(query, key, value, key_table, value_table, offsets):
    """Do Shaw's equations 3 and 4 one pair at a time; return the output."""
    clip, head_dim = len(key_table) // 2, query.shape[-1]
    output = torch.zeros_like(query)
    for head in range(query.shape[1]):
        for i in range(query.shape[2]):
            rows = [max(-clip, min(clip, int(o))) + clip for o in offsets[i]]
            scores = torch.stack(
                [
                    query[0, head, i] @ (key[0, head, j] + key_table[row])
                    for j, row in enumerate(rows)
                ]
            )
            weights = (scores / head_dim**0.5).exp()
            weights = weights / weights.sum()
            for j, row in enumerate(rows):
                output[0, head, i] += weights[j] * (
                    value[0, head, j] + value_table[row]
                )
    return output


@pytest.mark.parametrize("clip", [0, 1, 2, 6])
@pytest.mark.parametrize(("queries", "keys"), [(5, 5), (1, 6), (2, 4)])
def test_shaw_attention_agrees_with_a_loop_over_pairs(clip, queries, keys):
    query, key, value = (
        draw(n, 1, 2, s, 4) for n, s in enumerate((queries, keys, keys))
    )
    key_table, value_table = draw(3, 2 * clip + 1, 4), draw(4, 2 * clip + 1, 4)
    offsets = relative_positions(torch.arange(keys)[-queries:], torch.arange(keys))
    bias = relative_scores(query, key_table, offsets)
    steps = attention(query, key, value, bias=bias)
    output = steps.output + relative_values(steps.weights, value_table, offsets)
    want = shaw_by_hand(query, key, value, key_table, value_table, offsets)
    assert_close(output, want, atol=1e-12, rtol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_many_weights_of_half_precision_are_rounded_once(dtype):
    weights = draw(0, 2, 2, 4, 500).softmax(-1).to(dtype)
    table = draw(1, 3, 8).to(dtype)
    offsets = relative_positions(torch.arange(4) * 125, torch.arange(500))
    exact = relative_values(weights.double(), table.double(), offsets)
    assert torch.equal(relative_values(weights, table, offsets), exact.to(dtype))


def t5_bucket_entry(params):
    offsets = torch.arange(-params["R"], params["R"] + 1)
    return t5_bucket(
        *(offsets, params["num_buckets"], params["max_distance"]),
        bidirectional=params["bidirectional"],
    )


def t5_bias_entry(params):
    table = wave((params["num_buckets"], params["H"]), 0.9, 0.4)
    query = torch.arange(params["q"]).unsqueeze(0) + params["past"]
    return t5_bias(
        *(table, query, torch.arange(params["k"])),
        max_distance=params["max_distance"],
        bidirectional=params["bidirectional"],
    )


def shaw_index_entry(params):
    offsets = relative_positions(torch.arange(params["q"]), torch.arange(params["k"]))
    index = clipped_index(offsets, params["left"])
    return index.clamp(max=params["left"] + params["right"])


def speecht5_index_entry(params):
    """Turn the sign, and leave out the last row: query minus key, -m to m - 1."""
    clip = params["max_length"]
    return clipped_index(-square(params["L"]), clip).clamp(max=2 * clip - 1)


def shaw_inputs(params):
    shape = tuple(params[name] for name in "BHLD")
    table = wave((2 * params["k"] + 1, params["D"]), 0.61, 0.05)
    return wave(shape, 0.37, 0.1), wave(shape, 0.53, 0.2), table


def shaw_logits_entry(params):
    query, key, table = shaw_inputs(params)
    bias = relative_scores(query, table, square(params["L"]))
    return attention(query, key, key, bias=bias).logits


def deberta_bucket_entry(params):
    """Give query minus key, as the peer counts: ours is odd, so both signs turn."""
    offsets = -torch.tensor(params["rel"])
    return -deberta_bucket(offsets, params["bucket_size"], params["max_position"])


def rel_shift_entry(params):
    rows, columns = params["q"], params["q"] + params["k"]
    return relative_shift(torch.arange(rows * columns).reshape(rows, columns).float())


RULES = {
    "t5_bucket": ("bucket", t5_bucket_entry),
    "t5_bias": ("bias", t5_bias_entry),
    "shaw_index": ("index", shaw_index_entry),
    "speecht5_index": ("index", speecht5_index_entry),
    "shaw_logits": ("logits", shaw_logits_entry),
    "deberta_bucket": ("bucket", deberta_bucket_entry),
    "rel_shift": ("out", rel_shift_entry),
}


@pytest.mark.parametrize("entry", entries_of("relative"))
def test_relative_methods_meet_the_golden_numbers(entry):
    name, rule = RULES[group_of(entry)]
    mine = rule(entry["params"])
    assert mine.dtype == expected(entry, name).dtype
    assert_met(entry, name, mine)


def test_shaw_bias_alone_meets_the_golden_numbers():
    entries = [entry for (entry,) in (p.values for p in entries_of("relative"))]
    (entry,) = [entry for entry in entries if group_of(entry) == "shaw_logits"]
    query, _, table = shaw_inputs(entry["params"])
    assert_met(entry, "bias", relative_scores(query, table, square(5)))


# Faults that shipped


def test_an_offset_is_key_minus_query():
    query, key = torch.tensor([3]), torch.tensor([1])
    slip = relative_positions(key, query)
    assert t5_bucket(slip, bidirectional=False).item() == 0
    right = relative_positions(query, key)
    assert right.item() == -2
    assert t5_bucket(right, bidirectional=False).item() == 2


def test_a_decode_step_sees_the_whole_cache_behind_it():
    cached = torch.arange(7)
    slip = relative_positions(torch.arange(1), cached)
    assert slip.tolist() == [[0, 1, 2, 3, 4, 5, 6]]
    step = relative_positions(torch.tensor([6]), cached)
    assert step.tolist() == [[-6, -5, -4, -3, -2, -1, 0]]
    query, table, buckets = draw(0, 1, 2, 7, 4), draw(1, 5, 4), draw(2, 32, 2)
    whole = relative_scores(query, table, square(7))
    assert_close(relative_scores(query[:, :, 6:], table, step), whole[:, :, 6:])
    last = t5_bias(buckets, torch.tensor([6]), cached)
    assert torch.equal(last, t5_bias(buckets, cached, cached)[:, 6:])


@pytest.mark.parametrize(
    "shape", [(7, 7, 0), (1, 7, 6), (3, 9, 6), (5, 2, 40), (1, 1, 0)]
)
@pytest.mark.parametrize("bidirectional", [True, False])
def test_the_bias_of_a_run_of_positions_is_that_of_any_positions(shape, bidirectional):
    queries, keys, start = shape
    table, options = draw(0, 8, 3), {"max_distance": 12, "bidirectional": bidirectional}
    rows, columns = torch.arange(start, start + queries), torch.arange(keys)
    run = t5_bias(table, rows, columns, **options)
    broken = torch.cat((columns, columns[:1] + 1000))  # one key more, out of the run
    assert torch.equal(run, t5_bias(table, rows, broken, **options)[..., :-1])
    bucket = t5_bucket(relative_positions(rows, columns), 8, **options)
    assert torch.equal(run, table[bucket].permute(2, 0, 1))


def test_a_run_and_scattered_positions_give_the_table_the_same_gradient():
    table, row = draw(0, 8, 3).requires_grad_(), torch.arange(6)
    weights = draw(1, 3, 6, 6)
    found = []
    for keys in (row, row.flip(0)):
        grid = weights if keys is row else weights.flip(-1)
        loss = (t5_bias(table, row, keys, max_distance=12) * grid).sum()
        found.append(torch.autograd.grad(loss, table)[0])
    assert_close(*found)


@pytest.mark.parametrize("step", [0.5, 1.0])
def test_fractions_and_whole_numbers_written_as_fractions_are_no_run(step):
    table, row = draw(0, 8, 3), torch.arange(4) * step - 0.5
    bucket = t5_bucket(relative_positions(row, row), 8, 12)
    want = table[bucket].permute(2, 0, 1)
    assert torch.equal(t5_bias(table, row, row, max_distance=12), want)


def test_no_queries_get_no_bias():
    assert t5_bias(draw(0, 8, 3), torch.arange(0), torch.arange(4)).shape == (3, 0, 4)


def test_t5_has_no_scale():
    query = torch.ones(1, 1, 1, 64)
    key = query / 8
    slip = attention(query, key, key).scores
    assert slip.item() == 1.0
    bias = t5_bias(torch.zeros(32, 1), torch.arange(1), torch.arange(1))
    assert attention(query, key, key, bias=bias, scale=1).logits.item() == 8.0
    table = torch.full((32, 1), 3.0)
    assert t5_bias(table, torch.arange(1), torch.arange(1)).item() == 3.0


@pytest.mark.parametrize("rows", [3, 4])
def test_a_shaw_table_for_clip_two_has_five_rows(rows):
    query, index = draw(0, 1, 1, 9, 4), clipped_index(square(9), 2)
    assert index.unique().tolist() == [0, 1, 2, 3, 4]
    slip = draw(1, rows, 4)
    with pytest.raises(IndexError, match="out of bounds"):
        slip[index]
    assert relative_scores(query, draw(1, 5, 4), square(9)).shape == (1, 1, 9, 9)


def test_offsets_past_the_clip_share_the_end_rows():
    offsets = square(11)
    assert (offsets + 9).max().item() == 19  # of 19 rows, 0 to 18
    index = clipped_index(offsets, 9)
    assert (index.min().item(), index.max().item()) == (0, 18)
    scores = relative_scores(torch.ones(1, 1, 11, 1), draw(0, 19, 1), offsets)
    assert scores[0, 0, 0, 10] == scores[0, 0, 0, 9] != scores[0, 0, 0, 8]


# Boundaries


def test_one_token_has_offset_zero():
    assert square(1).tolist() == [[0]]
    assert clipped_index(square(1), 0).tolist() == [[0]]
    assert t5_bucket(square(1)).tolist() == [[0]]


def test_no_dtype_of_positions_loses_an_offset():
    small = torch.tensor([3, 250], dtype=torch.uint8)
    assert relative_positions(small, small).tolist() == [[0, 247], [-247, 0]]
    large = torch.tensor([0, 2**40 + 1])
    assert relative_positions(large, large).tolist() == [
        [0, 2**40 + 1],
        [-(2**40) - 1, 0],
    ]
    half = torch.tensor([1.0, 258.0], dtype=torch.bfloat16)
    assert relative_positions(half, half).tolist() == [[0, 257], [-257, 0]]
    fine = torch.tensor([0.25, 1.5], dtype=torch.float64)
    offsets = relative_positions(torch.tensor([1]), fine)
    assert (offsets.dtype, offsets.tolist()) == (torch.float64, [[-0.75, 0.5]])


def test_a_fraction_counts_as_the_whole_distance_before_it():
    offsets = torch.tensor([-2.5, -0.5, 0.5, 1.99, 90.9, 91.0, float("inf")])
    assert clipped_index(offsets, 2).tolist() == [0, 2, 2, 3, 4, 4, 4]
    assert t5_bucket(offsets).tolist() == [2, 0, 0, 17, 30, 31, 31]
    positions = torch.tensor([0.0, 1.5, 91.2])
    bias = t5_bias(torch.arange(32.0).unsqueeze(1), positions, positions)
    want = t5_bucket(relative_positions(positions, positions))
    assert torch.equal(bias[0], want.float())


def test_a_clip_of_zero_has_one_row_and_below_it_none():
    assert clipped_index(torch.tensor([-3, 4]), 0).tolist() == [0, 0]
    with pytest.raises(ValueError, match="clip is -1"):
        clipped_index(torch.tensor([0]), -1)


@pytest.mark.parametrize(("least", "bidirectional"), [(4, True), (2, False)])
def test_the_fewest_buckets_are_two_a_direction(least, bidirectional):
    offsets = torch.tensor([-9, -1, 0, 1, 9])
    mine = t5_bucket(offsets, least, 2, bidirectional=bidirectional)
    assert mine.tolist() == ([1, 1, 0, 3, 3] if bidirectional else [1, 1, 0, 0, 0])
    with pytest.raises(ValueError, match=f"num_buckets is {least - 1}"):
        t5_bucket(offsets, least - 1, 2, bidirectional=bidirectional)


def test_the_distance_lies_past_the_exact_buckets():
    assert t5_bucket(torch.tensor([-8, -9]), 32, 9).tolist() == [8, 15]
    table, positions = torch.arange(32.0).unsqueeze(1), torch.tensor([0, 8, 9])
    bias = t5_bias(table, positions, positions, max_distance=9)
    assert bias.tolist() == [[[0, 24, 31], [8, 0, 17], [15, 1, 0]]]
    with pytest.raises(ValueError, match="max_distance is 8.* at least 9"):
        t5_bucket(torch.tensor([-8, -9]), 32, 8)
    for wrong in (0, -2, 128.0):
        with pytest.raises(ValueError, match=f"max_distance is {wrong}"):
            t5_bias(torch.zeros(32, 1), *[torch.arange(2)] * 2, max_distance=wrong)


def test_positions_that_are_far_apart_take_no_more_room():
    far = torch.tensor([0, 2**40])
    bias = t5_bias(torch.arange(32.0).unsqueeze(1), far, far)
    assert bias.tolist() == [[[0, 31], [15, 0]]]


# Messages


@pytest.mark.parametrize("rows", [4, 6])
def test_an_even_number_of_rows_is_refused(rows):
    words = rf"there are {rows} rows.*odd number.*{rows + 1} rows"
    with pytest.raises(ValueError, match=words):
        relative_scores(draw(0, 1, 1, 3, 4), draw(1, rows, 4), square(3))
    with pytest.raises(ValueError, match=words):
        relative_values(draw(0, 1, 1, 3, 3), draw(1, rows, 4), square(3))


@pytest.mark.parametrize(
    "shape", [(3, 4), (4, 3, 4), (2, 4, 4), (3, 1, 4, 4), (2, 2, 4, 4), (4,)]
)
def test_offsets_that_do_not_fit_the_queries_are_refused(shape):
    query, table = draw(0, 2, 2, 4, 3), draw(1, 5, 3)
    for fits in ((4, 4), (2, 1, 4, 4), (1, 1, 4, 4)):
        offsets = torch.zeros(fits, dtype=torch.int64)
        assert relative_scores(query, table, offsets).shape == (2, 2, 4, 4)
    offsets = torch.zeros(shape, dtype=torch.int64)
    with pytest.raises(ValueError, match=r"relative_position is .*\(2, 1, 4, 4\)"):
        relative_scores(query, table, offsets)


def test_offsets_that_do_not_fit_the_keys_are_refused():
    weights, table = draw(0, 1, 2, 4, 6), draw(1, 5, 3)
    assert relative_values(weights, table, torch.zeros(4, 6)).shape == (1, 2, 4, 3)
    with pytest.raises(ValueError, match=r"relative_position has shape \(4, 5\)"):
        relative_values(weights, table, torch.zeros(4, 5))


def test_a_table_of_another_width_is_refused():
    with pytest.raises(ValueError, match=r"table has shape \(5, 3\).*\(5, 4\)"):
        relative_scores(draw(0, 1, 1, 3, 4), draw(1, 5, 3), square(3))


@pytest.mark.parametrize("name", ["query_positions", "key_positions"])
def test_what_are_no_positions_is_refused(name):
    given = {"query_positions": torch.arange(3), "key_positions": torch.arange(3)}
    assert relative_positions(**given).shape == (3, 3)
    with pytest.raises(ValueError, match=f"{name} is"):
        relative_positions(**{**given, name: torch.tensor(3)})
    with pytest.raises(ValueError, match=f"{name} is"):
        t5_bias(torch.zeros(32, 1), **{**given, name: torch.tensor(3)})
