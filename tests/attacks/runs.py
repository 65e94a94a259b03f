"""Damage to the folders of runs and sweeps, and processes that are killed while they write them."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankinite.core.checksums import CHECKSUM, SUMS, Checksums, summed_folder, with_checksum
from rankinite.core.threads import set_threads
from rankinite.report import write_report, write_sweep_report
from rankinite.runs.recipe_reader import recipe_of
from rankinite.runs.run import open_run
from rankinite.sweeps.results import write_results
from rankinite.sweeps.sweep import open_sweep
from tests.attacks import Outcome
from tests.attacks.damage import damaged
from tests.attacks.disks import in_child
from tests.attacks.tries import REFUSALS
from tests.runs.cases import MICRO, go
from tests.sweeps.cases import files_of, micro_sweep

MEMORY = 2 << 30
TRIED = Path("tried")
# How files are damaged, and how often.
HOW = {
    "flip": 0.25,
    "bytes": 0.2,
    "huge": 0.25,
    "forged": 0.1,
    "swap": 0.08,
    "swap folders": 0.04,
    "remove": 0.04,
    "folder": 0.04,
}
NUMBER = re.compile(rb"-?[0-9]+(\.[0-9]+)?")


def run_micro(out: Path) -> None:
    write_report(go(recipe_of("micro.toml", MICRO), out=out))


def sweep_micro(out: Path) -> None:
    micro_sweep(out, trials=5, folds=2)


def open_micro(out: Path) -> None:
    run = open_run(out)
    run.tables.save(out)
    write_report(run)


def open_micro_sweep(out: Path) -> None:
    write_sweep_report(write_results(open_sweep(out)))


def results_of_run(out: Path) -> dict[str, bytes]:
    names = ("ensemble.rk", "tables.*", "models/*", "scores/*/*", "measures/*")
    return {str(p.relative_to(out)): p.read_bytes() for name in names for p in out.glob(name)}


def results_of_sweep(out: Path) -> dict[str, bytes]:
    return {name: content for name, content in files_of(out).items() if name != "run.json"}


def written_again(out: Path) -> dict[str, bytes]:
    """Return what is written when a run or a sweep is opened, and holds no times."""
    names = ("tables.md", "tables.json", "sweep.json", "trials.csv", "recipe.toml")
    return {name: (out / name).read_bytes() for name in names if (out / name).is_file()}


@dataclass(frozen=True)
class Kind:
    """A run or a sweep: how it is made or resumed, how it is opened, and what it gives."""

    make: Callable[[Path], None]
    open: Callable[[Path], None]
    results: Callable[[Path], dict[str, bytes]]


KINDS = {
    "run": Kind(run_micro, open_micro, results_of_run),
    "sweep": Kind(sweep_micro, open_micro_sweep, results_of_sweep),
}


def damage(rng: np.random.Generator, n: int) -> Iterator[Outcome]:
    """Damage folders of finished runs, and resume them: the same bytes, or a sentence."""
    set_threads(1)
    logging.getLogger("rankinite").setLevel(logging.CRITICAL)
    expected = {}
    for name, kind in KINDS.items():
        # In this process, whose children then have all modules and kernels.
        kind.make(Path(name))
        expected[name] = kind.results(Path(name))
    for _ in range(n):
        name = str(rng.choice(list(KINDS), p=[0.7, 0.3]))
        seed = int(rng.integers(1 << 62))
        yield Outcome(*in_child(lambda name=name, seed=seed: tried(name, expected[name], seed)))
        shutil.rmtree(TRIED, ignore_errors=True)


def tried(name: str, expected: dict[str, bytes], seed: int) -> tuple[str, str]:
    """Damage a copy of a folder; whether it is opened and resumed to the same bytes."""
    limit_memory()
    os.fsync = lambda _handle: None  # no power failure will come
    rng = np.random.default_rng(seed)
    kind = KINDS[name]
    shutil.copytree(name, TRIED)
    # First, so that what has to be made anew may depend on what is damaged.
    lost = lose(rng) if rng.random() < 0.5 else 0
    what, is_forged = change(rng)
    what = f"{name}, {what}, {lost} results lost"
    if lost == 0 and rng.random() < 0.4:
        said = refusal_of(kind.open)
        if not said and not is_forged and written_again(TRIED) != written_again(Path(name)):
            return "opened", f"{what}: opened with other results"
        if said and not is_forged and str(TRIED) not in said:
            return "opened", f"{what}: names no file: {said}"
    said = refusal_of(kind.make)
    is_refused = bool(said)
    if is_refused and not is_forged:
        named = re.search(rf"{TRIED}/[^\s:;,()']+", said)
        if named is None or not ("delete" in said or "move" in said or "directory" in said):
            return "refused", f"{what}: does not say what to delete: {said}"
        remove(Path(named[0]))
        if "run.json" in said:
            (TRIED / "run.json").unlink(missing_ok=True)
        if again := refusal_of(kind.make):
            return "refused", f"{what}: {said}; then {again}"
    if is_forged:
        is_same = is_refused or kind.results(TRIED) == expected
        return ("forged, " + ("the same" if is_same else "taken"), "")
    if kind.results(TRIED) != expected:
        return "resumed", f"{what}: other bytes after {said or 'nothing was said'}"
    # Trainings of trials that are known are not needed, and stay as they are.
    for path in TRIED.glob("*/*/SHA256SUMS") if name == "run" else ():
        sums = Checksums.of(path.parent)
        sums.require_name()
        sums.check()
    return ("refused, then the same bytes" if is_refused else "the same bytes"), ""


def limit_memory() -> None:
    import resource

    # Besides what the process has: libraries alone map gigabytes.
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (in_use + MEMORY, in_use + MEMORY))


def refusal_of(function: Callable[[Path], Any]) -> str:
    """Return with which sentence a call was refused; other exceptions are not caught."""
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            function(TRIED)
    except REFUSALS as problem:
        return str(problem) or type(problem).__name__
    return ""


def remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def lose(rng: np.random.Generator) -> int:
    """Remove the results of some tasks, which are to be executed again; how many."""
    tasks = sorted((TRIED / "tasks").iterdir())
    chosen = rng.choice(len(tasks), int(rng.integers(1, len(tasks) + 1)), replace=False)
    for k in chosen:
        shutil.rmtree(tasks[k])
    return len(chosen)


def change(rng: np.random.Generator) -> tuple[str, bool]:
    """Change something in a folder; what was done, and whether its checksum was forged."""
    paths = [path for path in sorted(TRIED.rglob("*")) if path.is_file()]
    # By kind of file: most are small records of tasks. Arrays are what damage passes through.
    names = sorted({path.name for path in paths} - {"log.txt", "lock"})
    if rng.random() < 0.5:
        names = [name for name in names if name.endswith((".npy", "curve.json", "spread.json"))]
    chosen = str(rng.choice(names))
    alike = [path for path in paths if path.name == chosen]
    path = alike[int(rng.integers(len(alike)))]
    how = str(rng.choice(list(HOW), p=list(HOW.values())))
    what = f"{path}: {how}"
    if how == "flip":
        content = bytearray(path.read_bytes() or b"0")
        # Of a number more often than of a header.
        content[int(len(content) * (1 - rng.random() ** 2)) - 1] ^= 1 << int(rng.integers(8))
        path.write_bytes(content)
        return what, False
    if how == "bytes":
        done, content = damaged(rng, path.read_bytes() or b"0")
        path.write_bytes(content)
        return f"{path}: {done}", False
    if how in ("huge", "forged"):
        path.write_bytes(huge(rng, path))
        if how == "forged":
            forge(path)
        return what, how == "forged"
    if how == "swap":
        others = alike if len(alike) > 1 and rng.random() < 0.7 else paths
        other = others[int(rng.integers(len(others)))]
        first, second = path.read_bytes(), other.read_bytes()
        path.write_bytes(second)
        other.write_bytes(first)
        return f"{what} with {other}", False
    if how == "swap folders":
        # All tasks may have been lost.
        folders = sorted((TRIED / str(rng.choice(["tasks", "data"]))).iterdir())
        first, second = rng.choice(folders or sorted((TRIED / "data").iterdir()), 2)
        if first != second:
            first.rename(TRIED / "first")
            second.rename(first)
            (TRIED / "first").rename(second)
        return f"{first}, {second}: swapped", False
    if how == "remove":
        remove(path.parent if path.parent != TRIED and rng.random() < 0.5 else path)
    else:
        path.unlink()
        path.mkdir()
    return what, False


def huge(rng: np.random.Generator, path: Path) -> bytes:
    """Return the content of a file with a number in it that is far too large."""
    content = path.read_bytes()
    if path.suffix == ".npy":
        array = np.load(path)
        if array.dtype.kind in "iuf" and array.size:
            values = {"f": [1e300, -1e300, np.inf, np.nan, 1e9, -1.0], "i": [1 << 62, -1, 1 << 33]}
            with np.errstate(over="ignore"):
                value = rng.choice(values.get(array.dtype.kind, [255])).astype(array.dtype)
            array.flat[int(rng.integers(array.size))] = value
            buffer = io.BytesIO()
            np.save(buffer, array)
            return buffer.getvalue()
    numbers = list(NUMBER.finditer(content))
    if not numbers:
        return damaged(rng, content or b"0")[1]
    match = numbers[int(rng.integers(len(numbers)))]
    value = rng.choice([b"1" * 300, b"-7", b"1e308", b"99999999999", b"null", b"[]", b"NaN"])
    return content[: match.start()] + value + content[match.end() :]


def forge(path: Path) -> None:
    """Make the checksums fit a changed file."""
    if path.parent == TRIED:
        # Not all of them have one.
        with contextlib.suppress(ValueError, AttributeError, KeyError):
            content = json.loads(path.read_text())
            del content[CHECKSUM]
            path.write_text(json.dumps(with_checksum(content)))
    elif (path.parent / SUMS).exists() and path.name != SUMS:
        with summed_folder(TRIED / "forged" / path.parent.name) as unfinished:
            for other in path.parent.iterdir():
                if other.name != SUMS:
                    shutil.copy(other, unfinished)
        shutil.rmtree(path.parent)
        (TRIED / "forged" / path.parent.name).rename(path.parent)
        (TRIED / "forged").rmdir()
