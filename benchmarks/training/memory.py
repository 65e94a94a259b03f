"""Peak memory of training, each in a process of its own, against LightGBM."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from shapes import PARTS, Arrays
from training.settings import Settings
from verdicts import Results

CHILD = Path(__file__).with_name("peak.py")
MODES = ("col", "row")


def run(settings: Settings, results: Results) -> None:
    """Train 20 rounds on every shape, with a validation set."""
    for shape in settings.shapes:
        with tempfile.TemporaryDirectory() as folder:
            _write(settings.simulate(shape), Path(folder))
            for n_leaves in settings.leaves:
                what = f"peak memory, {settings.fitted(shape)}, {n_leaves} leaves"
                # Compiling takes memory, and is done once for all: the second run counts.
                _, ours = (_peak("ours", Path(folder), n_leaves, settings) for _ in range(2))
                theirs = [_peak(mode, Path(folder), n_leaves, settings) for mode in MODES]
                print(
                    f"  MB: ours {ours:.0f}, LightGBM column-wise {theirs[0]:.0f}, "
                    f"row-wise {theirs[1]:.0f}",
                    flush=True,
                )
                results.ratio(f"{what}, against LightGBM's least", [ours], [min(theirs)], 1.2, 0.8)


def _write(parts: tuple[Arrays, Arrays], folder: Path) -> None:
    for name, part in zip(PARTS, parts, strict=True):
        for field in ("X", "y", "sizes"):
            np.save(folder / f"{name}_{field}.npy", getattr(part, field))


def _peak(who: str, folder: Path, n_leaves: int, settings: Settings) -> float:
    """Return the megabytes of a process that loads the data and trains."""
    command = [sys.executable, str(CHILD), who, str(folder), str(n_leaves), str(settings.threads)]
    return float(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
