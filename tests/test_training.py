"""Training and scoring: the protocol against hand-written loops."""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, log_softmax

from coursekit import training
from coursekit.tasks import UNASKED, Batch, recall_task
from coursekit.training import accuracy, nll_by_length, train


class Bigram(nn.Module):
    """Predict from the last token alone, plus a bias with a position's name."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(7, 7)
        self.position = nn.Linear(1, 7)
        with torch.no_grad():
            for offset, parameter in enumerate(self.parameters()):
                values = torch.arange(parameter.numel()) + offset
                parameter.copy_(torch.sin(values).view_as(parameter))

    def forward(self, ids):
        places = torch.arange(ids.shape[1]).to(self.table.weight) / 10
        return self.table(ids) + self.position(places[:, None])


def make_batch(generator):
    return recall_task(4, 6, 7, offset=1, generator=generator)


def weights(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def trained(**changed):
    model = Bigram()
    losses = train(model, make_batch, **{"steps": 20, **changed})
    return losses, weights(model)


def ids_of(count, seed=3):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(7, (count,), generator=generator)


# property


def test_a_seed_trains_the_same_bits_and_another_seed_others():
    (losses, first), (again, second), (other, third) = (
        trained(seed=seed) for seed in (0, 0, 1)
    )
    assert losses == again
    assert torch.equal(first, second)
    assert losses != other
    assert not torch.equal(first, third)


def test_training_leaves_torchs_own_generator_where_it_was():
    model, before = Bigram(), torch.get_rng_state()
    train(model, make_batch, steps=2)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_task_within_reach_is_learned():
    def copy(generator):
        ids = torch.randint(7, (8, 5), generator=generator)
        return Batch(ids, (ids + 1) % 7)

    model = Bigram()
    losses = train(model, copy, steps=150, learning_rate=0.05)
    assert losses[-1] < 0.1 < losses[0]
    assert accuracy(model, copy(torch.Generator().manual_seed(9))) == 1.0


def test_the_same_tokens_score_the_same_at_every_length_if_none_looks_back():
    model = Bigram()
    nn.init.zeros_(model.position.weight)
    scores = nll_by_length(model, ids_of(49), (1, 4, 24, 48))
    assert list(scores) == [1, 4, 24, 48]
    assert max(scores.values()) - min(scores.values()) < 1e-5


def test_text_is_scored_in_pieces_without_a_difference(monkeypatch):
    whole = nll_by_length(Bigram(), ids_of(49), (4, 16))
    monkeypatch.setattr(training, "PIECE", 10)  # two windows of 4, one of 16
    assert nll_by_length(Bigram(), ids_of(49), (4, 16)) == pytest.approx(whole)


def test_a_process_on_its_own_is_the_first_of_one():
    assert training.rank_and_world() == (0, 1)


# oracle


@pytest.mark.parametrize("steps", [1, 2, 20, 40])
def test_training_agrees_with_a_loop_by_hand(steps):
    """AdamW from its paper's formula, the schedule drawn from its three corners."""
    losses, found = trained(steps=steps, learning_rate=0.1, position_rate=10, seed=5)
    model, generator = Bigram().double(), torch.Generator().manual_seed(5)
    state = [(p, torch.zeros_like(p), torch.zeros_like(p)) for p in model.parameters()]
    rates = [0.1, 1.0, 1.0]  # the table, weight and bias of the position
    rise, fall = max(1, round(steps / 20)), max(1, round(steps * 3 / 10))
    for step in range(steps):
        inputs, targets = make_batch(generator)
        asked = targets != UNASKED
        model.zero_grad()
        loss = cross_entropy(model(inputs)[asked], targets[asked])
        loss.backward()
        assert losses[step] == pytest.approx(loss.item(), rel=1e-4)
        norm = torch.cat([p.grad.flatten() for p in model.parameters()]).norm()
        share = 1.0
        if step < rise:
            share = (step + 1) / rise
        if step > steps - fall:
            share = (steps - step) / fall
        with torch.no_grad():
            for rate, (p, mean, square) in zip(rates, state, strict=True):
                gradient = p.grad / max(1.0, norm.item())
                p.mul_(1 - rate * share * 0.01)
                mean.mul_(0.9).add_(gradient, alpha=0.1)
                square.mul_(0.98).add_(gradient**2, alpha=0.02)
                root = (square / (1 - 0.98 ** (step + 1))).sqrt() + 1e-8
                p.sub_(rate * share * mean / (1 - 0.9 ** (step + 1)) / root)
    assert torch.allclose(found.double(), weights(model), atol=1e-3)


def test_accuracy_agrees_with_counting():
    batch = make_batch(torch.Generator().manual_seed(2))
    model, right, asked = Bigram(), 0, 0
    for row, answers in zip(model(batch.inputs), batch.targets.tolist(), strict=True):
        for logits, answer in zip(row.tolist(), answers, strict=True):
            asked += answer != -100
            right += answer == max(range(7), key=logits.__getitem__)
    assert 0 < right < asked == 20
    assert accuracy(model, batch) == pytest.approx(right / asked)


@pytest.mark.parametrize("length", [1, 3, 12])
def test_nll_agrees_with_a_loop_over_single_tokens(length):
    ids, model, total = ids_of(13), Bigram().double(), 0.0
    for start in range(0, 12, length):
        for place in range(start, start + length):
            seen = ids[start : place + 1][None]
            total -= log_softmax(model(seen)[0, -1], -1)[ids[place + 1]].item()
    assert nll_by_length(model, ids, [length])[length] == pytest.approx(total / 12)


# boundary, message


@pytest.mark.parametrize("name", ["learning_rate", "position_rate"])
def test_a_rate_of_zero_is_refused_and_a_small_one_is_not(name):
    losses, _ = trained(**{name: 1e-9}, steps=1)
    assert len(losses) == 1
    with pytest.raises(ValueError, match=f"{name} is 0.0, but it must be"):
        trained(**{name: 0.0}, steps=1)


def test_no_step_is_refused():
    with pytest.raises(ValueError, match="steps is 0"):
        trained(steps=0)


def test_a_model_without_a_position_trains_as_well():
    losses = train(nn.Embedding(7, 7), make_batch, steps=2, position_rate=10)
    assert len(losses) == 2


def test_accuracy_of_nothing_is_refused_and_of_one_token_is_not():
    ids = torch.zeros(1, 2, dtype=torch.int64)
    answer = Bigram()(ids)[0, 1].argmax().item()
    assert accuracy(Bigram(), Batch(ids, torch.tensor([[-100, answer]]))) == 1.0
    with pytest.raises(ValueError, match="targets are all -100"):
        accuracy(Bigram(), Batch(ids, torch.full_like(ids, -100)))


@pytest.mark.parametrize(
    ("ids", "length"),
    [(ids_of(12), 4), (ids_of(14), 4), (ids_of(4), 4), (ids_of(26).view(2, 13), 4)],
)
def test_windows_that_are_not_full_are_refused(ids, length):
    assert nll_by_length(Bigram(), ids_of(13), [length])
    with pytest.raises(ValueError, match=r"length is 4, but all windows .* plus 1"):
        nll_by_length(Bigram(), ids, [length])


def test_a_length_of_zero_is_refused():
    with pytest.raises(ValueError, match="length is 0"):
        nll_by_length(Bigram(), ids_of(13), [0])
