"""The exact best mix of two rankers: a function, and a result that can be drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankinite.core.errors import UsageError
from rankinite.core.figures import save_figure, subplots
from rankinite.core.params import Bounds, OneOf, check
from rankinite.core.types import Floats
from rankinite.data import checks
from rankinite.data.ranking_data import RankingData
from rankinite.evaluation.evaluate import evaluate_all
from rankinite.measures.line_search import LineOptimum
from rankinite.measures.measure import Measure
from rankinite.measures.score_line import ScoreLine
from rankinite.measures.text import MeasureLike, one_measure
from rankinite.rankers.base import given_scores, is_model, model_scores
from rankinite.rankers.line_search import checked_measure_along_line
from rankinite.stats.paired_tests import gain_and_p

CONVEX, ADDITIVE = "convex", "additive"
BOUNDS = (0.0, 100.0)


@dataclass(frozen=True)
class Mix(LineOptimum):
    """The best mix of two rankers; see `LineOptimum` for its other attributes.

    Attributes
    ----------
    measure
        Measure that was maximised, as a text.
    form
        ``"convex"`` for (1 - alpha) a + alpha b, ``"additive"`` for a + alpha b.
    """

    measure: str
    form: str

    def scores(self, a: ArrayLike, b: ArrayLike) -> Floats:
        """Return the mix of other scores of the same two rankers.

        Parameters
        ----------
        a, b
            Scores of the two, one per document.
        """
        first = given_scores("Mix", "a", a, np.size(a))
        second = given_scores("Mix", "b", b, len(first))
        return ScoreLine(first, second, 0.0, 0.0, convex=self.form == CONVEX).scores(self.alpha)

    def draw(self, path: str | Path, names: tuple[str, str] = ("a", "b")) -> None:
        """Draw the measure against alpha.

        Parameters
        ----------
        path
            PNG file to write.
        names
            Names of the two rankers.
        """
        figure, (axes,) = subplots()
        course = self.course
        alphas = np.stack([course.begins, course.ends], axis=1).ravel()
        axes.plot(alphas, np.repeat(course.values, 2), linewidth=1)
        axes.plot([self.alpha], [self.value], "o", color="C1")
        axes.annotate(
            f"{self.value:.4f} at {self.alpha:.4g}",
            (self.alpha, self.value),
            textcoords="offset points",
            xytext=(0, 8),
            ha="center",
        )
        axes.margins(y=0.12)
        formula = "(1 - alpha) a + alpha b" if self.form == CONVEX else "a + alpha b"
        axes.set_xlabel(f"alpha in {formula}; a is {names[0]}, b is {names[1]}")
        axes.set_ylabel(self.measure)
        save_figure(figure, path)


def best_mix(
    a: Any,
    b: Any,
    data: RankingData,
    measure: MeasureLike = "NDCG@10",
    *,
    form: str = CONVEX,
    bounds: tuple[float, float] | None = None,
    whole_course: bool = False,
) -> Mix:
    """Find the exact best mix of two rankers (LambdaSMART, Sec. 4).

    The measure changes only where two documents of a query tie. The best value is taken over the
    open intervals between such points, and the two ends. Points whose relative difference is at
    most 10^-12 are merged, so the scales of the two rankers should not differ by nearly as much.

    Parameters
    ----------
    a, b
        Fitted rankers, or one score per document.
    data
        Queries with labels that neither ranker was trained on.
    measure
        Measure to maximise; any measure.
    form
        ``"convex"``: (1 - alpha) a + alpha b, with alpha from 0 to 1. ``"additive"``: a + alpha b,
        with alpha within the bounds.
    bounds
        Smallest and largest alpha of the additive form; 0 and 100 by default.
    whole_course
        Return every interval of the course, even if there are millions.

    Examples
    --------
    >>> data = RankingData(X=[[0.0]] * 3, y=[0, 2, 1], qid=[1, 1, 1])
    >>> mix = best_mix([3.0, 2.0, 1.0], [0.0, 2.0, 1.0], data, "NDCG")
    >>> mix.alpha, mix.value, mix.interval
    (0.8333333333333333, 1.0, (0.6666666666666666, 1.0))
    """
    owner = "best_mix"
    checks.require_data_set(owner, data)
    check(owner, "form", form, OneOf([CONVEX, ADDITIVE]))
    chosen = one_measure(owner, measure)
    low, high = _bounds(owner, form, bounds)
    first, second = _scores(owner, "a", a, data), _scores(owner, "b", b, data)
    measure_of = checked_measure_along_line(owner, chosen, data)
    if form == CONVEX:
        best = measure_of.best_mix(first, second, whole=whole_course)
    else:
        best = measure_of.best_step(first, second, low, high, whole=whole_course)
    return Mix(**vars(best), measure=str(chosen), form=form)


def _bounds(owner: str, form: str, bounds: tuple[float, float] | None) -> tuple[float, float]:
    if bounds is None:
        return BOUNDS
    if form == CONVEX:
        raise UsageError(
            f"{owner}: bounds are for the additive form; in the convex one alpha lies between 0 "
            "and 1"
        )
    check(owner, "bounds", bounds, Bounds())
    low, high = bounds
    return float(low), float(high)


def _scores(owner: str, name: str, ranker: Any, data: RankingData) -> Floats:
    if is_model(ranker):
        return model_scores(owner, ranker, data, None, data.n_docs, called=name)
    return given_scores(owner, name, ranker, data.n_docs)


@dataclass(frozen=True)
class MixComparison:
    """The best mix of two rankers, compared with the better of the two ends of alpha.

    Attributes
    ----------
    names
        Names of the two rankers.
    mix
        Their best mix.
    bounds
        Smallest and largest alpha.
    scores
        The mixed scores.
    n_queries
        Number of queries that count.
    better
        Index of the better end of alpha, 0 or 1.
    gain, p_value
        Mean difference between the best mix and that end, and the p-value of the paired t-test,
        on the queries that alpha was chosen by.
    """

    names: tuple[str, str]
    mix: Mix
    bounds: tuple[float, float]
    scores: Floats
    n_queries: int
    better: int
    gain: float
    p_value: float

    def as_json(self) -> dict[str, Any]:
        """Return plain values for a JSON file."""
        best = self.mix
        return {
            "a": self.names[0],
            "b": self.names[1],
            "measure": best.measure,
            "form": best.form,
            "bounds": list(self.bounds),
            "queries": self.n_queries,
            "at_ends": list(best.at_ends),
            "alpha": best.alpha,
            "interval": list(best.interval),
            "value": best.value,
            "better_end": self.better,
            "gain": self.gain,
            "p_value": self.p_value,
            "peak": None if best.peak is None else dict(vars(best.peak)),
        }


def mix_scores(
    rows: Mapping[str, Floats],
    data: RankingData,
    measure: Measure,
    form: str = CONVEX,
    bounds: tuple[float, float] | None = None,
) -> MixComparison:
    """Find the best mix of two rankers' scores, and compare it with the better end.

    Parameters
    ----------
    rows
        Scores of the two, by name.
    data, measure, form, bounds
        As in `best_mix`.
    """
    (first, a), (second, b) = rows.items()
    best = best_mix(a, b, data, measure, form=form, bounds=bounds)
    limits = (0.0, 1.0) if form == CONVEX else bounds or BOUNDS
    # The better end is the fair baseline: a gain over the worse one would be no news.
    better = int(best.at_ends[1] > best.at_ends[0])
    end = (a, b)[better] if form == CONVEX else a + limits[better] * b
    mixed = best.scores(a, b)
    values = [
        evaluation.per_query[str(measure)]
        for evaluation in evaluate_all([mixed, end], data, measure, drop_single_label=False)
    ]
    gain, p_value = gain_and_p(*values)
    n_queries = int((~np.isnan(values[0])).sum())
    return MixComparison((first, second), best, limits, mixed, n_queries, better, gain, p_value)
