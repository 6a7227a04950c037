"""RoPE: properties, complex numbers as oracle, golden numbers, edges, words."""

import cmath
import math

import pytest
import torch
from golden_entries import assert_met, entries_of, group_of, wave
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from coursekit.attention import attention
from coursekit.rope import (
    adjacent_from_halves,
    apply_partial_rope,
    apply_rope,
    apply_two_axis_rope,
    rotate_pairs,
    rotations,
    xpos_scales,
)
from coursekit.sinusoidal import pair_frequencies, position_angles

even_widths = st.integers(1, 5).map(lambda pairs: 2 * pairs)
bases = st.floats(1.5, 1e6)
starts = st.integers(-1000, 1000)
seeds = st.integers(0, 99)
X1234 = torch.tensor([[1.0, 2.0, 3.0, 4.0]])


def normal(*shape, seed=0, dtype=torch.float64):
    """Draw a tensor of its own seed, in float64 unless told."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def angles_from(start, length, dim, base=10_000.0):
    """Give the angles of ``length`` positions from ``start`` on."""
    return position_angles(torch.arange(start, start + length), dim, base)


def turned(x, positions, base=10_000.0):
    """Rotate by complex numbers, feature by feature: the oracle, in float64."""
    rows = x.double().reshape(-1, *x.shape[-2:]).tolist()
    width = x.shape[-1]
    for row in rows:
        for features, position in zip(row, positions, strict=True):
            for i in range(0, width, 2):
                turn = cmath.exp(1j * position * base ** (-i / width))
                product = complex(features[i], features[i + 1]) * turn
                features[i : i + 2] = product.real, product.imag
    return torch.tensor(rows, dtype=torch.float64).reshape(x.shape)


def turned_halves(x, cos, sin):
    """Rotate feature i with i + d/2 as transformers' Llama does."""
    first, second = x.chunk(2, dim=-1)
    return x * cos.repeat(1, 2) + torch.cat((-second, first), dim=-1) * sin.repeat(1, 2)


# Properties


@given(start=starts, width=even_widths, base=bases, seed=seeds)
def test_rope_score_depends_only_on_offset(start, width, base, seed):
    query, key = normal(2, 1, 1, 6, width, seed=seed)
    here, there = (angles_from(s, 6, width, base) for s in (0, start))
    scores = [
        apply_rope(query, angles) @ apply_rope(key, angles).mT
        for angles in (here, there)
    ]
    assert_close(*scores, atol=1e-10, rtol=0)  # an angle of 1,000 rounds by 1e-13


@given(start=starts, width=even_widths, seed=seeds)
def test_rope_keeps_the_length_of_every_pair(start, width, seed):
    x = normal(2, 3, 4, width, seed=seed)
    rotated = apply_rope(x, angles_from(start, 4, width))
    lengths = [y.unflatten(-1, (-1, 2)).norm(dim=-1) for y in (x, rotated)]
    assert_close(*lengths)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_position_zero_leaves_every_bit_as_it_is(dtype):
    x = normal(1, 2, 1, 8, dtype=dtype)
    assert torch.equal(apply_rope(x, angles_from(0, 1, 8)), x)


@given(one=starts, other=starts, width=even_widths)
def test_two_rotations_add_their_angles(one, other, width):
    x = normal(1, 1, 1, width)
    twice = apply_rope(
        apply_rope(x, angles_from(one, 1, width)), angles_from(other, 1, width)
    )
    once = apply_rope(x, angles_from(one + other, 1, width))
    assert_close(twice, once, atol=1e-10, rtol=0)  # three angles are rounded


