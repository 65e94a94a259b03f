"""Commands on a disk that is too small for what they write, and once more on one with room."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import io
import json
import os
import shutil
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import rankinite as rk
from rankinite.cli import main
from tests.attacks import Outcome
from tests.runs.cases import MICRO, micro_data

DISK = Path("disk")
SMALL, ROOM = 4_096, 64 << 20
# What a command writes to the disk, and what must be the same as on a disk with room. Of a run the
# rest has times and versions.
COMMANDS: dict[str, tuple[list[str], list[str]]] = {
    "train": (["train", "train.txt", "--n-trees", "4", "--out", "disk/m.rk"], ["m.rk"]),
    "predict": (["predict", "m.rk", "train.txt", "--out", "disk/scores.txt"], ["scores.txt"]),
    "convert": (["data", "convert", "train.txt", "disk/data.parquet"], ["data.parquet"]),
    "compress": (["data", "convert", "train.txt", "disk/data.txt.gz"], ["data.txt.gz"]),
    "split": (
        ["data", "split", "train.txt", "--parts", "2", "--out", "disk/parts"],
        ["parts/part01.txt", "parts/part02.txt"],
    ),
    "simulate": (
        ["data", "simulate", "polynomials", "--size", "0.001", "--out", "disk/data"],
        ["data/train.parquet", "data/test.parquet"],
    ),
    "combine": (["combine", "m.rk", "n.rk", "--data", "train.txt", "--out", "disk/both"], []),
    "recipe": (
        ["recipe", "run", "micro.toml", "--train", "train.txt", "--jobs", "1", "--out", "disk/run"],
        ["run/ensemble.rk", "run/tables.md"],
    ),
}


def full(rng: np.random.Generator, n: int) -> Iterator[Outcome]:
    """Run commands on small disks: each must say so, leave nothing, and succeed with more room."""
    rk.save(micro_data(40), "train.txt")
    Path("micro.toml").write_text(MICRO)
    for name, kind in (("m", rk.LambdaMART), ("n", rk.MART)):
        kind(n_trees=3, random_state=1).fit(rk.load("train.txt")).save(f"{name}.rk")
    known: dict[str, tuple[dict[str, str], int]] = {}
    for _ in range(n):
        name = str(rng.choice(list(COMMANDS)))
        if name not in known:
            DISK.mkdir()
            # In this process, whose children then have all modules.
            known[name] = whole(name)
            shutil.rmtree(DISK)
        expected, size = known[name]
        DISK.mkdir()
        n_bytes = int(np.exp(rng.uniform(np.log(SMALL), np.log(2 * size + SMALL))))
        yield Outcome(*in_child(lambda name=name, e=expected, n=n_bytes: tried(name, e, n)))
        shutil.rmtree(DISK)


def in_child(function: Callable[[], object]) -> tuple:
    """Call a function in a child of this process, which may change its disks and limits."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
        child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            os.write(writing, json.dumps(function()).encode())
        except BaseException as problem:
            with contextlib.suppress(BaseException):
                bad = f"{type(problem).__name__}: {problem}"
                os.write(writing, json.dumps(["exception", bad]).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    status = os.waitpid(child, 0)[1]
    return tuple(json.loads(text)) if text else ("death", f"the process died: {status}")


def whole(name: str) -> tuple[dict[str, str], int]:
    """Run a command with room: digests of what it makes, and how much it writes."""
    code, said = called(name)
    assert code == 0, said
    sizes = [path.stat().st_size for path in DISK.rglob("*") if path.is_file()]
    return digests(name), sum(sizes)


def tried(name: str, expected: dict[str, str], n_bytes: int) -> tuple[str, str]:
    """Run a command with little room, look at what is left, and run it again with more."""
    disk = Disk(n_bytes)
    code, said = called(name)
    what = f"{name} on {n_bytes:,} bytes"
    if code == 0:
        return ("enough room", "" if digests(name) == expected else f"{what}: other bytes")
    if code != 1 or not said.rstrip().splitlines()[-1].startswith("Error: "):
        return "refused", f"{what}: exit {code}, {said[-200:]}"
    if disk.says not in said:
        return "refused", f"{what}: does not say why: {said[-200:]}"
    if wrong := [key for key, digest in digests(name).items() if digest != expected[key]]:
        return "refused", f"{what}: part of {wrong[0]}"
    if left := [path.name for path in DISK.rglob("*.part")]:
        return "refused", f"{what}: left {left[0]}"
    disk.enlarge()
    code, said = called(name)
    if code != 0:
        return "refused", f"{what}, then with room: {said[-200:]}"
    return "refused, then the same bytes", "" if digests(name) == expected else f"{what}: differs"


def called(name: str) -> tuple[int, str]:
    """Call a command; its exit code, and what it says."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            main(COMMANDS[name][0])
        except SystemExit as leaving:
            return int(leaving.code or 0), said.getvalue()


def digests(name: str) -> dict[str, str]:
    """Return the digests of those files of a command that are there."""
    paths = [DISK / file for file in COMMANDS[name][1]]
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths if path.exists()
    }


class Disk:
    """A small disk for this process alone; where none can be made, its files may not grow.

    Parameters
    ----------
    n_bytes
        Size of the disk, or of a file.
    """

    def __init__(self, n_bytes: int) -> None:
        self.says = "no space is left on the disk"
        self.is_mounted = _own_mounts() and _mount(n_bytes, 0)
        if not self.is_mounted:
            self.says = "File too large"
            _limit_files(n_bytes)

    def enlarge(self) -> None:
        """Make room."""
        if self.is_mounted:
            assert _mount(ROOM, _REMOUNT)
        else:
            _limit_files(ROOM)


_NEW_MOUNTS, _NEW_USERS, _REMOUNT = 0x20000, 0x10000000, 0x20
_PRIVATE, _WITH_ALL_BELOW = 1 << 18, 1 << 14


def _own_mounts() -> bool:
    """Give this process mounts of its own, which end with it; tell whether that is allowed."""
    if not sys.platform.startswith("linux"):
        return False
    c, ids = ctypes.CDLL(None), (os.getuid(), os.getgid())
    if ids[0] == 0:
        # What is mounted here must not appear elsewhere.
        unshared = c.unshare(_NEW_MOUNTS) == 0
        return unshared and c.mount(b"none", b"/", None, _PRIVATE | _WITH_ALL_BELOW, None) == 0
    if c.unshare(_NEW_USERS | _NEW_MOUNTS) != 0:
        return False
    try:
        Path("/proc/self/setgroups").write_text("deny")
        for name, number in zip(("uid_map", "gid_map"), ids, strict=True):
            Path(f"/proc/self/{name}").write_text(f"0 {number} 1")
    except OSError:
        return False
    return True


def _mount(n_bytes: int, flags: int) -> bool:
    size = f"size={n_bytes}".encode()
    target = os.fsencode(DISK.absolute())
    return ctypes.CDLL(None).mount(b"none", target, b"tmpfs", flags, size) == 0


def _limit_files(n_bytes: int) -> None:
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, resource.RLIM_INFINITY))
