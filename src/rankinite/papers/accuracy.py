"""LambdaSMART, Table 1 and Figure 2: LambdaMART, McRank and LambdaRank, also by number of trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from rankinite.core.figures import Line, Panel
from rankinite.core.progress import ProgressBar
from rankinite.data.ranking_data import RankingData
from rankinite.evaluation.evaluate import Evaluation, evaluate
from rankinite.evaluation.summary import Summary
from rankinite.evaluation.tables import Table
from rankinite.papers.setting import (
    LEVEL,
    NDCG,
    Setting,
    differences,
    evaluated,
    numbers,
    p_text,
    p_values,
    with_interval,
)
from rankinite.rankers.lambdamart import LambdaMART
from rankinite.rankers.mcrank import McRank
from rankinite.rankers.tree_ranker import TreeRanker

Parts = Mapping[str, RankingData]

FIRST = NDCG[0]
METHODS = ("LambdaMART", "McRank", "LambdaRank")
# The paper's parameters: every tree sees all documents, and lambdas are as they come.
WHOLE: Mapping[str, Any] = {"docs_per_tree": 1.0, "queries_per_tree": 1.0, "patience": None}
PLAIN: Mapping[str, Any] = {"truncation": None, "normalise": "none"}
OF_MCRANK: Mapping[str, Any] = {"n_leaves": 10, "learning_rate": 0.05}
OF_FIGURE: Mapping[str, Any] = {"n_leaves": 20, "learning_rate": 0.15}
HIDDEN = 10
EPOCHS = 100
# The paper varies the rate of nets, and chooses on validation data.
RATES = (3e-4, 1e-3, 3e-3)
TREES_A_ROUND = 5  # of McRank: one for each grade
TREES_A_POINT = 10
# Where on McRank's curve the two are compared.
MARKS = (0.05, 0.1, 0.25, 0.5, 1.0)


@dataclass(frozen=True)
class Trial:
    """Data to try rankers on.

    Attributes
    ----------
    simulator
        What makes the data.
    role
        Which data of the paper they stand for.
    queries
        How many there are at scale 1, by part.
    n_leaves
        Of LambdaMART's trees, in the table.
    n_rounds
        How many rounds the rankers of the table have at most; the paper has 1,000.
    n_trees
        How many trees those of the figure have.
    """

    simulator: str
    role: str
    queries: Mapping[str, int]
    n_leaves: int
    n_rounds: int
    n_trees: int


TRIALS = (
    Trial(
        simulator="polynomials",
        role="artificial",
        queries={"train": 2_000, "valid": 1_000, "test": 2_000},  # a fifth of the paper's
        n_leaves=10,
        n_rounds=1_000,
        n_trees=2_000,
    ),
    Trial(
        simulator="challenge",
        role="Web-1",
        queries={"train": 1_000, "valid": 500, "test": 2_000},
        n_leaves=15,
        n_rounds=300,
        n_trees=500,
    ),
)


def accuracy(setting: Setting) -> Summary:
    """Compare the three rankers on test data, and two of them by their number of trees.

    As in the paper, validation data choose: how many rounds of trees are kept, and the rate of
    nets. Rankers of the figure are grown to the end.
    """
    tables, notes, panels = [], [], []
    values: dict[str, Any] = {}
    total = len(TRIALS) * (4 + len(RATES))
    with setting.progress.start("rankers", total, "rankers") as bar:
        for trial in TRIALS:
            simulate = getattr(setting, trial.simulator)
            parts = {part: simulate(n, part) for part, n in trial.queries.items()}
            models = _table_models(setting, trial, parts, bar)
            found = {
                name: evaluated(model.predict(parts["test"]), parts["test"])
                for name, model in models.items()
            }
            curves = _curves(setting, trial, parts, bar)
            needed = _needed(curves)
            tables += [_table(trial, models, found, parts), _trees_table(trial, needed)]
            notes += [_note(trial, found), _trees_note(trial, curves, needed)]
            panels.append(_panel(trial, curves))
            values[trial.simulator] = _numbers(found, curves)
    notes.append(
        "Validation data chose the rates of nets, their epochs and how many trees the rankers of "
        "the tables keep. Intervals and p-values are over queries, of one training each."
    )
    return Summary("accuracy", tuple(tables), tuple(notes), {"accuracy": tuple(panels)}, values)


def _table_models(setting: Setting, trial: Trial, parts: Parts, bar: ProgressBar) -> dict[str, Any]:
    """Return the rankers of the table, fitted."""
    seed: Mapping[str, Any] = {"random_state": setting.seed, "valid_measure": FIRST}
    trees: list[TreeRanker] = [
        LambdaMART(
            "NDCG", n_trees=trial.n_rounds, n_leaves=trial.n_leaves, **WHOLE, **PLAIN, **seed
        ),
        McRank(n_trees=trial.n_rounds, **OF_MCRANK, **WHOLE, **seed),
    ]
    nets = [
        setting.net("NDCG", HIDDEN, learning_rate=rate, n_epochs=EPOCHS, valid_measure=FIRST)
        for rate in RATES
    ]
    for model in (*trees, *nets):
        model.fit(parts["train"], valid=parts["valid"])
        bar.advance(1)
    best = max(nets, key=lambda one: max(one.history_["valid"][FIRST]))
    return dict(zip(METHODS, (*trees, best), strict=True))


def _curves(setting: Setting, trial: Trial, parts: Parts, bar: ProgressBar) -> dict[str, Line]:
    """Return the test NDCG@10 of LambdaMART and McRank by number of trees."""
    shared: Mapping[str, Any] = {**OF_FIGURE, **WHOLE, "random_state": setting.seed}
    n_rounds = max(1, trial.n_trees // TREES_A_ROUND)
    models = {
        1: LambdaMART("NDCG", n_trees=trial.n_trees, **PLAIN, **shared),
        TREES_A_ROUND: McRank(n_trees=n_rounds, **shared),
    }
    curves = {}
    for name, (trees_a_round, model) in zip(METHODS[:2], models.items(), strict=True):
        model.fit(parts["train"])
        bar.advance(1)
        curves[name] = _curve(name, model, parts["test"], trees_a_round)
    return curves


def _curve(name: str, model: TreeRanker, test: RankingData, trees_a_round: int) -> Line:
    every = TREES_A_POINT // trees_a_round
    values = [
        evaluate(scores, test, FIRST, drop_single_label=True).mean[FIRST]
        for scores in model.staged_predict(test, every=every)
    ]
    rounds = [min(every * k, model.n_trees_) for k in range(1, len(values) + 1)]
    return Line(name, [trees_a_round * k for k in rounds], values)


def _needed(curves: Mapping[str, Line]) -> list[tuple[float, int | None, int]]:
    """Return values that McRank reaches, and how many trees LambdaMART and McRank need for them."""
    mine, other = (curves[name] for name in METHODS[:2])
    best = np.maximum.accumulate(other.y)
    places = [max(0, round(mark * len(best)) - 1) for mark in MARKS]
    levels = sorted({float(best[place]) for place in places})
    return [(level, _first(mine, level), _first(other, level) or 0) for level in levels]


def _first(line: Line, level: float) -> int | None:
    """Return the fewest trees that reach a value, if any number does."""
    reached = np.flatnonzero(np.asarray(line.y) >= level)
    return int(line.x[reached[0]]) if len(reached) else None


def _table(
    trial: Trial, models: Mapping[str, Any], found: Mapping[str, Evaluation], parts: Parts
) -> Table:
    pairs = list(combinations(METHODS, 2))
    p = {pair: p_values(found[pair[0]], found[pair[1]]) for pair in pairs}
    rows = [
        (
            measure,
            *(with_interval(found[name].per_query[measure]) for name in METHODS),
            *(p_text(p[pair][measure]) for pair in pairs),
        )
        for measure in NDCG
    ]
    kept = (
        f"{models['LambdaMART'].n_trees_:,} trees",
        f"{TREES_A_ROUND * models['McRank'].n_trees_:,} trees",
        f"rate {models['LambdaRank'].learning_rate:g}",
    )
    rows.append(("By validation", *kept, *[""] * len(pairs)))
    title = (
        f"{trial.simulator} (as {trial.role}), {parts['train'].n_queries:,} training queries, "
        f"up to {trial.n_rounds:,} rounds: test values and half their 95 % confidence intervals; "
        "p of pairs"
    )
    columns = ("Measure", *METHODS, *(f"{_initials(a)} / {_initials(b)}" for a, b in pairs))
    return Table(title, columns, tuple(rows))


def _initials(name: str) -> str:
    return {"LambdaMART": "λM", "McRank": "Mc", "LambdaRank": "λR"}[name]


def _trees_table(trial: Trial, needed: Sequence[tuple[float, int | None, int]]) -> Table:
    rows = tuple(
        (
            f"{level:.4f}",
            f"{other:,}",
            "never" if mine is None else f"{mine:,}",
            "-" if mine is None else f"{other / mine:.1f}",
        )
        for level, mine, other in needed
    )
    columns = (f"Test {FIRST}", "Trees of McRank", "Trees of LambdaMART", "Ratio")
    leaves, rate = OF_FIGURE["n_leaves"], OF_FIGURE["learning_rate"]
    title = f"{trial.simulator}: trees of {leaves} leaves, at rate {rate}, for the same accuracy"
    return Table(title, columns, rows)


def _panel(trial: Trial, curves: Mapping[str, Line]) -> Panel:
    title = f"{trial.simulator} (as {trial.role})"
    return Panel(title, "Trees", f"Test {FIRST}", tuple(curves.values()))


def _note(trial: Trial, found: Mapping[str, Evaluation]) -> str:
    """Say in which order the rankers come, and which of neighbours differ significantly."""
    order = sorted(METHODS, key=lambda name: -found[name].mean[FIRST])
    text = order[0]
    for better, worse in pairwise(order):
        p = p_values(found[better], found[worse])[FIRST]
        text += f"{' > ' if p <= LEVEL else ' ~ '}{worse}"
    return (
        f"{trial.simulator}, {FIRST} on test data: {text}, where > is significant at {LEVEL} and ~ "
        "is not."
    )


def _trees_note(
    trial: Trial, curves: Mapping[str, Line], needed: Sequence[tuple[float, int | None, int]]
) -> str:
    level, mine, other = needed[-1]
    fewest = "no number of trees" if mine is None else f"{mine:,}"
    last = ", ".join(f"{name} {line.y[-1]:.4f}" for name, line in curves.items())
    return (
        f"{trial.simulator}: for McRank's best test {FIRST} of {level:.4f}, reached with {other:,} "
        f"trees, LambdaMART needs {fewest}; after all {trial.n_trees:,}: {last}."
    )


def _numbers(found: Mapping[str, Evaluation], curves: Mapping[str, Line]) -> dict[str, Any]:
    return {
        "test": {name: numbers(one) for name, one in found.items()},
        "pairs": {
            f"{a} - {b}": {
                "difference": differences(found[a], found[b]),
                "p_value": p_values(found[a], found[b]),
            }
            for a, b in combinations(METHODS, 2)
        },
        "curves": {
            name: {"trees": list(line.x), FIRST: list(line.y)} for name, line in curves.items()
        },
    }
