"""Categorical features: as categories, one-hot, and as numbers, beside LightGBM's categories.

    python benchmarks/categories.py [--queries 800] [--docs 20] [--trees 300] [--seeds 3]
        [--smoothing 0,3,10,30] [--part valid|test]

The data are simulated: offers of brands and sellers, most of them rare, each with an effect of its
own; the effect of the price depends on the brand; and eight numerical features, five of them noise.
Every system chooses its number of trees by NDCG@10 on validation data. Tests compare each with our
LambdaMART of categories, query by query, over all seeds. By default the validation part is
reported, so that choosing settings never opens the test part.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import lightgbm
import numpy as np

import rankinite as rk
from rankinite.stats.paired_tests import gain_and_p

BRANDS, SELLERS = 150, 600
PATIENCE = 50
# Columns of brand and seller.
CATEGORICAL = [0, 1]
OURS = "LambdaMART, categories"


def simulate(n_queries: int, n_docs: int, seed: int, part: int) -> rk.RankingData:
    """Return a part of the data of a seed; all parts have the same brands and sellers."""
    world = np.random.default_rng([seed, 99])
    brand_effect, seller_effect = world.normal(size=BRANDS), world.normal(size=SELLERS)
    price_slope = world.normal(size=BRANDS)
    rng = np.random.default_rng([seed, part])
    n = n_queries * n_docs
    # As Zipf's law has it, in an order that has nothing to do with the effects.
    brand, seller = (_zipf(rng, n, k) for k in (BRANDS, SELLERS))
    numbers = rng.normal(size=(n, 8))
    relevance = (
        brand_effect[brand]
        + seller_effect[seller]
        + price_slope[brand] * numbers[:, 0]
        + numbers[:, 1]
        + np.maximum(numbers[:, 2], 0.0)
        + rng.normal(size=n)
    )
    grades = np.digitize(relevance, [0.5, 1.5, 2.5, 4.0])
    X = np.column_stack([brand, seller, numbers]).astype(np.float32)
    names = ["brand", "seller", *(f"number {j}" for j in range(8))]
    return rk.RankingData(
        X, grades, group_sizes=[n_docs] * n_queries, feature_names=names, top_grade=4
    )


def _zipf(rng: np.random.Generator, n: int, n_categories: int) -> Any:
    shares = 1.0 / np.arange(1, n_categories + 1)
    return rng.choice(n_categories, n, p=shares / shares.sum())


def one_hot(data: rk.RankingData) -> rk.RankingData:
    """Return the data set with a column of 0 and 1 for each brand and seller."""
    X = data.X
    columns = [X[:, [j]] == np.arange(k) for j, k in ((0, BRANDS), (1, SELLERS))]
    return rk.RankingData(
        np.column_stack([*columns, X[:, 2:]]).astype(np.float32),
        data.y,
        group_sizes=data.sizes,
        top_grade=4,
    )


Fit = Callable[[rk.RankingData, rk.RankingData, rk.RankingData, int], Any]


def ours(change: Callable[[rk.RankingData], rk.RankingData], **parameters: Any) -> Fit:
    """Return a system of ours, which sees the data after a change."""

    def fit(
        train: rk.RankingData, valid: rk.RankingData, test: rk.RankingData, n_trees: int
    ) -> Any:
        model = rk.LambdaMART(n_trees=n_trees, patience=PATIENCE, **parameters)
        model.fit(change(train), valid=change(valid))
        return model.predict(change(test))

    return fit


def peer(train: rk.RankingData, valid: rk.RankingData, test: rk.RankingData, n_trees: int) -> Any:
    """Return the scores of LightGBM's lambdarank, with its parameters for categories."""
    sets = [
        lightgbm.Dataset(
            data.X.astype(np.float64), data.y, group=data.sizes, categorical_feature=CATEGORICAL
        )
        for data in (train, valid)
    ]
    parameters = {
        "objective": "lambdarank",
        "metric": "ndcg",
        "eval_at": [10],
        "learning_rate": 0.06,
        "num_leaves": 31,
        "verbosity": -1,
        "seed": 0,
        "deterministic": True,
    }
    stop = lightgbm.early_stopping(PATIENCE, verbose=False)
    model = lightgbm.train(parameters, sets[0], n_trees, valid_sets=[sets[1]], callbacks=[stop])
    return model.predict(test.X.astype(np.float64), num_iteration=model.best_iteration)


def unchanged(data: rk.RankingData) -> rk.RankingData:
    """Return the data set."""
    return data


def systems(smoothing: list[float]) -> dict[str, Fit]:
    """Return the systems by name."""
    by_category: dict[str, Any] = {"categorical_features": CATEGORICAL}
    return {
        OURS: ours(unchanged, **by_category),
        "LambdaMART, one-hot": ours(one_hot),
        "LambdaMART, numbers": ours(unchanged),
        "leaf-wise, categories": ours(unchanged, symmetric=False, n_leaves=31, **by_category),
        "leaf-wise, one-hot": ours(one_hot, symmetric=False, n_leaves=31),
        "LightGBM, categories": peer,
        **{
            f"LambdaMART, smoothing {s:g}": ours(unchanged, categorical_smoothing=s, **by_category)
            for s in smoothing
        },
    }


def main() -> int:
    """Train all systems on all seeds, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name, default in (("queries", 800), ("docs", 20), ("trees", 300), ("seeds", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--smoothing", default="")
    parser.add_argument("--part", choices=["valid", "test"], default="valid")
    chosen = parser.parse_args()
    smoothing = [float(text) for text in chosen.smoothing.split(",") if text]
    values: dict[str, list[Any]] = {name: [] for name in systems(smoothing)}
    seconds = dict.fromkeys(values, 0.0)
    for seed in range(chosen.seeds):
        train, valid, test = (
            simulate(chosen.queries, chosen.docs, seed, part) for part in range(3)
        )
        judged = valid if chosen.part == "valid" else test
        for name, fit in systems(smoothing).items():
            start = time.perf_counter()
            scores = fit(train, valid, judged, chosen.trees)
            seconds[name] += time.perf_counter() - start
            values[name].append(rk.evaluate(scores, judged, "NDCG@10").per_query["NDCG@10"])
            reached = np.nanmean(values[name][-1])
            print(f"seed {seed}, {chosen.part}, {name}: {reached:.4f}", flush=True)
    print(f"\n{'system':28} NDCG@10    gain        p   seconds")
    for name, parts in values.items():
        reached, reference = np.concatenate(parts), np.concatenate(values[OURS])
        gain, p = gain_and_p(reached, reference) if name != OURS else (0.0, 1.0)
        print(f"{name:28} {np.nanmean(reached):7.4f} {gain:+7.4f} {p:8.1e} {seconds[name]:9.1f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
