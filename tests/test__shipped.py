"""Shipped files: what is read is what was shipped, or it is an error."""

import hashlib

import pytest

from coursekit import _shipped


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Stand in for the installed package, with an empty data folder."""
    monkeypatch.setattr(_shipped, "files", lambda package: tmp_path)
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def digest(data):
    return hashlib.sha256(data).hexdigest()


def test_bytes_come_back_as_they_lie_in_the_file(folder):
    data = bytes(range(256)) + b"\r\n\n"
    (folder / "a.bin").write_bytes(data)
    assert _shipped.read("a.bin", digest(data)) == data


def test_an_empty_file_is_read_if_it_was_shipped_empty(folder):
    (folder / "a.txt").write_bytes(b"")
    assert _shipped.read("a.txt", digest(b"")) == b""


def test_one_changed_bit_is_refused_with_both_hashes(folder):
    data, changed = b"a text", b"b text"
    (folder / "a.txt").write_bytes(data)
    assert _shipped.read("a.txt", digest(data)) == data
    (folder / "a.txt").write_bytes(changed)
    words = f"a.txt has 6 bytes with sha256 {digest(changed)[:8]}…, but "
    with pytest.raises(ValueError, match=words + f"{digest(data)[:8]}… was shipped"):
        _shipped.read("a.txt", digest(data))


def test_line_ends_of_another_system_are_named_as_a_cause(folder):
    (folder / "a.txt").write_bytes(b"a\r\nb\r\n")
    with pytest.raises(ValueError, match="its line ends changed"):
        _shipped.read("a.txt", digest(b"a\nb\n"))


def test_a_missing_file_is_refused_with_the_mend(folder):
    with pytest.raises(
        ValueError, match=r"data/a.txt cannot be read .* Install coursekit anew"
    ):
        _shipped.read("a.txt", digest(b""))


def test_a_folder_in_place_of_a_file_is_refused(folder):
    (folder / "a.txt").mkdir()
    with pytest.raises(ValueError, match="cannot be read"):
        _shipped.read("a.txt", digest(b""))
