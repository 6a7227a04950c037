"""A file is there whole or not at all, and is touched only to change it."""

import os

import pytest

from coursekit._files import write_whole


def test_a_file_holds_the_bytes_of_the_text(tmp_path):
    path = tmp_path / "file"
    assert write_whole(path, "one\r\n\u00e9\n")
    assert path.read_bytes() == "one\r\n\u00e9\n".encode()
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_holds_the_text_is_not_touched(tmp_path):
    path = tmp_path / "file"
    write_whole(path, "one")
    os.utime(path, (1, 1))
    assert not write_whole(path, "one")
    assert path.stat().st_mtime == 1
    assert write_whole(path, "two")


def test_what_fails_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "file"
    write_whole(path, "one")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "\ud83d")
    assert path.read_text() == "one"
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "none" / "file", "one")
