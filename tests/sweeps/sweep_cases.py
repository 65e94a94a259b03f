"""A recipe whose sweep takes a second, data for it, and what is compared between two sweeps."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import rankinite as rk
from rankinite.experiments.recipes.read import recipe_of
from rankinite.experiments.sweeps.sweep import run_sweep

RECIPE = """\
name = "micro"
seed = 3
measures = ["NDCG@3", "ERR"]

[data]
folds = 3

[training_sets.aug50]
fraction = 0.5
times = 2

[features.mart]
scores_of = "C"
folds = 2

[defaults.LambdaMART]
n_trees = 12
n_leaves = 4
min_docs_in_leaf = 2

[models.A]
ranker = "LambdaMART"  # the one that is swept
measure = "ERR"
learning_rate = 0.15 # by hand

[models.B]
ranker = "LambdaMART"
train = "aug50"
features = "mart"

[models.N]
ranker = "LambdaRank"
n_epochs = 3

[models.C]
ranker = "MART"
loss = "logistic"
n_trees = 4
n_leaves = 4
min_docs_in_leaf = 2

[models.D]
trained_as = "C"
per_query = true
"""
SPACE = {"n_leaves": "2:8:2", "learning_rate": "0.01,0.1,0.3,0.9"}
# All that must be the same in two sweeps: no times.
FILES = ("trials.csv", "sweep.json", "sweep.html", "recipe.toml", "settings.json", "run.json")


def micro_recipe():
    return recipe_of("micro.toml", RECIPE)


def sweep_data(n_queries: int = 40, seed: int = 0) -> rk.RankingData:
    """Return queries of 3 to 8 documents, whose grades depend on two of the features."""
    random = np.random.default_rng(seed)
    sizes = random.integers(3, 9, n_queries)
    X = random.normal(size=(sizes.sum(), 4)).astype(np.float32)
    latent = X[:, 0] + 0.5 * X[:, 1] + random.normal(scale=0.8, size=len(X))
    qid = np.repeat(np.arange(n_queries), sizes)
    return rk.RankingData(X, np.digitize(latent, [-0.5, 0.5, 1.5]), qid, top_grade=3)


def micro_sweep(out: str | Path, **options):
    given = {"model": "A", "space": SPACE, "trials": 10, "jobs": 1} | options
    return run_sweep(micro_recipe(), train=sweep_data(), out=out, **given)


def files_of(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}
