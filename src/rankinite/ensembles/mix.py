"""The exact best mix of two rankers, as a function and as a value that can be drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankinite.core.errors import UsageError
from rankinite.core.figures import panels, save_figure
from rankinite.core.params import Bounds, OneOf, check
from rankinite.core.types import Floats
from rankinite.data import checks
from rankinite.data.ranking_data import RankingData
from rankinite.evaluation.evaluate import evaluate_all
from rankinite.measures.line_search import LineOptimum, ScoreLine
from rankinite.measures.measure import Measure
from rankinite.measures.text import MeasureLike, one_measure
from rankinite.rankers.base import given_scores, is_model, model_scores
from rankinite.rankers.line_search import following_some
from rankinite.stats.paired_tests import gain_and_p

CONVEX, ADDITIVE = "convex", "additive"
BOUNDS = (0.0, 100.0)


@dataclass(frozen=True)
class Mix(LineOptimum):
    """The best mix of two rankers; see `LineOptimum` for what it holds.

    Attributes
    ----------
    measure
        The measure that is best, as a text.
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
            Their scores, one a document.
        """
        one = given_scores("Mix", "a", a, np.size(a))
        other = given_scores("Mix", "b", b, len(one))
        return ScoreLine(one, other, 0.0, 0.0, convex=self.form == CONVEX).scores(self.alpha)

    def draw(self, path: str | Path, names: tuple[str, str] = ("a", "b")) -> None:
        """Draw the measure against alpha.

        Parameters
        ----------
        path
            The PNG file to write.
        names
            What the two rankers are called.
        """
        figure, (axes,) = panels()
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
        way = "(1 - alpha) a + alpha b" if self.form == CONVEX else "a + alpha b"
        axes.set_xlabel(f"alpha in {way}; a is {names[0]}, b is {names[1]}")
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

    Every point at which two documents of a query cross is followed. The best value is taken over
    the open intervals between such points, and the two ends. Points that differ by a part in 10^12
    or less are one; so the scales of the two rankers should not differ by nearly as much.

    Parameters
    ----------
    a, b
        Fitted rankers, or one score a document.
    data
        Queries with labels that neither ranker was trained on.
    measure
        What shall be best: any measure.
    form
        ``"convex"``: (1 - alpha) a + alpha b, with alpha from 0 to 1. ``"additive"``: a + alpha b,
        with alpha within the bounds.
    bounds
        The least and the largest alpha of the additive form; 0 and 100 if not given.
    whole_course
        Give every interval of the course, also if there are millions.

    Examples
    --------
    >>> data = RankingData(X=[[0.0]] * 3, y=[0, 2, 1], qid=[1, 1, 1])
    >>> mix = best_mix([3.0, 2.0, 1.0], [0.0, 2.0, 1.0], data, "NDCG")
    >>> mix.alpha, mix.value, mix.interval
    (0.8333333333333333, 1.0, (0.6666666666666666, 1.0))
    """
    owner = "best_mix"
    checks.data_set(owner, data)
    check(owner, "form", form, OneOf([CONVEX, ADDITIVE]))
    chosen = one_measure(owner, measure)
    low, high = _bounds(owner, form, bounds)
    one, other = _scores(owner, "a", a, data), _scores(owner, "b", b, data)
    measure_of = following_some(owner, chosen, data)
    if form == CONVEX:
        found = measure_of.best_mix(one, other, whole=whole_course)
    else:
        found = measure_of.best_step(one, other, low, high, whole=whole_course)
    return Mix(**vars(found), measure=str(chosen), form=form)


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


def _scores(owner: str, name: str, given: Any, data: RankingData) -> Floats:
    if is_model(given):
        return model_scores(owner, given, data, None, data.n_docs, called=name)
    return given_scores(owner, name, given, data.n_docs)


@dataclass(frozen=True)
class Mixing:
    """The best mix of two rankers on one data set.

    Attributes
    ----------
    names
        What the two are called.
    mix
        Their best mix.
    bounds
        The least and the largest alpha.
    scores
        The mixed scores.
    n_queries
        How many queries count.
    better
        Which end of alpha is better, 0 or 1.
    gain, p_value
        The mean difference between the best mix and that end, and the p-value of the paired
        t-test, on the queries that alpha was chosen by.
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
        """Return plain values."""
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
) -> Mixing:
    """Find the best mix of two rankers' scores, and compare it with the better end.

    Parameters
    ----------
    rows
        The scores of the two, by name.
    data, measure, form, bounds
        As in `best_mix`.
    """
    (first, a), (second, b) = rows.items()
    found = best_mix(a, b, data, measure, form=form, bounds=bounds)
    limits = (0.0, 1.0) if form == CONVEX else bounds or BOUNDS
    better = int(found.at_ends[1] > found.at_ends[0])
    end = (a, b)[better] if form == CONVEX else a + limits[better] * b
    mixed = found.scores(a, b)
    values = [
        one.per_query[str(measure)]
        for one in evaluate_all([mixed, end], data, measure, drop_single_label=False)
    ]
    gain, p_value = gain_and_p(*values)
    n_queries = int((~np.isnan(values[0])).sum())
    return Mixing((first, second), found, limits, mixed, n_queries, better, gain, p_value)
