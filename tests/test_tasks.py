"""The tasks: each target is the answer, each draw comes from its generator."""

import pytest
import torch

from coursekit import tasks

DRAWS = {
    "order": lambda g, **n: tasks.order_task(n.get("batch_size", 5), generator=g),
    "recall": lambda g, **n: tasks.recall_task(
        *sizes(n, length=9, vocab_size=7), offset=n.get("offset", 3), generator=g
    ),
    "reverse": lambda g, **n: tasks.reverse_task(
        *sizes(n, length=8, vocab_size=7), generator=g
    ),
    "passkey": lambda g, **n: tasks.passkey_task(
        *sizes(n, length=9), decoys=n.get("decoys", True), generator=g
    ),
}


def sizes(given, **usual):
    usual = {"batch_size": 5, **usual}
    return [given.get(name, size) for name, size in usual.items()]


def drawn(name, seed=0, **changed):
    return DRAWS[name](torch.Generator().manual_seed(seed), **changed)


# property


@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_draws_the_same_batch_and_another_seed_another(name):
    first, again, other = drawn(name), drawn(name), drawn(name, seed=1)
    assert torch.equal(first.inputs, again.inputs)
    assert torch.equal(first.targets, again.targets)
    assert not torch.equal(first.inputs, other.inputs)


@pytest.mark.parametrize("name", DRAWS)
def test_a_generator_goes_on_and_torchs_own_stays_where_it_was(name):
    generator, before = torch.Generator().manual_seed(0), torch.get_rng_state()
    first, second = DRAWS[name](generator), DRAWS[name](generator)
    assert not torch.equal(first.inputs, second.inputs)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("name", DRAWS)
def test_inputs_and_targets_are_ids_of_one_shape(name):
    inputs, targets = drawn(name)
    assert inputs.shape == targets.shape
    assert inputs.dtype == targets.dtype == torch.int64
    assert inputs.min() >= 0
    assert (targets != tasks.UNASKED).any(dim=1).all()


def test_a_loss_of_torch_leaves_out_what_is_not_asked():
    batch = drawn("recall")
    logits = torch.randn(5, 9, 7, generator=torch.Generator().manual_seed(1))
    asked = batch.targets != tasks.UNASKED
    loss = torch.nn.functional.cross_entropy
    every = loss(logits.flatten(0, 1), batch.targets.flatten())
    assert torch.allclose(every, loss(logits[asked], batch.targets[asked]))


def test_the_words_of_a_sentence_do_not_tell_who_acts():
    inputs, targets = drawn("order", batch_size=5_000)
    actors = {}
    for words, actor in zip(inputs.tolist(), targets[:, -1].tolist(), strict=True):
        actors.setdefault(tuple(sorted(words)), set()).add(actor)
    assert len(actors) == 28 * 3  # each pair of nouns, each verb
    assert {len(seen) for seen in actors.values()} == {2}


def test_every_noun_acts_about_equally_often():
    actors = drawn("order", batch_size=8_000).targets[:, -1]
    assert actors.bincount().tolist() == pytest.approx([1_000] * 8, rel=0.15)


def test_the_passkey_stands_at_every_place_about_equally_often():
    marks = (
        drawn("passkey", batch_size=8_000, length=10).inputs == tasks.MARK
    ).nonzero()
    assert marks[:, 1].bincount().tolist() == pytest.approx([1_000] * 8, rel=0.15)


def test_a_quarter_of_the_filler_is_decoys_and_none_without_decoys():
    shape = {"batch_size": 50, "length": 200}
    digits = (drawn("passkey", **shape).inputs < 10).sum().item()
    assert digits - 50 == pytest.approx(197 * 50 / 4, rel=0.05)
    plain = drawn("passkey", **shape, decoys=False)
    assert ((plain.inputs < 10).sum(dim=1) == 1).all()


# oracle


def test_who_acts_is_the_noun_before_the_verb():
    inputs, targets = drawn("order", batch_size=200)
    for row, answers in zip(inputs.tolist(), targets.tolist(), strict=True):
        first, verb, second, stop = (tasks.WORDS[index] for index in row)
        assert {first, second} <= set(tasks.NOUNS)
        assert first != second
        assert (verb in ("bites", "calls", "sees"), stop) == (True, ".")
        assert answers == [-100, -100, -100, tasks.WORDS.index(first)]


@pytest.mark.parametrize("offset", [1, 3, 8])
def test_recall_agrees_with_a_loop(offset):
    inputs, targets = (part.tolist() for part in drawn("recall", offset=offset))
    for row, answers in zip(inputs, targets, strict=True):
        for place, answer in enumerate(answers):
            assert answer == (row[place - offset] if place >= offset else -100)


@pytest.mark.parametrize("length", [2, 8])
def test_reverse_agrees_with_a_loop(length):
    inputs, targets = (part.tolist() for part in drawn("reverse", length=length))
    for row, answers in zip(inputs, targets, strict=True):
        half = length // 2
        assert row[half:] == [7] * half
        assert answers[:half] == [-100] * half
        for place in range(half, length):
            assert answers[place] == row[length - 1 - place]


@pytest.mark.parametrize("decoys", [True, False])
@pytest.mark.parametrize("length", [3, 4, 40])
def test_the_passkey_is_the_digit_after_the_mark(length, decoys):
    inputs, targets = drawn("passkey", batch_size=100, length=length, decoys=decoys)
    for row, answers in zip(inputs.tolist(), targets.tolist(), strict=True):
        place = row.index(tasks.MARK)
        assert row.count(tasks.MARK) == row.count(tasks.ASK) == 1
        assert answers == [-100] * (length - 1) + [row[place + 1]]
        assert row[place + 1] in range(10)
        assert row[-1] == tasks.ASK
        filler = row[:place] + row[place + 2 : -1]
        assert all(index in tasks.FILLER or index < 10 for index in filler)


# boundary, message


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("order", {"batch_size": 0}, "batch_size is 0"),
        ("recall", {"batch_size": 0}, "batch_size is 0"),
        ("recall", {"vocab_size": 0}, "vocab_size is 0"),
        ("recall", {"offset": 0}, "offset is 0"),
        ("recall", {"length": 0}, "length is 0"),
        ("recall", {"offset": 9}, "offset is 9 and length is 9, .* a length of 10"),
        ("reverse", {"batch_size": 0}, "batch_size is 0"),
        ("reverse", {"vocab_size": 0}, "vocab_size is 0"),
        ("reverse", {"length": 0}, "length is 0"),
        ("reverse", {"length": 7}, "length is 7 and the number of halves is 2"),
        ("passkey", {"batch_size": 0}, "batch_size is 0"),
        ("passkey", {"length": 2}, "length is 2, .* at least 3"),
    ],
)
def test_sizes_that_ask_nothing_are_refused(name, change, words):
    with pytest.raises(ValueError, match=words):
        drawn(name, **change)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("order", {"batch_size": 1}),
        ("recall", {"batch_size": 1, "vocab_size": 1, "offset": 8}),
        ("recall", {"length": 2, "offset": 1}),
        ("reverse", {"batch_size": 1, "vocab_size": 1, "length": 2}),
        ("passkey", {"batch_size": 1, "length": 3}),
    ],
)
def test_the_smallest_sizes_ask_something(name, change):
    assert (drawn(name, **change).targets != tasks.UNASKED).any()
