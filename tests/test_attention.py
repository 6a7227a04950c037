"""Scaled dot-product attention: properties, slow oracles, edges, words."""

import math

import pytest
import torch
from golden_entries import assert_met, entries_of, wave
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention
from torch.testing import assert_close

from coursekit.attention import (
    AttentionSteps,
    attention,
    causal_mask,
    merge_heads,
    split_heads,
)


def tensors(seed, *shapes, dtype=torch.float64):
    """Draw one normal tensor for each shape."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator, dtype=dtype) for shape in shapes]


def three(seed=0, queries=4, keys=5, batch=2, heads=3, head_dim=4, value_dim=4):
    """Draw a query, a key and a value."""
    sizes = ((queries, head_dim), (keys, head_dim), (keys, value_dim))
    return tensors(seed, *[(batch, heads, *size) for size in sizes])


sizes = st.integers(1, 5)


# Properties


@given(queries=sizes, keys=sizes, seed=st.integers(0, 99))
def test_each_output_is_an_average_of_the_values(queries, keys, seed):
    query, key, value = three(seed, queries, keys)
    steps = attention(query, key, value)
    assert (steps.weights >= 0).all()
    assert_close(steps.weights.sum(-1), torch.ones(2, 3, queries, dtype=torch.float64))
    low, high = value.amin(-2, keepdim=True), value.amax(-2, keepdim=True)
    assert (steps.output >= low - 1e-12).all()
    assert (steps.output <= high + 1e-12).all()


@given(length=sizes, seed=st.integers(0, 99))
def test_reordering_the_tokens_only_reorders_the_output(length, seed):
    query, key, value = three(seed, length, length)
    order = torch.randperm(length, generator=torch.Generator().manual_seed(seed))
    plain = attention(query, key, value).output
    turned = attention(*(x[..., order, :] for x in (query, key, value))).output
    assert_close(turned, plain[..., order, :])


def test_under_a_causal_mask_the_future_changes_no_past_output():
    query, key, value = three(queries=5)
    positions = torch.arange(5)
    mask = causal_mask(positions, positions)
    before = attention(query, key, value, mask=mask).output
    key[..., 3:, :], value[..., 3:, :] = 7.0, -7.0
    after = attention(query, key, value, mask=mask).output
    assert torch.equal(after[..., :3, :], before[..., :3, :])
    assert not torch.allclose(after[..., 3:, :], before[..., 3:, :])


@pytest.mark.parametrize("queries", [1, 2, 5])
def test_cached_queries_give_the_last_rows_of_the_whole_run(queries):
    query, key, value = three(queries=5)
    positions = torch.arange(5)
    whole = attention(query, key, value, mask=causal_mask(positions, positions))
    last = positions[5 - queries :]
    mask = causal_mask(last, positions)
    cached = attention(query[..., 5 - queries :, :], key, value, mask=mask)
    assert_close(cached.output, whole.output[..., 5 - queries :, :])


def test_a_padded_batch_gives_what_each_row_gives_alone():
    query, key, value = three(queries=5)
    real = torch.tensor([[False, False, True, True, True], [True] * 5])
    positions = torch.tensor([[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]])
    mask = causal_mask(positions, positions) & real[:, None, None, :]
    output = attention(query, key, value, mask=mask).output
    for row, start in ((0, 2), (1, 0)):
        alone = [x[row : row + 1, :, start:] for x in (query, key, value)]
        expected = scaled_dot_product_attention(*alone, is_causal=True)
        assert_close(output[row : row + 1, :, start:], expected)


def test_packed_documents_give_what_each_document_gives_alone():
    query, key, value = three(queries=5, batch=1)
    positions, document = torch.tensor([0, 1, 2, 0, 1]), torch.tensor([0, 0, 0, 1, 1])
    same = document[:, None] == document[None, :]
    mask = causal_mask(positions, positions) & same
    output = attention(query, key, value, mask=mask).output
    for part in (slice(0, 3), slice(3, 5)):
        alone = [x[:, :, part] for x in (query, key, value)]
        expected = scaled_dot_product_attention(*alone, is_causal=True)
        assert_close(output[:, :, part], expected)


def test_a_number_added_to_all_scores_of_a_query_changes_no_weight():
    query, key, value = three()
    (lift,) = tensors(1, (2, 3, 4, 1))
    plain, lifted = (
        attention(query, key, value),
        attention(query, key, value, bias=lift),
    )
    assert_close(lifted.weights, plain.weights)
    assert_close(lifted.logits - lifted.scores, lift.expand(2, 3, 4, 5))
    assert torch.equal(lifted.scores, plain.scores)


@pytest.mark.parametrize("size", [1e-4, 1.0, 1e4])
def test_scores_of_any_size_give_finite_weights(size):
    query, key, value = three()
    steps = attention(query * size, key * size, value)
    assert torch.isfinite(steps.output).all()
    assert_close(steps.weights.sum(-1), torch.ones(2, 3, 4, dtype=torch.float64))


@pytest.mark.parametrize("kept", [0, 3])
def test_gradients_are_finite_even_where_a_row_sees_nothing(kept):
    query, key, value = (x.requires_grad_() for x in three())
    bias = torch.zeros(4, 5, dtype=torch.float64, requires_grad=True)
    mask = torch.arange(4)[:, None].expand(4, 5) < kept
    steps = attention(query, key, value, bias=bias, mask=mask)
    steps.output.square().sum().backward()
    for x in (query, key, value, bias):
        assert torch.isfinite(x.grad).all()
    assert (query.grad[:, :, kept:] == 0).all()
    assert (query.grad[:, :, :kept] != 0).all()


def test_gradients_are_finite_where_a_bias_of_minus_infinity_blocks_a_whole_row():
    query, key, value = (x.requires_grad_() for x in three())
    blocked = torch.arange(4)[:, None].expand(4, 5) >= 2
    bias = torch.zeros(4, 5, dtype=torch.float64).masked_fill(blocked, -math.inf)
    attention(query, key, value, bias=bias).output.square().sum().backward()
    for x in (query, key, value):
        assert torch.isfinite(x.grad).all()
    assert (query.grad[:, :, 2:] == 0).all()


def test_inputs_are_left_as_they_were():
    inputs = three()
    bias, mask = torch.ones(4, 5), torch.eye(4, 5, dtype=torch.bool)
    before = [x.clone() for x in (*inputs, bias, mask)]
    attention(*inputs, bias=bias, mask=mask)
    for x, copy in zip((*inputs, bias, mask), before, strict=True):
        assert torch.equal(x, copy)


@given(batch=sizes, length=sizes, heads=sizes, head_dim=sizes)
def test_merging_heads_undoes_splitting_them(batch, length, heads, head_dim):
    x = torch.arange(batch * length * heads * head_dim)
    x = x.reshape(batch, length, heads * head_dim)
    split = split_heads(x, heads)
    assert split.shape == (batch, heads, length, head_dim)
    assert torch.equal(merge_heads(split), x)


def test_the_steps_are_named_as_the_lines_of_the_formula():
    assert AttentionSteps._fields == ("scores", "logits", "weights", "output")


# Oracles


def loops(query, key, value, bias, mask, scale):
    """Compute the four steps of one head with Python floats."""
    rows = [[], [], [], []]
    for i, q in enumerate(query.tolist()):
        scores, logits = [], []
        for j, k in enumerate(key.tolist()):
            score = sum(a * b for a, b in zip(q, k, strict=True)) * scale
            scores.append(score)
            allowed = mask is None or mask[i][j]
            logits.append(score + bias[i][j] if allowed else -math.inf)
        powers = [math.exp(x) for x in logits]
        weights = [p / sum(powers) if sum(powers) else 0.0 for p in powers]
        columns = zip(*value.tolist(), strict=True)
        output = [
            math.fsum(w * v for w, v in zip(weights, c, strict=True)) for c in columns
        ]
        for table, row in zip(rows, (scores, logits, weights, output), strict=True):
            table.append(row)
    return [torch.tensor(table, dtype=torch.float64) for table in rows]


@given(
    queries=sizes,
    keys=sizes,
    head_dim=sizes,
    value_dim=sizes,
    masked=st.booleans(),
    seed=st.integers(0, 99),
)
def test_every_step_agrees_with_nested_loops(
    queries, keys, head_dim, value_dim, masked, seed
):
    inputs = three(seed, queries, keys, head_dim=head_dim, value_dim=value_dim)
    bias, noise = tensors(seed + 1, (2, 3, queries, keys), (2, 3, queries, keys))
    mask = noise > 0 if masked else None
    steps = attention(*inputs, bias=bias, mask=mask)
    for batch in range(2):
        for head in range(3):
            one = [x[batch, head] for x in inputs]
            allowed = None if mask is None else mask[batch, head].tolist()
            numbers = bias[batch, head].tolist()
            slow = loops(*one, numbers, allowed, 1 / math.sqrt(head_dim))
            for fast, want in zip(steps, slow, strict=True):
                assert_close(fast[batch, head], want)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [None, 1.0, 0.3, 0.0])
@pytest.mark.parametrize("mask_shape", [None, (4, 5), (2, 1, 4, 5), (1, 1, 1, 5)])
def test_output_agrees_with_torch(dtype, scale, mask_shape):
    query, key, value = (x.to(dtype) for x in three())
    mask = None
    if mask_shape is not None:
        mask = tensors(7, mask_shape)[0] > 0
        mask[..., 0] = True
    steps = attention(query, key, value, mask=mask, scale=scale)
    want = scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale)
    assert_close(steps.output, want)


@pytest.mark.parametrize("bias_shape", [(4, 5), (3, 1, 5), (3, 4, 5), (2, 3, 4, 5)])
def test_a_bias_agrees_with_a_float_mask_of_torch(bias_shape):
    query, key, value = three()
    (bias,) = tensors(3, bias_shape)
    want = scaled_dot_product_attention(
        query, key, value, attn_mask=bias.expand(2, 3, 4, 5)
    )
    assert_close(attention(query, key, value, bias=bias).output, want)


def test_gradients_agree_with_those_of_torch():
    ours = [x.requires_grad_() for x in three(queries=5)]
    theirs = [x.requires_grad_() for x in three(queries=5)]
    positions = torch.arange(5)
    mask = causal_mask(positions, positions)
    attention(*ours, mask=mask).output.sin().sum().backward()
    scaled_dot_product_attention(*theirs, is_causal=True).sin().sum().backward()
    for one, other in zip(ours, theirs, strict=True):
        assert_close(one.grad, other.grad)


@given(batch=sizes, length=sizes, heads=sizes, head_dim=sizes)
def test_split_heads_agrees_with_picking_each_feature(batch, length, heads, head_dim):
    (x,) = tensors(0, (batch, length, heads * head_dim))
    split = split_heads(x, heads)
    for b in range(batch):
        for token in range(length):
            for feature in range(heads * head_dim):
                head, place = divmod(feature, head_dim)
                assert split[b, head, token, place] == x[b, token, feature]


positions_of_any_kind = st.lists(
    st.one_of(st.integers(-9, 9), st.floats(-9, 9, width=32)), min_size=1, max_size=5
)


@given(queries=positions_of_any_kind, keys=positions_of_any_kind)
def test_causal_mask_agrees_with_comparing_every_two_positions(queries, keys):
    tensor = [torch.tensor(row, dtype=torch.float64) for row in (queries, keys)]
    want = [[not later > now for later in keys] for now in queries]
    mask = causal_mask(*tensor)
    assert mask.dtype == torch.bool
    assert mask.tolist() == want


@pytest.mark.parametrize("queries_of_one", [True, False])
@pytest.mark.parametrize("keys_of_one", [True, False])
def test_causal_mask_compares_each_row_of_a_batch_with_itself(
    queries_of_one, keys_of_one
):
    queries = torch.tensor([[0, 1, 2], [5, 3, 4]])
    keys = torch.tensor([[0, 1, 2, 3], [4, 3, 2, 9]])
    queries = queries[0] if queries_of_one else queries
    keys = keys[0] if keys_of_one else keys
    mask = causal_mask(queries, keys)
    if queries_of_one and keys_of_one:
        assert mask.shape == (3, 4)
        return
    assert mask.shape == (2, 1, 3, 4)
    for row in range(2):
        one = causal_mask(
            queries if queries_of_one else queries[row],
            keys if keys_of_one else keys[row],
        )
        assert torch.equal(mask[row, 0], one)


@pytest.mark.parametrize("entry", entries_of("attention"))
def test_attention_meets_the_golden_numbers(entry):
    params = entry["params"]
    shape = [params[name] for name in ("B", "H", "L", "D")]
    waves = ((0.37, 0.1), (0.53, 0.2), (0.71, 0.3))
    query, key, value = (wave(shape, a, b).double() for a, b in waves)
    positions = torch.arange(params["L"])
    mask, bias = causal_mask(positions, positions), None
    case = entry["id"].split("/")[1]
    if case.startswith("causal_alibi"):
        slopes = torch.tensor([2.0**-4, 2.0**-8], dtype=torch.float64)
        distance = (positions[:, None] - positions[None, :]).abs()
        bias = -slopes[:, None, None] * distance
    elif case.startswith("masked_rows"):
        mask = mask & (positions >= 2)
    else:
        assert case.startswith("causal_L")
    output = attention(query, key, value, bias=bias, mask=mask).output
    assert output.dtype == torch.float64
    assert_met(entry, "out", output)


def column(*numbers):
    """Put numbers into one feature of one head: (1, 1, length, 1)."""
    return torch.tensor(numbers, dtype=torch.float32)[None, None, :, None]


def test_a_row_that_may_attend_to_nothing_is_zero_and_not_nan():
    slip = torch.softmax(torch.tensor([-math.inf, -math.inf]), dim=-1)
    assert slip.isnan().all()
    nothing = torch.tensor([[False, False]])
    steps = attention(column(1), column(1, 2), column(1, 9), mask=nothing)
    assert steps.weights.flatten().tolist() == [0.0, 0.0]
    assert steps.output.item() == 0.0
    assert steps.logits.flatten().tolist() == [-math.inf, -math.inf]
    assert steps.scores.flatten().tolist() == [1.0, 2.0]


def test_true_in_a_mask_means_may_attend():
    mask = torch.tensor([[True, False]])
    slip = attention(column(0), column(0, 0), column(1, 9), mask=~mask)
    assert slip.output.item() == 9.0
    right = attention(column(0), column(0, 0), column(1, 9), mask=mask)
    assert right.output.item() == 1.0


def test_one_cached_query_sees_the_whole_cache():
    aligned_at_the_top = torch.ones(1, 3, dtype=torch.bool).tril()
    zeros, values = column(0, 0, 0), column(1, 2, 3)
    slip = attention(column(0), zeros, values, mask=aligned_at_the_top)
    assert slip.output.item() == 1.0
    mask = causal_mask(torch.tensor([2]), torch.arange(3))
    assert attention(column(0), zeros, values, mask=mask).output.item() == 2.0


def test_a_bias_of_minus_infinity_blocks_as_a_mask_does():
    query, key, value = three()
    allowed = torch.eye(4, 5, dtype=torch.bool)
    allowed[2] = False
    bias = torch.zeros(4, 5, dtype=torch.float64).masked_fill(~allowed, -math.inf)
    biased = attention(query, key, value, bias=bias)
    masked = attention(query, key, value, mask=allowed)
    assert torch.equal(biased.logits, masked.logits)
    assert torch.equal(biased.output, masked.output)
    assert (biased.output[:, :, 2] == 0).all()


# Boundaries


def test_one_key_takes_all_the_weight():
    query, key, value = three(queries=3, keys=1)
    steps = attention(query, key, value)
    assert torch.equal(steps.weights, torch.ones(2, 3, 3, 1, dtype=torch.float64))
    assert torch.equal(steps.output, value.expand(2, 3, 3, 4))


def test_no_keys_at_all_give_zeros():
    query, key, value = three(queries=2, keys=0)
    steps = attention(query, key, value)
    assert steps.weights.shape == (2, 3, 2, 0)
    assert torch.equal(steps.output, torch.zeros(2, 3, 2, 4, dtype=torch.float64))


def test_a_query_sees_its_own_position_and_not_the_next():
    mask = causal_mask(torch.tensor([3]), torch.tensor([2, 3, 4]))
    assert mask.tolist() == [[True, True, False]]


def test_positions_between_whole_ones_are_compared_as_they_are():
    mask = causal_mask(torch.tensor([0.5]), torch.tensor([0.25, 0.5, 0.75]))
    assert mask.tolist() == [[True, True, False]]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_all_steps_keep_the_dtype(dtype):
    query, key, value = (x.to(dtype) for x in three())
    bias = torch.zeros(4, 5, dtype=dtype)
    mask = torch.eye(4, 5, dtype=torch.bool)
    for step in attention(query, key, value, bias=bias, mask=mask):
        assert step.dtype == dtype


def test_all_steps_keep_the_device():
    query, key, value = (x.to("meta") for x in three())
    positions = torch.arange(5, device="meta")
    mask = causal_mask(positions[1:], positions)
    assert mask.device.type == "meta"
    steps = attention(query, key, value, mask=mask)
    for step in steps[:3]:
        assert step.device.type == "meta"
        assert step.shape == (2, 3, 4, 5)
    assert steps.output.device.type == "meta"
    assert steps.output.shape == (2, 3, 4, 4)


def test_two_calls_in_a_row_equal_fresh_calls():
    first, second = three(0), three(1, queries=2, keys=7)
    fresh = attention(*second).output
    attention(*first)
    assert torch.equal(attention(*second).output, fresh)


def layer(x, positions):
    """Take an embedding through heads, mask and attention and back."""
    heads = split_heads(x, 2)
    mask = causal_mask(positions, positions)
    return merge_heads(attention(heads, heads, heads, mask=mask).output)


def test_a_layer_compiles_as_one_graph_and_is_exported_for_any_length():
    (x,) = tensors(0, (2, 5, 4))
    compiled = torch.compile(layer, fullgraph=True, backend="eager")
    assert torch.equal(compiled(x, torch.arange(5)), layer(x, torch.arange(5)))
    rest = x[:, :3]
    assert torch.equal(compiled(rest, torch.arange(3)), layer(rest, torch.arange(3)))

    class Layer(torch.nn.Module):
        def forward(self, x, positions):
            return layer(x, positions)

    length = torch.export.Dim("length", min=2, max=64)
    inputs, dynamic = (x, torch.arange(5)), ({1: length}, {0: length})
    program = torch.export.export(Layer(), inputs, dynamic_shapes=dynamic).module()
    (longer,) = tensors(1, (2, 9, 4))
    assert_close(program(longer, torch.arange(9)), layer(longer, torch.arange(9)))


# Messages


@pytest.mark.parametrize(
    "mask",
    [
        torch.ones(4, 5),
        torch.ones(4, 5, dtype=torch.int64),
        torch.ones(5, dtype=torch.bool),
        torch.ones(2, 4, 5, dtype=torch.bool),
        torch.ones(3, 4, 5, dtype=torch.bool),
        torch.ones(5, 4, dtype=torch.bool),
        torch.ones(4, 6, dtype=torch.bool),
        torch.ones(3, 1, 4, 5, dtype=torch.bool),
        torch.ones(1, 2, 3, 4, 5, dtype=torch.bool),
    ],
)
def test_a_mask_that_would_mean_something_else_is_refused(mask):
    query, key, value = three()
    with pytest.raises(
        ValueError, match=r"mask is \(.*scores are \(2, 3, 4, 5\).*True"
    ):
        attention(query, key, value, mask=mask)


@pytest.mark.parametrize(
    "shape", [(4, 5), (1, 5), (4, 1), (2, 1, 4, 5), (2, 3, 1, 1), (1, 3, 4, 5)]
)
def test_a_boolean_mask_of_two_or_four_axes_is_accepted(shape):
    query, key, value = three()
    everything = torch.ones(shape, dtype=torch.bool)
    masked = attention(query, key, value, mask=everything)
    assert torch.equal(masked.output, attention(query, key, value).output)


def test_a_mask_for_each_row_of_the_batch_is_accepted_with_the_mend_of_the_message():
    query, key, value = three()
    rows = torch.ones(2, 4, 5, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"query, key\) mask\[:, None\]"):
        attention(query, key, value, mask=rows)
    assert attention(query, key, value, mask=rows[:, None]).output.shape == (2, 3, 4, 4)


def test_a_key_of_another_width_is_refused():
    query, key, value = three()
    with pytest.raises(ValueError, match=r"key has shape \(2, 3, 5, 3\).*5, 4\)"):
        attention(query, key[..., :3], value)
    assert attention(query, key, value[..., :3]).output.shape == (2, 3, 4, 3)


def test_a_value_for_each_key_is_needed():
    query, key, value = three()
    with pytest.raises(ValueError, match=r"value has shape \(2, 3, 4, 4\).*5, 4\)"):
        attention(query, key, value[..., :4, :])
    assert attention(query, key[..., :4, :], value[..., :4, :]).weights.shape[-1] == 4


@pytest.mark.parametrize(("num_heads", "neighbour"), [(4, 3), (5, 6), (12, 6)])
def test_heads_that_do_not_divide_the_width_are_refused(num_heads, neighbour):
    x = torch.zeros(2, 5, 6)
    assert split_heads(x, neighbour).shape == (2, neighbour, 5, 6 // neighbour)
    with pytest.raises(ValueError, match=f"not split into {num_heads} heads.*multiple"):
        split_heads(x, num_heads)


def test_splitting_needs_three_axes_and_merging_four():
    x = torch.zeros(2, 3, 4)
    with pytest.raises(ValueError, match=r"\(3, 4\), which does not split into 2"):
        split_heads(x[0], 2)
    with pytest.raises(ValueError, match=r"\(2, 3, 4\), but merging needs the four"):
        merge_heads(x)
    assert merge_heads(split_heads(x, 2)).shape == (2, 3, 4)


def test_no_heads_are_refused():
    assert split_heads(torch.zeros(1, 2, 4), 1).shape == (1, 1, 2, 4)
    with pytest.raises(ValueError, match="num_heads is 0, .* at least 1"):
        split_heads(torch.zeros(1, 2, 4), 0)


def test_causal_mask_names_the_positions_that_are_none():
    with pytest.raises(ValueError, match="query_positions is 3, but positions are"):
        causal_mask(3, torch.arange(3))
    with pytest.raises(ValueError, match="key_positions is 3, but positions are"):
        causal_mask(torch.arange(3), 3)
    assert causal_mask(torch.arange(3), torch.arange(3)).shape == (3, 3)


def test_float16_scores_are_scaled_before_they_can_overflow():
    x = torch.full((1, 1, 2, 64), 50.0, dtype=torch.float16)
    want = torch.nn.functional.scaled_dot_product_attention(x, x, x)
    torch.testing.assert_close(attention(x, x, x).output, want)


@pytest.mark.parametrize("heads", [2, 4])
def test_keys_of_other_heads_are_refused(heads):
    query, fits = torch.zeros(1, 3, 4, 4), torch.zeros(1, 3, 5, 4)
    other = torch.zeros(1, heads, 5, 4)
    assert attention(query, fits, fits).output.shape == (1, 3, 4, 4)
    with pytest.raises(ValueError, match="key has shape"):
        attention(query, other, other)
    with pytest.raises(ValueError, match="value has shape"):
        attention(query, fits, other)


@pytest.mark.parametrize("shape", [(4, 4), (2, 1, 4, 5), (5, 1), (2, 4, 5), (5,)])
def test_a_bias_that_would_mean_something_else_is_refused(shape):
    query, key = torch.zeros(1, 3, 4, 4), torch.zeros(1, 3, 5, 4)
    with pytest.raises(ValueError, match="bias is"):
        attention(query, key, key, bias=torch.zeros(shape))


@pytest.mark.parametrize("shape", [(4, 5), (1, 5), (3, 4, 5), (3, 1, 5), (1, 3, 4, 5)])
def test_a_bias_for_pairs_or_heads_is_taken(shape):
    query, key = torch.zeros(1, 3, 4, 4), torch.zeros(1, 3, 5, 4)
    steps = attention(query, key, key, bias=torch.ones(shape))
    assert torch.equal(steps.logits, torch.ones(1, 3, 4, 5))


def test_a_boolean_bias_is_refused_as_a_mask_in_the_wrong_place():
    x = torch.zeros(1, 1, 3, 4)
    with pytest.raises(ValueError, match=r"bias is \(3, 3\) torch.bool"):
        attention(x, x, x, bias=torch.ones(3, 3, dtype=torch.bool))


def test_a_bias_in_float32_meets_a_bfloat16_model():
    x = torch.zeros(1, 1, 3, 4, dtype=torch.bfloat16)
    steps = attention(x, x, x, bias=torch.zeros(3, 3))
    assert {step.dtype for step in steps} == {torch.bfloat16}


def test_a_key_of_one_axis_is_refused():
    with pytest.raises(ValueError, match="key has shape"):
        attention(torch.zeros(1, 1, 2, 4), torch.zeros(4), torch.zeros(4))


def test_the_lowest_finite_bias_does_not_empty_a_row():
    x = torch.zeros(1, 1, 3, 4)
    lowest = torch.full((3, 3), torch.finfo(torch.float32).min)
    weights = attention(x, x, x, bias=lowest).weights
    torch.testing.assert_close(weights, torch.full((1, 1, 3, 3), 1 / 3))
