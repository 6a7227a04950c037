"""The base class of all methods: three closed doors, and whose rotation counts."""

import pytest
import torch
from torch.testing import assert_close

from coursekit.doors import NoPosition, beside
from coursekit.position import Rope
from coursekit.position_bias import Alibi, Windowed
from coursekit.transformer import TinyTransformer


def draw(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


class Counted(Rope):
    """Rotate as RoPE, and count how often."""

    calls = 0

    def rotate(self, x, positions):
        self.calls += 1
        return super().rotate(x, positions)


class Still(Rope):
    """Inherit from RoPE, but rotate nothing."""

    def rotate(self, x, positions):
        return x


def model_of(position):
    torch.manual_seed(0)
    return TinyTransformer(7, 8, 2, 3, position)


# Properties


def test_all_doors_are_closed():
    x, positions = draw(2, 3, 4), torch.arange(3)
    nothing = NoPosition()
    assert nothing.embed(x, positions) is x
    assert nothing.rotate(x, positions) is x
    assert nothing.turns(positions, 2, 4, x.dtype) is None
    assert nothing.bias(x, positions, positions) is None


def test_a_child_that_rotates_in_its_own_way_is_asked_in_each_layer():
    position, ids = Counted(), torch.arange(5)[None]
    logits = model_of(position)(ids)
    assert position.calls == 6  # query and key in three layers
    assert_close(logits, model_of(Rope())(ids))


def test_an_inherited_turn_does_not_win_over_a_childs_own_rotation():
    ids = torch.arange(5)[None]
    plain = model_of(NoPosition())(ids)
    assert torch.equal(model_of(Still())(ids), plain)
    assert not torch.allclose(model_of(Rope())(ids), plain, atol=1e-4)


def test_a_bias_of_positions_alone_is_made_once_for_all_layers():
    class Seen(Alibi):
        calls, one_bias = 0, True

        def bias(self, *places):
            self.calls += 1
            return super().bias(*places)

    position, ids = Seen(2), torch.arange(5)[None]
    logits = model_of(position)(ids)
    assert position.calls == 1
    assert torch.equal(logits, model_of(Alibi(2))(ids))


@pytest.mark.parametrize("wrap", [lambda p: p, lambda p: Windowed(p, 3)])
def test_a_child_whose_bias_reads_the_query_is_asked_in_each_layer(wrap):
    class Reads(Alibi):
        calls = 0

        def bias(self, query, *places):
            self.calls += 1
            return super().bias(query, *places) * query.norm(dim=-1)[..., None]

    position, ids = Reads(2), torch.arange(5)[None]
    whole = wrap(position)
    model = model_of(whole)
    logits = model(ids)
    assert position.calls == 3
    whole_steps = model.steps(ids)
    assert position.calls == 6
    queries = [step.logits - step.scores for step in whole_steps]
    assert not torch.allclose(queries[0], queries[1])
    assert_close(logits, model(ids))


# Oracle


def test_a_child_with_turns_of_its_own_keeps_them():
    class Both(Rope):
        def rotate(self, x, positions):
            raise AssertionError("the turns are there")

        def turns(self, positions, num_heads, head_dim, dtype):
            return Rope.turns(self, positions, num_heads, head_dim, dtype)

    ids = torch.arange(5)[None]
    assert torch.equal(model_of(Both())(ids), model_of(Rope())(ids))


# Boundary


def test_positions_go_to_the_device_and_only_float64_changes_their_dtype():
    positions = torch.arange(3)
    assert beside(torch.ones(1), positions).dtype == torch.int64
    assert beside(torch.ones(1, dtype=torch.float64), positions).dtype == torch.float64
    assert beside(torch.ones(1, device="meta"), positions).device.type == "meta"
