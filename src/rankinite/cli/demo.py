"""``rankinite demo``."""

from __future__ import annotations

from pathlib import Path

from rankinite.cli.findings import show_written_findings
from rankinite.cli.options import Jobs, Out, Seed
from rankinite.cli.terminal import Terminal


def demo(out: Out = Path("demo"), seed: Seed = 0, jobs: Jobs = None, *, terminal: Terminal) -> None:
    """Simulate data, and show the winning system on them: twelve models, tables and a report.

    It is winner-tiny, the smallest of the winner's recipes: half a minute on two cores, and up to
    two more the first time, when kernels are compiled.
    """
    from rankinite.experiments.demo import run_demo

    terminal.expect_compiling()
    run, data = run_demo(out, seed=seed, jobs=jobs, progress=terminal.progress(lines=True))
    show_written_findings(terminal, run.tables, [*data, *run.written])
