"""Reading on with other frequencies: the study, its table, and what the table says."""

import pytest
import torch

from coursekit import extension, reference
from coursekit.context_extension import (
    dynamic_ntk_frequencies,
    interpolated_frequencies,
    llama3_frequencies,
    ntk_frequencies,
    yarn_attention_factor,
    yarn_frequencies,
)
from coursekit.extension import (
    RATES,
    SCALINGS,
    TUNED,
    extension_study,
    main,
    reread,
    scaled,
    shipped_scores,
    tuned,
)
from coursekit.results import save_table
from coursekit.sinusoidal import pair_frequencies
from coursekit.tasks import passkey_task
from coursekit.training import nll_by_length, train

TINY = {
    "train_length": 3,
    "steps": 2,
    "passkey_steps": 2,
    "tuning_steps": 1,
    "passkey_batches": 1,
}
WORDS = [f"--{n.replace('_', '-')}={value}" for n, value in TINY.items()]
IDS = torch.arange(24).view(1, 24)


@pytest.fixture(autouse=True)
def _same_number_of_threads_afterwards():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def few(monkeypatch):
    """Leave two scalings, and one to tune, so that a run takes a moment."""
    kept = {name: SCALINGS[name] for name in ("plain", "yarn")}
    monkeypatch.setattr(extension, "SCALINGS", kept)
    monkeypatch.setattr(extension, "TUNED", ("yarn",))


@pytest.fixture
def made(monkeypatch):
    """Count the trainings, by their steps and seed."""
    found = []

    def counted(*args, **options):
        found.append((options["steps"], options["seed"]))
        return train(*args, **options)

    monkeypatch.setattr(extension, "train", counted)
    return found


def files(folder):
    found = sorted((folder / "runs").glob("*.csv"))
    return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in found}


def shipped(kind, scaling, times):
    """Return the score of each seed, in the order of the seeds."""
    found = shipped_scores()
    name = f"{kind}/{scaling}"
    return [row.score for row in found if row[0] == name and row.length == 64 * times]


# property


@pytest.mark.parametrize("length", [1, 63, 64])
@pytest.mark.parametrize("scaling", SCALINGS)
def test_within_training_every_scaling_leaves_the_model_as_it_was(scaling, length):
    frequencies, factor = scaled(scaling, length)
    torch.testing.assert_close(frequencies, pair_frequencies(16), rtol=1e-14, atol=0)
    assert factor == 1


def test_one_past_training_all_but_plain_turn_more_slowly():
    for scaling in SCALINGS:
        slower = scaled(scaling, 65).frequencies < pair_frequencies(16)
        assert slower.any() == (scaling != "plain")


def test_a_model_is_not_changed_by_being_read_or_tuned():
    model = reference.reference_model("rope", seed=1).eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    logits, door = model(IDS), model.position
    longer = reread(model, "interpolation", 8, 4)
    trained = tuned(model, "yarn", 4, steps=1, learning_rate=1e-3, seed=0)
    assert model.position is door
    assert torch.equal(model(IDS), logits)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])
        assert torch.equal(longer.state_dict()[name], value)
    assert not torch.equal(trained.head.weight, model.head.weight)
    assert not torch.allclose(longer(IDS), logits, atol=1e-3)


@pytest.mark.usefixtures("few")
def test_a_run_depends_on_its_kind_and_seed_alone():
    kinds = ("passkey", "nodecoys")
    together = extension_study(kinds, (1, 0, 1), **TINY)
    for kind, seed in (("passkey", 0), ("nodecoys", 1)):
        rows = [row for row in together if row.seed == seed and kind in row.method]
        assert rows == extension_study([kind], [seed], **TINY)
    assert len(together) == 2 * 2 * 2 * 4


@pytest.mark.usefixtures("few")
def test_a_study_goes_on_where_it_ended(tmp_path, made):
    first = extension_study(["nodecoys"], [0], tmp_path, **TINY)
    before = files(tmp_path)
    every = extension_study(["nodecoys"], [0, 1], tmp_path, **TINY)
    assert made == [(2, 0), (2, 1)]
    assert before.items() <= files(tmp_path).items()  # not even touched
    assert set(first) < set(every)
    assert every == extension_study(["nodecoys"], [1, 0], **TINY)


