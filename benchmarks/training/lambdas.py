"""All-pairs lambda gradients: those of ERR, MAP and MRR over those of NDCG."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rankinite.objectives.objective import Targets
from rankinite.objectives.pairwise import Lambdas
from shapes import TOP_GRADE, Shape
from training.settings import Settings
from verdicts import Results, in_turns, per_call, print_times

MEASURES = ("NDCG", "ERR", "MAP", "MRR")
REPEATS = 5


def run(settings: Settings, results: Results) -> None:
    """Use scores and labels of every shape; features do not matter."""
    for shape in settings.shapes:
        shape = settings.fitted(shape)
        what = f"all-pairs lambda gradient, {shape.n_queries:,} x {shape.n_docs}"
        print(f"{what}:", flush=True)
        rivals = {name: per_call(_gradients(name, shape), REPEATS) for name in MEASURES}
        for rival in rivals.values():
            rival()
        measured = in_turns(rivals, settings.turns)
        print_times(measured)
        for name in MEASURES[1:]:
            asked = (2.0, 1.2) if name == "ERR" else (None, None)
            results.ratio(f"{what}, {name} over NDCG", measured[name], measured["NDCG"], *asked)


def _gradients(measure: str, shape: Shape) -> Callable[[], None]:
    """Prepare the objective; return what computes its gradients at some scores."""
    rng = np.random.default_rng(0)
    n_docs = shape.n_queries * shape.n_docs
    labels = rng.choice(TOP_GRADE + 1, n_docs, p=[0.5, 0.25, 0.15, 0.07, 0.03]).astype(np.float64)
    scores = (0.3 * labels + rng.standard_normal(n_docs))[np.newaxis]
    offsets = np.arange(0, n_docs + 1, shape.n_docs)
    prepared = Lambdas(measure).prepare(Targets({None: labels}, offsets, TOP_GRADE))
    lambdas, weights = np.empty((2, *scores.shape))
    return lambda: prepared.gradients(scores, 0, lambdas, weights)
