"""Optimality, Tables 1 and 2: five constructions of a lambda gradient, for four measures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.evaluation.evaluate import evaluate
from rankinite.experiments.findings import Findings, Sheet
from rankinite.experiments.reproductions.setting import (
    MEASURES,
    Setting,
    p_value,
    short,
    standard_error,
    with_error,
)
from rankinite.objectives.constructions import (
    DiscreteBounded,
    LocalCost,
    LocalGradient,
    SpringSmooth,
)
from rankinite.objectives.lambdas import Lambdas

Floats = NDArray[np.float64]

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
QUERIES = 1_000
EPOCHS = 30
HIDDEN = 10
LEVEL = 0.05


def constructions(setting: Setting) -> Findings:
    """Train two-layer nets with every construction, for every measure.

    As in the paper, the learning rate of each is the best by the validation set, which is also
    what is reported; the test set stands beside it, for nothing was chosen there.
    """
    train, valid, test = (setting.polynomials(QUERIES, p) for p in ("train", "valid", "test"))
    sheets, values = [], {}
    notes = []
    total = len(MEASURES) * len(CONSTRUCTIONS) * len(RATES)
    with setting.progress.start("nets", total, "nets") as task:
        for measure in MEASURES:
            found = {}
            for name, construction in CONSTRUCTIONS.items():
                models = []
                for rate in RATES:
                    model = setting.net(
                        construction(measure), HIDDEN, learning_rate=rate, n_epochs=EPOCHS
                    )
                    models.append(model.set_params(valid_measure=measure).fit(train, valid=valid))
                    task.advance(1)
                best = max(models, key=lambda one: max(one.history_["valid"][measure]))
                found[name] = {
                    part: evaluate(best.predict(data), data, measure).per_query[measure]
                    for part, data in (("valid", valid), ("test", test))
                } | {"rate": best.learning_rate}
            sheets.append(_sheet(measure, found))
            values[measure] = {name: _numbers(one, found[BEST]) for name, one in found.items()}
            notes.append(_note(measure, values[measure]))
    return Findings("constructions", tuple(sheets), tuple(notes), {}, values)


def _sheet(measure: str, found: Mapping[str, Mapping[str, Any]]) -> Sheet:
    order = sorted(found, key=lambda name: -float(np.nanmean(found[name]["valid"])))
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
    return Sheet(f"{short(measure)} ± standard error", columns, rows)


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


def _note(measure: str, found: Mapping[str, Any]) -> str:
    """Say whether RankNetWeightPairs is the best on validation data, as in the paper."""
    mine = found[BEST]["valid"]["mean"]
    above = [name for name, one in found.items() if one["valid"]["mean"] > mine]
    worse = [
        name
        for name, one in found.items()
        if one["valid"]["mean"] < mine and one["valid"]["p_value"] <= LEVEL
    ]
    if not above:
        return (
            f"{short(measure)}: {BEST} is best; significantly better than {len(worse)} of the "
            f"{len(found) - 1} others."
        )
    return f"{short(measure)}: {' and '.join(above)} stand above {BEST}."
