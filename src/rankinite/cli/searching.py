"""The options of ``rankinite sweep`` that say what is tried, and how it is compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import typer


@dataclass(frozen=True, kw_only=True)
class Searching:
    """How to search for parameters."""

    over: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<parameter=values>",
            help="What to try, once for each parameter: n_leaves=50:400:30 (low:high:step), "
            "learning_rate=0.05,0.1 or hidden=20,[20,10] (values), or learning_rate=1e-4..1e-2 "
            "(a range; on a log scale if its ends are a factor of 100 or more apart). (Default: "
            "what the paper tried. Trees: leaves 50 to 400 by 30, learning rates 0.01, 0.05, 0.1, "
            "0.3, 0.5. Nets: 10 to 30 hidden units by 5, learning rates 1e-4 to 1e-2.)",
        ),
    ] = None
    trials: Annotated[
        int | None,
        typer.Option(min=1, help="How many to try. (Default: 30; all of a grid.)"),
    ] = None
    search: Annotated[
        Literal["tpe", "grid", "random"],
        typer.Option(help="tpe learns from earlier trials; grid goes through all, shuffled."),
    ] = "tpe"
    folds: Annotated[
        int, typer.Option(min=2, help="Cross-validation by query: in how many folds.")
    ] = 3
    measure: Annotated[
        str | None,
        typer.Option("--measure", "-m", help="What decides. (Default: the recipe's first.)"),
    ] = None
    no_pruning: Annotated[
        bool,
        typer.Option(
            "--no-pruning",
            help="Carry out every trial to its end. Otherwise one is given up if, after a third of "
            "the rounds or more, its first fold is below the median of earlier trials; small "
            "learning rates, which begin slowly, are so more often.",
        ),
    ] = False
    batch: Annotated[
        int,
        typer.Option(
            min=1,
            help="How many trials are begun together; more for many workers, fewer to learn more "
            "from each.",
        ),
    ] = 4
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Another seed gives another result. (Default: the recipe's.)"),
    ] = None