@pytest.mark.usefixtures("few")
def test_a_study_that_dies_halfway_loses_nothing(tmp_path, monkeypatch, made):
    make = extension._scores

    def dying(plan, kind, seed):
        if (kind, seed) == ("passkey", 1):
            raise KeyboardInterrupt
        return make(plan, kind, seed)

    monkeypatch.setattr(extension, "_scores", dying)
    with pytest.raises(KeyboardInterrupt):
        extension_study(["passkey"], [0, 1], tmp_path, **TINY)
    before = files(tmp_path)
    assert list(before) == ["passkey-0.csv"]
    monkeypatch.setattr(extension, "_scores", make)
    extension_study(["passkey"], [0, 1], tmp_path, **TINY)
    assert made == [(2, 0), (2, 1)]
    assert before.items() <= files(tmp_path).items()


@pytest.mark.usefixtures("few")
def test_the_command_writes_the_table_of_the_function(tmp_path):
    main([str(tmp_path), "--seeds", "1", *WORDS])
    assert sorted(files(tmp_path)) == ["nodecoys-1.csv", "passkey-1.csv", "text-1.csv"]
    rows = extension_study(seeds=[1], folder=tmp_path, **TINY)
    save_table(tmp_path / "again.csv", rows)
    table = (tmp_path / "context_extension.csv").read_bytes()
    assert table == (tmp_path / "again.csv").read_bytes()
    steps = {row.method: row.steps for row in rows}
    made = {"text": 2, "text_tuned": 3, "text_tuned_fast": 3, "passkey": 2}
    assert steps == {
        f"{how}/{name}": made.get(how, 2)
        for how in (*made, "nodecoys")
        for name in (("yarn",) if how in RATES else ("plain", "yarn"))
    }


def test_the_shipped_study_is_whole():
    rows, kinds = shipped_scores(), extension.KINDS
    names = [f"{kind}/{scaling}" for kind in kinds for scaling in SCALINGS]
    names += [f"{how}/{scaling}" for how in RATES for scaling in TUNED]
    lengths = (64, 128, 256, 512)
    want = [(name, seed, n) for name in names for seed in range(3) for n in lengths]
    assert [row[:3] for row in rows] == sorted(want)
    steps = {"text": 500, "passkey": 400, "nodecoys": 400}
    for row in rows:
        assert row.steps == steps.get(row.method.partition("/")[0], 550)


def test_untrained_scalings_rank_as_the_notebook_says_on_every_seed():
    for times in (2, 4, 8):
        plain, worst, yarn = (
            shipped("text", name, times) for name in ("plain", "interpolation", "yarn")
        )
        for one, two, three in zip(plain, worst, yarn, strict=True):
            assert three + 0.05 < one < two - 0.25
    five = ("plain", "interpolation", "ntk", "dynamic", "yarn")
    for times, best in ((2, "ntk"), (8, "yarn")):
        seeds = zip(*(shipped("text", name, times) for name in five), strict=True)
        assert {five[scores.index(min(scores))] for scores in seeds} == {best}


def test_tuning_brings_yarn_home_and_plain_only_at_the_full_rate():
    home = shipped("text", "plain", 1)
    for how, name, low, high in (
        ("text_tuned", "yarn", -0.05, 0.05),
        ("text_tuned", "plain", 0.2, 0.4),
        ("text_tuned_fast", "plain", 0.0, 0.05),
    ):
        for before, after in zip(home, shipped(how, name, 4), strict=True):
            assert low < after - before < high


def test_among_decoys_positions_are_needed_and_without_them_not():
    assert max(shipped("passkey", "plain", 8)) < 0.42
    assert min(shipped("passkey", "yarn", 8)) > 0.76
    assert min(shipped("passkey", "yarn_bare", 8)) > 0.8
    for name in SCALINGS:
        assert min(shipped("nodecoys", name, 8)) > (0.8 if name == "plain" else 0.99)


# oracle


@pytest.mark.parametrize("times", [2, 4, 8])
def test_each_scaling_is_the_function_of_its_name(times):
    one = {"factor": float(times)}
    two = one | {"trained_length": 64}
    fitted = yarn_frequencies(16, **two, beta_slow=0.5, beta_fast=4, rounded=False)
    factor = yarn_attention_factor(times)
    want = {
        "plain": (pair_frequencies(16), 1.0),
        "interpolation": (interpolated_frequencies(16, **one), 1.0),
        "ntk": (ntk_frequencies(16, **one), 1.0),
        "dynamic": (dynamic_ntk_frequencies(16, **two, length=64 * times), 1.0),
        "yarn": (fitted, factor),
        "yarn_bare": (fitted, 1.0),
        "yarn_published": (yarn_frequencies(16, **two, rounded=False), factor),
        "yarn_rounded": (yarn_frequencies(16, **two), factor),
        "turns_1_32": (
            llama3_frequencies(16, **two, low_factor=1, high_factor=32),
            1.0,
        ),
    }
    assert set(want) == set(SCALINGS)
    for name, (frequencies, attention_factor) in want.items():
        mine = scaled(name, 64 * times)
        assert torch.equal(mine.frequencies, frequencies)
        assert mine.attention_factor == attention_factor


