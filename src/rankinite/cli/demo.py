"""``rankinite demo``."""

from __future__ import annotations

from pathlib import Path

from rankinite.cli.options import Jobs, Out, Seed
from rankinite.cli.outputs import Outputs, refuse_file_as_folder
from rankinite.cli.terminal import Terminal

RECIPE = "winner-tiny"
QUERIES = {"train": 1_000, "valid": 300, "test": 1_000}


def demo(
    out: Out = Path("demo"),
    seed: Seed = 0,
    jobs: Jobs = None,
    *,
    outputs: Outputs,
    terminal: Terminal,
) -> None:
    """Simulate data, and run the winning system on them: twelve models, tables and a report.

    The recipe is winner-tiny, the smallest of the winner's recipes. It takes half a minute on two
    cores, and up to two minutes more the first time, when kernels are compiled.
    """
    from rankinite.data.formats import save
    from rankinite.data.simulate.challenge import challenge
    from rankinite.report.page import write_report
    from rankinite.runs.recipe_reader import read_recipe
    from rankinite.runs.run import check_folder, run_recipe

    recipe, folder = read_recipe(RECIPE), out / "run"
    # The data too, so that other commands can be tried on them.
    files = [out / f"{part}.parquet" for part in QUERIES]
    refuse_file_as_folder(out)
    outputs.check("demo", [], files=files)
    check_folder(recipe, folder, force=outputs.force)
    progress = terminal.progress(lines=True)
    out.mkdir(parents=True, exist_ok=True)
    sets = {
        part: challenge(n_queries, part=part, seed=seed, progress=progress)
        for part, n_queries in QUERIES.items()
    }
    train, valid, test = sets.values()
    force = outputs.force
    run = run_recipe(
        recipe, train, valid, test, out=folder, jobs=jobs, force=force, progress=progress
    )
    with outputs.recording(files):
        for path, data in zip(files, sets.values(), strict=True):
            save(data, path)
    terminal.show_summary(run.tables, [*files, *run.written, write_report(run)])
