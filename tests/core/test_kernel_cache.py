"""The cache of compiled kernels: second processes, edits, directories; who imports numba."""

from __future__ import annotations

import ast
import json
import os
import pickle
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import rankinite
from rankinite.core import kernel_cache

PACKAGE = Path(rankinite.__file__).parent
KERNELS = """
import numpy as np
from rankinite.core.jit import inlined_kernel, kernel
from rankinite.inner import FACTOR

@inlined_kernel
def times(x):
    return FACTOR * x

@kernel
def total(values):
    result = 0.0
    for i in range(values.shape[0]):
        result += times(values[i])
    return result

@kernel
def all_times(values, out):
    for i in range(values.shape[0]):
        out[i] = times(values[i])
"""
RUN = """
import json, logging
logging.basicConfig(level=logging.DEBUG)
import numpy as np
from rankinite.core.kernel_cache import cache_directory
from rankinite.probe import all_times, times, total
values, out = np.arange(4.0), np.empty(4)
values.flags.writeable = False
all_times(values, out)
compiled = [k for k in (total, all_times) if hasattr(k, "dispatcher")]
def count(field):
    return [sum(getattr(k.dispatcher.stats, field).values()) for k in compiled]
print(json.dumps({
    "directory": str(cache_directory()), "total": total(values), "times": times(1.5),
    "all": out.tolist(), "hits": count("cache_hits"), "misses": count("cache_misses"),
}))
"""


