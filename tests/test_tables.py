"""The shipped table is a trained one, whole and as it was described."""

import struct
import zipfile
import zlib
from importlib.resources import files

import pytest
import torch

from coursekit import _shipped
from coursekit.tables import minilm_table

SHIPPED = files("coursekit") / "data" / "minilm_positions.npz"


def test_neighbouring_rows_are_alike_as_only_training_makes_them():
    table = minilm_table()
    rows = table - table.mean(0)
    cosine = torch.nn.functional.cosine_similarity(rows[1:], rows[:-1])
    assert cosine.mean() > 0.8
    shuffled = rows[torch.randperm(512, generator=torch.Generator().manual_seed(0))]
    other = torch.nn.functional.cosine_similarity(shuffled[1:], shuffled[:-1])
    assert other.mean().abs() < 0.1


def test_two_calls_return_tensors_of_their_own():
    first = minilm_table()
    first.zero_()
    assert minilm_table().abs().max() > 1


def test_each_number_agrees_with_reading_the_file_by_hand():
    with zipfile.ZipFile(SHIPPED) as archive:
        info = archive.getinfo("table.npy")
    raw = SHIPPED.read_bytes()
    name, extra = struct.unpack("<HH", raw[info.header_offset + 26 :][:4])
    start = info.header_offset + 30 + name + extra
    array = zlib.decompress(raw[start : start + info.compress_size], -15)
    numbers = struct.unpack("<196608e", array[-2 * 512 * 384 :])
    assert minilm_table().flatten().tolist() == list(numbers)


def test_it_has_a_row_for_each_of_512_positions_as_float32():
    table = minilm_table()
    assert table.shape == (512, 384)
    assert table.dtype == torch.float32
    assert table.isfinite().all()
    assert (table == table.half().float()).all()


def test_a_damaged_table_is_refused_by_name(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    copy = tmp_path / "data" / "minilm_positions.npz"
    monkeypatch.setattr(_shipped, "files", lambda package: tmp_path)
    copy.write_bytes(SHIPPED.read_bytes())
    assert minilm_table().shape == (512, 384)
    copy.write_bytes(SHIPPED.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"minilm_positions.npz has 363024 bytes"):
        minilm_table()
    copy.unlink()
    with pytest.raises(ValueError, match=r"minilm_positions.npz cannot be read"):
        minilm_table()


def test_the_notice_beside_the_table_names_hash_source_and_licence():
    text = (files("coursekit") / "data" / "README.md").read_text("utf-8")
    for wanted in ("663d22a88629862b", "all-MiniLM-L6-v2", "Apache License 2.0"):
        assert wanted in text
    licence = (files("coursekit") / "data" / "LICENSE-Apache-2.0.txt").read_text()
    assert "Version 2.0, January 2004" in licence
