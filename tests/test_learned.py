"""The learned table: properties, slow oracles, the edge of the table, words."""

import pytest
import torch
from golden_entries import assert_met, entries_of, wave
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close

from coursekit.learned import (
    LearnedPositions,
    interpolate_rows,
    repeat_last_row,
    zero_rows,
)
from coursekit.position import positions_from_mask

WAYS = (repeat_last_row, interpolate_rows, zero_rows)


def numbered(rows=10, d_model=3):
    """Make a module whose row p holds the number p."""
    module = LearnedPositions(rows, d_model)
    with torch.no_grad():
        module.table.copy_(torch.arange(rows).unsqueeze(1).expand(rows, d_model))
    return module


def rows_read(module, positions):
    """Return the first number of each row that was looked up."""
    return module(positions)[..., 0].long().tolist()


def random_table(rows, d_model=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, d_model, generator=generator, dtype=torch.float64)


# Properties


def test_the_row_depends_on_the_position_and_not_on_the_place_in_the_batch():
    module = LearnedPositions(10, 3)
    order = torch.tensor([7, 0, 9, 7])
    assert torch.equal(module(order)[0], module(order)[3])
    assert torch.equal(module(order), module(torch.arange(10))[order])


def test_training_moves_only_the_rows_that_were_read():
    module = LearnedPositions(6, 3)
    module(torch.tensor([[1, 4, 4]])).sum().backward()
    assert module.table.grad[:, 0].tolist() == [0, 1, 0, 0, 2, 0]


@pytest.mark.parametrize("way", WAYS)
def test_each_way_past_the_end_lets_the_gradient_through(way):
    table = random_table(4).requires_grad_()
    assert torch.autograd.gradcheck(lambda table: way(table, 7), table)


def test_two_calls_in_a_row_equal_fresh_calls():
    module = numbered()
    for positions in (torch.arange(3), torch.arange(5, 9), torch.arange(3)):
        assert rows_read(module, positions) == positions.tolist()


def test_the_state_is_the_table_alone():
    module = LearnedPositions(4, 3)
    assert {name: tuple(v.shape) for name, v in module.state_dict().items()} == {
        "table": (4, 3)
    }
    assert isinstance(module.table, nn.Parameter)


def test_a_module_made_on_the_meta_device_is_as_one_made_in_place():
    with torch.device("meta"):
        module = LearnedPositions(512, 64)
    for positions in (torch.arange(3), torch.arange(3, device="meta")):
        rows = module(positions)
        assert (rows.device.type, tuple(rows.shape)) == ("meta", (3, 64))
    module.to_empty(device="cpu").reset_parameters(torch.Generator().manual_seed(3))
    want = torch.empty(512, 64).normal_(
        0, 0.02, generator=torch.Generator().manual_seed(3)
    )
    assert torch.equal(module.table, want)


def test_the_first_table_is_small_and_spread_as_said():
    torch.manual_seed(0)
    table = LearnedPositions(512, 64).table
    # 32,768 draws: the deviation is known to 0.4 %, the mean to 1.1e-4.
    assert_close(table.std().item(), 0.02, rtol=0.02, atol=0)
    assert abs(table.mean().item()) < 5e-4


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_rows_have_the_dtype_of_the_table(dtype):
    module = numbered().to(dtype)
    assert module(torch.arange(3)).dtype == dtype
    for way in WAYS:
        longer = way(module.table, 13)
        assert (longer.dtype, tuple(longer.shape)) == (dtype, (13, 3))


def test_a_compiled_module_reads_the_same_rows():
    module = numbered()
    compiled = torch.compile(module, fullgraph=True, backend="eager")
    positions = torch.tensor([[3, 0], [9, 1]])
    assert torch.equal(compiled(positions), module(positions))


# Oracles


@given(positions=st.lists(st.integers(0, 9), min_size=1, max_size=6))
def test_rows_are_those_of_a_one_hot_product(positions):
    module = numbered().double()
    one_hot = torch.zeros(len(positions), 10, dtype=torch.float64)
    for row, position in enumerate(positions):
        one_hot[row, position] = 1
    assert torch.equal(module(torch.tensor(positions)), one_hot @ module.table)


@pytest.mark.parametrize("entry", entries_of("learned"))
def test_learned_rows_meet_the_golden_numbers(entry):
    params = entry["params"]
    module = LearnedPositions(params["L"], params["d"])
    weight = wave((params["L"], params["d"]), 0.7, 0.3)
    module.load_state_dict({"table": weight})
    positions = torch.arange(params["n"]) + params["offset"]
    assert_met(entry, "out", module(positions) * params["scale"])


@given(rows=st.integers(1, 7), more=st.integers(0, 9), seed=st.integers(0, 9))
def test_each_way_past_the_end_agrees_with_a_loop(rows, more, seed):
    table, new = random_table(rows, seed=seed), rows + more
    repeated = torch.stack([table[min(p, rows - 1)] for p in range(new)])
    zeros = torch.stack([table[p] if p < rows else table[0] * 0 for p in range(new)])
    assert torch.equal(repeat_last_row(table, new), repeated)
    assert torch.equal(zero_rows(table, new), zeros)
    stretched = nn.functional.interpolate(
        table.T[None], size=new, mode="linear", align_corners=True
    )[0].T
    assert_close(interpolate_rows(table, new), stretched, atol=1e-12, rtol=0)


