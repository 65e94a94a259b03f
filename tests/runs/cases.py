"""A recipe of seconds, with every kind of model that the winner has, and data for it."""

from __future__ import annotations

import numpy as np

import rankinite as rk
from rankinite.runs.run import run_recipe

MICRO = """\
name = "micro"
seed = 3
measures = ["NDCG@3", "ERR"]

[data]
parts = 4
train_parts = 2
folds = 3

[training_sets.aug50]
fraction = 0.5
times = 2

[features.mart]
scores_of = "C"
folds = 2

[defaults.LambdaMART]
n_trees = 4
n_leaves = 4
min_docs_in_leaf = 2

[models.A]
ranker = "LambdaMART"
measure = "ERR"
train = "aug50"
bags = 2

[models.B]
ranker = "LambdaMART"
measure = "NDCG"
features = "mart"
bags = 3

[models.N]
ranker = "LambdaRank"
measure = "NDCG"
hidden = 3
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

[ensemble]
choose = "all"

[subsets]
All = ["A", "B", "N", "C", "D"]
Trees = ["A", "B"]
"""


# What tells of times, and so differs between two runs.
FREE = {"task.json", "SHA256SUMS", "log.txt", "lock", "report.html"}


def bytes_of(folder):
    """Return all that must be the same in two runs, by name of the file."""
    files = (p for p in folder.rglob("*") if p.is_file() and p.name not in FREE)
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


def micro_data(n_queries: int = 60, seed: int = 0, n_features: int = 4) -> rk.RankingData:
    """Return queries of 3 to 8 documents, whose grades depend on two of the features."""
    random = np.random.default_rng(seed)
    sizes = random.integers(3, 9, n_queries)
    X = random.normal(size=(sizes.sum(), n_features)).astype(np.float32)
    latent = X[:, 0] + 0.5 * X[:, 1] + random.normal(scale=0.5, size=len(X))
    y = np.digitize(latent, [-0.5, 0.5, 1.5])
    qid = np.repeat(np.arange(n_queries), sizes)
    return rk.RankingData(X, y, qid, top_grade=3)


TRAIN, VALID, TEST = micro_data(60), micro_data(20, 1), micro_data(20, 2)


def go(recipe, train=TRAIN, valid=VALID, test=TEST, out="run", **options):
    """Run a recipe in this process."""
    return run_recipe(recipe, train, valid, test, out=out, jobs=1, **options)


def tasks_of(folder):
    """Return the keys of the tasks that were executed in a folder."""
    return {path.name for path in (folder / "tasks").iterdir()}
