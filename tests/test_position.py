"""The doors: what each method changes, what it keeps, and what it never stores."""

import cmath
import math

import numpy as np
import pytest
import torch
from golden_entries import assert_met, entries_of, group_of
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close

from coursekit.attention import attention
from coursekit.position import (
    METHODS,
    NoPosition,
    Rope,
    Sinusoidal,
    XPos,
    positions_from_mask,
)
from coursekit.rope import rotate_pairs
from coursekit.sinusoidal import pair_frequencies


def draw(*shape, seed=0, dtype=torch.float32):
    """Draw one normal tensor."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def code_by_hand(position, width, base=10_000.0):
    """Compute one code with Python floats."""
    angles = [position / math.pow(base, (f - f % 2) / width) for f in range(width)]
    return [math.cos(a) if f % 2 else math.sin(a) for f, a in enumerate(angles)]


def table_by_hand(positions, width, base=10_000.0):
    """Compute the codes of a row of positions with Python floats."""
    rows = [code_by_hand(position, width, base) for position in positions]
    return torch.tensor(rows, dtype=torch.float64)


def numbered(length, width=1):
    """Make a table whose every value is its position, (length, width)."""
    return torch.arange(length, dtype=torch.float32)[:, None].expand(length, width)


# Properties


@pytest.mark.parametrize("name", sorted(METHODS))
def test_each_method_opens_at_most_one_door(name):
    method = METHODS[name](d_model=8, num_heads=2, max_length=16)
    assert isinstance(method, NoPosition)
    doors = [
        door
        for door in ("embed", "rotate", "bias")
        if getattr(type(method), door) is not getattr(NoPosition, door)
    ]
    assert len(doors) == (0 if name == "none" else 1)


def test_no_position_passes_all_doors_and_changes_nothing():
    x, positions = draw(2, 3, 4), torch.arange(3)
    nothing = NoPosition()
    assert nothing.embed(x, positions) is x
    assert nothing.rotate(x, positions) is x
    assert nothing.bias(x, positions, positions) is None


def test_sinusoidal_opens_the_first_door_alone():
    x, positions = draw(1, 2, 3, 4), torch.arange(3)
    sinusoidal = Sinusoidal()
    assert not torch.equal(sinusoidal.embed(x[0], positions), x[0])
    assert sinusoidal.rotate(x, positions) is x
    assert sinusoidal.bias(x, positions, positions) is None


@given(start=st.integers(-50, 50), length=st.integers(1, 6), width=st.integers(1, 9))
def test_what_is_added_does_not_depend_on_the_embedding(start, length, width):
    positions = torch.arange(start, start + length)
    one, other = (draw(2, length, width, seed=s, dtype=torch.float64) for s in (1, 2))
    sinusoidal = Sinusoidal()
    added = sinusoidal.embed(one, positions) - one
    assert_close(added, sinusoidal.embed(other, positions) - other)


def test_sinusoidal_tells_equal_words_apart_and_no_position_does_not():
    x, positions = torch.ones(1, 2, 4), torch.arange(2)
    first, second = NoPosition().embed(x, positions)[0]
    assert torch.equal(first, second)
    first, second = Sinusoidal().embed(x, positions)[0]
    assert not torch.allclose(first, second)


def test_nothing_of_the_table_is_stored_learned_or_rounded():
    sinusoidal = Sinusoidal()
    assert sinusoidal.state_dict() == {}
    assert list(sinusoidal.parameters()) == []
    assert list(sinusoidal.buffers()) == []
    x, positions = draw(1, 5, 8), torch.arange(300, 305)
    before = sinusoidal.embed(x, positions)
    after = sinusoidal.to(torch.bfloat16).half().embed(x, positions)
    assert torch.equal(after, before)
    assert list(vars(sinusoidal)) == list(vars(Sinusoidal()))


def test_the_embedding_is_left_as_it_was():
    x, positions = draw(1, 3, 4), torch.arange(3)
    copy = x.clone()
    Sinusoidal().embed(x, positions)
    assert torch.equal(x, copy)


def test_gradients_pass_the_first_door_unchanged():
    x = draw(1, 3, 4).requires_grad_()
    Sinusoidal().embed(x, torch.arange(3)).sum().backward()
    assert torch.equal(x.grad, torch.ones_like(x))


@given(mask=st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1))
def test_real_tokens_count_up_from_zero_in_each_row(mask):
    positions = positions_from_mask(torch.tensor(mask))
    for row, real in zip(positions.tolist(), mask, strict=True):
        counted = [
            position for position, is_real in zip(row, real, strict=True) if is_real
        ]
        assert counted == list(range(sum(real)))


# Oracles


@given(
    positions=st.lists(st.floats(-5000, 5000), min_size=1, max_size=5),
    width=st.integers(1, 9),
    base=st.floats(1.5, 1e6),
)
def test_embed_adds_the_code_of_each_position(positions, width, base):
    x = draw(2, len(positions), width, dtype=torch.float64)
    row = torch.tensor(positions, dtype=torch.float64)
    embedded = Sinusoidal(base).embed(x, row)
    assert embedded.dtype == torch.float64
    want = x + table_by_hand(positions, width, base)
    assert_close(embedded, want, atol=1e-11, rtol=0)  # angles of 5,000 are rounded


def test_a_row_of_positions_for_each_sequence_is_its_own():
    x, rows = torch.zeros(2, 3, 6), torch.tensor([[0, 0, 1], [9, 4, 2]])
    embedded = Sinusoidal().embed(x, rows)
    for row, table in zip(rows.tolist(), embedded, strict=True):
        assert_close(table.double(), table_by_hand(row, 6), atol=1e-7, rtol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("start", [0, 300, 1_000_000])
def test_a_low_precision_model_gets_codes_that_were_rounded_at_the_end(dtype, start):
    row = range(start, start + 6)
    embedded = Sinusoidal().embed(torch.zeros(1, 6, 16, dtype=dtype), torch.tensor(row))
    assert embedded.dtype == dtype
    want = table_by_hand(row, 16).float().to(dtype)
    # The last bit may fall to either side where float32 itself was rounded.
    unit = torch.finfo(dtype).eps / 2
    assert_close(embedded[0], want, atol=2**-25, rtol=unit)
    assert (embedded[0] != want).float().mean() < 0.02


@pytest.mark.parametrize("given_dtype", [torch.int64, torch.float32, torch.float64])
def test_a_float64_model_gets_codes_in_float64(given_dtype):
    x = torch.zeros(1, 3, 8, dtype=torch.float64)
    row = torch.tensor([1, 2, 5000], dtype=given_dtype)
    embedded = Sinusoidal().embed(x, row)
    assert embedded.dtype == torch.float64
    want = table_by_hand([1, 2, 5000], 8)
    assert_close(embedded[0], want, atol=1e-11, rtol=0)  # angles of 5,000 are rounded


@given(mask=st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=1))
def test_positions_agree_with_counting_the_real_tokens_before(mask):
    want = [
        [sum(row[:index]) if real else 0 for index, real in enumerate(row)]
        for row in mask
    ]
    positions = positions_from_mask(torch.tensor(mask))
    assert positions.dtype == torch.int64
    assert positions.tolist() == want


def left_pad(params):
    """Give the positions of BLOOM: ours."""
    return positions_from_mask(torch.tensor(params["mask"]).bool())


def opt(params):
    """Give the rows OPT reads: position plus 2, and row 1 for padding."""
    mask = torch.tensor(params["mask"]).bool()
    rows = positions_from_mask(mask) + params["offset"]
    return rows.masked_fill(~mask, params["offset"] - 1)


def roberta(params):
    """Give the positions of RoBERTa: from padding_idx + 1, padding has padding_idx."""
    ids, padding = torch.tensor(params["input_ids"]), params["padding_idx"]
    mask = ids != padding
    rows = positions_from_mask(mask) + params["past"] + padding + 1
    return rows.masked_fill(~mask, padding)


RULES = {"pos_ids_left_pad": left_pad, "pos_ids_opt": opt, "pos_ids_roberta": roberta}


@pytest.mark.parametrize("entry", entries_of("position"))
def test_positions_under_padding_meet_the_golden_numbers(entry):
    (name,) = entry["out"]
    mine = RULES[group_of(entry)](entry["params"])
    assert mine.dtype == torch.int64
    assert_met(entry, name, mine)


def test_left_padding_takes_no_position():
    mask = torch.tensor([[0, 0, 1, 1, 1]]).bool()
    slip = torch.arange(5)
    assert slip.tolist() == [0, 1, 2, 3, 4]
    assert positions_from_mask(mask).tolist() == [[0, 0, 0, 1, 2]]


def test_positions_run_along_the_length_and_not_along_the_batch():
    batch, length = 2, 3
    table = numbered(length)[:, None]  # (length, 1, d_model)
    slip = torch.zeros(batch, length, 1) + table[:batch]
    assert slip.flatten().tolist() == [0, 0, 0, 1, 1, 1]
    right = torch.zeros(batch, length, 1) + numbered(length)
    assert right.flatten().tolist() == [0, 1, 2, 0, 1, 2]
    embedded = Sinusoidal().embed(torch.zeros(batch, length, 4), torch.arange(length))
    for table in embedded.double():
        assert_close(table, table_by_hand(range(3), 4), atol=1e-7, rtol=0)


def test_every_token_gets_its_own_position_and_not_all_that_of_the_length():
    length = 3
    table = numbered(5)[None]  # (1, max_length, d_model)
    slip = torch.zeros(1, length, 1) + table[:, length]
    assert slip.flatten().tolist() == [3, 3, 3]
    right = torch.zeros(1, length, 1) + table[:, :length]
    assert right.flatten().tolist() == [0, 1, 2]
    embedded = Sinusoidal().embed(torch.zeros(1, length, 4), torch.arange(length))
    want = table_by_hand(range(length), 4)
    assert_close(embedded[0].double(), want, atol=1e-7, rtol=0)


def last_output(x):
    """Let the last token attend to all, so that it mixes what it sees."""
    heads = x[:, None]
    return attention(heads, heads, heads).output[0, 0, -1]


def test_the_code_reaches_the_output_of_the_model():
    x, positions = draw(1, 4, 8), torch.arange(4)
    swapped = x[:, [1, 0, 2, 3]]

    def thrown_away(x):
        Sinusoidal().embed(x, positions)
        return x

    slip = [last_output(thrown_away(each)) for each in (x, swapped)]
    assert_close(slip[0], slip[1])
    right = [last_output(Sinusoidal().embed(each, positions)) for each in (x, swapped)]
    assert (right[0] - right[1]).abs().max() > 1e-3


class Stored(nn.Module):
    """The slip of the checkpoint: a fixed table among the saved values."""

    def __init__(self, length, *, learned=False):
        super().__init__()
        table = table_by_hand(range(length), 4).float()
        if learned:
            self.table = nn.Parameter(table)
        else:
            self.register_buffer("table", table)


def test_a_model_trained_on_short_texts_loads_for_long_ones():
    with pytest.raises(RuntimeError, match="size mismatch"):
        Stored(8).load_state_dict(Stored(4).state_dict())
    short = nn.Sequential(nn.Embedding(5, 4), Sinusoidal())
    long = nn.Sequential(nn.Embedding(5, 4), Sinusoidal())
    short[1].embed(torch.zeros(1, 4, 4), torch.arange(4))
    loaded = long.load_state_dict(short.state_dict(), strict=True)
    assert not loaded.missing_keys
    assert long[1].embed(torch.zeros(1, 8, 4), torch.arange(8)).shape == (1, 8, 4)


def test_training_does_not_move_the_fixed_codes():
    slip = Stored(3, learned=True)
    before = slip.table.detach().clone()
    optimiser = torch.optim.SGD(slip.parameters(), lr=0.1)
    slip.table.sum().backward()
    optimiser.step()
    assert not torch.equal(slip.table, before)

    model = nn.ModuleDict({"words": nn.Embedding(3, 4), "position": Sinusoidal()})
    ids, positions = torch.arange(3), torch.arange(3)
    before = model["position"].embed(torch.zeros(1, 3, 4), positions)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    model["position"].embed(model["words"](ids)[None], positions).sum().backward()
    optimiser.step()
    after = model["position"].embed(torch.zeros(1, 3, 4), positions)
    assert torch.equal(after, before)


def test_a_float32_model_stays_float32():
    table = torch.from_numpy(np.sin(np.arange(2)))
    slip = torch.ones(2) + table
    assert slip.dtype == torch.float64
    for dtype in (torch.int64, torch.float32, torch.float64):
        positions = torch.arange(2, dtype=dtype)
        assert Sinusoidal().embed(torch.ones(1, 2, 4), positions).dtype == torch.float32


# Boundaries


@pytest.mark.parametrize("length", [0, 1])
@pytest.mark.parametrize("width", [1, 2, 3])
def test_no_token_and_one_token_pass_the_door(length, width):
    x = torch.zeros(2, length, width)
    embedded = Sinusoidal().embed(x, torch.arange(length))
    assert embedded.shape == (2, length, width)
    assert torch.equal(embedded[..., 0], x[..., 0])


@pytest.mark.parametrize("positions_device", ["cpu", "meta"])
def test_the_output_lies_on_the_device_of_the_embedding(positions_device):
    x = torch.zeros(1, 3, 4, device="meta")
    positions = torch.arange(3, device=positions_device)
    assert Sinusoidal().embed(x, positions).device.type == "meta"


def test_the_position_before_and_after_any_edge_has_a_code():
    x = torch.zeros(1, 4, 4)
    positions = torch.tensor([-1, 0, 4095, 4096])
    embedded = Sinusoidal().embed(x, positions)[0].double()
    want = table_by_hand(positions.tolist(), 4)
    assert_close(embedded, want, atol=1e-7, rtol=0)


@pytest.mark.parametrize(
    ("mask", "want"),
    [
        ([[True]], [[0]]),
        ([[False]], [[0]]),
        ([[False, False]], [[0, 0]]),
        ([[True, True]], [[0, 1]]),
        ([[True, False, True]], [[0, 0, 1]]),
    ],
)
def test_rows_of_one_token_of_padding_alone_and_with_a_gap_are_counted(mask, want):
    assert positions_from_mask(torch.tensor(mask)).tolist() == want


def test_a_mask_of_no_length_gives_no_positions():
    mask = torch.zeros(2, 0, dtype=torch.bool)
    assert positions_from_mask(mask).shape == (2, 0)
    assert positions_from_mask(mask.to("meta")).device.type == "meta"


def test_two_calls_in_a_row_equal_fresh_calls():
    x, sinusoidal = torch.zeros(1, 3, 4), Sinusoidal()
    sinusoidal.embed(x, torch.arange(3))
    second = sinusoidal.embed(x, torch.arange(5, 8))
    assert torch.equal(second, Sinusoidal().embed(x, torch.arange(5, 8)))
    wide = sinusoidal.embed(torch.zeros(1, 3, 6), torch.arange(3))
    assert torch.equal(wide, Sinusoidal().embed(torch.zeros(1, 3, 6), torch.arange(3)))


@pytest.mark.parametrize("name", sorted(METHODS))
def test_the_doors_of_each_method_compile_as_one_graph(name):
    method = METHODS[name](d_model=4, num_heads=1, max_length=16)

    def doors(x, positions):
        embedded = method.embed(x, positions)
        rotated = method.rotate(embedded[:, None], positions)
        bias = method.bias(rotated, positions, positions)
        return attention(rotated, rotated, rotated, bias=bias).output

    torch.compiler.reset()  # the methods together are more than it recompiles for
    compiled = torch.compile(doors, fullgraph=True, backend="eager")
    x, positions = draw(2, 3, 4), torch.arange(3)
    assert torch.equal(compiled(x, positions), doors(x, positions))


# Messages


@pytest.mark.parametrize("base", [0, -10.0, math.inf, math.nan, "10000"])
def test_a_base_that_is_not_above_zero_is_refused_when_the_method_is_made(base):
    assert Sinusoidal(1e-9).base == 1e-9
    with pytest.raises(ValueError, match="base is .* finite number above 0"):
        Sinusoidal(base)


@pytest.mark.parametrize(
    "mask",
    [
        torch.tensor([[0, 1, 1]]),
        torch.tensor([[0.0, 1.0, 1.0]]),
        torch.tensor([False, True, True]),
        torch.tensor([[[False, True, True]]]),
    ],
)
def test_a_mask_that_is_not_boolean_with_two_axes_is_refused(mask):
    assert positions_from_mask(mask.bool().reshape(1, 3)).tolist() == [[0, 0, 1]]
    with pytest.raises(ValueError, match=r"mask is .*\(batch, length\) and boolean"):
        positions_from_mask(mask)


@pytest.mark.parametrize("positions", [torch.tensor(3), torch.zeros(1, 1, 3)])
def test_embed_refuses_what_is_not_a_row_of_positions(positions):
    x = torch.zeros(1, 3, 4)
    Sinusoidal().embed(x, torch.zeros(1, 3))
    with pytest.raises(ValueError, match=r"positions is .*\(batch, length\)"):
        Sinusoidal().embed(x, positions)


def test_a_method_needs_its_sizes_by_name():
    with pytest.raises(TypeError, match="d_model"):
        METHODS["none"]()
    assert isinstance(METHODS["none"](d_model=4, num_heads=1, max_length=2), NoPosition)
    sinusoidal = METHODS["sinusoidal"](d_model=4, num_heads=1, max_length=2)
    assert isinstance(sinusoidal, Sinusoidal)
    assert sinusoidal.base == 10_000


@pytest.mark.parametrize("name", ["sinusoidal", "learned"])
@pytest.mark.parametrize("length", [1, 4])
def test_positions_of_another_length_are_refused(name, length):
    position = METHODS[name](d_model=4, num_heads=1, max_length=8)
    position.embed(torch.zeros(1, 3, 4), torch.arange(3))
    with pytest.raises(ValueError, match="each token has one position"):
        position.embed(torch.zeros(1, 3, 4), torch.arange(length))


@pytest.mark.parametrize("name", ["sinusoidal", "learned"])
def test_more_positions_than_tokens_do_not_make_tokens(name):
    position = METHODS[name](d_model=4, num_heads=1, max_length=8)
    with pytest.raises(ValueError, match="each token has one position"):
        position.embed(torch.zeros(1, 1, 4), torch.arange(5))


@pytest.mark.parametrize("name", ["sinusoidal", "learned"])
def test_rows_of_positions_do_not_make_rows_of_tokens(name):
    position = METHODS[name](d_model=4, num_heads=1, max_length=8)
    rows = torch.zeros(2, 3, dtype=torch.int64)
    assert position.embed(torch.zeros(2, 3, 4), rows).shape == (2, 3, 4)
    with pytest.raises(ValueError, match="each token has one position"):
        position.embed(torch.zeros(1, 3, 4), rows)


def test_embeddings_of_whole_numbers_are_refused():
    whole = torch.zeros(1, 3, 4, dtype=torch.int64)
    with pytest.raises(ValueError, match="cut to a whole number"):
        Sinusoidal().embed(whole, torch.arange(3))
    assert Sinusoidal().embed(whole.float(), torch.arange(3)).dtype == torch.float32


def test_a_door_compiles_for_sizes_that_change():
    embed = torch.compile(
        Sinusoidal().embed, fullgraph=True, backend="eager", dynamic=True
    )
    for length in (5, 7):
        x = torch.zeros(1, length, 8)
        want = Sinusoidal().embed(x, torch.arange(length))
        assert torch.equal(embed(x, torch.arange(length)), want)


@pytest.mark.parametrize("batch", [2, 3])
def test_rope_turns_each_row_by_its_own_positions(batch):
    rope, x = METHODS["rope"](d_model=8, num_heads=2, max_length=8), torch.ones(1)
    x = torch.randn(batch, 2, 3, 4, generator=torch.Generator().manual_seed(0))
    rows = torch.arange(3) + 10 * torch.arange(batch)[:, None]
    turned = rope.rotate(x, rows)
    for row in range(batch):
        assert_close(turned[row], rope.rotate(x[row : row + 1], rows[row])[0])


def test_the_t5_of_a_decoder_spends_no_bucket_on_the_future():
    t5 = METHODS["t5"](d_model=8, num_heads=2, max_length=8)
    with torch.no_grad():
        t5.table.copy_(torch.arange(32.0)[:, None].expand(-1, 2))
    query, places = torch.zeros(1, 2, 41, 4), torch.arange(41)
    bias = t5.bias(query, places, places)
    assert bias[0, 20].tolist()[5:21] == [15 - i if i else 15.0 for i in range(16)]
    assert bias[0, 20, 21:].unique().tolist() == [0.0]


def test_rope_with_the_frequencies_of_its_base_is_the_same():
    x, positions = draw(1, 2, 5, 8), torch.arange(5)
    given_ = Rope(frequencies=pair_frequencies(8))
    assert torch.equal(given_.rotate(x, positions), Rope().rotate(x, positions))
    half = Rope(frequencies=pair_frequencies(8) / 2)
    assert_close(half.rotate(x, 2 * positions), Rope().rotate(x, positions))


def test_the_frequencies_of_rope_are_not_rounded_with_the_model():
    rope = Rope(frequencies=pair_frequencies(8))
    rope.to(torch.bfloat16)
    assert rope.frequencies.dtype == torch.float64
    assert rope.state_dict() == {}


def test_the_attention_factor_multiplies_query_and_key_and_so_squares_in_scores():
    x, positions = draw(1, 2, 5, 8), torch.arange(5)
    plain, long = (Rope(attention_factor=f).rotate(x, positions) for f in (1.0, 1.5))
    assert_close(long, 1.5 * plain)
    assert_close(long @ long.mT, 2.25 * (plain @ plain.mT))


@pytest.mark.parametrize("rows", [torch.arange(5), torch.arange(10).reshape(2, 5)])
def test_xpos_damps_each_pair_of_a_score_with_the_distance(rows):
    torch.manual_seed(0)
    query, key = draw(2, 1, 5, 4), draw(2, 1, 5, 4, seed=1)
    turns = XPos(scale_base=4.0).turns(rows, 1, 4, torch.float32)
    both = rotate_pairs(torch.cat((query, key), 1), turns)
    found = both[:, :1] @ both[:, 1:].mT
    for batch, row in enumerate(rows.expand(2, -1).tolist()):
        for i, at in enumerate(row):
            for j, to in enumerate(row):
                want = 0.0
                for pair, damping in enumerate((0.4 / 1.4, (0.5 + 0.4) / 1.4)):
                    angle = (to - at) * 10_000.0 ** (-pair / 2)
                    q = complex(*query[batch, 0, i, 2 * pair : 2 * pair + 2])
                    k = complex(*key[batch, 0, j, 2 * pair : 2 * pair + 2])
                    turned = (q.conjugate() * k * cmath.exp(1j * angle)).real
                    want += turned * damping ** ((at - to) / 4.0)
                assert abs(found[batch, 0, i, j].item() - want) < 1e-4


def test_xpos_alone_turns_a_query():
    x, positions = draw(1, 2, 5, 8), torch.arange(5)
    xpos = XPos()
    turns = xpos.turns(positions, 2, 8, torch.float32)
    want = rotate_pairs(torch.cat((x, x), 1), turns)[:, :2]
    assert_close(xpos.rotate(x, positions), want)


@pytest.mark.parametrize("frequencies", [torch.ones(2, 2), torch.ones(())])
def test_frequencies_that_are_not_one_row_are_refused(frequencies):
    Rope(frequencies=torch.ones(4))
    with pytest.raises(ValueError, match="frequencies has shape .* must be"):
        Rope(frequencies=frequencies)


def test_frequencies_of_another_width_are_refused_when_they_meet_the_query():
    rope, positions = Rope(frequencies=torch.ones(4)), torch.arange(5)
    rope.rotate(draw(1, 2, 5, 8), positions)
    with pytest.raises(ValueError, match=r"frequencies has shape \(4,\)"):
        rope.rotate(draw(1, 2, 5, 16), positions)


@pytest.mark.parametrize(
    "make", [lambda s: Rope(attention_factor=s), lambda s: XPos(scale_base=s)]
)
def test_a_factor_that_is_not_above_zero_is_refused(make):
    make(0.5)
    with pytest.raises(ValueError, match="finite number above 0"):
        make(0.0)
