"""The novels: characters to ids and back, and parts that do not touch."""

import hashlib
from importlib.resources import files

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from coursekit import _shipped, corpus

NOVELS = (*corpus.TRAIN, corpus.HELD_OUT)
DATA = files("coursekit") / "data"


@given(text=st.text(alphabet=corpus.ALPHABET))
def test_decode_undoes_encode(text):
    assert corpus.decode(corpus.encode(text)) == text


@pytest.mark.parametrize("name", NOVELS)
def test_a_whole_novel_survives_there_and_back(name):
    text = corpus.load(name)
    assert corpus.decode(corpus.encode(text)) == text


def test_the_parts_of_the_held_out_novel_meet_and_do_not_overlap():
    text = corpus.load(corpus.HELD_OUT)
    choosing, reported = text[corpus.CHOOSING], text[corpus.REPORTED]
    assert choosing + reported == text
    assert "Chapter 12\n" in choosing
    assert reported.startswith("Chapter 13\n")
    assert min(len(choosing), len(reported)) > 200_000


def test_no_passage_of_the_held_out_novel_is_trained_on():
    assert corpus.HELD_OUT not in corpus.TRAIN
    trained = "".join(map(corpus.load, corpus.TRAIN))
    held_out = corpus.load(corpus.HELD_OUT)
    passages = [held_out[start : start + 60] for start in range(1_000, 400_000, 1_000)]
    assert not [passage for passage in passages if passage in trained]


def test_the_alphabet_is_what_the_three_novels_hold():
    held = set().union(*(corpus.load(name) for name in NOVELS))
    assert list(corpus.ALPHABET) == sorted(held)
    assert len(corpus.ALPHABET) == 79


def test_ids_agree_with_counting_the_smaller_characters():
    text = "Anne, 27!\n"
    below = [sum(other < c for other in corpus.ALPHABET) for c in text]
    assert corpus.encode(text).tolist() == below


@pytest.mark.parametrize("name", NOVELS)
def test_a_novel_is_the_file_whose_hash_the_notice_names(name):
    raw = (DATA / f"{name}.txt").read_bytes()
    notice = (DATA / "README.md").read_text("utf-8")
    assert f"| {len(raw)} | {hashlib.sha256(raw).hexdigest()} |" in notice
    assert corpus.load(name).encode() == raw
    assert b"\r" not in raw


def test_no_text_has_no_ids_and_leads_back_to_no_text():
    ids = corpus.encode("")
    assert ids.shape == (0,)
    assert ids.dtype == torch.int64
    assert corpus.decode(ids) == ""


def test_first_and_last_id_are_characters_and_the_next_ones_are_not():
    assert corpus.decode(torch.tensor([0, 78])) == "\nz"
    for wrong in (-1, 79):
        with pytest.raises(ValueError, match="whole numbers from 0 to 78"):
            corpus.decode(torch.tensor([wrong]))


def test_a_batch_of_ids_is_refused_and_one_row_is_not():
    ids = corpus.encode("ab").unsqueeze(0)
    assert corpus.decode(ids[0]) == "ab"
    with pytest.raises(ValueError, match=r"ids are \(1, 2\) torch.int64, .* row by"):
        corpus.decode(ids)
    with pytest.raises(ValueError, match=r"ids are \(2,\) torch.float32"):
        corpus.decode(ids[0].float())


def test_characters_outside_the_alphabet_are_named():
    assert corpus.encode("Yes.").shape == (4,)
    with pytest.raises(ValueError, match=r"\['X', 'é'\] not among the 79 characters"):
        corpus.encode("éXX")


def test_an_unknown_novel_is_refused_with_the_known_ones():
    assert corpus.load("persuasion")
    with pytest.raises(
        ValueError, match=r"'emma', but three .* pride_and_prejudice, sense_and"
    ):
        corpus.load("emma")


def test_a_damaged_or_missing_novel_is_refused(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    copy = tmp_path / "data" / "persuasion.txt"
    monkeypatch.setattr(_shipped, "files", lambda package: tmp_path)
    raw = (DATA / "persuasion.txt").read_bytes()
    copy.write_bytes(raw)
    assert len(corpus.load("persuasion")) == 466_854
    copy.write_bytes(raw.replace(b"\n", b"\r\n"))
    with pytest.raises(ValueError, match=r"persuasion.txt has .* line ends changed"):
        corpus.load("persuasion")
    copy.unlink()
    with pytest.raises(ValueError, match=r"persuasion.txt cannot be read"):
        corpus.load("persuasion")
