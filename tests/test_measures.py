"""The numbers behind the claims, each beside a slow count of the same."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cosine_similarity
from torch.testing import assert_close

from coursekit.measures import (
    mean_by_offset,
    mean_distance,
    offset_spread,
    permutation_gap,
    similarity,
)

sizes = st.integers(1, 5)
seeds = st.integers(0, 99)


def draw(*shape, seed=0, dtype=torch.float64):
    """Draw one normal tensor."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def toeplitz(queries, keys, function):
    """Make scores that are a function of the offset, key minus query."""
    return torch.tensor(
        [[function(k - q) for k in range(keys)] for q in range(queries)],
        dtype=torch.float64,
    )


# Properties


@pytest.mark.parametrize(
    ("function", "reorders"),
    [
        (lambda x: x**2, True),
        (lambda x: x - x.mean(-2, keepdim=True), True),
        (lambda x: x.cumsum(-2), False),
        (lambda x: x.roll(1, -2), False),
    ],
)
def test_the_gap_tells_functions_that_see_order_from_those_that_do_not(
    function, reorders
):
    gap = permutation_gap(function, draw(2, 4, 3), torch.tensor([1, 0, 3, 2]))
    assert isinstance(gap, float)
    assert (gap < 1e-12) == reorders


def test_the_order_that_changes_nothing_leaves_no_gap():
    assert permutation_gap(lambda x: x.cumsum(-2), draw(4, 3), torch.arange(4)) == 0.0


@given(queries=sizes, keys=sizes)
def test_scores_of_the_offset_alone_have_no_spread(queries, keys):
    assert offset_spread(toeplitz(queries, keys, lambda n: n**3 - n)) == 0.0


@given(queries=st.integers(2, 5), keys=st.integers(2, 5))
def test_one_cell_that_is_off_is_the_spread(queries, keys):
    scores = toeplitz(queries, keys, abs)
    scores[1, 1] -= 0.5
    spread = offset_spread(scores)
    assert isinstance(spread, float)
    assert spread == 0.5


def test_the_spread_is_taken_within_a_matrix_and_not_between_matrices():
    scores = torch.stack([toeplitz(3, 4, abs), 100 + toeplitz(3, 4, abs)])
    assert offset_spread(scores) == 0.0
    offsets, means = mean_by_offset(scores)
    assert_close(means, 50.0 + offsets.abs().double())


@given(length=sizes, width=sizes, seed=seeds)
def test_similarity_is_symmetric_and_one_on_the_diagonal(length, width, seed):
    cosines = similarity(draw(length, width, seed=seed))
    assert_close(cosines, cosines.T)
    assert_close(cosines.diagonal(), torch.ones(length, dtype=torch.float64))
    assert (cosines.abs() <= 1).all()


@given(seed=seeds, size=st.sampled_from([1e-300, 1e-30, 1.0, 1e30, 1e300]))
def test_similarity_does_not_depend_on_the_length_of_a_row(seed, size):
    rows = draw(4, 6, seed=seed)
    sizes = torch.tensor([1.0, size, 2.0, size], dtype=torch.float64)
    assert_close(similarity(rows * sizes[:, None]), similarity(rows))


@given(back=st.integers(0, 4))
def test_a_head_that_looks_back_by_one_offset_has_that_distance(back):
    keys = 9
    weights = torch.zeros(keys - back, keys)
    for query in range(back, keys):
        weights[query - back, query - back] = 1
    assert mean_distance(weights).item() == back


def test_inputs_are_left_as_they_were():
    scores, rows = draw(3, 4), draw(3, 4)
    rows[1] = 0
    copies = scores.clone(), rows.clone()
    for measure in (mean_by_offset, offset_spread, mean_distance):
        measure(scores)
    similarity(rows)
    permutation_gap(lambda x: x.cumsum(-2), rows, torch.tensor([2, 0, 1]))
    assert torch.equal(scores, copies[0])
    assert torch.equal(rows, copies[1])


# Oracles


