"""LambdaSMART, Figures 3 and 4: the Newton step against the exact weight of each tree.

The paper claims (Sec. 5.6) that with exact weights training and test accuracy converge
significantly faster on artificial data (Figure 3a), and that on Web-1 80 trees do what takes the
Newton step 250 (Figure 3b); the weights vary from tree to tree until the end (Figure 4).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankinite.core.figures import Line, Panel
from rankinite.core.format import p_exponent
from rankinite.core.types import Floats
from rankinite.data.ranking_data import RankingData
from rankinite.evaluation.tables import Summary, Table
from rankinite.papers.setting import Boosting, Setting, evaluated, p_value, with_error
from rankinite.rankers.lambdamart import LambdaMART

MEASURE = "NDCG@10"
# A fifth of the paper's queries, and as many trees as its figures show.
QUERIES = {"train": 2_000, "valid": 1_000, "test": 2_000}
TREES = 250
SWEEPS = 2
LEVELS = (0.25, 0.5, 0.75, 1.0)
# The highest level is the best value of a curve, computed from two others and so rounded.
ROUNDING = 1e-12
SEARCH = "line-search"
NEWTON = "Newton step"
ON_VALID = "line search on validation data"


@dataclass(frozen=True)
class Case:
    """A data set, the parameters of all rankers, and how each gets the weights of its trees."""

    name: str
    common: Mapping[str, Any]
    rankers: Mapping[str, Mapping[str, Any]]


# The bounds of alpha are the paper's. Without the lower one training would stop at the first tree
# that gains almost nothing; the upper one of Web-1 prevents overfitting (Sec. 5.6).
CASES = (
    Case(
        "polynomials",
        {"n_leaves": 10, "alpha_bounds": (0.1, 100.0)},
        {
            f"{NEWTON}, shrinkage 0.1": {"learning_rate": 0.1},
            NEWTON: {"learning_rate": 1.0},
            ON_VALID: {"learning_rate": 1.0, "step": SEARCH, "line_search_on": "valid"},
            "line search on training data": {"learning_rate": 1.0, "step": SEARCH},
        },
    ),
    Case(
        "challenge",
        {"n_leaves": 15, "alpha_bounds": (0.1, 5.0)},
        {
            f"{NEWTON}, shrinkage 0.1": {"learning_rate": 0.1},
            f"{ON_VALID}, shrinkage 0.1": {"step": SEARCH, "line_search_on": "valid"},
            "line search on training data, shrinkage 0.1": {"step": SEARCH},
            ON_VALID: {"learning_rate": 1.0, "step": SEARCH, "line_search_on": "valid"},
        },
    ),
)


def line_search(setting: Setting) -> Summary:
    """Boost with the Newton step and with exact weights, and measure after every tree."""
    n_fits = sum(len(case.rankers) for case in CASES)
    tables, figures, values = [], {}, {}
    with setting.progress.start("boosting", n_fits * TREES, "trees") as bar:
        for case in CASES:
            sets = setting.parts(case.name, QUERIES)
            boosting = Boosting(setting, sets, bar)
            fits = {name: _fit(boosting, case, name) for name in case.rankers}
            tables += [_table(case, fits, sets), _needed(case, fits), _backfitted(case, fits, sets)]
            figures[f"line-search-{case.name}"] = _figure(case, fits)
            values[case.name] = {
                name: {"curves": model.history_, "alphas": model.alphas_}
                for name, model in fits.items()
            }
    return Summary("line-search", tuple(tables), (), figures, values)


def _fit(boosting: Boosting, case: Case, name: str) -> LambdaMART:
    # The first set decides how many trees are kept.
    watched = {part: boosting.sets[part] for part in ("valid", "test", "train")}
    return boosting.fit(
        valid=watched,
        measure=MEASURE,
        n_trees=TREES,
        queries_per_tree=1.0,
        patience=None,
        **case.common,
        **case.rankers[name],
    )


def _table(case: Case, fits: Mapping[str, LambdaMART], sets: Mapping[str, RankingData]) -> Table:
    """Return the test measure of every ranker, compared with the first."""
    per_query = {
        name: evaluated(model, sets["test"], MEASURE).per_query[MEASURE]
        for name, model in fits.items()
    }
    first, *_ = per_query.values()
    rows = tuple(
        (
            name,
            with_error(per_query[name]),
            "" if per_query[name] is first else p_exponent(p_value(per_query[name], first)),
            f"{model.n_trees_}",
            f"{np.median(model.alphas_):.2f}" if model.alphas_ else "",
        )
        for name, model in fits.items()
    )
    title = (
        f"{case.name.capitalize()}, {sets['train'].n_queries:,} queries, {TREES} trees of "
        f"{case.common['n_leaves']} leaves: test {MEASURE}, number of trees chosen by validation"
    )
    return Table(title, ("Weights", MEASURE, "p to first", "Trees", "Median alpha"), rows)


def _needed(case: Case, fits: Mapping[str, LambdaMART]) -> Table:
    """Return the number of trees that each needs for accuracies that all of them reach."""
    curves = {name: _curve(model, "test") for name, model in fits.items()}
    levels = common_levels(curves.values())
    rows = tuple(
        (name, *(str(trees_needed(curve, level)) for level in levels))
        for name, curve in curves.items()
    )
    title = f"{case.name.capitalize()}: trees until test {MEASURE} is"
    return Table(title, ("Weights", *(f"{level:.4f}" for level in levels)), rows)


def common_levels(curves: Collection[Floats]) -> list[float]:
    """Return levels between the best first value and the largest that all curves reach."""
    start = max(float(curve[0]) for curve in curves)
    end = min(float(curve.max()) for curve in curves)
    return [start + share * (end - start) for share in LEVELS]


def trees_needed(curve: Floats, level: float) -> int:
    """Return the number of trees after which a curve reaches a level."""
    return int(np.argmax(curve >= level - ROUNDING)) + 1


def _backfitted(
    case: Case, fits: Mapping[str, LambdaMART], sets: Mapping[str, RankingData]
) -> Table:
    """Return the gain of fitting all weights of a line search once more."""
    name = ON_VALID
    model = copy(fits[name])  # backfitting changes the model, and the figures need it as boosted
    rows = [("as boosted", *_values(model, sets))]
    for sweep in range(1, SWEEPS + 1):
        model.backfit(sets["train"], measure=MEASURE)
        rows.append((f"after sweep {sweep}", *_values(model, sets)))
    title = f"{case.name.capitalize()}: {name}, its {model.n_trees_} trees backfitted"
    return Table(title, ("Weights", *(f"{MEASURE}, {part}" for part in QUERIES)), tuple(rows))


def _values(model: LambdaMART, sets: Mapping[str, RankingData]) -> list[str]:
    return [f"{evaluated(model, sets[part], MEASURE).mean[MEASURE]:.4f}" for part in QUERIES]


def _figure(case: Case, fits: Mapping[str, LambdaMART]) -> tuple[Panel, ...]:
    trees = range(1, TREES + 1)
    curves = tuple(
        Panel(
            f"{case.name.capitalize()}: {part} {MEASURE}",
            "Trees",
            MEASURE,
            tuple(Line(name, trees, list(_curve(model, part))) for name, model in fits.items()),
        )
        for part in ("train", "test")
    )
    alphas = fits[ON_VALID].alphas_
    weights = (Line(ON_VALID, range(1, len(alphas) + 1), alphas),)
    return (
        *curves,
        Panel(f"{case.name.capitalize()}: weight of each tree", "Tree", "alpha", weights),
    )


def _curve(model: LambdaMART, part: str) -> Floats:
    return np.array(model.history_[part][MEASURE])
