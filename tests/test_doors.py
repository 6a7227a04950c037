"""The base class of all methods: three closed doors, and whose rotation counts."""

import torch
from torch.testing import assert_close

from coursekit.doors import NoPosition, beside
from coursekit.position import Rope
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