@given(length=st.integers(1, 6), seed=seeds, shuffle=st.randoms(use_true_random=False))
def test_the_gap_agrees_with_moving_one_row_at_a_time(length, seed, shuffle):
    x = draw(2, length, 3, seed=seed)
    order = list(range(length))
    shuffle.shuffle(order)

    def function(x):
        return torch.cat([x.cumsum(-2), x.flip(-2)], dim=-1)

    moved = torch.empty_like(x)
    for place, origin in enumerate(order):
        moved[:, place] = x[:, origin]
    first, plain = function(moved).tolist(), function(x).tolist()
    want = 0.0
    for batch in range(2):
        for place, origin in enumerate(order):
            pairs = zip(first[batch][place], plain[batch][origin], strict=True)
            want = max(want, *(abs(a - b) for a, b in pairs))
    assert permutation_gap(function, x, torch.tensor(order)) == pytest.approx(want)


def by_offset(matrix):
    """Collect the cells of one matrix by key minus query."""
    cells = {}
    for query, row in enumerate(matrix.tolist()):
        for key, cell in enumerate(row):
            cells.setdefault(key - query, []).append(cell)
    return cells


@given(queries=sizes, keys=sizes, seed=seeds)
def test_the_spread_agrees_with_collecting_every_cell(queries, keys, seed):
    scores = draw(2, 3, queries, keys, seed=seed)
    matrices = [by_offset(matrix) for matrix in scores.flatten(0, 1)]
    want = max(max(row) - min(row) for cells in matrices for row in cells.values())
    assert offset_spread(scores) == pytest.approx(want, abs=1e-15)


@given(queries=sizes, keys=sizes, seed=seeds)
def test_the_means_agree_with_collecting_every_cell(queries, keys, seed):
    scores = draw(2, 3, queries, keys, seed=seed)
    want = {}
    for matrix in scores.flatten(0, 1):
        for offset, cells in by_offset(matrix).items():
            want.setdefault(offset, []).extend(cells)
    offsets, means = mean_by_offset(scores)
    assert offsets.dtype == torch.int64
    assert offsets.tolist() == sorted(want) == list(range(1 - queries, keys))
    slow = [math.fsum(want[n]) / len(want[n]) for n in offsets.tolist()]
    assert_close(means, torch.tensor(slow, dtype=torch.float64))


@given(length=sizes, width=sizes, seed=seeds)
def test_similarity_agrees_with_torch(length, width, seed):
    rows = draw(length, width, seed=seed)
    want = cosine_similarity(rows[:, None], rows[None, :], dim=-1)
    assert_close(similarity(rows), want)


def test_similarity_agrees_with_the_angle_between_two_hands():
    angles = [0.0, 0.3, 1.0, 2.5, math.pi]
    rows = torch.tensor([[math.cos(a), math.sin(a)] for a in angles])
    want = [[math.cos(a - b) for b in angles] for a in angles]
    assert_close(similarity(rows), torch.tensor(want))


@given(queries=sizes, more_keys=st.integers(0, 3), heads=sizes, seed=seeds)
def test_the_distance_agrees_with_walking_from_query_to_key(
    queries, more_keys, heads, seed
):
    keys = queries + more_keys
    weights = draw(2, heads, queries, keys, seed=seed).softmax(-1)
    have = mean_distance(weights)
    assert have.shape == (2, heads)
    for batch in range(2):
        for head in range(heads):
            total = 0.0
            for query, row in enumerate(weights[batch, head].tolist()):
                for key, weight in enumerate(row):
                    total += weight * abs(key - (query + more_keys))
            assert have[batch, head].item() == pytest.approx(total / queries)


# Boundaries


