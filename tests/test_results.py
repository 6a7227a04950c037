"""Files of finished runs: whole or refused, and a table that is bytes for bytes."""

import csv
import math
from pathlib import Path

import pytest

from coursekit import results
from coursekit.results import (
    Score,
    load_run,
    save_run,
    save_table,
    shipped_scores,
    shipped_table,
)

SETTINGS = "5 steps; cpu"
RUN = [Score("rope", 1, 8, 2.5, 5, "a 1"), Score("rope", 1, 16, 1 / 3, 5, "a 1")]
KEYS = [score[:3] for score in RUN]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "runs" / "rope-1.csv"
    save_run(path, RUN, SETTINGS)
    return path


# property


def test_a_saved_run_is_loaded_as_it_was_to_six_digits(path):
    expected = [score._replace(score=round(score.score, 6)) for score in RUN]
    assert load_run(path, KEYS, SETTINGS) == expected


def test_a_run_that_diverged_can_be_saved_too(path):
    save_run(path, [RUN[0]._replace(score=math.nan)], SETTINGS)
    (score,) = load_run(path, KEYS[:1], SETTINGS)
    assert math.isnan(score.score)


def test_a_table_is_the_same_bytes_in_whatever_order_the_rows_came(tmp_path):
    first, second = tmp_path / "1.csv", tmp_path / "2.csv"
    rows = [*RUN, Score("alibi", 2, 8, 0.1, 5, "a 1"), RUN[0]._replace(seed=0)]
    save_table(first, rows)
    save_table(second, rows[::-1])
    assert first.read_bytes() == second.read_bytes()
    assert b"\r" not in first.read_bytes()


def test_a_run_has_its_name_only_when_all_of_it_is_written(path, monkeypatch):
    def killed(self, target):
        raise KeyboardInterrupt

    before = path.read_bytes()
    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        save_run(path, [RUN[0]], SETTINGS)
    assert path.read_bytes() == before
    monkeypatch.undo()
    save_run(path, [RUN[0]], SETTINGS)  # what was left behind is not in the way
    assert [other.name for other in path.parent.iterdir()] == [path.name]


# oracle


def test_a_table_reads_as_it_is_written_by_hand(tmp_path):
    save_table(tmp_path / "table.csv", RUN[::-1])
    assert (tmp_path / "table.csv").read_text() == (
        "method,seed,length,score,steps,versions\n"
        "rope,1,8,2.500000,5,a 1\n"
        "rope,1,16,0.333333,5,a 1\n"
    )


def test_a_run_file_is_a_table_with_its_settings_beside(path):
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row.pop("settings") for row in rows] == [SETTINGS] * 2
    assert list(rows[1].values()) == ["rope", "1", "16", "0.333333", "5", "a 1"]


# boundary, message


def test_every_cut_through_a_run_file_is_refused_by_its_name(path):
    raw = path.read_bytes()
    assert load_run(path, KEYS, SETTINGS)
    for end in range(len(raw)):
        path.write_bytes(raw[:end])
        with pytest.raises(ValueError, match=r"rope-1.csv is damaged, .* Delete it"):
            load_run(path, KEYS, SETTINGS)


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: raw.replace(b"\n", b"\r\n"),
        lambda raw: raw.replace(b"2.500000", b"2.5x0000"),
        lambda raw: raw.replace(b"2.500000", b"2.5"),
        lambda raw: raw.replace(b"method", b"model"),
        lambda raw: raw.replace(b"rope,1,8", b"rope,2,8"),
        lambda raw: raw.replace(b"rope,1,8", b"alibi,1,8"),
        lambda raw: raw + raw.splitlines(keepends=True)[-1],
        lambda raw: raw + b"\xff\x00",
        lambda raw: b"\x00" * len(raw),
        lambda raw: b'"' + b"x" * 200_000,
        lambda raw: b"a shopping list\n",
    ],
)
def test_a_damaged_or_foreign_file_is_refused_by_its_name(path, change):
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ValueError, match="rope-1.csv is damaged, or is no finished"):
        load_run(path, KEYS, SETTINGS)


def test_a_folder_of_that_name_is_refused(path):
    path.unlink()
    path.mkdir()
    with pytest.raises(ValueError, match="rope-1.csv is damaged, or is no finished"):
        load_run(path, KEYS, SETTINGS)


def test_other_settings_are_refused_with_both(path):
    with pytest.raises(ValueError, match="made with 5 steps; cpu, .* is 6 steps; cpu"):
        load_run(path, KEYS, "6 steps; cpu")


def test_the_shipped_table_is_sorted_and_refused_when_changed(monkeypatch):
    scores = shipped_scores()
    assert scores == sorted(scores)
    monkeypatch.setattr(results, "_SHA256", "0" * 64)
    with pytest.raises(ValueError, match=r"length_sweep.csv has .* damaged or edited"):
        shipped_scores()


def test_a_table_that_is_not_there_is_refused_by_its_name():
    assert shipped_table("length_sweep.csv", results._SHA256) == shipped_scores()
    with pytest.raises(ValueError, match=r"absent\.csv"):
        shipped_table("absent.csv", "0" * 64)
