"""Optimality, Figures 1 to 4 and 6, and Section 8: whether weights are a local optimum.

The paper claims that LambdaRank learns weights that are, with 99 % confidence, a local optimum of
the measure it is trained for (Sec. 7.1), and that random weights are not (Figure 6). Those after
epochs 7 and 12, and those learned for MRR, are local optima of NDCG@10 too, although training from
them raises it at once (Sec. 8).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rankinite.core.figures import Line, Panel
from rankinite.data.ranking_data import RankingData
from rankinite.evaluation.tables import Summary, Table
from rankinite.explanation.optimality import (
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


@dataclass(frozen=True)
class Checked:
    """Weights of a net that were tested: its layers, the weights' origin, and the measure."""

    layers: str
    weights: str
    measure: str
    tested: Tested

    @property
    def row(self) -> tuple[str, ...]:
        """The row of the table."""
        return (self.layers, self.weights, short(self.measure), *row_of(self.tested.directions))

    @property
    def panel(self) -> Panel:
        """The measure along the random directions."""
        return panel_of(self.tested, f"{self.layers}, {self.weights}")


def optimality(setting: Setting) -> Summary:
    """Test linear and two-layer nets for four measures, random weights, and early ones."""
    train = setting.polynomials(QUERIES, "train")
    testing = Testing(seed=setting.seed)
    checked: dict[str, Checked] = {}

    def test(key: str, layers: str, weights: str, measure: str, model: LambdaRank) -> Checked:
        tested = check_optimality(model, train, measure, testing, setting.progress)
        checked[key] = Checked(layers, weights, measure, tested)
        return checked[key]

    figures: dict[str, tuple[Panel, ...]] = {}
    trained: dict[tuple[str, str], LambdaRank] = {}
    for number, measure in enumerate(MEASURES, 1):
        name, panels = short(measure), []
        for layers, hidden in LAYERS.items():
            model = setting.net(measure, hidden, **CONVERGED).fit(train, progress=setting.progress)
            trained[layers, measure] = model
            panels.append(
                test(f"{layers} {name}", layers, f"trained for {name}", measure, model).panel
            )
        figures[f"figure-{number}"] = tuple(panels)
    random = setting.random_net("NDCG", 0, train)
    figures["figure-6"] = (test("linear random", "linear", "random weights", "NDCG", random).panel,)
    starts = {f"epoch {n}": _after(setting, TARGET, LAYERS["two-layer"], train, n) for n in EARLY}
    starts[f"trained for {short(OTHER)}"] = trained["two-layer", OTHER]
    lines = []
    for name, start in starts.items():
        tested = test(f"two-layer {name}", "two-layer", name, TARGET, start).tested
        lines.append(_continued(setting, name, start, train, tested))
    figures["section-8"] = (
        Panel(f"Training continued for {TARGET}", "Epoch", f"Training {TARGET}", tuple(lines)),
    )
    title = f"Weights moved in random directions, {train.n_queries:,} queries of polynomials"
    rows = tuple(each.row for each in checked.values())
    table = Table(title, ("Net", "Weights", "Measure", *COLUMNS), rows)
    values = {key: each.tested.directions.as_json() for key, each in checked.items()}
    return Summary("optimality", (table,), tuple(_notes(lines)), figures, values)


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
