"""Checksums of folders and of JSON files: any change is told, and its file is named."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from rankinite.core.checksums import (
    SUMS,
    Checksums,
    read_with_checksum,
    summed_folder,
    with_checksum,
)


@pytest.fixture
def folder(tmp_path):
    with summed_folder(tmp_path / "kept") as unfinished:
        (unfinished / "a.bin").write_bytes(bytes(range(256)) * 9_000)
        (unfinished / "größe.txt").write_text("b")
    return tmp_path / "kept"


def problem_of(folder):
    try:
        sums = Checksums.of(folder)
        sums.require_name()
        sums.check()
    except ValueError as problem:
        return str(problem)
    return ""


def test_what_was_written_is_sound_and_every_flip_is_told(folder):
    assert problem_of(folder) == ""
    assert Checksums.of(folder).read("größe.txt") == b"b"
    for path in folder.iterdir():
        content = path.read_bytes()
        for place in range(0, len(content), 1 + len(content) // 50):
            path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
            assert problem_of(folder).startswith(str(folder)), (path.name, place)
        for end in range(0, len(content), 1 + len(content) // 50):
            path.write_bytes(content[:end])
            assert problem_of(folder).startswith(str(folder)), (path.name, end)
        path.write_bytes(content)
    assert problem_of(folder) == ""


def test_other_tools_read_the_checksums(folder):
    if shutil.which("sha256sum") is None:
        pytest.skip("there is no sha256sum")
    assert subprocess.run(["sha256sum", "-c", "--strict", SUMS], cwd=folder).returncode == 0


def test_files_that_are_missing_lost_or_new(folder):
    (folder / "notes.txt").write_text("of somebody else")
    assert problem_of(folder) == ""
    with pytest.raises(ValueError, match=r"notes\.txt: is damaged"):
        Checksums.of(folder).read("notes.txt")
    (folder / "a.bin").unlink()
    assert "a.bin: cannot be read: No such file" in problem_of(folder)
    (folder / SUMS).unlink()
    assert "SHA256SUMS: cannot be read: No such file" in problem_of(folder)


def test_a_folder_in_the_place_of_another(folder):
    folder.rename(folder.with_name("other"))
    assert "other: holds the files of kept" in problem_of(folder.with_name("other"))


def test_a_json_file_tells_changes_of_values_and_not_of_spaces():
    content = {"a": [1, 2.5, None], "b": {"ß": "x"}}
    path = Path("some.json")
    path.write_text(json.dumps(with_checksum(content), indent=7))
    assert read_with_checksum(path) == content
    for other in (content, [], {}, {**with_checksum(content), "a": [1, 2.25, None]}):
        path.write_text(json.dumps(other))
        with pytest.raises(ValueError, match="damaged"):
            read_with_checksum(path)
    path.write_text("[" * 100_000)
    with pytest.raises(ValueError, match="damaged"):
        read_with_checksum(path)
