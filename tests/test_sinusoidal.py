"""The encoding of 2017: properties, slow oracles, golden numbers, edges, words."""

import cmath
import math
from pathlib import Path

import pytest
import torch
from golden_entries import (
    HOME,
    all_entries,
    assert_met,
    entries_of,
    expected,
    group_of,
)
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from coursekit.sinusoidal import (
    pair_frequencies,
    position_angles,
    shift_matrix,
    sinusoidal_encoding,
)

widths = st.integers(1, 9)
even_widths = st.integers(1, 5).map(lambda pairs: 2 * pairs)
bases = st.floats(1.5, 1e6)
offsets = st.floats(-1000, 1000)
positions = st.lists(st.floats(-5000, 5000), min_size=1, max_size=5)


def doubles(numbers):
    """Make positions whose code is wanted in float64."""
    return torch.tensor(numbers, dtype=torch.float64)


# Properties


@given(width=widths)
def test_position_zero_is_zero_and_one_in_turn(width):
    code = sinusoidal_encoding(torch.tensor([0]), width)[0].tolist()
    assert code == ([0.0, 1.0] * width)[:width]


@given(row=positions, width=even_widths, base=bases)
def test_each_pair_is_the_hand_of_a_clock_of_length_one(row, width, base):
    code = sinusoidal_encoding(doubles(row), width, base)
    hands = code.unflatten(-1, (-1, 2)).square().sum(-1)
    assert_close(hands, torch.ones_like(hands))


@given(width=st.integers(5, 12), base=bases)
def test_frequencies_fall_from_one_by_the_same_ratio(width, base):
    frequencies = pair_frequencies(width, base)
    assert frequencies[0] == 1
    assert (frequencies.diff() < 0).all()
    ratios = frequencies[1:] / frequencies[:-1]
    assert_close(ratios, ratios[:1].expand_as(ratios))


@given(row=positions, offset=offsets, width=even_widths, base=bases)
def test_the_shift_matrix_moves_every_code_by_the_offset(row, offset, width, base):
    here = sinusoidal_encoding(doubles(row), width, base)
    there = sinusoidal_encoding(doubles(row) + offset, width, base)
    matrix = shift_matrix(doubles(offset), width, base)
    # Adding a position to an offset rounds, by up to 1e-12 at 6,000.
    assert_close(here @ matrix.T, there, atol=1e-10, rtol=0)


@given(one=offsets, other=offsets, width=even_widths)
def test_shifts_are_rotations_that_add_up(one, other, width):
    first, second = (shift_matrix(doubles(x), width) for x in (one, other))
    eye = torch.eye(width, dtype=torch.float64)
    assert_close(first @ first.T, eye)
    assert_close(shift_matrix(doubles(-one), width), first.T)
    both = shift_matrix(doubles(one + other), width)
    assert_close(first @ second, both, atol=1e-10, rtol=0)  # the sum is rounded


@given(start=st.integers(-1000, 1000), width=even_widths)
def test_the_dot_product_of_two_codes_depends_on_their_offset_alone(start, width):
    row = torch.arange(6, dtype=torch.float64)
    one, other = (sinusoidal_encoding(r, width) for r in (row, row + start))
    assert_close(one @ one.T, other @ other.T, atol=1e-9, rtol=0)
    assert_close(one @ one.T, (one @ one.T).T)


@given(
    row=positions,
    width=widths,
    shuffle=st.randoms(use_true_random=False),
)
def test_a_code_depends_on_its_own_position_alone(row, width, shuffle):
    whole = sinusoidal_encoding(doubles(row), width)
    order = list(range(len(row)))
    shuffle.shuffle(order)
    assert torch.equal(sinusoidal_encoding(doubles(row)[order], width), whole[order])
    for index, position in enumerate(row):
        one = sinusoidal_encoding(doubles([position]), width)
        assert_close(one, whole[index : index + 1], atol=1e-15, rtol=0)


def test_a_row_of_positions_for_each_sequence_gives_a_table_for_each():
    rows = torch.tensor([[0, 1, 2], [7, 5, 3]])
    tables = sinusoidal_encoding(rows, 6)
    assert tables.shape == (2, 3, 6)
    for table, row in zip(tables, rows, strict=True):
        assert_close(table, sinusoidal_encoding(row, 6))
    assert position_angles(rows, 6).shape == (2, 3, 3)