def test_a_long_stretch_in_float32_stays_true_to_float64():
    table = random_table(1_000)
    want = interpolate_rows(table, 7_777)
    single = interpolate_rows(table.float(), 7_777)
    assert_close(single.double(), want, atol=1e-6, rtol=0)


def test_opt_reads_from_row_two_on_and_padding_reads_row_one():
    mask = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]]).bool()
    rows = (positions_from_mask(mask) + 2).masked_fill(~mask, 1)
    assert rows_read(numbered(), rows) == [[1, 1, 2, 3, 4], [2, 3, 4, 5, 6]]


def test_roberta_counts_from_the_padding_id_plus_one():
    padding_idx = 1
    mask = torch.tensor([[5, 6, 7, 1, 1]]) != padding_idx
    rows = (positions_from_mask(mask) + padding_idx + 1).masked_fill(~mask, padding_idx)
    assert rows_read(numbered(), rows) == [[2, 3, 4, 1, 1]]


def test_roberta_needs_two_rows_more_than_tokens():
    rows = positions_from_mask(torch.ones(1, 512, dtype=torch.bool)) + 2
    assert LearnedPositions(514, 2)(rows).shape == (1, 512, 2)
    with pytest.raises(ValueError, match="position 513 has no row"):
        LearnedPositions(513, 2)(rows)


# Faults that shipped


def test_a_decode_step_goes_on_after_the_prompt():
    prompt, cached = torch.arange(6), 6
    slip = torch.arange(1)
    assert rows_read(numbered(), slip) == [0]
    assert rows_read(numbered(), torch.arange(1) + cached) == [len(prompt)]


def test_left_padding_reads_the_same_rows_as_no_padding():
    mask = torch.tensor([[0, 0, 1, 1, 1]]).bool()
    assert rows_read(numbered(), torch.arange(5)[None]) == [[0, 1, 2, 3, 4]]
    assert rows_read(numbered(), positions_from_mask(mask)) == [[0, 0, 0, 1, 2]]
    assert torch.equal(
        numbered()(positions_from_mask(mask))[:, 2:], numbered()(torch.arange(3)[None])
    )


# Boundaries


def test_the_last_row_is_read_and_one_past_it_is_refused():
    assert rows_read(numbered(), torch.tensor([0, 9])) == [0, 9]
    with pytest.raises(ValueError, match=r"position 10 has no row.* 10 rows, for 0 to"):
        numbered()(torch.tensor([0, 10]))


def test_position_zero_is_read_and_one_before_it_is_refused():
    assert rows_read(numbered(), torch.tensor([0])) == [0]
    with pytest.raises(ValueError, match=r"position -1 has no row.* 10 rows, for 0 to"):
        numbered()(torch.tensor([[9, -1]]))


@pytest.mark.parametrize("position", [-1, 10])
def test_a_compiled_module_refuses_what_the_table_has_not(position):
    compiled = torch.compile(numbered(), fullgraph=True, backend="eager")
    with pytest.raises(IndexError, match="out of range"):
        compiled(torch.tensor([position]))


def test_no_position_reads_no_row():
    assert numbered()(torch.arange(0)).shape == (0, 3)
    assert numbered()(torch.zeros(2, 0, dtype=torch.int64)).shape == (2, 0, 3)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int32, torch.int64])
def test_positions_of_any_whole_dtype_are_read(dtype):
    assert rows_read(numbered(), torch.tensor([2, 9], dtype=dtype)) == [2, 9]


def test_the_smallest_table_has_one_row_and_one_feature():
    assert LearnedPositions(1, 1)(torch.tensor([0])).shape == (1, 1)
    for sizes in ((0, 1), (1, 0), (1.5, 1)):
        with pytest.raises(ValueError, match="whole number of at least 1"):
            LearnedPositions(*sizes)


@pytest.mark.parametrize("way", WAYS)
def test_a_table_of_the_same_length_is_kept_and_a_shorter_one_refused(way):
    table = random_table(5)
    assert torch.equal(way(table, 5), table)
    with pytest.raises(ValueError, match=r"new_length is 4 .*\(5, 3\).* only lengthen"):
        way(table, 4)


def test_stretching_keeps_both_ends():
    table = random_table(5)
    longer = interpolate_rows(table, 12)
    assert torch.equal(longer[0], table[0])
    assert torch.equal(longer[-1], table[-1])


# Messages


@pytest.mark.parametrize(
    ("positions", "words"),
    [
        (
            torch.tensor([0.0]),
            r"torch.float32, but there is no row.*positions.long\(\)",
        ),
        (torch.tensor(0), r"positions is \(\).*Use torch.arange"),
        ([0], r"positions is \[0\]"),
        (torch.tensor([True]), r"torch.bool"),
    ],
)
def test_what_is_no_whole_position_is_refused(positions, words):
    with pytest.raises(ValueError, match=words):
        numbered()(positions)


def test_a_refused_position_names_the_ways_to_go_on():
    words = "repeat_last_row, interpolate_rows or zero_rows"
    with pytest.raises(ValueError, match=words):
        numbered()(torch.tensor([10]))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("table", "new_length", "words"),
    [
        (torch.zeros(5, 2), 4, r"Use 5 or more, or table\[:4\] to cut"),
        (torch.zeros(5), 6, r"table \(5,\)"),
        (torch.zeros(5, 2), 6.0, "whole number"),
    ],
)
def test_a_longer_table_that_cannot_be_made_is_refused(way, table, new_length, words):
    with pytest.raises(ValueError, match=words):
        way(table, new_length)
