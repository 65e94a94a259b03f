from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rankinite.core.files import (
    atomic_folder,
    atomic_write,
    remove_unfinished,
    remove_unfinished_of,
)
from tests import processes

TARGET = Path("target.bin")


def write(content: bytes) -> None:
    with atomic_write(TARGET) as file:
        file.write(content)


def write_half(problem: type[BaseException]) -> None:
    with atomic_write(TARGET) as file:
        file.write(b"half")
        raise problem


def test_the_new_file_takes_the_place_of_the_old():
    write(b"old, and longer")
    write(b"new")
    assert TARGET.read_bytes() == b"new"
    assert list(Path().iterdir()) == [TARGET]


def test_readers_see_the_old_file_until_the_end():
    write(b"old")
    with atomic_write(str(TARGET)) as file:
        file.write(b"new")
        file.flush()
        assert TARGET.read_bytes() == b"old"
    assert TARGET.read_bytes() == b"new"


def test_the_file_can_be_read_and_changed_while_written():
    with atomic_write(TARGET) as file:
        file.write(b"abcdef")
        file.seek(2)
        assert file.read(2) == b"cd"
        file.seek(0)
        file.write(b"X")
    assert TARGET.read_bytes() == b"Xbcdef"


@pytest.mark.parametrize("problem", [ValueError, OSError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("there_before", [True, False])
def test_an_exception_leaves_all_as_it_was(problem, there_before):
    if there_before:
        write(b"old")
    with pytest.raises(problem):
        write_half(problem)
    assert [path.read_bytes() for path in Path().iterdir()] == [b"old"] * there_before


def test_a_rename_that_fails_leaves_nothing_behind():
    TARGET.mkdir()
    with pytest.raises(OSError), atomic_write(TARGET) as file:
        file.write(b"new")
    assert list(Path().rglob("*")) == [TARGET]


def test_a_missing_folder_is_named():
    with pytest.raises(OSError, match="missing") as caught, atomic_write("missing/target.bin"):
        pytest.fail("there is nothing to write to")
    assert "part" not in str(caught.value)
    assert list(Path().iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="Windows has no umask")
@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_permissions_follow_the_umask(umask):
    before = os.umask(umask)
    try:
        write(b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE(TARGET.stat().st_mode) == 0o666 & ~umask


def test_a_link_stays_a_link_and_a_mode_stays_a_mode():
    Path("real").write_bytes(b"old")
    Path("real").chmod(0o600)
    Path("link").symlink_to("real")
    with atomic_write("link") as file:
        file.write(b"new")
    assert Path("link").is_symlink()
    assert Path("real").read_bytes() == b"new"
    assert Path("real").stat().st_mode & 0o777 == 0o600


def test_a_pipe_and_a_device_get_the_bytes():
    os.mkfifo("pipe")
    with ThreadPoolExecutor(1) as reader:
        read = reader.submit(Path("pipe").read_bytes)
        with atomic_write("pipe") as file:
            file.write(b"..c")
            file.seek(0)  # as a writer of a zip does
            file.write(b"ab")
        assert read.result() == b"abc"
    with atomic_write(os.devnull) as file:
        file.write(b"nothing is kept")
    assert Path("pipe").is_fifo()


def test_a_folder_is_refused():
    with pytest.raises(IsADirectoryError, match="this is a directory"), atomic_write("."):
        pass


@pytest.mark.skipif(os.name == "nt", reason="Windows cannot flush a folder")
def test_contents_are_on_disk_before_the_name_is(monkeypatch):
    """A power failure at any time leaves the old file or the new one, whole."""
    events = []
    replace, rename = os.replace, os.rename

    def flushed(handle):
        status = os.fstat(handle)
        events.append("folder" if stat.S_ISDIR(status.st_mode) else f"{status.st_size} bytes")

    def named(change):
        return lambda *paths: (events.append("name"), change(*paths))[1]

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(os, "replace", named(replace))
    monkeypatch.setattr(os, "rename", named(rename))
    with atomic_write("file") as file:
        file.write(b"five!")
    assert events == ["5 bytes", "name", "folder"]
    events.clear()
    with atomic_folder("folder") as folder:
        (folder / "inside").write_bytes(b"six!!!")
    assert events == ["6 bytes", "folder", "name", "folder"]


# What a killed process leaves, and a living one writes.
WRITING = """
from rankinite.core.files import atomic_folder, atomic_write

with atomic_write("target.bin") as file, atomic_folder("folder") as folder:
    (folder / "inside").write_text("half")
    pause("writing")
"""


def parts():
    return {path.name.split(".")[1] for path in Path().glob(".*.part")}


def test_what_a_killed_process_left_is_removed_by_the_next_that_writes_the_same():
    with processes.start(WRITING) as killed:
        processes.wait_for("writing", killed)
        write(b"new")
        with atomic_folder("folder"):
            pass
        assert parts() == {"target", "folder"}
        processes.signal_and_end(killed, signal.SIGKILL)
    with atomic_write("other") as file:
        file.write(b"new")
    assert parts() == {"target", "folder"}
    write(b"newer")
    assert parts() == {"folder"}
    with atomic_folder("folder"):
        pass
    assert parts() == set()


def test_parts_of_a_process_that_lives_are_never_removed():
    with atomic_write("a") as file, atomic_folder("b") as folder:
        file.write(b"a")
        (folder / "inside").touch()
        remove_unfinished(Path())
        remove_unfinished_of(Path("a"), Path("b"))
    assert Path("a").read_bytes() == b"a"
    assert Path("b/inside").exists()


def test_what_is_not_ours_is_not_removed():
    os.mkfifo(".target.bin.1-0123abcd.part")
    Path("precious").write_text("x")
    Path(".target.bin.2-0123abcd.part").symlink_to("precious")
    Path(".target.bin.old.3-0123abcd.part").touch()
    Path(".target.bin.mine.part").touch()
    before = sorted(Path().iterdir())
    write(b"new")
    assert sorted(Path().iterdir()) == sorted([*before, TARGET])


def test_a_new_file_that_another_process_takes_for_left_is_made_again(monkeypatch):
    lock, removed = fcntl.flock, []

    def late(handle, operation):
        if not removed:
            removed.extend(Path().glob(".target.bin.*.part"))
            removed[0].unlink()
        lock(handle, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    write(b"new")
    assert removed
    assert TARGET.read_bytes() == b"new"


def test_where_nothing_can_be_locked_files_are_written_and_left(monkeypatch):
    def refuse(*_arguments):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    left = Path(".target.bin.1-0123abcd.part")
    left.touch()
    write(b"new")
    assert (TARGET.read_bytes(), left.exists()) == (b"new", True)
    # Under the lock of the folder of a run.
    remove_unfinished(Path())
    assert not left.exists()


def test_the_longest_names_can_be_written():
    for name in ("é" * 127, "a" * 255):
        with atomic_write(name) as file:
            file.write(b"x")
        with pytest.raises(ValueError, match="stop"), atomic_write(name):
            raise ValueError("stop")
        assert [path.name for path in Path().iterdir()] == [name]
        Path(name).unlink()
