"""``rankinite demo``."""

from __future__ import annotations

from pathlib import Path

from rankinite.cli.options import Out, Seed
from rankinite.cli.terminal import Terminal


def demo(out: Out = Path("demo"), seed: Seed = 0, *, terminal: Terminal) -> None:
    """Simulate data, rank it in three simple ways, and say what the rankings are worth."""
    from rankinite.experiments.demo import run_demo

    result = run_demo(out, seed=seed, progress=terminal.progress())
    if terminal.json:
        terminal.show_json(
            {
                "mean": {name: dict(one.mean) for name, one in result.evaluations.items()},
                "wrote": [str(path) for path in result.written],
            }
        )
        return
    measures = list(next(iter(result.evaluations.values())).mean)
    rows = [
        [name, *(f"{value:.4f}" for value in one.mean.values())]
        for name, one in result.evaluations.items()
    ]
    terminal.show_table("Test data, means over queries", ["Ranking", *measures], rows)
    for path in result.written:
        terminal.say(f"wrote {path}")
