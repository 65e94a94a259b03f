"""The demonstration: the winning system on simulated data, as small as it can be shown."""

from __future__ import annotations

from pathlib import Path

from rankinite.core.progress import Progress, Silent
from rankinite.data.files import save
from rankinite.data.simulators.challenge import challenge
from rankinite.experiments.recipes.read import read_recipe
from rankinite.experiments.runs.run import Run, run_recipe

RECIPE = "winner-tiny"
QUERIES = {"train": 1_000, "valid": 300, "test": 1_000}


def run_demo(
    folder: str | Path,
    *,
    seed: int = 0,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> tuple[Run, list[Path]]:
    """Simulate data, and carry out the smallest of the winner's recipes.

    Returns the run, and the data sets that were written.

    Parameters
    ----------
    folder
        Where to put the files; made if it is not there.
    seed
        Another seed gives other data.
    jobs
        How many models are trained at once; one a core if None.
    progress
        Who wants to know how far it is.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    watcher = progress or Silent()
    sets = {
        part: challenge(n_queries, part=part, seed=seed, progress=watcher)
        for part, n_queries in QUERIES.items()
    }
    run = run_recipe(
        read_recipe(RECIPE),
        sets["train"],
        sets["valid"],
        sets["test"],
        out=target / "run",
        jobs=jobs,
        progress=watcher,
    )
    written = [target / f"{part}.parquet" for part in sets]
    for path, data in zip(written, sets.values(), strict=True):
        save(data, path)
    return run, written
