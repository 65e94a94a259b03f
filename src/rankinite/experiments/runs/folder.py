"""The folder of a run: where everything is, and who may write to it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rankinite.core.errors import DataError, UsageError
from rankinite.core.files import atomic_write, remove_parts

try:
    import fcntl
except ImportError:  # where folders cannot be locked
    fcntl = None  # type: ignore[assignment]

STATE = "run.json"
RECIPE = "recipe.toml"
REPORT = "report.html"
MODEL = "ensemble.rk"
LOG = "log.txt"


class RunFolder:
    """Where a run keeps what it has.

    ::

        recipe.toml  run.json  log.txt      what is done, to which data, and when
        data/                               the data sets and bins that units share
        units/KEY/                          what a unit of work has made; it appears whole
        checkpoints/                        trainings on their way
        models/  ensemble.rk                every member, and all as one
        scores/SET/  measures/              of members and ensemble: scores, and measures by query
        tables.md  tables.json  report.html

    Parameters
    ----------
    path
        The folder.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def make(self) -> None:
        """Make the folders that are not there."""
        for name in ("data", "units", "checkpoints"):
            (self.path / name).mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Refuse to go on while another process works here; a killed one has no lock any more."""
        self.make()
        with (self.path / "lock").open("wb") as file:
            if fcntl is not None:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    raise UsageError(
                        f"{self.path}: another run works in this folder; wait for it, or name "
                        "another folder"
                    ) from None
            for folder in (self.path, *(p for p in self.path.iterdir() if p.is_dir())):
                remove_parts(folder)
            yield

    def unit(self, key: str) -> Path:
        """Return the folder of a unit; it is there if the unit is done."""
        return self.path / "units" / key

    def is_done(self, key: str) -> bool:
        """Tell whether a unit is done."""
        return self.unit(key).is_dir()

    def checkpoint(self, key: str) -> Path:
        """Return the file that keeps a training on its way."""
        return self.path / "checkpoints" / key

    def data(self, name: str) -> Path:
        """Return the folder of a data set that units share."""
        return self.path / "data" / name

    def binned(self, most_bins: int) -> Path:
        """Return the folder of the bins of the training data."""
        return self.path / "data" / f"train-{most_bins}-bins"

    def check_data(self, digests: Mapping[str, str], recipe: str | None = None) -> None:
        """Remember which data the run is on; refuse others, which would not fit what is there.

        Parameters
        ----------
        digests
            The fingerprint of every data set, by name; valid and test may come later.
        recipe
            The text of the recipe, which is kept if it is given.
        """
        known = self._read_state().get("data", {})
        for name, digest in digests.items():
            if known.get(name, digest) != digest:
                raise DataError(
                    f"{self.path}: the {name} data are not those that this run began with "
                    f"({known[name][:12]}, now {digest[:12]}); bring them back, or name another "
                    "folder for a new run"
                )
        write_json(self.path / STATE, {"data": {**known, **digests}})
        if recipe is not None:
            write_text(self.path / RECIPE, recipe)

    def _read_state(self) -> dict[str, Any]:
        path = self.path / STATE
        if not path.exists():
            return {}
        try:
            found = json.loads(path.read_text("utf-8"))
            if isinstance(found, dict) and isinstance(found.get("data"), dict):
                return found
        except (ValueError, UnicodeDecodeError):
            pass
        raise DataError(f"{path}: is damaged; delete it, and data that changed will not be noticed")


def write_text(path: Path, text: str) -> None:
    """Write a file, which appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(text.encode())


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")