def test_the_code_of_thousands_of_positions_is_theirs_alone():
    table = sinusoidal_encoding(torch.arange(2000, dtype=torch.float64), 16)
    distances = torch.cdist(table, table) + torch.eye(2000, dtype=torch.float64)
    assert distances.min() > 0.1


def test_positions_are_left_as_they_were():
    row = torch.tensor([3.0, 1.0])
    sinusoidal_encoding(row, 4)
    assert row.tolist() == [3.0, 1.0]


# Oracles


def frequency_by_hand(pair, width, base):
    """Take the formula of the paper literally: 1 / base^(2i / d_model)."""
    return 1 / math.pow(base, 2 * pair / width)


def encoding_by_hand(row, width, base=10_000.0):
    """Fill the table with two Python loops."""
    table = []
    for position in row:
        code = []
        for feature in range(width):
            angle = position * frequency_by_hand(feature // 2, width, base)
            code.append(math.cos(angle) if feature % 2 else math.sin(angle))
        table.append(code)
    return torch.tensor(table, dtype=torch.float64)


@given(row=positions, width=widths, base=bases)
def test_encoding_agrees_with_two_python_loops(row, width, base):
    code = sinusoidal_encoding(doubles(row), width, base)
    assert code.dtype == torch.float64
    # One unit in the last place of a frequency moves an angle of 5,000 by 1e-12.
    assert_close(code, encoding_by_hand(row, width, base), atol=1e-11, rtol=0)


@given(row=st.lists(st.integers(0, 5000), min_size=1, max_size=5), width=even_widths)
def test_encoding_agrees_with_turning_complex_numbers(row, width):
    code = sinusoidal_encoding(torch.tensor(row), width)
    for position, features in zip(row, code.tolist(), strict=True):
        for pair in range(width // 2):
            turn = cmath.exp(1j * position * 10_000 ** (-2 * pair / width))
            want = [turn.imag, turn.real]
            have = features[2 * pair : 2 * pair + 2]
            assert have == pytest.approx(want, rel=0, abs=1e-7)


@given(width=widths, base=bases)
def test_frequencies_agree_with_the_formula_of_the_paper(width, base):
    want = [frequency_by_hand(i, width, base) for i in range((width + 1) // 2)]
    frequencies = pair_frequencies(width, base)
    assert frequencies.dtype == torch.float64
    assert_close(frequencies, doubles(want), atol=0, rtol=1e-14)


@given(row=positions, width=widths, base=bases)
def test_angles_agree_with_multiplying_one_by_one(row, width, base):
    pairs = range((width + 1) // 2)
    want = [[p * frequency_by_hand(i, width, base) for i in pairs] for p in row]
    angles = position_angles(doubles(row), width, base)
    assert angles.dtype == torch.float64
    assert_close(angles, doubles(want), atol=0, rtol=1e-14)


@given(offset=offsets, width=even_widths, base=bases)
def test_shift_matrix_agrees_with_setting_each_cell(offset, width, base):
    want = torch.zeros(width, width, dtype=torch.float64)
    for pair in range(width // 2):
        angle = offset * frequency_by_hand(pair, width, base)
        sine, cosine = 2 * pair, 2 * pair + 1
        want[sine, sine] = want[cosine, cosine] = math.cos(angle)
        want[sine, cosine] = math.sin(angle)
        want[cosine, sine] = -math.sin(angle)
    assert_close(shift_matrix(doubles(offset), width, base), want, atol=1e-12, rtol=0)
    rounded = shift_matrix(offset, width, base)
    assert rounded.dtype == torch.float32
    assert_close(rounded.double(), want, atol=1e-7, rtol=0)


@pytest.mark.parametrize("dtype", [torch.int64, torch.float32, torch.float64])
def test_a_million_positions_on_the_code_is_still_right(dtype):
    row = [999_999, 1_000_000, 1_048_575]
    code = sinusoidal_encoding(torch.tensor(row, dtype=dtype), 8)
    # An angle of 1e6 is known to 1e-10 in float64; in float32 it would be off by 0.03.
    tolerance = 1e-9 if dtype == torch.float64 else 1e-7
    want = encoding_by_hand(row, 8)
    assert_close(code.double(), want, atol=tolerance, rtol=0)


def interleave_by_hand(table):
    """List the columns of a table as all sines and then all cosines."""
    width = table.shape[-1]
    return [*range(0, width, 2), *range(1, width, 2)]


def interleaved(p):
    """Give the paper's layout, at the rows or from the offset of an entry."""
    start = p.get("offset", 0)
    row = torch.tensor(p.get("rows", range(start, start + p["L"])))
    return sinusoidal_encoding(row, p["d"], p["base"])


def concatenated(p):
    """Give all sines and then all cosines, times the scale of an entry."""
    table = interleaved(p)
    return table[:, interleave_by_hand(table)] * p.get("scale", 1.0)


def tensor2tensor(p):
    """Give the exponent i / (d/2 - 1): the paper's with another base."""
    width = p["d"] - p["d"] % 2
    base = p["base"] ** (width / (width - 2))
    table = concatenated({"L": p["L"], "d": width, "base": base})
    if p.get("padding_idx") is not None:
        table[p["padding_idx"]] = 0
    return torch.nn.functional.pad(table, (0, p["d"] % 2))


LAYOUTS = {
    "sin_interleaved": interleaved,
    "sin_interleaved_rows": interleaved,
    "sin_interleaved_odd": interleaved,
    "sin_interleaved_base": interleaved,
    "sin_interleaved_offset": interleaved,
    "sin_concat": concatenated,
    "sin_concat_scaled": concatenated,
    "sin_t2t": tensor2tensor,
    "sin_t2t_whisper": tensor2tensor,
}


@pytest.mark.parametrize("entry", entries_of("sinusoidal"))
def test_encoding_meets_the_golden_numbers_in_every_layout(entry):
    (name,) = entry["out"]
    mine = LAYOUTS[group_of(entry)](entry["params"])
    assert mine.dtype == expected(entry, name).dtype
    assert_met(entry, name, mine)


def test_every_golden_group_has_a_home_whose_test_reads_all_its_entries():
    groups = {group_of(entry) for entry in all_entries()}
    assert groups == set(HOME)
    for module in set(HOME.values()):
        test = Path(__file__).with_name(f"test_{module}.py")
        if test.exists():
            read = test.read_text(encoding="utf-8")
            assert f'@pytest.mark.parametrize("entry", entries_of("{module}"))' in read
    assert len(all_entries()) == sum(len(entries_of(m)) for m in set(HOME.values()))


def test_the_exponent_counts_each_pair_once():
    code = sinusoidal_encoding(torch.tensor([1]), 4)[0]
    slip = math.sin(1 / 10_000 ** (2 * 2 / 4))
    assert slip == pytest.approx(0.000100, abs=1e-6)
    assert code[2].item() == pytest.approx(math.sin(0.01), abs=1e-7)


def test_a_cosine_has_the_exponent_of_its_pair():
    code = sinusoidal_encoding(torch.tensor([1]), 4)[0]
    of_its_own_feature = math.cos(1 / 10_000 ** (2 * 1 / 4))
    of_the_next_pair = math.cos(1 / 10_000 ** (1 / 4))
    assert of_its_own_feature == pytest.approx(1.0, abs=1e-4)
    assert of_the_next_pair == pytest.approx(0.995004, abs=1e-6)
    assert code[1].item() == pytest.approx(math.cos(1), abs=1e-7)


def test_the_exponent_has_a_minus_sign():
    code = sinusoidal_encoding(torch.tensor([1]), 4)[0]
    slip = math.sin(math.exp(math.log(10_000) * 2 / 4))
    assert slip == pytest.approx(-0.506366, abs=1e-6)
    assert code[2].item() == pytest.approx(math.sin(0.01), abs=1e-7)


def test_the_base_is_ten_thousand_unless_given():
    slip = sinusoidal_encoding(torch.tensor([1]), 4, base=1000)[0, 2].item()
    assert slip == pytest.approx(0.031618, abs=1e-6)
    default = sinusoidal_encoding(torch.tensor([1]), 4)
    assert default[0, 2].item() == pytest.approx(math.sin(0.01), abs=1e-7)
    assert torch.equal(default, sinusoidal_encoding(torch.tensor([1]), 4, 10_000))
    assert torch.equal(pair_frequencies(6), pair_frequencies(6, 1e4))
    row = torch.arange(3)
    assert torch.equal(position_angles(row, 6), position_angles(row, 6, 1e4))
    assert torch.equal(shift_matrix(2, 6), shift_matrix(2, 6, 1e4))


def test_the_exponent_is_that_of_the_paper_and_not_of_tensor2tensor():
    theirs = [10_000 ** (-i / (8 / 2 - 1)) for i in range(4)]
    assert theirs == pytest.approx([1, 0.0464, 0.00215, 0.0001], abs=5e-5)
    ours = position_angles(torch.tensor([1]), 8)[0].tolist()
    assert ours == pytest.approx([1, 0.1, 0.01, 0.001], rel=1e-12)


def test_sines_and_cosines_take_turns():
    row = torch.arange(16)
    table = sinusoidal_encoding(row, 8)
    sines = torch.stack([torch.sin(row * 10_000 ** (-i / 4)) for i in range(4)], -1)
    cosines = torch.stack([torch.cos(row * 10_000 ** (-i / 4)) for i in range(4)], -1)
    slip = torch.cat([sines, cosines], dim=-1)
    assert not torch.allclose(table, slip)
    # The oracle's float32 angles are off by up to 1e-6 at position 15.
    assert_close(table[:, [0, 2, 4, 6, 1, 3, 5, 7]], slip, atol=2e-6, rtol=0)


@pytest.mark.parametrize("width", [1, 3, 5, 7])
def test_an_odd_width_ends_with_a_sine_and_keeps_its_exponent(width):
    row = torch.arange(6)
    slip = torch.zeros(6, 3)
    with pytest.raises(RuntimeError, match="must match"):
        slip[:, 1::2] = torch.zeros(6, 2)  # ceil(3/2) cosines into floor(3/2) columns
    table = sinusoidal_encoding(row, width)
    assert table.shape == (6, width)
    want = encoding_by_hand(range(6), width)
    assert_close(table.double(), want, atol=1e-7, rtol=0)


def test_whole_positions_above_256_are_not_rounded_to_bfloat16():
    slip = torch.arange(256, 262, dtype=torch.bfloat16)
    assert slip.tolist() == [256, 256, 258, 260, 260, 260]
    table = sinusoidal_encoding(torch.arange(256, 262), 8)
    want = encoding_by_hand(range(256, 262), 8)
    assert_close(table.double(), want, atol=1e-7, rtol=0)


@pytest.mark.parametrize(
    ("dtype", "error"),
    [(torch.bfloat16, 1.99), (torch.float16, 0.78), (torch.float32, 6.5e-5)],
)
def test_angles_are_not_made_in_low_precision(dtype, error):
    row = torch.arange(2048)
    want = encoding_by_hand(range(2048), 32)[:, 1::2]
    frequencies = torch.tensor([frequency_by_hand(i, 32, 10_000) for i in range(16)])
    angles = row.to(dtype)[:, None] * frequencies.to(dtype)
    slip = angles.cos().double()
    assert (slip - want).abs().max().item() == pytest.approx(error, rel=0.01)
    ours = sinusoidal_encoding(row, 32)[:, 1::2].double()
    assert (ours - want).abs().max() < 1e-7


# Boundaries


@pytest.mark.parametrize("length", [0, 1])
@pytest.mark.parametrize("width", [1, 2, 3])
def test_tables_of_no_and_of_one_position_have_their_shape(length, width):
    assert sinusoidal_encoding(torch.arange(length), width).shape == (length, width)
    assert position_angles(torch.arange(length), width).shape == (
        length,
        (width + 1) // 2,
    )


def test_negative_positions_mirror_the_sines_and_keep_the_cosines():
    row = torch.arange(1, 6)
    after, before = sinusoidal_encoding(row, 6), sinusoidal_encoding(-row, 6)
    assert_close(before[:, 0::2], -after[:, 0::2])
    assert_close(before[:, 1::2], after[:, 1::2])


def test_fractional_positions_lie_between_whole_ones():
    code = sinusoidal_encoding(torch.tensor([0.0, 0.5, 1.0]), 2)
    assert code[0, 0] < code[1, 0] < code[2, 0]
    assert code[1, 0].item() == pytest.approx(math.sin(0.5), abs=1e-7)


@pytest.mark.parametrize(
    ("dtype", "table_dtype"),
    [
        (torch.int32, torch.float32),
        (torch.int64, torch.float32),
        (torch.uint8, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.float16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ],
)
def test_codes_are_float32_and_float64_for_float64_positions(dtype, table_dtype):
    row = torch.tensor([0, 3, 200], dtype=dtype)
    table = sinusoidal_encoding(row, 6)
    assert table.dtype == table_dtype
    assert position_angles(row, 6).dtype == torch.float64
    want = encoding_by_hand([0, 3, 200], 6).to(table_dtype)
    assert_close(table, want, atol=1e-7, rtol=0)


@pytest.mark.parametrize(
    ("offset", "dtype"),
    [
        (3, torch.float32),
        (3.0, torch.float32),
        (torch.tensor(3), torch.float32),
        (torch.tensor(3.0), torch.float32),
        (torch.tensor(3.0, dtype=torch.bfloat16), torch.float32),
        (torch.tensor(3.0, dtype=torch.float64), torch.float64),
    ],
)
def test_shift_matrices_are_float32_and_float64_for_a_float64_offset(offset, dtype):
    matrix = shift_matrix(offset, 4)
    assert matrix.dtype == dtype
    assert_close(matrix.double(), shift_matrix(doubles(3.0), 4), atol=1e-7, rtol=0)


def test_a_shift_of_zero_is_the_identity():
    assert torch.equal(shift_matrix(0, 6), torch.eye(6))


def test_a_base_of_one_turns_all_pairs_alike():
    assert torch.equal(pair_frequencies(6, 1), torch.ones(3, dtype=torch.float64))


def test_outputs_lie_on_the_device_of_the_positions():
    row = torch.arange(3, device="meta")
    for output in (
        position_angles(row, 6),
        sinusoidal_encoding(row, 6),
        shift_matrix(torch.tensor(1.0, device="meta"), 6),
    ):
        assert output.device.type == "meta"


def test_two_calls_in_a_row_equal_fresh_calls():
    row = torch.arange(3)
    fresh = position_angles(row + 5, 4)
    position_angles(row, 4)
    assert torch.equal(position_angles(row + 5, 4), fresh)
    assert fresh[0, 0] == 5
    wide = sinusoidal_encoding(row, 8)
    sinusoidal_encoding(row, 6, 500)
    assert torch.equal(sinusoidal_encoding(row, 8), wide)


def test_each_function_compiles_as_one_graph():
    def everything(row):
        return (
            position_angles(row, 6),
            sinusoidal_encoding(row, 7),
            shift_matrix(2.0, 6),
            shift_matrix(row[1], 4),
        )

    compiled = torch.compile(everything, fullgraph=True, backend="eager")
    for row in (torch.arange(3), torch.arange(9)):
        for one, other in zip(compiled(row), everything(row), strict=True):
            assert torch.equal(one, other)


# Messages


@pytest.mark.parametrize("width", [0, -2, 2.0, None])
def test_a_width_that_counts_nothing_is_refused(width):
    row = torch.arange(3)
    pair_frequencies(1)
    for call in (
        lambda: pair_frequencies(width),
        lambda: position_angles(row, width),
        lambda: sinusoidal_encoding(row, width),
    ):
        with pytest.raises(ValueError, match=f"dim is {width}, .* at least 1"):
            call()


@pytest.mark.parametrize("base", [0, -1.0, math.inf, math.nan])
def test_a_base_that_is_not_above_zero_is_refused(base):
    row = torch.arange(3)
    pair_frequencies(4, 1e-300)
    for call in (
        lambda: pair_frequencies(4, base),
        lambda: position_angles(row, 4, base),
        lambda: sinusoidal_encoding(row, 4, base),
        lambda: shift_matrix(1, 4, base),
    ):
        with pytest.raises(ValueError, match=f"base is {base}, .* above 0"):
            call()


@pytest.mark.parametrize("width", [1, 3, 7])
def test_a_lone_sine_cannot_be_shifted(width):
    assert shift_matrix(1, width + 1).shape == (width + 1, width + 1)
    with pytest.raises(ValueError, match=f"d_model is {width}, .* must be even"):
        shift_matrix(1, width)


@pytest.mark.parametrize("row", [3, [0, 1], torch.tensor(3), torch.zeros(1, 1, 3)])
def test_what_is_not_a_row_of_positions_is_refused(row):
    position_angles(torch.tensor([3]), 4)
    for function in (position_angles, sinusoidal_encoding):
        with pytest.raises(ValueError, match=r"positions is .*\(batch, length\)"):
            function(row, 4)


def test_two_offsets_make_no_one_matrix():
    with pytest.raises(ValueError, match=r"offset has shape \(2,\)"):
        shift_matrix(torch.tensor([1.0, 2.0]), 4)
    assert shift_matrix(torch.tensor([1.0]), 4).shape == (4, 4)


def test_a_base_beyond_every_float_is_refused():
    with pytest.raises(ValueError, match="base is"):
        pair_frequencies(4, 10**400)
    assert pair_frequencies(4, 10**300).shape == (2,)
