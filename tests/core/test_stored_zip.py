from __future__ import annotations

import io
import zipfile

import pytest

from rankinite.core import stored_zip
from rankinite.core.stored_zip import directory, read_entries, write_entry

TIMESTAMP = (1980, 1, 1, 0, 0, 0)
ENTRIES = {"manifest.json": b"{}", "ä/b.npy": b"x" * 200, "empty": b"", "z": b"zz"}
COMMENT = b"comment"


def written(entries: dict[str, bytes], comment: bytes = COMMENT) -> bytes:
    file = io.BytesIO()
    listed = [write_entry(file, name, data) for name, data in entries.items()]
    file.write(directory(listed, file.tell(), len(comment)) + comment)
    return file.getvalue()


def by_zipfile(entries: dict[str, bytes], comment: bytes = COMMENT) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in entries.items():
            entry = zipfile.ZipInfo(name, TIMESTAMP)
            entry.create_system = 3
            archive.writestr(entry, data)
        archive.comment = comment
    return file.getvalue()


def read(content: bytes) -> dict[str, bytes]:
    file = io.BytesIO(content)
    end = len(content) - len(COMMENT)
    return {entry.name: bytes(data) for entry, data in read_entries(file, end, len(COMMENT))}


@pytest.mark.parametrize("entries", [{}, ENTRIES, {"x" * 65_535: b"1"}], ids=len)
def test_the_bytes_are_those_of_zipfile_and_are_read(entries):
    assert written(entries) == by_zipfile(entries)
    assert read(written(entries)) == entries


@pytest.mark.parametrize("large", [20, 100, 205, 300])
def test_the_bytes_of_large_files(monkeypatch, large):
    """Numbers of 64 bits begin where `zipfile` has them, also for files that no test can make."""
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", large)
    monkeypatch.setattr(stored_zip, "LARGE", large)
    assert written(ENTRIES) == by_zipfile(ENTRIES)
    assert read(written(ENTRIES)) == ENTRIES


def test_the_bytes_of_many_entries(monkeypatch):
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 3)
    monkeypatch.setattr(stored_zip, "MANY", 3)
    assert written(ENTRIES) == by_zipfile(ENTRIES)
    assert read(written(ENTRIES)) == ENTRIES


def test_what_earlier_versions_wrote_on_windows_is_read():
    content = written(ENTRIES)
    begin = content.index(b"PK\1\2")
    of_windows = content[:begin] + content[begin:].replace(b"PK\1\2\x14\3", b"PK\1\2\x14\0")
    assert of_windows != content
    assert read(of_windows) == ENTRIES


def test_no_other_byte_is_read():
    content = written(ENTRIES)
    for place in range(len(content) - len(COMMENT)):
        for flip in (1, 8, 0x80):
            changed = bytearray(content)
            changed[place] ^= flip
            with pytest.raises(ValueError, match=r"it|is"):
                read(bytes(changed))
    for length in range(len(content) - len(COMMENT)):
        with pytest.raises(ValueError, match=r"it|is"):
            read(content[:length] + COMMENT)


def test_a_size_beyond_the_file_takes_no_memory():
    content = bytearray(written({"a": b"1"}))
    content[18:26] = (2**31 - 2).to_bytes(4, "little") * 2
    with pytest.raises(ValueError, match="not a zip of the form"):
        read(bytes(content))