@pytest.mark.parametrize("decoys", [True, False])
def test_a_passkey_score_is_what_the_steps_by_hand_give(decoys, monkeypatch):
    kind = "passkey" if decoys else "nodecoys"
    model = reference.reference_model("rope", seed=1)
    sizes = {"decoys": decoys}
    train(model, lambda g: passkey_task(32, 3, **sizes, generator=g), steps=2, seed=1)
    longer = reread(model, "dynamic", 12, 3)
    generator = torch.Generator().manual_seed(10_000)
    parts = [passkey_task(64, 12, **sizes, generator=generator) for _ in range(2)]
    hits = sum(
        int(longer(row[None])[0, -1].argmax() == answer)
        for inputs, targets in parts
        for row, answer in zip(inputs, targets[:, -1], strict=True)
    )
    monkeypatch.setattr(extension, "SCALINGS", {"dynamic": SCALINGS["dynamic"]})
    plan = TINY | {"passkey_batches": 2}
    rows = {row[:3]: row for row in extension_study([kind], [1], **plan)}
    assert rows[f"{kind}/dynamic", 1, 12].score == pytest.approx(hits / 128, abs=1e-6)


def test_a_text_score_is_what_the_steps_by_hand_give(monkeypatch):
    monkeypatch.setattr(extension, "SCALINGS", {"ntk": SCALINGS["ntk"]})
    monkeypatch.setattr(extension, "TUNED", ("ntk",))
    model, ids = reference.reference_model("rope", seed=1), reference.scored_ids([24])
    train(model, reference.text_batches(3), steps=2, seed=1)
    want = {}
    for length in (3, 6, 12, 24):
        longer = reread(model, "ntk", length, 3)
        want["text/ntk", 1, length] = nll_by_length(longer, ids, [length])[length]
    for name, rate in RATES.items():
        longer = reread(model, "ntk", 12, 3)
        options = {"steps": 1, "learning_rate": rate, "seed": 101}
        train(longer, reference.text_batches(12, batch_size=8), **options)
        for length, nll in nll_by_length(longer, ids, (3, 6, 12, 24)).items():
            want[f"{name}/ntk", 1, length] = nll
    found = {row[:3]: row.score for row in extension_study(["text"], [1], **TINY)}
    assert found == pytest.approx(want, abs=1e-6)


# boundary, message


@pytest.mark.parametrize("name", TINY)
def test_a_plan_below_the_least_is_refused_with_its_number(name):
    least = TINY[name] if name == "train_length" else 1
    with pytest.raises(ValueError, match=f"{name} is {least - 1}"):
        extension_study([], **{**TINY, name: least - 1})
    assert extension_study([], **{**TINY, name: least}) == []


@pytest.mark.parametrize(
    ("arguments", "was"),
    [
        (("yarn", 0), "length is 0"),
        (("yarn", 8, 0), "train_length is 0"),
        (("YaRN", 8), "scaling is 'YaRN'.* Use one of plain, interpolation, ntk"),
    ],
)
def test_what_cannot_be_read_is_refused(arguments, was):
    with pytest.raises(ValueError, match=was):
        scaled(*arguments)
    assert scaled("yarn", 1, 1).attention_factor == 1


def test_a_kind_that_is_not_known_is_refused_before_anything_is_trained(made):
    with pytest.raises(ValueError, match="kind is 'prose'.* Use one of text, passkey"):
        extension_study(["text", "prose"], [0], **TINY)
    assert made == []


@pytest.mark.usefixtures("few")
def test_a_folder_of_other_settings_or_damaged_is_refused(tmp_path, made):
    extension_study(["nodecoys"], [0], tmp_path, **TINY)
    other = TINY | {"passkey_steps": 3}
    with pytest.raises(ValueError, match="passkey_steps 2;.*passkey_steps 3;"):
        extension_study(["nodecoys"], [0], tmp_path, **other)
    path = tmp_path / "runs" / "nodecoys-0.csv"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="damaged.* Delete it"):
        extension_study(["nodecoys"], [0], tmp_path, **TINY)
    assert made == [(2, 0)]


def test_a_study_that_was_edited_is_refused(monkeypatch):
    monkeypatch.setattr(extension, "_SHA256", "0" * 64)
    with pytest.raises(ValueError, match="but 00000000… was shipped"):
        shipped_scores()
