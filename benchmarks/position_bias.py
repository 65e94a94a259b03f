"""Clicks that depend on positions: what corrections reach, where the truth is known.

    python benchmarks/position_bias.py [--part valid|test] [--seeds 2] [--queries 200]
        [--sessions 20] [--exponent 1.0] [--trees 60] [--systems "no correction; additive"]

A ranker of 20 judged queries shows pages of ten documents, users click by the position-based model
(`rk.click_sessions`), and every system learns from the same clicks. NDCG@10 is that of the true
grades of other queries. Systems with the known propensities (weights of clicked documents 1 over
the propensity) and with true grades show what is possible. Tests compare each system with no
correction, query by query; a query's value is the mean over seeds, which draw users anew.

Estimated propensities are compared with the true ones by the mean absolute difference over
positions; an additive effect e counts as exp(e). Settings were chosen on the validation part.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

# Numba reads this when it is imported.
os.environ.setdefault("RANKINITE_THREADS", "2")

import rankinite as rk
from rankinite.stats.paired_tests import randomisation_test, t_test

MEASURE = "NDCG@10"
N_FEATURES = 10
JUDGED = 20
PLAIN = "no correction"
LEAVES, RATE = 31, 0.1


def _ours(log: rk.RankingData, trees: int, weights: Any = None, **parameters: Any) -> Any:
    model = rk.LambdaMART("NDCG", n_trees=trees, n_leaves=LEAVES, learning_rate=RATE, **parameters)
    return model.fit(log, sample_weight=weights)


def _inverse_propensities(log: rk.RankingData) -> Any:
    return np.where(log.y > 0.0, 1.0 / log.labels["propensity"], 1.0)


def _graded(log: rk.RankingData, top_grade: float) -> rk.RankingData:
    return log.replace(y=log.labels["grade"], labels={}, top_grade=top_grade)


def _lightgbm(log: rk.RankingData, trees: int, position: Any) -> Any:
    import lightgbm

    model = lightgbm.LGBMRanker(
        n_estimators=trees, num_leaves=LEAVES, learning_rate=RATE, verbose=-1, n_jobs=2
    )
    data = lightgbm.Dataset(log.X, log.y, group=log.sizes, position=position)
    options = {**model.get_params(), "objective": "lambdarank", "verbosity": -1}
    return lightgbm.train(options, data, num_boost_round=options.pop("n_estimators"))


class _XGBoost:
    def __init__(self, log: rk.RankingData, trees: int, **parameters: Any) -> None:
        import xgboost

        # Documents of a session are in the order of their positions, as it expects.
        self._model = xgboost.XGBRanker(
            objective="rank:ndcg", n_estimators=trees, max_leaves=LEAVES, max_depth=0,
            grow_policy="lossguide", tree_method="hist", learning_rate=RATE, n_jobs=2, **parameters,
        )  # fmt: skip
        self._model.fit(log.X, log.y, qid=np.repeat(np.arange(log.n_queries), log.sizes))

    def predict(self, X: Any) -> Any:
        return self._model.predict(X)


SYSTEMS: dict[str, Callable[[rk.RankingData, int], Any]] = {
    PLAIN: lambda log, n: _ours(log, n),
    "propensity": lambda log, n: _ours(log, n, position_bias="propensity"),
    "additive": lambda log, n: _ours(log, n, position_bias="additive"),
    "known propensities": lambda log, n: _ours(log, n, _inverse_propensities(log)),
    "propensity, regularization 0": lambda log, n: _ours(
        log, n, position_bias="propensity", position_bias_regularization=0.0
    ),
    "additive, regularization 0": lambda log, n: _ours(
        log, n, position_bias="additive", position_bias_regularization=0.0
    ),
    "true grades": lambda log, n: _ours(_graded(log, 4.0), n),
    "LightGBM": lambda log, n: _lightgbm(log, n, None),
    "LightGBM, position": lambda log, n: _lightgbm(log, n, log.labels["position"].astype(np.int32)),
    "XGBoost": lambda log, n: _XGBoost(log, n),
    "XGBoost, lambdarank_unbiased": lambda log, n: _XGBoost(log, n, lambdarank_unbiased=True),
}


def main() -> None:
    """Train all systems on the clicks of every seed, and print tables."""
    chosen = _arguments()
    whole = rk.polynomials(chosen.queries + JUDGED, part="train", n_features=N_FEATURES)
    held_out = rk.polynomials(500, part=chosen.part, n_features=N_FEATURES)
    judged, shown = whole[:JUDGED], whole[JUDGED:]
    engine = rk.LambdaMART(n_trees=30, n_leaves=8).fit(judged).predict(shown)
    values: dict[str, list[Any]] = {name: [] for name in chosen.systems}
    errors: dict[str, list[float]] = {name: [] for name in chosen.systems}
    seconds = dict.fromkeys(chosen.systems, 0.0)
    for seed in range(chosen.seeds):
        log = rk.click_sessions(
            shown, scores=engine, sessions=chosen.sessions, exponent=chosen.exponent, seed=seed
        )
        for name in chosen.systems:
            start = time.perf_counter()
            model = SYSTEMS[name](log, chosen.trees)
            seconds[name] += time.perf_counter() - start
            scores = np.asarray(model.predict(held_out.X), np.float64)
            reached = rk.evaluate(scores, held_out, MEASURE)
            values[name].append(reached.per_query[MEASURE])
            errors[name].append(_error(model, chosen.exponent))
            print(f"seed {seed}, {name}: {reached.mean[MEASURE]:.4f}", flush=True)
    print(f"\n{_table(values, errors, seconds, chosen.seeds)}")


def _error(model: Any, exponent: float) -> float:
    """Return the mean absolute error of estimated propensities; NaN if there are none."""
    bias = getattr(model, "position_bias_", None)
    if bias is None:
        return np.nan
    clicked = bias.estimates.get("clicked")
    estimated = np.exp(bias.estimates["effect"]) if clicked is None else clicked
    true = bias.positions.astype(float) ** -exponent
    print("    estimated: " + " ".join(f"{value:.3f}" for value in estimated))
    return float(np.abs(estimated - true).mean())


def _table(values: Any, errors: Any, seconds: dict[str, float], seeds: int) -> str:
    lines = [f"| system | {MEASURE} | - no correction | p (t) | p (randomisation) | error | s |"]
    lines.append("|---|---|---|---|---|---|---|")
    means = {name: np.mean(rows, axis=0) for name, rows in values.items()}
    for name, row in means.items():
        both = np.stack([row, means[PLAIN]])
        both = both[:, ~np.isnan(both[0])]
        tests = "| | |"
        if name != PLAIN:
            difference = both[0].mean() - both[1].mean()
            p = (float(test(both)[0, 1]) for test in (t_test, randomisation_test))
            tests = f"| {difference:+.4f} | " + " | ".join(f"{value:.2g}" for value in p)
        error = np.mean(errors[name])
        lines.append(
            f"| {name} | {both[0].mean():.4f} {tests} | "
            f"{'' if np.isnan(error) else f'{error:.3f}'} | {seconds[name] / seeds:.1f} |"
        )
    return "\n".join(lines)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Clicks that depend on positions.")
    parser.add_argument("--part", default="valid", choices=["valid", "test"])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--exponent", type=float, default=1.0)
    parser.add_argument("--trees", type=int, default=60)
    parser.add_argument(
        "--systems", type=lambda text: [name.strip() for name in text.split(";")],
        default=list(SYSTEMS), help="separated by semicolons",
    )  # fmt: skip
    return parser.parse_args()


if __name__ == "__main__":
    main()