def test_a_zero_row_is_like_nothing():
    rows = torch.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 0.0]])
    want = [[0, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert_close(similarity(rows), torch.tensor(want, dtype=torch.float32))


@pytest.mark.parametrize("size", [1e-45, 1e-38, 1e-20, 1.0, 1e20, 3e38])
def test_the_smallest_and_the_largest_floats_have_a_cosine(size):
    rows = torch.tensor([[size, 0.0], [size, size], [-size, 0.0]])
    half = math.sqrt(0.5)
    want = torch.tensor([[1, half, -1], [half, 1, -half], [-1, -half, 1]])
    assert_close(similarity(rows), want)


def test_a_cosine_is_never_above_one_by_rounding():
    rows = draw(200, 7, dtype=torch.float32)
    assert similarity(rows).max() <= 1
    assert similarity(torch.cat([rows, -rows])).min() >= -1


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_measures_keep_the_dtype(dtype):
    x = draw(3, 3, dtype=dtype)
    assert similarity(x).dtype == dtype
    assert mean_by_offset(x)[1].dtype == dtype
    # Distances above 256 do not fit half precision.
    assert mean_distance(x).dtype == torch.promote_types(dtype, torch.float32)


def test_one_query_and_one_key_have_one_offset_and_no_spread():
    scores = torch.tensor([[7.0]])
    offsets, means = mean_by_offset(scores)
    assert offsets.tolist() == [0]
    assert means.tolist() == [7.0]
    assert offset_spread(scores) == 0.0
    assert mean_distance(torch.tensor([[1.0]])).item() == 0.0
    assert similarity(torch.tensor([[-2.0]])).tolist() == [[1.0]]


def test_one_cached_query_is_the_last_position():
    assert mean_distance(torch.tensor([[1.0, 0.0, 0.0]])).item() == 2.0
    assert mean_distance(torch.tensor([[0.0, 0.0, 1.0]])).item() == 0.0


def test_a_query_that_saw_nothing_has_distance_zero():
    weights = torch.tensor([[0.0, 0.0], [1.0, 0.0]])
    assert mean_distance(weights).item() == 0.5


def test_one_position_can_be_reordered_in_one_way():
    assert permutation_gap(lambda x: x.cumsum(-2), draw(1, 3), torch.tensor([0])) == 0.0


# Messages


@pytest.mark.parametrize(
    "order", [[0, 1], [0, 1, 1], [1, 2, 3], [0, 1, 2, 3], [[0, 1, 2]], [-1, 0, 1]]
)
def test_an_order_that_loses_a_position_is_refused(order):
    x = draw(3, 2)
    permutation_gap(lambda x: x, x, torch.tensor([2, 0, 1]))
    with pytest.raises(
        ValueError, match=r"order is .*0 to 2 once.*torch.randperm\(3\)"
    ):
        permutation_gap(lambda x: x, x, torch.tensor(order))


@pytest.mark.parametrize("value", [-math.inf, math.inf, math.nan])
def test_scores_behind_a_mask_are_refused(value):
    scores = torch.zeros(3, 3)
    assert offset_spread(scores) == 0.0
    scores[0, 2] = value
    for measure in (offset_spread, mean_by_offset):
        with pytest.raises(ValueError, match="not finite.*before the mask"):
            measure(scores)


@pytest.mark.parametrize("shape", [(3,), (0, 3), (3, 0), ()])
def test_what_has_no_query_and_key_axis_is_refused(shape):
    for measure, name in (
        (offset_spread, "scores"),
        (mean_by_offset, "scores"),
        (mean_distance, "weights"),
    ):
        measure(torch.zeros(1, 3))
        with pytest.raises(ValueError, match=rf"{name} have shape .*{name}\[None\]"):
            measure(torch.zeros(shape))


@pytest.mark.parametrize("shape", [(3,), (2, 3, 4)])
def test_similarity_compares_the_rows_of_one_table(shape):
    assert similarity(torch.ones(3, 4)).shape == (3, 3)
    with pytest.raises(ValueError, match=r"encoding has shape .*\(length, d_model\)"):
        similarity(torch.ones(shape))


def test_whole_scores_have_a_mean_with_a_fraction():
    offsets, means = mean_by_offset(torch.tensor([[1, 0], [0, 2]]))
    assert offsets.tolist() == [-1, 0, 1]
    assert means.tolist() == [0.0, 1.5, 0.0]


def test_more_queries_than_keys_are_refused():
    with pytest.raises(ValueError, match="weights have 4 queries and 2 keys"):
        mean_distance(torch.ones(4, 2))
    assert mean_distance(torch.ones(2, 2)).shape == ()


def test_an_order_that_is_no_row_of_indices_is_refused():
    for order in (torch.zeros(1, 3).long(), torch.tensor([0.0, 1.0, 2.0])):
        with pytest.raises(ValueError, match="torch.randperm"):
            permutation_gap(lambda x: x, torch.zeros(3, 2), order)


def test_a_function_that_drops_the_length_is_refused():
    x = torch.zeros(3, 3, 4)
    with pytest.raises(ValueError, match="must keep the length axis"):
        permutation_gap(lambda y: y.mean(-2), x, torch.arange(3))
    assert permutation_gap(lambda y: y, x, torch.arange(3)) == 0


def test_a_far_distance_is_exact_in_half_precision():
    weights = torch.zeros(1, 260, dtype=torch.bfloat16)
    weights[0, 0] = 1
    assert mean_distance(weights).item() == 259