@given(width=even_widths, seed=seeds)
def test_the_other_sense_scores_an_offset_as_ours_does_the_opposite(width, seed):
    query, key = normal(2, 1, 2, 1, width, seed=seed).expand(2, 1, 2, 5, width)
    angles = angles_from(0, 5, width)
    ours = apply_rope(query, angles) @ apply_rope(key, angles).mT
    other = apply_rope(query, -angles) @ apply_rope(key, -angles).mT
    assert_close(other, ours.mT)  # one query and one key everywhere: offsets alone
    assert not torch.allclose(other, ours)
    assert_close(apply_rope(apply_rope(query, angles), -angles), query)
    # So weights serve the other sense once the second feature of a pair is negated.
    sign = torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(width // 2)
    mirrored = [apply_rope(x * sign, -angles) for x in (query, key)]
    assert_close(mirrored[0] @ mirrored[1].mT, ours)


def test_a_key_is_found_at_the_offset_that_the_query_is_turned_by():
    looks_back_five = apply_rope(torch.ones(1, 1, 1, 64), angles_from(-5, 1, 64))
    query = apply_rope(looks_back_five, angles_from(40, 1, 64))
    keys = apply_rope(torch.ones(1, 1, 41, 64), angles_from(0, 41, 64))
    assert (query @ keys.mT).argmax().item() == 35


def test_the_gradient_is_turned_back():
    x = normal(2, 2, 3, 6).requires_grad_()
    angles = angles_from(2, 3, 6)
    upstream = normal(2, 2, 3, 6, seed=1)
    (gradient,) = torch.autograd.grad(apply_rope(x, angles), x, upstream)
    assert_close(gradient, apply_rope(upstream, -angles))
    assert torch.autograd.gradcheck(apply_rope, (x, angles))
    assert torch.autograd.gradcheck(apply_rope, (x, angles.requires_grad_()))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("learned", ["x", "angles", "both"])
def test_half_precision_learns_as_float64_does(dtype, learned):
    x = normal(2, 2, 3, 6, dtype=dtype).requires_grad_(learned != "angles")
    angles = angles_from(2, 3, 6).requires_grad_(learned != "x")
    for leaf in (leaf for leaf in (x, angles) if leaf.requires_grad):
        (gradient,) = torch.autograd.grad(apply_rope(x, angles).double().sum(), leaf)
        (wide,) = torch.autograd.grad(apply_rope(x.double(), angles).sum(), leaf)
        assert gradient.dtype == leaf.dtype
        assert_close(gradient.double(), wide.double(), atol=0.02, rtol=0.01)


def test_two_axes_see_how_far_apart_patches_are_and_not_where():
    query, key = normal(2, 1, 2, 12, 8)
    rows, columns = torch.arange(12) // 4, torch.arange(12) % 4

    def scores(down, right):
        angles = position_angles(rows + down, 4), position_angles(columns + right, 4)
        q, k = (apply_two_axis_rope(x, *angles) for x in (query, key))
        return q @ k.mT

    assert_close(scores(0, 0), scores(5, -7))
    # Patches 0 and 5 lie one down and one right of each other, as 6 and 11 do.
    same = apply_two_axis_rope(
        torch.ones(1, 1, 12, 8).double(),
        position_angles(rows, 4),
        position_angles(columns, 4),
    )
    products = (same @ same.mT)[0, 0]
    assert_close(products[0, 5], products[6, 11])
    assert abs(products[0, 1] - products[0, 4]) < 1e-12
    assert abs(products[0, 1] - products[0, 2]) > 0.1


def test_two_axes_turn_the_first_half_by_the_row_and_the_second_by_the_column():
    x = normal(1, 1, 3, 8)
    row, column = torch.tensor([0, 2, 5]), torch.tensor([4, 0, 1])
    angles = position_angles(row, 4), position_angles(column, 4)
    rotated = apply_two_axis_rope(x, *angles)
    assert_close(rotated[..., :4], turned(x[..., :4], row.tolist()))
    assert_close(rotated[..., 4:], turned(x[..., 4:], column.tolist()))


def test_partial_rope_passes_the_rest_untouched():
    x = normal(1, 2, 5, 10)
    rotated = apply_partial_rope(x, angles_from(3, 5, 4))
    assert torch.equal(rotated[..., 4:], x[..., 4:])
    assert_close(rotated[..., :4], turned(x[..., :4], range(3, 8)))
    whole = angles_from(3, 5, 10)
    assert torch.equal(apply_partial_rope(x, whole), apply_rope(x, whole))


# Oracles


@given(start=starts, width=even_widths, base=bases, seed=seeds)
def test_rope_is_a_product_of_complex_numbers(start, width, base, seed):
    x = normal(2, 2, 3, width, seed=seed)
    rotated = apply_rope(x, angles_from(start, 3, width, base))
    exact = turned(x, range(start, start + 3), base)
    assert_close(rotated, exact, atol=1e-10, rtol=0)  # powers differ by an ulp


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_rounded_once_at_the_end(dtype):
    x = normal(1, 2, 500, 16, dtype=dtype)
    rotated = apply_rope(x, angles_from(3000, 500, 16))
    exact = turned(x, range(3000, 3500)).to(dtype)
    assert rotated.dtype == dtype
    assert (rotated != exact).double().mean() < 0.002  # float32 rounds first: ties


def test_float32_stays_exact_a_million_positions_out():
    x = normal(1, 1, 4, 64, dtype=torch.float32)
    rotated = apply_rope(x, angles_from(1_000_000, 4, 64))
    exact = turned(x, range(1_000_000, 1_000_004))
    assert_close(rotated.double(), exact, atol=5e-7, rtol=0)  # a few ulps of 3.0
    narrow = apply_rope(x, angles_from(1_000_000, 4, 64).float())
    assert (narrow.double() - exact).abs().max() > 0.01


def test_float64_features_get_float64_rotations():
    x = normal(1, 1, 4, 8)
    rotated = apply_rope(x, angles_from(5, 4, 8))
    assert rotated.dtype == torch.float64
    assert_close(rotated, turned(x, range(5, 9)), atol=1e-14, rtol=0)
    assert rotations(angles_from(5, 4, 8), torch.float64).dtype == torch.complex128
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        assert rotations(angles_from(5, 4, 8), dtype).dtype == torch.complex64


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int64])
def test_the_cosine_of_a_narrow_angle_is_still_exact(dtype):
    angles = torch.arange(100).to(dtype).unsqueeze(-1)
    exact = torch.polar(torch.ones(100, 1).double(), angles.double())
    assert_close(rotations(angles).to(torch.complex128), exact, atol=1e-7, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("grad", [False, True])
def test_memory_may_lie_in_any_order(dtype, grad):
    angles = angles_from(7, 5, 8)
    packed = normal(2 * 3 * 5 * 8 + 3, dtype=dtype)
    layouts = {
        "split heads": normal(2, 5, 3, 8, dtype=dtype).transpose(1, 2),
        "features apart": normal(2, 3, 8, 5, dtype=dtype).mT,
        "every second feature": normal(2, 3, 5, 16, dtype=dtype)[..., ::2],
        "odd rows": normal(2, 3, 5, 9, dtype=dtype)[..., :8],
        "odd start": packed[1:-2].view(2, 3, 5, 8),
        "one head for all": normal(2, 1, 5, 8, dtype=dtype).expand(2, 3, 5, 8),
        "one number": normal(1, dtype=dtype).expand(2, 3, 5, 8),
    }
    for name, x in layouts.items():
        before = x.clone()
        x.requires_grad_(grad)
        plain = before.contiguous().requires_grad_(grad)
        rotated = apply_rope(x, angles)
        assert_close(rotated, apply_rope(plain, angles), msg=name)
        assert torch.equal(x, before), name
        assert rotated.requires_grad == grad
        if grad:
            (gradient,) = torch.autograd.grad(rotated.sum(), x)
            (wanted,) = torch.autograd.grad(apply_rope(plain, angles).sum(), plain)
            assert_close(gradient, wanted, msg=name)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_one_table_turns_query_and_key_and_is_left_as_it_was(dtype):
    query, key = normal(2, 1, 3, 5, 8, dtype=dtype)
    angles = angles_from(4, 5, 8)
    turns = rotations(angles, dtype)
    before = turns.clone()
    for x in (query, key):
        held = x.clone()
        assert torch.equal(rotate_pairs(x, turns), apply_rope(x, angles))
        assert torch.equal(x, held)
    assert torch.equal(turns, before)


def test_a_scaled_rotation_scales_what_it_turns():
    x = normal(1, 1, 3, 4)
    turns = rotations(angles_from(1, 3, 4), torch.float64)
    assert_close(rotate_pairs(x, turns * 1.5), 1.5 * rotate_pairs(x, turns))


def test_positions_per_row_turn_each_sequence_by_its_own():
    x = normal(2, 3, 4, 6)
    positions = torch.tensor([[0, 1, 2, 0], [0, 0, 0, 1]])
    rotated = apply_rope(x, position_angles(positions, 6)[:, None])
    for row, own in zip(range(2), positions.tolist(), strict=True):
        assert_close(rotated[row], turned(x[row], own))


# Golden numbers


def whole(x, angles, params):
    index = torch.arange(x.shape[-1])
    if params["layout"] == "half":
        index = adjacent_from_halves(x.shape[-1])
    return apply_rope(x[..., index], angles)[..., index.argsort()]


def partial(x, angles, params):
    turning = params["rotary_dim"]
    index = torch.arange(x.shape[-1])
    if params["layout"] == "half":
        index[:turning] = adjacent_from_halves(turning)
    return apply_partial_rope(x[..., index], angles)[..., index.argsort()]


def golden_rotations(entry):
    params = entry["params"]
    width = params.get("rotary_dim", params["D"])
    shape = [params[size] for size in "BHLD"]
    positions = torch.arange(params["L"]) + params.get("offset", 0)
    if "positions" in params:
        positions = torch.tensor(params["positions"])
    angles = position_angles(positions, width, params["base"])
    angles = angles[:, None] if positions.dim() == 2 else angles
    rotate = partial if "rotary_dim" in params else whole
    waves = {"q": wave(shape, 0.37, 0.1), "k": wave(shape, 0.53, 0.2)}
    mine = {name: rotate(x, angles, params) for name, x in waves.items()}
    mine["scores"] = mine["q"] @ mine["k"].mT
    return mine


def golden_xpos(entry):
    params = entry["params"]
    shape = [params[size] for size in "BHLD"]
    length, width = params["L"], params["D"]
    turns = rotations(position_angles(torch.arange(length), width, params["base"]))
    centred = torch.arange(length) - length // 2
    scales = xpos_scales(centred, width, params["scale_base"])
    query, key = wave(shape, 0.37, 0.1), wave(shape, 0.53, 0.2)
    return {
        "q": rotate_pairs(query, turns * scales),
        "k": rotate_pairs(key, turns / scales),
    }


def golden_bfloat16(entry):
    params = entry["params"]
    positions = torch.tensor(params["positions"])
    angles = position_angles(positions, params["d"], params["base"])
    ones = torch.tensor([1.0, 0.0]).repeat(params["d"] // 2)
    x = ones.expand(1, 1, len(positions), -1).bfloat16()
    hands = apply_rope(x, angles)[0, 0].unflatten(-1, (-1, 2)).float()
    return {"cos": hands[..., 0], "sin": hands[..., 1]}


GOLDEN = {"xpos_interleaved": golden_xpos, "rope_cos_sin_bf16": golden_bfloat16}


@pytest.mark.parametrize("entry", entries_of("rope"))
def test_rope_meets_the_golden_numbers_in_every_layout(entry):
    mine = GOLDEN.get(group_of(entry), golden_rotations)(entry)
    assert set(entry["out"]) <= set(mine)
    for name in entry["out"]:
        assert_met(entry, name, mine[name])


# The other pairing, and checkpoints


@given(width=even_widths, seed=seeds)
def test_halves_and_adjacent_pairs_differ_by_a_permutation(width, seed):
    halves = normal(1, 2, 5, width, seed=seed)
    angles = angles_from(3, 5, width)
    index = adjacent_from_halves(width)
    assert index.sort().values.tolist() == list(range(width))
    other = turned_halves(halves, angles.cos(), angles.sin())
    assert_close(apply_rope(halves[..., index], angles), other[..., index])
    assert_close(apply_rope(halves[..., index], angles)[..., index.argsort()], other)


@pytest.mark.parametrize("key_heads", [4, 2])
def test_a_checkpoint_converts_both_ways_with_equal_scores(key_heads):
    x, angles, width = normal(1, 5, 12), angles_from(0, 5, 6), 6
    weights = {4: normal(24, 12, seed=1), key_heads + 8: normal(key_heads * 6, 12)}
    index = adjacent_from_halves(width)

    def convert(weight, order):
        return weight.unflatten(0, (-1, width))[:, order].flatten(0, 1)

    def rotated(weight, rotate):
        heads = (x @ weight.T).unflatten(-1, (-1, width)).transpose(1, 2)
        return rotate(heads).repeat_interleave(24 // len(weight), dim=1)

    def adjacent(heads):
        return apply_rope(heads, angles)

    def halves(heads):
        return turned_halves(heads, angles.cos(), angles.sin())

    query, key = weights.values()
    before = rotated(query, halves) @ rotated(key, halves).mT
    moved = [convert(weight, index) for weight in (query, key)]
    after = rotated(moved[0], adjacent) @ rotated(moved[1], adjacent).mT
    assert_close(after, before)
    unmoved = rotated(query, adjacent) @ rotated(key, adjacent).mT
    assert (unmoved - before).abs().max() > 1
    for one, other in zip(moved, (query, key), strict=True):
        assert torch.equal(convert(one, index.argsort()), other)


# xPos


def test_xpos_damps_keys_behind_and_lets_those_ahead_grow():
    ones = torch.ones(1, 1, 401, 32, dtype=torch.float64)
    scales = xpos_scales(torch.arange(401) - 200, 32, scale_base=64)
    turns = torch.ones(401, 16, dtype=torch.complex128)
    query, key = rotate_pairs(ones, turns * scales), rotate_pairs(ones, turns / scales)
    scores = (query @ key.mT)[0, 0]
    assert (scores[200].diff() > 0).all()  # nearer keys weigh more, later ones most
    assert_close(scores[:-3, :-3], scores[3:, 3:])
    assert scores[200, 200].item() == pytest.approx(32)
    zetas = [(2 * i + 0.4 * 32) / (1.4 * 32) for i in range(16)]
    behind = sum(2 * zeta ** (100 / 64) for zeta in zetas)
    assert scores[300, 200].item() == pytest.approx(behind)


def test_a_common_centre_of_xpos_cancels():
    query, key = normal(2, 1, 1, 6, 8)
    turns = rotations(angles_from(0, 6, 8), torch.float64)
    scores = []
    for centre in (0, 3, 2.5):
        scales = xpos_scales(torch.arange(6) - centre, 8)
        q, k = rotate_pairs(query, turns * scales), rotate_pairs(key, turns / scales)
        scores.append(q @ k.mT)
    assert_close(scores[0], scores[1])
    assert_close(scores[0], scores[2])


def test_xpos_overflows_where_the_docstring_says():
    factors = 1 / xpos_scales(torch.tensor([4532, 4533]), 64, scale_base=64)
    assert factors.float().isfinite().all(dim=-1).tolist() == [True, False]
    factors = 1 / xpos_scales(torch.tensor([566, 567]), 64, scale_base=64)
    assert factors.half().isfinite().all(dim=-1).tolist() == [True, False]
    edge = torch.tensor([70.0, 8.0])[:, None] * torch.tensor([64.0, 512.0])
    for base, (wide, half) in zip((64.0, 512.0), edge.T, strict=True):
        assert (1 / xpos_scales(wide[None], 64, base)).float().isfinite().all()
        assert (1 / xpos_scales(half[None], 64, base)).half().isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_xpos_keeps_the_dtype_and_takes_a_batch_of_positions(dtype):
    positions = torch.tensor([[0, 1, 2], [5, 7, 9]])
    scales = xpos_scales(positions, 8)
    assert scales.shape == (2, 3, 4)
    turns = rotations(position_angles(positions, 8), dtype)
    x = normal(2, 2, 3, 8, dtype=dtype)
    rotated = rotate_pairs(x, (turns * scales)[:, None])
    assert rotated.dtype == dtype
    for row in range(2):
        one = rotate_pairs(x[row], turns[row] * xpos_scales(positions[row], 8))
        assert torch.equal(rotated[row], one)


# Faults that shipped


def test_repeated_angles_of_one_pairing_do_not_fit_the_other():
    angles = angles_from(1, 1, 4)
    mixed = [x.repeat_interleave(2, dim=-1) for x in (angles.cos(), angles.sin())]
    swapped = torch.cat((-X1234[..., 2:], X1234[..., :2]), dim=-1)
    slip = X1234 * mixed[0] + swapped * mixed[1]
    assert slip[0].tolist() == pytest.approx([-1.984, -2.285, 3.010, 4.020], abs=1e-3)
    assert slip.norm().item() == pytest.approx(5.863, abs=1e-3)
    ours = apply_rope(X1234, angles)
    assert ours[0].tolist() == pytest.approx([-1.143, 1.922, 2.960, 4.030], abs=1e-3)
    index = adjacent_from_halves(4)
    halves = apply_rope(X1234[:, index], angles)[:, index.argsort()]
    assert halves[0].tolist() == pytest.approx([-1.984, 1.960, 2.462, 4.020], abs=1e-3)
    assert ours.norm().item() == pytest.approx(5.477, abs=1e-3)


def test_cosine_and_sine_have_their_places():
    angles = angles_from(0, 1, 4)
    swapped = torch.cat((-X1234[..., 2:], X1234[..., :2]), dim=-1)
    slip = X1234 * angles.sin().repeat(1, 2) + swapped * angles.cos().repeat(1, 2)
    assert slip[0].tolist() == [-3, -4, 1, 2]
    assert torch.equal(apply_rope(X1234, angles), X1234)


def test_the_length_turns_and_not_the_heads():
    tokens = torch.ones(1, 2, 2, 2)  # (batch, length, heads, head_dim)
    angles = angles_from(0, 2, 2)

    def angle_of(x):
        return math.atan2(x[1], x[0]) - math.atan2(1, 1)

    slip = apply_rope(tokens, angles)[0, 1, 0]
    assert angle_of(slip) == pytest.approx(0, abs=1e-6)
    right = apply_rope(tokens.transpose(1, 2), angles).transpose(1, 2)[0, 1, 0]
    assert angle_of(right) == pytest.approx(1, abs=1e-6)


def test_partial_rotation_pairs_within_the_part_that_turns():
    one = torch.zeros(1, 8, dtype=torch.float64)
    one[0, 0] = 1
    angles = angles_from(1, 1, 4)
    slip = turned_halves(one, *(torch.cat((x, x * 0), -1) for x in (angles, angles)))
    assert slip[0].nonzero().flatten().tolist() == [0, 4]
    index = torch.cat((adjacent_from_halves(4), torch.arange(4, 8)))
    ours = apply_partial_rope(one[:, index], angles)[:, index.argsort()]
    assert ours[0].nonzero().flatten().tolist() == [0, 2]
    assert ours[0, 2].item() == pytest.approx(math.sin(1))


def test_values_stay_unrotated_so_that_only_offsets_count():
    query, key, value = normal(3, 1, 2, 5, 8)

    def output(start, *, values_too):
        angles = angles_from(start, 5, 8)
        turned_value = apply_rope(value, angles) if values_too else value
        q, k = (apply_rope(x, angles) for x in (query, key))
        return attention(q, k, turned_value).output

    assert_close(output(0, values_too=False), output(100, values_too=False))
    slip = output(0, values_too=True) - output(100, values_too=True)
    assert slip.abs().max() > 0.1


@pytest.mark.parametrize(
    ("dtype", "least", "most"),
    [
        (torch.bfloat16, 1.9, 2.0),
        (torch.float16, 0.7, 0.9),
        (torch.float32, 5e-5, 8e-5),
        (torch.float64, 0.0, 3.1e-8),  # half an ulp of float32
    ],
)
def test_angles_must_not_be_made_in_low_precision(dtype, least, most):
    exact = angles_from(0, 2048, 32).cos()
    angles = torch.arange(2048).to(dtype)[:, None] * pair_frequencies(32).to(dtype)
    assert least <= (rotations(angles).real - exact).abs().max() <= most
    ours = rotations(angles_from(0, 2048, 32))
    assert (ours.real - exact).abs().max() <= 3.1e-8
    assert (ours.imag - angles_from(0, 2048, 32).sin()).abs().max() <= 3.1e-8


def test_a_decoding_step_goes_on_where_the_prompt_ended():
    query, key = normal(2, 1, 2, 7, 8)
    full = (
        apply_rope(query, angles_from(0, 7, 8))
        @ apply_rope(key, angles_from(0, 7, 8)).mT
    )
    cached = torch.cat(
        (
            apply_rope(key[:, :, :6], angles_from(0, 6, 8)),
            apply_rope(key[:, :, 6:], angles_from(6, 1, 8)),
        ),
        dim=2,
    )
    step = apply_rope(query[:, :, 6:], angles_from(6, 1, 8)) @ cached.mT
    assert_close(step, full[:, :, 6:])
    slip = apply_rope(query[:, :, 6:], angles_from(0, 1, 8)) @ cached.mT
    assert (slip - full[:, :, 6:]).abs().max() > 0.1


def test_no_call_remembers_the_one_before():
    calls = [
        (start, length, width, dtype)
        for start in (0, 5)
        for length in (3, 4)
        for width in (4, 8)
        for dtype in (torch.float32, torch.bfloat16, torch.float64)
    ]
    for start, length, width, dtype in calls + calls[::-1]:
        x = normal(1, 2, length, width, dtype=dtype)
        rotated = apply_rope(x, angles_from(start, length, width))
        exact = turned(x, range(start, start + length))
        assert rotated.dtype == dtype
        assert_close(rotated.double(), exact, atol=0.02, rtol=0.01)  # bfloat16 too
        meta = apply_rope(x.to("meta"), angles_from(start, length, width).to("meta"))
        assert (meta.device.type, meta.shape) == ("meta", x.shape)


# Boundaries


def test_one_token_and_no_token_are_lengths_too():
    x = normal(2, 3, 1, 4)
    assert_close(apply_rope(x, angles_from(9, 1, 4)), turned(x, [9]))
    assert apply_rope(x[:, :, :0], angles_from(0, 0, 4)).shape == (2, 3, 0, 4)


def test_fewer_axes_and_more_are_fine():
    angles = angles_from(2, 3, 4)
    for shape in [(3, 4), (5, 3, 4), (2, 2, 2, 3, 4)]:
        x = normal(*shape)
        assert_close(apply_rope(x, angles), turned(x, range(2, 5)))
        assert_close(
            apply_rope(x, angles.expand(*shape[:-2], 3, 2)), apply_rope(x, angles)
        )


@pytest.mark.parametrize(
    ("dtype", "grad"), [(torch.float32, True), (torch.bfloat16, False)]
)
def test_rope_compiles_as_one_graph(dtype, grad):
    x = normal(1, 2, 5, 8, dtype=dtype).requires_grad_(grad)
    apart = normal(1, 2, 8, 5, dtype=dtype).mT.requires_grad_(grad)
    part, rest = angles_from(1, 5, 4), angles_from(0, 5, 4)
    cases = [
        (apply_rope, (x, angles_from(1, 5, 8))),
        (apply_rope, (apart, angles_from(1, 5, 8))),
        (apply_partial_rope, (x, part)),
        (apply_two_axis_rope, (x, part, rest)),
    ]
    for function, arguments in cases:
        compiled = torch.compile(function, fullgraph=True, backend="eager")
        assert torch.equal(compiled(*arguments), function(*arguments))


def test_meta_tensors_pass_through():
    meta = torch.arange(5, device="meta")
    x = torch.empty(1, 2, 5, 8, device="meta", dtype=torch.bfloat16)
    rotated = apply_rope(x, position_angles(meta, 8))
    assert (rotated.shape, rotated.dtype) == (x.shape, x.dtype)
    assert xpos_scales(meta, 8).device.type == "meta"
    assert rotate_pairs(x, rotations(angles_from(0, 5, 8))).device.type == "meta"


# Messages


@pytest.mark.parametrize("width", [1, 7])
def test_an_odd_head_dim_is_refused(width):
    with pytest.raises(ValueError, match=f"head_dim is {width}, .* must be even"):
        apply_rope(torch.ones(1, 1, 3, width), torch.ones(3, width // 2))
    with pytest.raises(ValueError, match=f"head_dim is {width}, .* must be even"):
        adjacent_from_halves(width)
    with pytest.raises(ValueError, match=f"dim is {width}, .* must be even"):
        xpos_scales(torch.arange(3), width)
    even = torch.ones(1, 1, 3, width + 1)
    assert apply_rope(even, torch.ones(3, (width + 1) // 2)).shape == even.shape


def test_a_batch_of_angles_cannot_meet_the_heads():
    x = torch.ones(2, 2, 5, 8)
    angles = torch.ones(2, 5, 4)
    message = r"angles has shape \(2, 5, 4\), but x is \(2, 2, 5, 8\).*angles\[:, None"
    with pytest.raises(ValueError, match=message):
        apply_rope(x, angles)
    with pytest.raises(ValueError, match=message):
        apply_rope(x, angles[:1].expand(2, 5, 4))
    with pytest.raises(ValueError, match=r"turns has shape .*turns\[:, None\]"):
        rotate_pairs(x, rotations(angles))
    assert apply_rope(x, angles[:, None]).shape == x.shape


@pytest.mark.parametrize(
    "shape",
    [(1, 4), (6, 4), (5, 3), (5, 8), (4,), (3, 1, 5, 4), (1, 3, 5, 4), (1, 5, 4)],
)
def test_angles_that_would_broadcast_are_refused(shape):
    x = torch.ones(2, 2, 5, 8)
    with pytest.raises(ValueError, match=r"must be \(5, 4\), one row for each pos"):
        apply_rope(x, torch.ones(shape))
    for fits in [(5, 4), (1, 1, 5, 4), (2, 1, 5, 4), (1, 2, 5, 4), (2, 2, 5, 4)]:
        assert apply_rope(x, torch.ones(fits)).shape == x.shape


def test_a_single_vector_has_no_position():
    with pytest.raises(ValueError, match=r"x is \(8,\), so it must be \(4,\)"):
        apply_rope(torch.ones(8), torch.ones(1, 4))
    assert apply_rope(torch.ones(1, 8), torch.ones(1, 4)).shape == (1, 8)


def test_a_batch_of_x_smaller_than_that_of_angles_is_refused():
    with pytest.raises(ValueError, match=r"angles has shape \(2, 1, 5, 4\), but x is"):
        apply_rope(torch.ones(1, 3, 5, 8), torch.ones(2, 1, 5, 4))


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
def test_whole_numbers_are_refused_before_they_lose_their_fractions(dtype):
    x = torch.ones(1, 1, 3, 4).to(dtype)
    with pytest.raises(ValueError, match=f"x is {dtype}, .* Use x.float"):
        apply_rope(x, torch.ones(3, 2))
    assert apply_rope(x.real.float(), torch.ones(3, 2)).dtype == torch.float32


def test_partial_rope_refuses_more_angles_than_features():
    x = torch.ones(1, 1, 3, 8)
    with pytest.raises(ValueError, match="turn 10 features, but head_dim is only 8"):
        apply_partial_rope(x, torch.ones(3, 5))
    with pytest.raises(ValueError, match=r"must be \(3, 2\)"):
        apply_partial_rope(x, torch.ones(2, 2))
    assert apply_partial_rope(x, torch.ones(3, 4)).shape == x.shape


def test_two_axes_must_have_the_same_shape_and_fill_the_head():
    x = torch.ones(1, 1, 3, 8)
    with pytest.raises(ValueError, match=r"column_angles has shape \(3, 1\).*\(3, 2\)"):
        apply_two_axis_rope(x, torch.ones(3, 2), torch.ones(3, 1))
    with pytest.raises(ValueError, match=r"angles has shape \(3, 2\).*\(3, 4\)"):
        apply_two_axis_rope(x, torch.ones(3, 1), torch.ones(3, 1))
    assert apply_two_axis_rope(x, torch.ones(3, 2), torch.ones(3, 2)).shape == x.shape


def test_xpos_refuses_a_base_that_is_no_length():
    for base in (0, -1, math.inf):
        with pytest.raises(ValueError, match=f"scale_base is {base}, .* above 0"):
            xpos_scales(torch.arange(3), 4, base)
    with pytest.raises(ValueError, match="positions is 3, but positions are"):
        xpos_scales(3, 4)
    assert xpos_scales(torch.arange(3), 4, 0.5).shape == (3, 2)
