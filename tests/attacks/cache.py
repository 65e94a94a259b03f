"""Damaged, foreign and missing files in the cache of compiled kernels."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rankinite.core.compiler import EntryDispatcher
from rankinite.core.kernel_cache import KernelCache
from tests.attacks import Outcome
from tests.attacks.damage import damaged

OPTIONS = {"nopython": True, "nogil": True, "error_model": "numpy"}
VALUES = np.arange(5.0)


def total(values: Any) -> float:
    result = 0.0
    for i in range(len(values)):
        result += values[i]
    return result


def largest(values: Any) -> float:
    result = values[0]
    for i in range(len(values)):
        result = max(result, values[i])
    return result


EXPECTED: dict[Callable[..., Any], float] = {total: 10.0, largest: 4.0}


def dispatcher(function: Callable[..., Any], folder: Path) -> EntryDispatcher:
    """Return a kernel as a new process has it: nothing is loaded."""
    kernel = EntryDispatcher(function, OPTIONS)
    kernel._cache = KernelCache(folder, function)
    return kernel


def damage(rng: np.random.Generator, n: int) -> Iterator[Outcome]:
    """Damage files of the cache; kernels must give the same numbers all the same."""
    folder = Path("kernels")
    folder.mkdir()
    for function, expected in EXPECTED.items():
        assert dispatcher(function, folder)(VALUES) == expected
    contents = {path.name: path.read_bytes() for path in folder.glob("*.kernel")}
    assert len(contents) == len(EXPECTED)
    # One warning of each folder would be the same every time.
    logging.getLogger("rankinite").setLevel(logging.ERROR)
    for _ in range(n):
        what = change(rng, folder, contents)
        yield used(what, folder)
        shutil.rmtree(folder)
        folder.mkdir()
        for name, content in contents.items():
            (folder / name).write_bytes(content)


def change(rng: np.random.Generator, folder: Path, contents: dict[str, bytes]) -> str:
    """Change what is in the cache; say what was done."""
    name = str(rng.choice(list(contents)))
    path = folder / name
    kind = str(rng.choice(["content", "content", "content", "content", "other", "folder", "none"]))
    if kind == "content":
        what, changed = damaged(rng, contents[name])
        path.write_bytes(changed)
        return f"{name}: {what}"
    if kind == "other":
        # The right checksum of another kernel.
        path.write_bytes(next(content for other, content in contents.items() if other != name))
    elif kind == "folder":
        path.unlink()
        path.mkdir()
    else:
        shutil.rmtree(folder)
    return f"{name}: {kind}"


def used(what: str, folder: Path) -> Outcome:
    """Use all kernels of a cache; whether they were compiled again, and work."""
    n_compiled = 0
    for function, expected in EXPECTED.items():
        kernel = dispatcher(function, folder)
        try:
            result = kernel(VALUES)
        except Exception as problem:
            return Outcome("exception", f"{what}: {type(problem).__name__}: {problem}"[:300])
        if result != expected:
            return Outcome("wrong", f"{what}: {function.__name__} gives {result}")
        n_compiled += sum(kernel.stats.cache_misses.values())
    return Outcome("compiled again" if n_compiled else "loaded")
