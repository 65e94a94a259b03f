"""Optimality, Tables 1 and 2: five constructions of a lambda gradient, for four measures.

The paper claims (Sec. 7) that RankNet's gradients, weighted by the change of the measure when two
documents are swapped (RankNetWeightPairs), are significantly better than all other constructions by
all four measures, on validation data. It shows MAP (Table 1) and MRR (Table 2).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rankinite.core.progress import ProgressBar
from rankinite.data.ranking_data import RankingData
from rankinite.evaluation.tables import Summary, Table
from rankinite.objectives.constructions import (
    DiscreteBounded,
    LocalCost,
    LocalGradient,
    SpringSmooth,
)
from rankinite.objectives.objective import Objective
from rankinite.objectives.pairwise import Lambdas
from rankinite.papers.setting import (
    LEVEL,
    MEASURES,
    Setting,
    evaluated,
    mean_and_p,
    p_value,
    short,
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
# The paper sweeps the learning rate of every construction, and chooses it on validation data (Sec.
# 7).
RATES = (3e-4, 1e-3, 3e-3)
SIMULATORS = ("polynomials", "challenge")
QUERIES = dict.fromkeys(("train", "valid", "test"), 1_000)
REPORTED = ("valid", "test")
EPOCHS = 30
HIDDEN = 10


def constructions(setting: Setting) -> Summary:
    """Train two-layer nets with every construction, for every measure, on both simulators.

    As in the paper, the learning rate of each is the best by the validation set, which is also
    what is reported; the test set, on which nothing was chosen, is shown beside it.
    """
    tables, notes = [], []
    values: dict[str, Any] = {}
    total = len(SIMULATORS) * len(MEASURES) * len(CONSTRUCTIONS) * len(RATES)
    with setting.progress.start("nets", total, "nets") as bar:
        for name in SIMULATORS:
            parts = setting.parts(name, QUERIES)
            values[name] = {}
            for measure in MEASURES:
                results = {
                    construction: _trained(setting, objective(measure), measure, parts, bar)
                    for construction, objective in CONSTRUCTIONS.items()
                }
                numbers = {
                    construction: _numbers(result, results[BEST])
                    for construction, result in results.items()
                }
                tables.append(_table(f"{name}, {short(measure)}", results))
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
    """Return the values per query of the net with the best learning rate, and that rate."""
    net = setting.best_net(
        objective, HIDDEN, RATES, parts, bar, n_epochs=EPOCHS, valid_measure=measure
    )
    values = {part: evaluated(net, parts[part], measure).per_query[measure] for part in REPORTED}
    return {**values, "rate": net.learning_rate}


def _table(title: str, results: Mapping[str, Mapping[str, Any]]) -> Table:
    order = sorted(results, key=lambda name: -float(np.nanmean(results[name]["test"])))
    rows = tuple(
        (
            name,
            with_error(results[name]["valid"]),
            _p_text(results, name, "valid"),
            with_error(results[name]["test"]),
            _p_text(results, name, "test"),
            f"{results[name]['rate']:g}",
        )
        for name in order
    )
    columns = ("Lambda gradient", "Validation", "p", "Test", "p", "Rate")
    return Table(f"{title} ± standard error", columns, rows)


def _p_text(results: Mapping[str, Mapping[str, Any]], name: str, part: str) -> str:
    return "-" if name == BEST else f"{p_value(results[name][part], results[BEST][part]):.2g}"


def _numbers(result: Mapping[str, Any], best: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "rate": result["rate"],
        **{part: mean_and_p(result[part], best[part]) for part in REPORTED},
    }


def _note(case: str, numbers: Mapping[str, Any]) -> str:
    """Return the rank of RankNetWeightPairs, the best in the paper, on test data."""
    mean = numbers[BEST]["test"]["mean"]
    others = {name: number["test"] for name, number in numbers.items() if name != BEST}
    better = [name for name, test in others.items() if test["mean"] > mean]
    clearly = [name for name in better if others[name]["p_value"] <= LEVEL]
    beaten = [n for n, t in others.items() if t["mean"] < mean and t["p_value"] <= LEVEL]
    return (
        f"{case}: {BEST} is number {len(better) + 1} of {len(numbers)} on test data, significantly "
        f"below {len(clearly)} and above {len(beaten)} of the others."
    )
