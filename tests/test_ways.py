"""Both ways give the same numbers, whatever bias and mask they are handed."""

import pytest
import torch
from torch.testing import assert_close

from coursekit.attention import causal_mask
from coursekit.ways import FAST, explicit

LENGTH, HEADS, HEAD_DIM = 5, 2, 4
PLACES = torch.arange(LENGTH), torch.arange(LENGTH)


def draw(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def heads(queries=LENGTH):
    query = draw(3, HEADS, queries, HEAD_DIM, seed=1)
    key, value = (draw(3, HEADS, LENGTH, HEAD_DIM, seed=seed) for seed in (2, 3))
    return query, key, value


def run(way, parts, bias, mask, places=PLACES):
    return way.attend(*parts, *way.join(bias, mask, places))


BIASES = [None, (LENGTH, LENGTH), (HEADS, LENGTH, LENGTH), (3, HEADS, LENGTH, LENGTH)]


# Properties


@pytest.mark.parametrize("shape", BIASES)
@pytest.mark.parametrize("masked", [False, True])
def test_the_two_ways_agree(shape, masked):
    bias = None if shape is None else draw(*shape, seed=4)
    mask = None
    if masked:
        apart = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(-1)
        mask = (causal_mask(*PLACES) & apart)[None, None]
    found = []
    plain = run(explicit(found), heads(), bias, mask)
    assert_close(run(FAST, heads(), bias, mask), plain, rtol=0, atol=1e-6)
    assert len(found) == 1
    assert found[0].output is plain


@pytest.mark.parametrize("shape", BIASES)
def test_no_way_sees_the_future(shape):
    bias = None if shape is None else draw(*shape, seed=4)
    query, key, value = heads()
    for way in FAST, explicit([]):
        before = run(way, (query, key, value), bias, None)
        later = value.clone()
        later[:, :, -1] += 1
        after = run(way, (query, key, later), bias, None)
        assert torch.equal(before[:, :, :-1], after[:, :, :-1])
        assert not torch.allclose(before[:, :, -1], after[:, :, -1])


# Boundary


@pytest.mark.parametrize("shape", [None, (HEADS, 1, LENGTH)])
def test_one_cached_query_sees_all_keys(shape):
    bias = None if shape is None else draw(*shape, seed=4)
    places = torch.tensor([LENGTH - 1]), torch.arange(LENGTH)
    plain = run(explicit([]), heads(1), bias, None, places)
    assert_close(run(FAST, heads(1), bias, None, places), plain, rtol=0, atol=1e-6)


def test_the_fast_way_hands_the_kernel_a_bias_of_four_axes():
    """Of three axes, it falls back to a way that takes a fifth more time."""
    bias, causal = FAST.join(draw(HEADS, LENGTH, LENGTH), None, PLACES)
    assert bias.shape == (1, HEADS, LENGTH, LENGTH)
    assert causal is False
    assert FAST.join(None, None, PLACES) == (None, True)