class Copy:
    """A copy of the package's core with other kernels, run in separate processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.package = folder / "rankinite"
        self.package.mkdir()
        for name in ("__init__.py", "__init__.pyi"):
            shutil.copy(PACKAGE / name, self.package)
        shutil.copytree(PACKAGE / "core", self.package / "core")
        self.write("probe", KERNELS)
        self.write("inner", "from rankinite.innermost import FACTOR")
        self.write("innermost", "FACTOR = 2.0")
        self.write("unrelated", "")

    def write(self, module: str, text: str) -> None:
        (self.package / f"{module}.py").write_text(text)

    def begin(self, before: str = "", **environment: str) -> subprocess.Popen[str]:
        clean = {n: v for n, v in os.environ.items() if not n.startswith(("NUMBA", "RANKINITE"))}
        variables = (
            clean | {"PYTHONPATH": str(self.folder), "PYTHONWARNINGS": "error"} | environment
        )
        # A file, not a pipe: numba logs more than fits in one that nobody reads for a while.
        with (self.folder / "errors.txt").open("a") as errors:
            return subprocess.Popen(
                [sys.executable, "-c", before + RUN],
                env=variables,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def run(self, before: str = "", **environment: str) -> dict:
        return self.results_of(self.begin(before, **environment))

    def results_of(self, process: subprocess.Popen[str]) -> dict:
        with process:
            printed, _ = process.communicate()
        assert process.returncode == 0, (self.folder / "errors.txt").read_text()
        results = json.loads(printed)
        assert results["all"] == [results["times"] / 1.5 * i for i in range(4)]
        assert results["total"] == sum(results["all"])
        return results


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Copy:
    return Copy(tmp_path_factory.mktemp("copy"))


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_second_process_compiles_nothing_and_an_edit_is_noticed(copy, tmp_path):
    cache = tmp_path / "cache"
    old, young = cache / "kernels" / "old", cache / "kernels" / "young"
    others = cache / "kernels" / "mine"
    for version, days in ((old, 31), (young, 29), (others, 31)):
        version.mkdir(parents=True)
        (version / ("notes" if version == others else kernel_cache.MARK)).touch()
        then = time.time() - days * 24 * 3600
        os.utime(version, (then, then))

    first = copy.run(RANKINITE_CACHE_DIR=str(cache))
    assert Path(first["directory"]).parent == cache / "kernels"
    assert (first["times"], first["hits"], first["misses"]) == (3.0, [0, 0], [1, 1])
    assert not old.exists()
    assert young.exists()
    # Without our mark it is somebody else's, who has named a folder of a project, say.
    assert others.exists()

    kept = files_in(cache)
    second = copy.run(RANKINITE_CACHE_DIR=str(cache), NUMBA_CACHE_DIR=str(tmp_path / "numba"))
    assert (second["hits"], second["misses"]) == ([1, 1], [0, 0])
    assert files_in(cache) == kept
    assert not (tmp_path / "numba").exists()

    copy.write("unrelated", "FACTOR = 5.0")
    assert copy.run(RANKINITE_CACHE_DIR=str(cache))["hits"] == [1, 1]

    copy.write("innermost", "FACTOR = 5.0")
    edited = copy.run(RANKINITE_CACHE_DIR=str(cache))
    copy.write("innermost", "FACTOR = 2.0")
    assert (edited["times"], edited["hits"]) == (7.5, [0, 0])
    assert edited["directory"] != first["directory"]
    assert files_in(cache).items() > kept.items()


@pytest.mark.skipif(os.name == "nt", reason="there are no locks")
def test_of_several_processes_one_compiles_a_kernel(copy, tmp_path):
    begun = [copy.begin(RANKINITE_CACHE_DIR=str(tmp_path)) for _ in range(3)]
    results = [copy.results_of(process) for process in begun]
    assert np.sum([result["misses"] for result in results], axis=0).tolist() == [1, 1]
    assert np.sum([result["hits"] for result in results], axis=0).tolist() == [2, 2]


@pytest.mark.skipif(os.name == "nt", reason="there are no locks")
def test_a_lock_that_is_never_released_is_not_waited_for_forever(monkeypatch, tmp_path):
    holder = kernel_cache._locked(tmp_path / "kernel.lock")
    assert holder is not None
    monkeypatch.setattr(kernel_cache, "SECONDS_TO_WAIT", 0.0)
    assert kernel_cache._locked(tmp_path / "kernel.lock") is None
    holder.close()
    again = kernel_cache._locked(tmp_path / "kernel.lock")
    assert again is not None
    again.close()


@pytest.mark.skipif(os.name == "nt", reason="folders of other users are told by their mode")
@pytest.mark.parametrize("mode", [0o700, 0o777])
def test_a_cache_that_cannot_be_written(copy, tmp_path, mode):
    """Falls back to a folder for temporary files, unless others could put code there."""
    a_file = tmp_path / "file"
    a_file.write_text("no folder can be made in here")
    fallback = tmp_path / f"rankinite-{os.getuid()}"
    fallback.mkdir()
    fallback.chmod(mode)
    (copy.folder / "errors.txt").write_text("")
    results = copy.run(RANKINITE_CACHE_DIR=str(a_file / "cache"), TMPDIR=str(tmp_path))
    kept = str(fallback / "kernels") if mode == 0o700 else "."
    assert str(Path(results["directory"]).parent) == kept
    said = (copy.folder / "errors.txt").read_text()
    assert said.count("compiled kernels cannot be kept in any folder") == (mode == 0o777)
    assert bool(files_in(fallback)) == (mode == 0o700)


DAMAGES = {
    "empty": lambda content: b"",
    "cut": lambda content: content[: len(content) // 2],
    "garbage": lambda content: b"garbage",
    "flipped": lambda content: content[:-100] + bytes([content[-100] ^ 16]) + content[-99:],
    "checksum": lambda content: bytes([content[0] ^ 1]) + content[1:],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_kernel_is_compiled_again_with_a_warning(copy, tmp_path, damage):
    copy.run(RANKINITE_CACHE_DIR=str(tmp_path))
    files = list(tmp_path.rglob("*.kernel"))
    assert len(files) == 3  # those that Python calls; `times` is called by Python and by the others
    whole = {path: path.read_bytes() for path in files}
    for path in files:
        path.write_bytes(damage(whole[path]))
    expect_new_kernels(copy, tmp_path)


def expect_new_kernels(copy: Copy, cache: Path) -> None:
    """Expect that all kernels are compiled again, with one warning."""
    (copy.folder / "errors.txt").write_text("")
    again = copy.run(RANKINITE_CACHE_DIR=str(cache))
    assert (again["hits"], again["misses"]) == ([0, 0], [1, 1])
    said = (copy.folder / "errors.txt").read_text()
    assert said.count("are damaged; they are deleted, and compiled again") == 1
    assert copy.run(RANKINITE_CACHE_DIR=str(cache))["hits"] == [1, 1]


def test_a_kernel_is_not_taken_for_another(copy, tmp_path):
    copy.run(RANKINITE_CACHE_DIR=str(tmp_path))
    files = sorted(tmp_path.rglob("*.kernel"))
    contents = [path.read_bytes() for path in files]
    for path, content in zip(files, contents[1:] + contents[:1], strict=True):
        path.write_bytes(content)
    expect_new_kernels(copy, tmp_path)


@pytest.mark.parametrize("payload", [b"", b"garbage", pickle.dumps(()), pickle.dumps(None)])
def test_a_kernel_that_cannot_be_read_is_damaged(tmp_path, caplog, payload):
    path = tmp_path / "module.kernel-1.kernel"
    path.write_bytes(kernel_cache._checksum(path, payload) + payload)
    assert kernel_cache._load(path, target_context=None) is None
    assert "are damaged" in caplog.text
    assert not path.exists()


def test_what_killed_processes_left_of_a_kernel_is_removed(copy, tmp_path):
    first = copy.run(RANKINITE_CACHE_DIR=str(tmp_path))
    directory = Path(first["directory"])
    kernel = next(directory.glob("rankinite.probe.all_times-*.kernel"))
    kernel.rename(kernel.with_name(f".{kernel.name}.123-0123abcd.part"))
    other = directory / "mine.part"
    other.touch()
    assert copy.run(RANKINITE_CACHE_DIR=str(tmp_path))["misses"] == [0, 1]
    assert list(directory.glob("*.part")) == [other]


def test_a_folder_that_cannot_be_listed_is_used(monkeypatch, tmp_path):
    def refuse(path: Path) -> None:
        raise PermissionError(f"{path} cannot be listed")

    monkeypatch.setenv("RANKINITE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(Path, "iterdir", refuse)
    assert kernel_cache.cache_directory.__wrapped__().parent == tmp_path / "kernels"


# Of numba's debugging messages there are more than fit.
FULL = """
import logging, resource
logging.basicConfig(level=logging.WARNING)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
"""


@pytest.mark.skipif(os.name == "nt", reason="the size of files cannot be limited")
def test_a_full_disk_costs_one_warning(copy, tmp_path):
    """Files cannot grow beyond four kilobytes, as on a disk that is full."""
    (copy.folder / "errors.txt").write_text("")
    results = copy.run(FULL, RANKINITE_CACHE_DIR=str(tmp_path))
    assert results["misses"] == [1, 1]
    said = (copy.folder / "errors.txt").read_text()
    assert said.count("compiled kernels cannot be kept in") == 1
    assert [path.suffix for path in tmp_path.rglob("*") if path.is_file()].count(".kernel") == 0
    assert not list(tmp_path.rglob("*.part"))


def test_without_the_jit(copy, tmp_path):
    results = copy.run(RANKINITE_CACHE_DIR=str(tmp_path / "cache"), NUMBA_DISABLE_JIT="1")
    assert (results["times"], results["hits"]) == (3.0, [])
    assert files_in(tmp_path / "cache") == {}


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"RANKINITE_CACHE_DIR": "/given", "XDG_CACHE_HOME": "/xdg"}, "/given"),
        ("linux", {"XDG_CACHE_HOME": "/xdg"}, "/xdg/rankinite"),
        ("linux", {"XDG_CACHE_HOME": ""}, "/home/me/.cache/rankinite"),
        ("darwin", {}, "/home/me/Library/Caches/rankinite"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/rankinite"),
    ],
)
def test_where_the_cache_is(monkeypatch, platform, variables, expected):
    for name in ("RANKINITE_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(Path, "home", lambda: Path("/home/me"))
    monkeypatch.setattr(kernel_cache.sys, "platform", platform)
    assert kernel_cache._user_cache() == Path(expected)


def test_a_user_without_home_and_temporary_folder(monkeypatch):
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    def nothing_usable() -> str:
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.delenv("RANKINITE_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    monkeypatch.setattr(kernel_cache.tempfile, "gettempdir", nothing_usable)
    assert kernel_cache.cache_directory.__wrapped__() is None


def imported_by(path: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names}


def test_only_core_imports_numba():
    compiler = {"numba", "llvmlite"}
    users = {p.relative_to(PACKAGE) for p in PACKAGE.rglob("*.py") if imported_by(p) & compiler}
    assert Path("core/compiler.py") in users
    assert {path.parts[0] for path in users} == {"core"}
