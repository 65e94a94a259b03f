"""Optimality, Tables 1 and 2: five constructions of a lambda gradient, for four measures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rankinite.core.progress import ProgressBar
from rankinite.data.ranking_data import RankingData
from rankinite.evaluation.evaluate import evaluate
from rankinite.evaluation.summary import Summary
from rankinite.evaluation.tables import Table
from rankinite.objectives.constructions import (
    DiscreteBounded,
    LocalCost,
    LocalGradient,
    SpringSmooth,
)
from rankinite.objectives.objective import Objective
from rankinite.objectives.pairwise import Lambdas
from rankinite.papers.setting import (
    MEASURES,
    Setting,
    p_value,
    short,
    standard_error,
    with_error,
)

CONSTRUCTIONS: Mapping[str, Any] = {
    "RankNetWeightPairs": Lambdas,
    "LocalGradient": LocalGradient,
    "LocalCost": LocalCost,
    "SpringSmooth": SpringSmooth,
    "DiscreteBounded": DiscreteBounded,
}
BEST = "RankNetWeightPairs"
# The papers sweep the learning rate for every construction, and choose on validation data.
RATES = (3e-4, 1e-3, 3e-3)
SIMULATORS = ("polynomials", "challenge")
QUERIES = 1_000
EPOCHS = 30
HIDDEN = 10
LEVEL = 0.05


def constructions(setting: Setting) -> Summary:
    """Train two-layer nets with every construction, for every measure, on both simulators.

    As in the paper, the learning rate of each is the best by the validation set, which is also
    what is reported; the test set stands beside it, for nothing was chosen there.
    """
    tables, notes = [], []
    values: dict[str, Any] = {}
    total = len(SIMULATORS) * len(MEASURES) * len(CONSTRUCTIONS) * len(RATES)
    with setting.progress.start("nets", total, "nets") as bar:
        for name in SIMULATORS:
            simulate = getattr(setting, name)
            parts = {part: simulate(QUERIES, part) for part in ("train", "valid", "test")}
            values[name] = {}
            for measure in MEASURES:
                found = {
                    one: _trained(setting, make(measure), measure, parts, bar)
                    for one, make in CONSTRUCTIONS.items()
                }
                numbers = {one: _numbers(values, found[BEST]) for one, values in found.items()}
                tables.append(_sheet(f"{name}, {short(measure)}", found))
                notes.append(_note(f"{name}, {short(measure)}", numbers))
                values[name][measure] = numbers
    return Summary("constructions", tuple(tables), tuple(notes), {}, values)


def _trained(
    setting: Setting,
    objective: Objective,
    measure: str,
    parts: Mapping[str, RankingData],
    bar: ProgressBar,
) -> dict[str, Any]:
    """Return the values of every query of the best of several nets, and its rate."""
    models = []
    for rate in RATES:
        model = setting.net(objective, HIDDEN, learning_rate=rate, n_epochs=EPOCHS)
        model.set_params(valid_measure=measure).fit(parts["train"], valid=parts["valid"])
        models.append(model)
        bar.advance(1)
    best = max(models, key=lambda one: max(one.history_["valid"][measure]))
    values = {
        part: evaluate(best.predict(parts[part]), parts[part], measure).per_query[measure]
        for part in ("valid", "test")
    }
    return {**values, "rate": best.learning_rate}


def _sheet(title: str, found: Mapping[str, Mapping[str, Any]]) -> Table:
    order = sorted(found, key=lambda name: -float(np.nanmean(found[name]["test"])))
    rows = tuple(
        (
            name,
            with_error(found[name]["valid"]),
            _against(found, name, "valid"),
            with_error(found[name]["test"]),
            _against(found, name, "test"),
            f"{found[name]['rate']:g}",
        )
        for name in order
    )
    columns = ("Lambda gradient", "Validation", "p", "Test", "p", "Rate")
    return Table(f"{title} ± standard error", columns, rows)


def _against(found: Mapping[str, Mapping[str, Any]], name: str, part: str) -> str:
    return "-" if name == BEST else f"{p_value(found[name][part], found[BEST][part]):.2g}"


def _numbers(one: Mapping[str, Any], best: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "rate": one["rate"],
        **{
            part: {
                "mean": float(np.nanmean(one[part])),
                "standard_error": standard_error(one[part]),
                "p_value": 1.0 if one is best else p_value(one[part], best[part]),
            }
            for part in ("valid", "test")
        },
    }


def _note(where: str, found: Mapping[str, Any]) -> str:
    """Say where RankNetWeightPairs, the best in the paper, stands on test data."""
    mine = found[BEST]["test"]["mean"]
    others = {name: one["test"] for name, one in found.items() if name != BEST}
    better = [name for name, one in others.items() if one["mean"] > mine]
    clearly = [name for name in better if others[name]["p_value"] <= LEVEL]
    beaten = [n for n, one in others.items() if one["mean"] < mine and one["p_value"] <= LEVEL]
    return (
        f"{where}: {BEST} is number {len(better) + 1} of {len(found)} on test data, significantly "
        f"below {len(clearly)} and above {len(beaten)} of the others."
    )
