"""ALiBi: properties, loops and torch's attention as oracles, golden numbers, words."""

import math

import pytest
import torch
from golden_entries import all_entries, assert_met, entries_of, group_of, wave
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import pad, scaled_dot_product_attention
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from coursekit.alibi import (
    alibi_bias,
    alibi_slopes,
    causal_alibi,
    fold_alibi,
    geometric_slopes,
    kerple_bias,
)
from coursekit.attention import attention, causal_mask
from coursekit.position import positions_from_mask

head_counts = st.integers(1, 12)
seeds = st.integers(0, 99)
rows_of_positions = st.lists(st.integers(-500, 500), min_size=1, max_size=6)


def normal(*shape, seed=0, dtype=torch.float64):
    """Draw a tensor of its own seed, in float64 unless told."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def authors_slopes(n):
    """Compute the slopes as the released code does, by recursion."""
    if math.log2(n).is_integer():
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]
    below = 2 ** math.floor(math.log2(n))
    return authors_slopes(below) + authors_slopes(2 * below)[0::2][: n - below]


def looped_bias(num_heads, queries, keys):
    """Fill -slope · distance entry by entry."""
    return [
        [[-slope * abs(key - query) for key in keys] for query in queries]
        for slope in authors_slopes(num_heads)
    ]


def doubles(numbers):
    return torch.tensor(numbers, dtype=torch.float64)


class Sizes(TorchDispatchMode):
    """Note how many elements the largest tensor of each operation has."""

    largest = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, tuple | list) else (out,):
            if isinstance(tensor, torch.Tensor):
                self.largest = max(self.largest, tensor.numel())
        return out


# Properties


@given(num_heads=st.integers(1, 200))
def test_every_head_has_a_slope_of_its_own_between_zero_and_one(num_heads):
    slopes = alibi_slopes(num_heads, torch.float64)
    assert slopes.shape == (num_heads,)
    assert len(set(slopes.tolist())) == num_heads
    assert ((slopes > 0) & (slopes < 1)).all()


@given(power=st.integers(0, 7))
def test_text_and_code_agree_on_powers_of_two_and_end_at_one_in_256(power):
    slopes = alibi_slopes(2**power, torch.float64)
    assert torch.equal(slopes, geometric_slopes(2**power, torch.float64))
    assert slopes[-1] == 2**-8
    assert (slopes.diff() < 0).all()


@pytest.mark.parametrize("num_heads", [3, 6, 12, 20])
def test_text_and_code_differ_elsewhere(num_heads):
    text, code = geometric_slopes(num_heads), alibi_slopes(num_heads)
    assert (text.diff() < 0).all()
    assert text[-1] == 2**-8
    assert not (code.diff() < 0).all()
    ratios = text[1:] / text[:-1]
    assert_close(ratios, ratios[:1].expand_as(ratios))


@given(num_heads=head_counts, queries=rows_of_positions, keys=rows_of_positions)
def test_the_bias_is_never_positive_and_zero_only_at_the_query(
    num_heads, queries, keys
):
    bias = alibi_bias(num_heads, torch.tensor(queries), torch.tensor(keys))
    assert bias.shape == (num_heads, len(queries), len(keys))
    same = torch.tensor(queries)[:, None] == torch.tensor(keys)
    assert (bias <= 0).all()
    assert torch.equal(bias == 0, same.expand_as(bias))


@given(num_heads=head_counts, row=rows_of_positions, shift=st.integers(-9999, 9999))
def test_the_bias_depends_on_distance_alone(num_heads, row, shift):
    row = torch.tensor(row)
    bias = alibi_bias(num_heads, row, row)
    assert torch.equal(bias, alibi_bias(num_heads, row + shift, row + shift))
    assert torch.equal(bias, bias.mT)


def test_without_a_mask_a_sentence_and_its_reverse_look_alike():
    query, key, value = normal(3, 1, 4, 6, 8)
    bias = alibi_bias(4, *[torch.arange(6.0, dtype=torch.float64)] * 2)
    forward = attention(query, key, value, bias=bias).output
    reverse = attention(*(x.flip(2) for x in (query, key, value)), bias=bias).output
    assert_close(reverse.flip(2), forward)
    mask = causal_mask(torch.arange(6), torch.arange(6))
    forward = attention(query, key, value, bias=bias, mask=mask).output
    backward = [x.flip(2) for x in (query, key, value)]
    reverse = attention(*backward, bias=bias, mask=mask).output
    assert (reverse.flip(2) - forward).abs().max() > 0.1


@given(num_heads=head_counts, seed=seeds)
def test_full_and_key_only_and_folded_are_the_same_attention(num_heads, seed):
    query, key, value = normal(3, 2, num_heads, 7, 5, seed=seed)
    positions = torch.arange(7.0, dtype=torch.float64)
    mask = causal_mask(positions, positions)
    full = alibi_bias(num_heads, positions, positions)
    key_only = alibi_bias(num_heads, positions[-1:], positions)
    outputs = [
        attention(query, key, value, bias=bias, mask=mask).output
        for bias in (full, key_only)
    ]
    folded_query, folded_key = fold_alibi(query, key, positions)
    assert folded_query.shape == folded_key.shape == (2, num_heads, 7, 6)
    outputs += [
        scaled_dot_product_attention(folded_query, folded_key, value, is_causal=True),
        attention(folded_query, folded_key, value, mask=mask).output,
        causal_alibi(query, key, value, positions),
    ]
    for output in outputs[1:]:
        assert_close(output, outputs[0])


def test_folding_changes_neither_its_inputs_nor_the_features_of_the_key():
    query, key = normal(2, 1, 3, 5, 4)
    held = query.clone(), key.clone()
    folded_query, folded_key = fold_alibi(query, key, torch.arange(5))
    assert torch.equal(query, held[0])
    assert torch.equal(key, held[1])
    assert torch.equal(folded_key[..., :4], key)
    assert_close(folded_query[..., :4] / math.sqrt(5 / 4), query)
    assert folded_key[0, 0, :, 4].tolist() == [-2, -1, 0, 1, 2]


@given(rate=st.floats(0.01, 10), num_heads=head_counts)
def test_kerple_falls_ever_more_slowly_with_distance(rate, num_heads):
    scale = torch.linspace(0.5, 2, num_heads).double()
    rates = torch.full_like(scale, rate)
    bias = kerple_bias(scale, rates, torch.tensor([50]), torch.arange(101))[:, 0]
    assert torch.equal(bias, bias.flip(-1))
    steps = bias[:, 50:].diff()
    assert (steps < 0).all()
    assert (steps.diff() > 0).all()
    assert (bias[:, 50] == 0).all()


def test_kerple_with_a_small_rate_is_alibi():
    slopes = alibi_slopes(6, torch.float64)
    rate = torch.full_like(slopes, 1e-9)
    row = torch.arange(5)
    near = kerple_bias(slopes / rate, rate, row, row)
    assert_close(near, alibi_bias(6, row.double(), row.double()), atol=1e-6, rtol=0)


def test_kerple_learns_both_numbers_of_a_head():
    scale = doubles([0.5, 1.0, 2.0]).requires_grad_()
    rate = doubles([0.1, 1.0, 3.0]).requires_grad_()
    row = torch.arange(4)
    assert torch.autograd.gradcheck(
        lambda *learned: kerple_bias(*learned, row, row), (scale, rate)
    )


# Oracles


@given(num_heads=st.integers(1, 130))
def test_slopes_are_those_of_the_released_recursion(num_heads):
    slopes = alibi_slopes(num_heads, torch.float64)
    assert_close(slopes, doubles(authors_slopes(num_heads)), rtol=1e-14, atol=0)
    assert torch.equal(alibi_slopes(num_heads), slopes.float())


@given(num_heads=st.integers(1, 40))
def test_the_texts_slopes_are_powers_of_one_start(num_heads):
    start = 2 ** (-8 / num_heads)
    powers = [start**head for head in range(1, num_heads + 1)]
    slopes = geometric_slopes(num_heads, torch.float64)
    assert_close(slopes, doubles(powers), rtol=1e-14, atol=0)  # not rounded to float32


@given(num_heads=head_counts, queries=rows_of_positions, keys=rows_of_positions)
def test_the_bias_is_what_loops_fill_in(num_heads, queries, keys):
    wanted = doubles(looped_bias(num_heads, queries, keys))
    bias = alibi_bias(num_heads, doubles(queries), doubles(keys))
    assert_close(bias, wanted, rtol=1e-14, atol=0)  # not rounded to float32
    single = alibi_bias(num_heads, torch.tensor(queries), torch.tensor(keys))
    assert single.dtype == torch.float32
    assert_close(single, wanted.float())


def test_each_row_of_positions_has_its_own_bias():
    queries, keys = torch.tensor([[5, 6], [0, 9]]), torch.tensor([[0, 5, 6], [3, 0, 9]])
    bias = alibi_bias(3, queries, keys)
    assert bias.shape == (2, 3, 2, 3)
    for row in range(2):
        assert torch.equal(bias[row], alibi_bias(3, queries[row], keys[row]))
    shared = alibi_bias(3, torch.tensor([5, 6]), keys)
    assert torch.equal(shared[0], bias[0])


@given(
    num_heads=st.integers(1, 9),
    width=st.integers(1, 6),
    row=st.lists(st.floats(-1000, 1000), min_size=1, max_size=6).map(sorted),
    seed=seeds,
)
def test_folded_attention_is_torchs_with_a_bias_tensor(num_heads, width, row, seed):
    query, key, value = normal(3, 1, num_heads, len(row), width, seed=seed)
    positions = doubles(row)
    bias = doubles(looped_bias(num_heads, row, row))
    future = torch.ones(len(row), len(row), dtype=torch.bool).triu(1)
    bias = bias.masked_fill(future, -math.inf)
    wanted = scaled_dot_product_attention(query, key, value, attn_mask=bias)
    folded = fold_alibi(query, key, positions)
    output = scaled_dot_product_attention(*folded, value, is_causal=True)
    assert_close(output, wanted, atol=1e-11, rtol=0)  # a bias of 1,000 rounds by 1e-13
    fast = causal_alibi(query, key, value, positions)
    assert_close(fast, wanted, atol=1e-11, rtol=0)


def test_folding_holds_in_float32_at_4096():
    query, key, value = normal(3, 1, 8, 4096, 64, dtype=torch.float32)
    pick = torch.tensor([0, 1, 7, 1000, 2047, 2048, 3000, 4094, 4095])
    output = causal_alibi(query, key, value, torch.arange(4096))[:, :, pick]
    bias = alibi_bias(8, pick.double(), torch.arange(4096))
    mask = causal_mask(pick, torch.arange(4096))
    query, key, value = query[:, :, pick].double(), key.double(), value.double()
    wanted = attention(query, key, value, bias=bias, mask=mask).output
    # A logit of -1,024 rounds by 6e-5; counted from the last key it would be 1.2e-4.
    assert_close(output.double(), wanted, atol=1e-4, rtol=0)


def test_left_padding_folds_with_positions_per_row():
    real = torch.tensor([[False, False, True, True, True], [True] * 5])
    positions = positions_from_mask(real)
    query, key, value = normal(3, 2, 6, 5, 4)
    mask = causal_mask(torch.arange(5), torch.arange(5)) & real[:, None, None]
    bias = alibi_bias(6, positions.double(), positions.double())
    wanted = attention(query, key, value, bias=bias, mask=mask).output
    folded = fold_alibi(query, key, positions)
    output = scaled_dot_product_attention(*folded, value, attn_mask=mask)
    assert_close(output, wanted)


def test_grouped_queries_and_a_cache_fold_too():
    query, key, value = normal(1, 6, 1, 4), normal(1, 2, 5, 4), normal(1, 2, 5, 4)
    folded_query, folded_key = fold_alibi(query, key, torch.arange(5))
    assert folded_key.shape == (1, 2, 5, 5)
    output = scaled_dot_product_attention(
        folded_query, folded_key, value, enable_gqa=True
    )
    bias = alibi_bias(6, doubles([4]), torch.arange(5))
    wanted = attention(
        query,
        key.repeat_interleave(3, dim=1),
        value.repeat_interleave(3, dim=1),
        bias=bias,
    ).output
    assert_close(output, wanted)


def test_folding_learns_as_the_bias_tensor_does():
    inputs = [x.requires_grad_() for x in normal(3, 1, 3, 5, 4).unbind()]
    upstream = normal(1, 3, 5, 4, seed=1)
    positions = torch.arange(5.0, dtype=torch.float64)
    mask = causal_mask(positions, positions)
    bias = alibi_bias(3, positions, positions)
    plain = attention(*inputs, bias=bias, mask=mask).output
    fast = causal_alibi(*inputs, positions)
    wanted = torch.autograd.grad(plain, inputs, upstream)
    for mine, other in zip(
        torch.autograd.grad(fast, inputs, upstream), wanted, strict=True
    ):
        assert_close(mine, other)


def test_the_fast_path_builds_no_scores():
    query, key, value = normal(3, 1, 4, 600, 16, dtype=torch.float32)
    positions = torch.arange(600)
    with Sizes() as sizes:
        causal_alibi(query, key, value, positions)
    assert sizes.largest == 4 * 600 * 17
    # A value one narrower than the folded query sends torch to its slow path.
    with Sizes() as sizes:
        folded = fold_alibi(query, key, positions)
        assert sizes.largest == 4 * 600 * 17
        scaled_dot_product_attention(*folded, value, is_causal=True)
    assert sizes.largest >= 4 * 600 * 600


def test_kerple_is_what_loops_fill_in():
    scale, rate = [0.5, 2.0], [0.1, 3.0]
    queries, keys = [3, 0], [0, 1, 5]
    wanted = [
        [[-s * math.log(1 + r * abs(j - i)) for j in keys] for i in queries]
        for s, r in zip(scale, rate, strict=True)
    ]
    mine = kerple_bias(
        doubles(scale), doubles(rate), torch.tensor(queries), torch.tensor(keys)
    )
    assert_close(mine, doubles(wanted))
    rows = torch.tensor([[0, 1], [4, 9]])
    batched = kerple_bias(torch.ones(2), torch.ones(2), rows, rows)
    assert batched.shape == (2, 2, 2, 2)
    assert batched.dtype == torch.float32
    assert_close(batched[1, 0, 0, 1].item(), -math.log(6))


# Golden numbers


def key_only(num_heads, key_positions, power=1):
    """Take the row of the last query, of which others differ by a constant."""
    last = key_positions[..., -1:]
    slopes = alibi_slopes(num_heads)[:, None, None]
    return alibi_bias(num_heads, last, key_positions) * slopes ** (power - 1)


def golden_slopes(params):
    return alibi_slopes(params["heads"])


def golden_mpt(params):
    # A maximum of 16 in place of 8 squares every slope.
    power = params.get("bias_max", 8) // 8
    return key_only(params["heads"], torch.arange(params["L"]), power)


def golden_bloom(params):
    heads = params["heads"]
    positions = positions_from_mask(torch.tensor(params["mask"]).bool())
    constant = alibi_slopes(heads)[:, None, None] * positions[:, None, None, -1:]
    return (key_only(heads, positions) + constant).flatten(0, 1)


def golden_full(params):
    keys = torch.arange(params["j"])
    bias = alibi_bias(params["heads"], keys[-params["i"] :], keys)
    return pad(bias, (0, 0, 0, 0, 0, params["total_heads"] - params["heads"]))


FORMS = {
    "alibi_slopes": golden_slopes,
    "alibi_mpt": golden_mpt,
    "alibi_bloom": golden_bloom,
    "alibi_full": golden_full,
}


@pytest.mark.parametrize("entry", entries_of("alibi"))
def test_alibi_meets_the_golden_numbers_in_every_form(entry):
    (name,) = entry["out"]
    assert_met(entry, name, FORMS[group_of(entry)](entry["params"]))


def test_both_forms_meet_the_golden_attention():
    (entry,) = (e for e in all_entries() if e["id"] == "attention/causal_alibi_L5_D4")
    shape = [entry["params"][size] for size in "BHLD"]
    formulas = ((0.37, 0.1), (0.53, 0.2), (0.71, 0.3))
    query, key, value = (wave(shape, *formula).double() for formula in formulas)
    positions = torch.arange(shape[2]).double()
    bias = alibi_bias(shape[1], positions, positions)
    mask = causal_mask(positions, positions)
    plain = attention(query, key, value, bias=bias, mask=mask).output
    assert_met(entry, "out", plain)
    assert_met(entry, "out", causal_alibi(query, key, value, positions))


# Faults that shipped


def test_six_heads_do_not_follow_the_closed_form():
    slip = [0.397, 0.157, 0.0625, 0.0248, 0.0098, 0.0039]
    code = [0.25, 0.0625, 0.0156, 0.0039, 0.5, 0.125]
    assert geometric_slopes(6).tolist() == pytest.approx(slip, abs=5e-4)
    assert alibi_slopes(6).tolist() == pytest.approx(code, abs=5e-4)


def test_the_exponent_starts_at_one():
    slip = [2.0**-head for head in range(8)]
    assert (slip[0], slip[-1]) == (1.0, 0.0078125)
    slopes = alibi_slopes(8).tolist()
    assert (slopes[0], slopes[-1]) == (0.5, 0.00390625)


def test_the_sign_makes_near_tokens_count_for_more():
    bias = alibi_bias(8, torch.arange(3), torch.arange(3))[0]
    zeros, value = torch.zeros(1, 1, 3, 4), torch.tensor([1.0, 2.0, 3.0])
    value = value[None, None, :, None]
    mask = causal_mask(torch.arange(3), torch.arange(3))
    last = [
        attention(zeros, zeros, value, bias=b, mask=mask).output[0, 0, 2].item()
        for b in (bias, -bias)
    ]
    assert last == pytest.approx([2.3202, 1.6798], abs=1e-4)


def test_the_bias_comes_after_the_scale():
    query, key, value = normal(3, 1, 8, 5, 64)
    bias = alibi_bias(8, torch.arange(5), torch.arange(5))
    steps = attention(query, key, value, bias=bias)
    added = (steps.logits - steps.scores)[0, 0, 4, 0].item()
    assert added == pytest.approx(-2.0)
    slip = ((query @ key.mT + bias) / math.sqrt(64) - steps.scores)[0, 0, 4, 0].item()
    assert slip == pytest.approx(-0.25)
    folded_query, folded_key = fold_alibi(query, key, torch.arange(5))
    folded = (folded_query @ folded_key.mT / math.sqrt(65) - steps.scores)[0, 0, 4]
    assert (folded[0] - folded[4]).item() == pytest.approx(-2.0)


def test_a_decoding_step_spans_the_cache():
    slip = alibi_bias(8, torch.arange(1), torch.arange(1))[0].expand(1, 4)
    assert slip[0].tolist() == [0, 0, 0, 0]
    bias = alibi_bias(8, torch.tensor([3]), torch.arange(4))[0]
    assert bias[0].tolist() == [-1.5, -1, -0.5, 0]


def test_no_call_remembers_the_one_before():
    calls = [
        (heads, start, length, dtype)
        for heads in (2, 6)
        for start in (0, 5)
        for length in (3, 4)
        for dtype in (torch.float32, torch.float64)
    ]
    for heads, start, length, dtype in calls + calls[::-1]:
        keys = range(start, start + length)
        positions = torch.tensor(list(keys)).to(dtype)
        bias = alibi_bias(heads, positions, positions)
        assert bias.dtype == dtype
        assert_close(bias.double(), doubles(looped_bias(heads, keys, keys)))
        meta = alibi_bias(heads, positions.to("meta"), positions.to("meta"))
        assert (meta.device.type, meta.shape) == ("meta", bias.shape)


# Boundaries


def test_one_head_and_one_token_are_enough():
    assert alibi_slopes(1).tolist() == [2**-8]
    assert alibi_bias(1, torch.tensor([7]), torch.tensor([7])).tolist() == [[[0.0]]]
    query, key, value = normal(3, 1, 1, 1, 2)
    assert_close(causal_alibi(query, key, value, torch.tensor([9])), value)


def test_a_bias_of_whole_positions_prints_no_negative_zero():
    bias = alibi_bias(2, torch.arange(2), torch.arange(2))
    assert "-0.0000" not in str(bias)


def test_narrow_whole_numbers_do_not_wrap():
    positions = torch.tensor([0, 100, 255], dtype=torch.uint8)
    assert torch.equal(
        alibi_bias(2, positions, positions),
        alibi_bias(2, positions.long(), positions.long()),
    )
    query, key = normal(2, 1, 2, 3, 4)
    assert torch.equal(
        fold_alibi(query, key, positions)[1],
        fold_alibi(query, key, positions.long())[1],
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_folding_keeps_the_dtype(dtype):
    query, key, value = normal(3, 1, 2, 5, 4, dtype=dtype)
    for positions in (torch.arange(5), torch.arange(5.0), torch.arange(5.0).double()):
        folded = fold_alibi(query, key, positions)
        assert [x.dtype for x in folded] == [dtype, dtype]
        assert causal_alibi(query, key, value, positions).dtype == dtype


def test_alibi_compiles_as_one_graph_and_passes_meta_tensors():
    x, row, ones = normal(1, 3, 5, 4), torch.arange(5), torch.ones(3)

    def six_heads(query_positions, key_positions):
        return alibi_bias(6, query_positions, key_positions)

    cases = [
        (six_heads, (row, row)),
        (kerple_bias, (ones, ones, row, row)),
        (fold_alibi, (x, x, row)),
        (causal_alibi, (x, x, x, row)),
    ]
    for function, arguments in cases:
        plain = function(*arguments)
        compiled = torch.compile(function, fullgraph=True, backend="eager")
        assert_close(compiled(*arguments), plain)
        meta = function(*(argument.to("meta") for argument in arguments))
        for one, other in zip(meta, plain, strict=True):
            assert (one.device.type, one.shape) == ("meta", other.shape)


# Messages


@pytest.mark.parametrize("num_heads", [0, -1, 2.0, True])
def test_heads_are_counted(num_heads):
    for function in (alibi_slopes, geometric_slopes):
        with pytest.raises(
            ValueError, match=f"num_heads is {num_heads}, .* at least 1"
        ):
            function(num_heads)
        assert function(1).shape == (1,)
    with pytest.raises(ValueError, match=f"num_heads is {num_heads}, .* at least 1"):
        alibi_bias(num_heads, torch.arange(2), torch.arange(2))


def test_a_length_is_no_position():
    row = torch.arange(3)
    for arguments in ((3, row), (row, 3)):
        with pytest.raises(ValueError, match=r"positions is 3, but .*torch.arange"):
            alibi_bias(2, *arguments)
    x = normal(1, 2, 3, 4)
    with pytest.raises(ValueError, match="key_positions is 3, but positions are"):
        fold_alibi(x, x, 3)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_cannot_fold(dtype):
    narrow, wide = normal(1, 2, 3, 4, dtype=dtype), normal(1, 2, 3, 4).float()
    for query, key in ((narrow, narrow), (narrow, wide), (wide, narrow)):
        with pytest.raises(ValueError, match="half precision rounds it.*alibi_bias"):
            fold_alibi(query, key, torch.arange(3))
    assert fold_alibi(wide, wide, torch.arange(3))[0].dtype == torch.float32


def test_folding_refuses_shapes_that_do_not_fit():
    x = normal(2, 3, 5, 4)
    with pytest.raises(ValueError, match=r"key has shape \(2, 3, 5, 4\).*\(6, 4\)"):
        fold_alibi(x, x, torch.arange(6))
    with pytest.raises(ValueError, match=r"key has shape \(2, 3, 5, 3\).*\(5, 4\)"):
        fold_alibi(x, x[..., :3], torch.arange(5))
    with pytest.raises(ValueError, match=r"query is \(3, 5, 4\).*heads.*split_heads"):
        fold_alibi(x[0], x[0], torch.arange(5))
    with pytest.raises(ValueError, match=r"key_positions \(3, 5\), .*\(batch, key\)"):
        fold_alibi(x, x, torch.arange(5).expand(3, 5))
    for rows in ((), (1,), (2,)):
        folded = fold_alibi(x, x, torch.arange(5).expand(*rows, 5))
        assert [y.shape for y in folded] == [(2, 3, 5, 5)] * 2


def test_causal_alibi_refuses_other_lengths_and_widths():
    x = normal(1, 3, 5, 4)
    with pytest.raises(ValueError, match=r"value has shape \(1, 3, 5, 3\).*\(5, 4\)"):
        causal_alibi(x, x, x[..., :3], torch.arange(5))
    # Torch's causal mask would begin at the first key, and not at the last query.
    with pytest.raises(ValueError, match=r"has shape \(1, 3, 5, 4\).*\(1, 4\)"):
        causal_alibi(x[:, :, 4:], x, x, torch.arange(5))
    longer = normal(1, 3, 6, 4)
    with pytest.raises(ValueError, match=r"key has shape \(1, 3, 6, 4\).*\(5, 4\)"):
        causal_alibi(x, longer, x, torch.arange(6))
    assert causal_alibi(x, x, x, torch.arange(5)).shape == x.shape


def test_kerple_wants_both_numbers_for_each_head():
    row = torch.arange(3)
    for scale, rate in (((2,), (3,)), ((2, 1), (2, 1)), ((), ())):
        with pytest.raises(ValueError, match=r"scale is .*both must be \(heads,\)"):
            kerple_bias(torch.ones(scale), torch.ones(rate), row, row)
    assert kerple_bias(torch.ones(2), torch.ones(2), row, row).shape == (2, 3, 3)
