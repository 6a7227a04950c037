"""The reference model: its methods, its texts, and three ways past a table's end."""

import math

import pytest
import torch
from torch import nn

from coursekit import corpus, reference
from coursekit.position import METHODS
from coursekit.reference import lengthened, reference_model, scored_ids, text_batches

HELD_OUT = corpus.load(corpus.HELD_OUT)[corpus.REPORTED]


def parameters(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


# property


@pytest.mark.parametrize("method", reference.GRID)
def test_a_seed_makes_the_same_model_and_another_seed_another(method):
    torch.manual_seed(7)  # must not matter
    before = torch.get_rng_state()
    first = parameters(reference_model(method, seed=1))
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(8)
    assert torch.equal(first, parameters(reference_model(method, seed=1)))
    assert not torch.equal(first, parameters(reference_model(method, seed=2)))


@pytest.mark.parametrize("method", reference.GRID)
def test_models_differ_in_nothing_but_the_position(method):
    model, plain = reference_model(method), reference_model("none")
    own = sum(p.numel() for p in model.position.parameters())
    assert parameters(model).numel() - own == parameters(plain).numel() < 115_000
    assert str(model).split("(position)")[0] == str(plain).split("(position)")[0]


def test_every_method_is_compared():
    assert set(reference.GRID) == set(METHODS) - {"t5"} | {"t5_48", "t5_128"}
    assert set(reference.POSITION_RATE) <= set(reference.GRID)


def test_batches_are_windows_of_the_training_novels_moved_by_one():
    text = "".join(corpus.load(name) for name in corpus.TRAIN)
    batch = text_batches(20, batch_size=3)(torch.Generator().manual_seed(0))
    assert batch.inputs.shape == batch.targets.shape == (3, 20)
    for inputs, targets in zip(*batch, strict=True):
        assert torch.equal(inputs[1:], targets[:-1])
        assert corpus.decode(inputs) + corpus.decode(targets[-1:]) in text


def test_batches_come_from_their_generator():
    make_batch = text_batches(5)
    first, again, other = (
        make_batch(torch.Generator().manual_seed(seed)).inputs for seed in (0, 0, 1)
    )
    assert first.shape == (32, 5)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_the_scored_characters_begin_the_part_for_reported_numbers():
    ids = scored_ids((4, 16, 32))
    assert corpus.decode(ids) == HELD_OUT[: 8 * 32 + 1]


@pytest.mark.parametrize("method", ["none", "rope", "t5_48"])
def test_methods_without_a_table_read_on_as_they_are(method):
    model = reference_model(method)
    assert reference.readings(method)[0] == method
    assert lengthened(model, method, 999) is model


def test_each_change_is_a_reading_of_its_method():
    for method, changes in reference.CHANGED.items():
        assert reference.readings(method) == (method, *changes)
    assert reference.readings("shaw") == ("shaw",)


@pytest.mark.parametrize(
    ("method", "width"), [("rope", 64), ("sinusoidal", 64), ("alibi", 8)]
)
def test_a_window_changes_nothing_within_and_hides_what_is_outside(method, width):
    model = reference_model(method).double()
    near = lengthened(model, f"{method}_window{width}", width + 1)
    ids = torch.randint(79, (1, width + 1), generator=torch.Generator().manual_seed(0))
    gaps = (near(ids) - model(ids)).abs().amax(-1)[0]
    assert (gaps[:width] < 1e-12).all()
    assert gaps[width] > 1e-6
    assert model.position is not near.position


# oracle


@pytest.mark.parametrize(("far", "all_trained"), [(48, True), (128, False)])
def test_t5_shares_its_last_bucket_from_where_its_paper_says(far, all_trained):
    position = reference_model(f"t5_{far}").position
    position.table = nn.Parameter(torch.arange(32.0)[:, None].expand(32, 4).clone())
    keys = torch.arange(2 * far)
    bias = position.bias(torch.zeros(1, 4, 1, 16), keys[-1:], keys)
    by_distance = bias.reshape(4, -1)[0].flip(0).int().tolist()
    assert by_distance[:16] == list(range(16))
    assert by_distance.index(31) == math.ceil(16 * (far / 16) ** (15 / 16))
    assert max(by_distance) == 31
    assert (set(by_distance[:64]) == set(range(32))) == all_trained


def test_the_three_ways_past_the_end_agree_with_a_loop():
    model = reference_model("learned", train_length=3)
    rows = model.position.rows.table.detach().clone()
    made = {
        "learned_last": [*rows, rows[2], rows[2]],
        "learned_zeros": [*rows, rows[2] * 0, rows[2] * 0],
        "learned_interpolated": [
            *(rows[0], (rows[0] + rows[1]) / 2, rows[1]),
            *((rows[1] + rows[2]) / 2, rows[2]),
        ],
    }
    assert reference.readings("learned") == tuple(reference.PAST_THE_END)
    assert set(made) == set(reference.PAST_THE_END)
    for reading, expected in made.items():
        longer = lengthened(model, reading, 5)
        found = longer.position.rows.table.detach()
        assert torch.allclose(found, torch.stack(expected))
        assert longer(torch.zeros(1, 5, dtype=torch.int64)).shape == (1, 5, 79)
    assert torch.equal(model.position.rows.table, rows)  # the trained one is kept


def test_the_last_trained_row_fills_the_untrained_ones_alone():
    model = reference_model("t5_128")
    with torch.no_grad():
        model.position.table[:27] = torch.arange(1.0, 28)[:, None]
    copied = lengthened(model, "t5_128_copied", 999).position.table.detach()
    assert copied[:, 0].tolist() == [*range(1, 28), *[27] * 5]
    assert not model.position.table[27:].any()  # the trained one is kept


# boundary, message


@pytest.mark.parametrize("reading", reference.PAST_THE_END)
@pytest.mark.parametrize("length", [1, 3])
def test_up_to_its_end_a_table_is_read_as_it_is(reading, length):
    model = reference_model("learned", train_length=3)
    table = lengthened(model, reading, length).position.rows.table
    assert torch.equal(table, model.position.rows.table)


def test_an_unknown_method_is_refused_with_the_known_ones():
    assert reference_model("t5_48")
    with pytest.raises(ValueError, match=r"method is 't5', .* t5_48, t5_128"):
        reference_model("t5")


@pytest.mark.parametrize("sizes", [{"length": 0}, {"length": 4, "batch_size": 0}])
def test_batches_of_nothing_are_refused(sizes):
    smallest = {name: max(1, size) for name, size in sizes.items()}
    assert text_batches(**smallest)(torch.Generator()).inputs.numel() >= 1
    with pytest.raises(ValueError, match="is 0, but it counts something"):
        text_batches(**sizes)


@pytest.mark.parametrize("lengths", [(), (0, 8), (-8, 8), (5, 8)])
def test_lengths_that_do_not_divide_are_refused(lengths):
    assert len(scored_ids((1, 8))) == 65
    with pytest.raises(ValueError, match="each must divide 8 times the longest"):
        scored_ids(lengths)


def test_the_longest_text_is_the_one_that_fits_eight_times():
    longest = (len(HELD_OUT) - 1) // 8
    assert len(scored_ids([longest])) == 8 * longest + 1
    with pytest.raises(ValueError, match=f"Use {longest} or less"):
        scored_ids([longest + 1])
