"""A recipe whose sweep takes a second, data for it, and what is compared between two sweeps."""

from __future__ import annotations

from pathlib import Path

import rankinite as rk
from rankinite.report import write_sweep_report
from rankinite.runs.recipe_reader import recipe_of
from rankinite.sweeps.sweep import run_sweep
from tests.runs.cases import MICRO, micro_data

RECIPE = (
    MICRO
    + """
[models.S]
ranker = "LambdaMART"  # the one that is swept
average_rounds = false  # a trial has the value of the best round
measure = "ERR"
n_trees = 12
learning_rate = 0.15 # by hand
"""
)
SPACE = {"n_leaves": "2:8:2", "learning_rate": "0.01,0.1,0.3,0.9"}
# Files that must be the same in two sweeps: they hold no times.
FILES = (
    "trials.csv",
    "sweep.json",
    "sweep.html",
    "recipe.toml",
    "swept.toml",
    "settings.json",
    "run.json",
)


def micro_recipe():
    return recipe_of("micro.toml", RECIPE)


def sweep_data(seed: int = 0) -> rk.RankingData:
    return micro_data(40, seed)


def micro_sweep(out: str | Path, recipe: str = RECIPE, **options):
    arguments = {"model": "S", "space": SPACE, "trials": 10, "jobs": 1} | options
    sweep = run_sweep(recipe_of("micro.toml", recipe), train=sweep_data(), out=out, **arguments)
    write_sweep_report(sweep)
    return sweep


def files_of(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}
