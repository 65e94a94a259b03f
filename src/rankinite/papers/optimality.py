"""Optimality, Figures 1 to 4 and 6, and Section 8: whether weights are a local optimum.

The paper claims that LambdaRank learns weights that are, with 99 % confidence, a local optimum of
the measure it is trained for; random weights and those of early epochs are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rankinite.core.figures import Line, Panel
from rankinite.data.ranking_data import RankingData
from rankinite.evaluation.tables import Summary, Table
from rankinite.explain.optimality import (
    COLUMNS,
    Tested,
    Testing,
    check_optimality,
    panel_of,
    row_of,
)
from rankinite.papers.setting import MEASURES, Setting, short
from rankinite.rankers.lambdarank import LambdaRank

# A tenth of the paper's.
QUERIES = 1_000
LAYERS: Mapping[str, int] = {"linear": 0, "two-layer": 10}
# The weights must converge: the rate falls to 0 over these epochs, and decay would shift them.
CONVERGED: Mapping[str, Any] = {"n_epochs": 150, "patience": None, "weight_decay": 0.0}
# Section 8 tests the weights after these epochs.
EARLY = (7, 12)
TARGET = "NDCG@10"
OTHER = "MRR(relevant=2)"
MORE_EPOCHS = 20


def optimality(setting: Setting) -> Summary:
    """Test linear and two-layer nets for four measures, random weights, and early ones."""
    train = setting.polynomials(QUERIES, "train")
    testing = Testing(seed=setting.seed)
    rows: list[tuple[str, ...]] = []
    figures: dict[str, tuple[Panel, ...]] = {}
    values: dict[str, Any] = {}
    trained: dict[tuple[str, str], LambdaRank] = {}
    for number, measure in enumerate(MEASURES, 1):
        panels = []
        for layers, hidden in LAYERS.items():
            model = setting.net(measure, hidden, **CONVERGED)
            trained[layers, measure] = model.fit(train, progress=setting.progress)
            tested = _check(setting, model, train, measure, testing)
            rows.append(
                (
                    layers,
                    f"trained for {short(measure)}",
                    short(measure),
                    *row_of(tested.directions),
                )
            )
            panels.append(panel_of(tested, f"{layers}, trained for {short(measure)}"))
            values[f"{layers} {short(measure)}"] = tested.directions.as_json()
        figures[f"figure-{number}"] = tuple(panels)
    random = setting.random_net("NDCG", 0, train)
    tested = _check(setting, random, train, "NDCG", testing)
    rows.append(("linear", "random weights", "NDCG", *row_of(tested.directions)))
    figures["figure-6"] = (panel_of(tested, "linear, random weights"),)
    values["linear random"] = tested.directions.as_json()
    lines = []
    starts = {f"epoch {n}": _after(setting, TARGET, LAYERS["two-layer"], train, n) for n in EARLY}
    starts[f"trained for {short(OTHER)}"] = trained["two-layer", OTHER]
    for name, start in starts.items():
        tested = _check(setting, start, train, TARGET, testing)
        rows.append(("two-layer", name, TARGET, *row_of(tested.directions)))
        values[f"two-layer {name}"] = tested.directions.as_json()
        lines.append(_continued(setting, name, start, train, tested))
    figures["section-8"] = (
        Panel(f"Training continued for {TARGET}", "Epoch", f"Training {TARGET}", tuple(lines)),
    )
    title = f"Weights moved in random directions, {train.n_queries:,} queries of polynomials"
    table = Table(title, ("Net", "Weights", "Measure", *COLUMNS), tuple(rows))
    return Summary("optimality", (table,), tuple(_notes(lines)), figures, values)


def _check(
    setting: Setting, model: LambdaRank, train: RankingData, measure: str, testing: Testing
) -> Tested:
    return check_optimality(model, train, measure, testing, setting.progress)


def _after(
    setting: Setting, measure: str, hidden: int, train: RankingData, n_epochs: int
) -> LambdaRank:
    """Return a net whose training was stopped after some epochs, at its best round until then."""
    model = setting.net(measure, hidden, **CONVERGED)
    return model.fit(train, callbacks=[lambda done: done.number >= n_epochs])


def _continued(
    setting: Setting, name: str, start: LambdaRank, train: RankingData, tested: Tested
) -> Line:
    """Continue training from these weights; return the training measure by epoch."""
    model = setting.net(TARGET, LAYERS["two-layer"], **{**CONVERGED, "n_epochs": MORE_EPOCHS})
    model.fit(train, begin_with=start)
    values = [tested.directions.start, *model.history_["train"][TARGET]]
    return Line(f"from {name}", range(len(values)), values)


def _notes(lines: list[Line]) -> list[str]:
    return [
        f"Continued {line.label}, training {TARGET} is {line.y[0]:.4f}, {line.y[1]:.4f} after one "
        f"epoch and {max(line.y):.4f} at best."
        for line in lines
    ]
