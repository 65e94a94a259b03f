"""``rankinite demo``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rankinite.cli.options import Jobs, Out, Seed
from rankinite.cli.terminal import Terminal

if TYPE_CHECKING:
    from rankinite.core.progress import Progress
    from rankinite.runs.run import Run

RECIPE = "winner-tiny"
QUERIES = {"train": 1_000, "valid": 300, "test": 1_000}


def run_demo(
    folder: str | Path,
    *,
    seed: int = 0,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> tuple[Run, list[Path]]:
    """Simulate data, and run the smallest of the winner's recipes.

    Returns the run, and all files that were written.

    Parameters
    ----------
    folder
        Folder of the files; created if it does not exist.
    seed
        Random seed of the data.
    jobs
        Number of models that are trained at the same time; one per core if None.
    progress
        Progress reporter.
    """
    from rankinite.core.progress import Silent
    from rankinite.data.formats import save
    from rankinite.data.simulate.challenge import challenge
    from rankinite.report.page import write_report
    from rankinite.runs.run import run_recipe

    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    reporter = progress or Silent()
    sets = {
        part: challenge(n_queries, part=part, seed=seed, progress=reporter)
        for part, n_queries in QUERIES.items()
    }
    run = run_recipe(
        RECIPE,
        sets["train"],
        sets["valid"],
        sets["test"],
        out=target / "run",
        jobs=jobs,
        progress=reporter,
    )
    files = [target / f"{part}.parquet" for part in sets]
    for path, data in zip(files, sets.values(), strict=True):
        save(data, path)
    return run, [*files, *run.written, write_report(run)]


def demo(out: Out = Path("demo"), seed: Seed = 0, jobs: Jobs = None, *, terminal: Terminal) -> None:
    """Simulate data, and run the winning system on them: twelve models, tables and a report.

    The recipe is winner-tiny, the smallest of the winner's recipes. It takes half a minute on two
    cores, and up to two more the first time, when kernels are compiled.
    """
    terminal.expect_compiling()
    run, written = run_demo(out, seed=seed, jobs=jobs, progress=terminal.progress(lines=True))
    terminal.show_summary(run.tables, written)
