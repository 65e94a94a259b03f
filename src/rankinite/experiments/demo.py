"""The demonstration: data, rankings and what they are worth, in a few seconds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rankinite.core.progress import Progress
from rankinite.data.describe import describe, draw_figures
from rankinite.data.files import load, save
from rankinite.data.ranking_data import RankingData
from rankinite.data.scores import save_scores
from rankinite.data.simulators.polynomials import FULL_SIZE, polynomials
from rankinite.evaluation.evaluate import Evaluation, evaluate

SHARE = 0.05
MEASURES = ("NDCG@10", "ERR", "MAP")


@dataclass(frozen=True)
class Demo:
    """What the demonstration found, by name of the ranking, and the files that it wrote."""

    evaluations: dict[str, Evaluation]
    written: list[Path]


def run_demo(folder: str | Path, *, seed: int = 0, progress: Progress | None = None) -> Demo:
    """Simulate data, rank the test part in three ways and evaluate.

    The rankings: no order at all (all scores tied), the feature that ranks the training part
    best, and least squares on the training grades.

    Parameters
    ----------
    folder
        Where to put the files; made if it is not there.
    seed
        Another seed gives other data.
    progress
        Who wants to know how far it is.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    written = []
    sets = {}
    for part, full in FULL_SIZE.items():
        path = target / f"{part}.txt"
        save(polynomials(round(full * SHARE), part=part, seed=seed, progress=progress), path)
        sets[part] = load(path, top_grade=4, progress=progress)
        written.append(path)
    train, test = sets["train"], sets["test"]
    feature, sign = _best_feature(train)
    direction = "feature " if sign > 0 else "falling feature "
    rankings = {
        "no order": np.zeros(test.n_docs),
        direction + train.feature_names[feature]: sign * test.X[:, feature].astype(np.float64),
        "least squares": _least_squares(train, test),
    }
    evaluations = {name: evaluate(scores, test, MEASURES) for name, scores in rankings.items()}
    save_scores(rankings["least squares"], test, target / "scores.txt")
    written.append(target / "scores.txt")
    written += draw_figures({part: describe(found) for part, found in sets.items()}, target)
    return Demo(evaluations, written)


def _best_feature(train: RankingData) -> tuple[int, float]:
    """Return the column and direction that rank the training part best."""
    tried = [
        (evaluate(sign * train.X[:, j], train, MEASURES[0]).mean[MEASURES[0]], j, sign)
        for j in range(train.n_features)
        for sign in (1.0, -1.0)
    ]
    _, feature, sign = max(tried)
    return feature, sign


def _least_squares(train: RankingData, test: RankingData) -> NDArray[np.float64]:
    ones = np.ones((train.n_docs, 1))
    weights = np.linalg.lstsq(np.hstack([train.X, ones]), train.y, rcond=None)[0]
    scores: NDArray[np.float64] = test.X @ weights[:-1]
    return scores
