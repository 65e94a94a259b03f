"""``rankinite demo``."""

from __future__ import annotations

from pathlib import Path

from rankinite.cli.options import Jobs, Out, Seed
from rankinite.cli.terminal import Terminal, show_written_summary
from rankinite.core.progress import Progress, Silent
from rankinite.data.formats import save
from rankinite.data.simulate.challenge import challenge
from rankinite.runs.recipe_reader import read_recipe
from rankinite.runs.run import Run, run_recipe

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


def demo(out: Out = Path("demo"), seed: Seed = 0, jobs: Jobs = None, *, terminal: Terminal) -> None:
    """Simulate data, and show the winning system on them: twelve models, tables and a report.

    It is winner-tiny, the smallest of the winner's recipes: half a minute on two cores, and up to
    two more the first time, when kernels are compiled.
    """
    from rankinite.cli.demo import run_demo

    terminal.expect_compiling()
    run, data = run_demo(out, seed=seed, jobs=jobs, progress=terminal.progress(lines=True))
    show_written_summary(terminal, run.tables, [*data, *run.written])
