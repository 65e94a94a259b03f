"""Units of work: each is named by a key, made of all that its result depends on."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict, dataclass
from functools import cached_property

from rankinite import __version__
from rankinite.core.files import atomic_folder
from rankinite.core.sources import package_hash
from rankinite.experiments.runs.bench import bench_of
from rankinite.experiments.runs.folder import DONE, RunFolder, read_json, write_json
from rankinite.experiments.runs.work import HowWell, Work

KEY_LENGTH = 20


@dataclass(frozen=True)
class Unit:
    """One piece of work.

    Attributes
    ----------
    name
        What it is, for people.
    work
        What is done, with all that the result depends on; of other units that is their keys.
    needs
        The units that come before.
    cost
        How long it takes, roughly, compared with others.
    """

    name: str
    work: Work
    needs: tuple[Unit, ...]
    cost: float

    @cached_property
    def key(self) -> str:
        """The name of its folder."""
        said = {
            # Units of other code are other units.
            "version": __version__,
            "sources": package_hash(),
            "kind": type(self.work).__name__,
            "work": asdict(self.work),  # type: ignore[call-overload]
        }
        text = json.dumps(said, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:KEY_LENGTH]


@dataclass(frozen=True)
class Done:
    """How a unit went, and how long it took."""

    how_well: HowWell
    seconds: float


def do_unit(folder: RunFolder, unit: Unit) -> Done:
    """Do a unit in the folder of a run; called in worker processes."""
    begun = time.perf_counter()
    bench = bench_of(folder)
    if bench.folder.is_done(unit.key):  # by a worker that was taken for dead
        return read_done(folder, unit)
    with atomic_folder(bench.folder.unit(unit.key)) as into:
        how_well = unit.work.do(bench, unit.key, into)
        done = Done(how_well, time.perf_counter() - begun)
        sizes = {file.name: file.stat().st_size for file in sorted(into.iterdir())}
        said = {"name": unit.name, "seconds": done.seconds, **asdict(how_well), "sizes": sizes}
        write_json(into / DONE, said)
    bench.folder.checkpoint(unit.key).unlink(missing_ok=True)
    return done


def read_done(folder: RunFolder, unit: Unit) -> Done:
    """Return how a unit went that is done."""
    found = read_json(folder.unit(unit.key) / DONE)
    return Done(HowWell(found["words"], found["value"]), float(found["seconds"]))
