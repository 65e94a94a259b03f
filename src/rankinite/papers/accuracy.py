"""LambdaSMART, Table 1 and Figure 2: LambdaMART, McRank and LambdaRank, also by number of trees.

The paper claims that both are better than LambdaRank; that LambdaMART is better than McRank on
artificial data (NDCG@10 87.9 against 83.7, Table 1) and about as good on Web-1 (69.3 against 69.7);
and that it needs far fewer trees for the same accuracy, on Web-1 about half as many (Sec. 5.4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from rankinite.core.figures import Line, Panel
from rankinite.core.format import p_exponent
from rankinite.core.progress import ProgressBar
from rankinite.data.ranking_data import RankingData
from rankinite.evaluation.evaluate import Evaluation
from rankinite.evaluation.tables import Summary, Table
from rankinite.papers.setting import (
    FIRST,
    LEVEL,
    NDCG,
    Setting,
    curve_by_trees,
    curves_as_json,
    evaluate_ndcg,
    gains,
    gains_as_json,
    means_and_intervals,
    with_interval,
)
from rankinite.rankers.lambdamart import LambdaMART
from rankinite.rankers.mcrank import McRank
from rankinite.rankers.parameters import PAPER
from rankinite.rankers.tree_ranker import TreeRanker

Parts = Mapping[str, RankingData]

METHODS = ("LambdaMART", "McRank", "LambdaRank")
# As in the paper, every tree sees all documents, and lambdas are not normalised.
WHOLE: Mapping[str, Any] = {"docs_per_tree": 1.0, "queries_per_tree": 1.0, "patience": None}
PLAIN: Mapping[str, Any] = {"preset": PAPER, "truncation": None, "normalise": "none"}
OF_MCRANK: Mapping[str, Any] = {"n_leaves": 10, "learning_rate": 0.05}  # Sec. 5.2
# Those that the paper chose for its Figure 2 (Sec. 5.4): with equally many leaves, the number of
# trees measures the time of scoring.
OF_FIGURE: Mapping[str, Any] = {"n_leaves": 20, "learning_rate": 0.15}
HIDDEN = 10
EPOCHS = 100
# The paper varies the learning rate of nets, and chooses it on validation data (Sec. 5.2).
RATES = (3e-4, 1e-3, 3e-3)
TREES_PER_ROUND = 5  # of McRank: one for each grade
# Where on McRank's curve the two are compared.
MARKS = (0.05, 0.1, 0.25, 0.5, 1.0)


@dataclass(frozen=True)
class Case:
    """A data set, and the size of the rankers that are trained on it.

    Attributes
    ----------
    simulator
        Simulator of the data.
    role
        Data of the paper that they stand for.
    queries
        Number of queries at scale 1, by part.
    n_leaves
        Number of leaves of LambdaMART's trees, in the table.
    n_rounds
        Number of rounds of the table's rankers at most; the paper has 1,000.
    n_trees
        Number of trees of the figure's rankers.
    """

    simulator: str
    role: str
    queries: Mapping[str, int]
    n_leaves: int
    n_rounds: int
    n_trees: int


CASES = (
    Case(
        simulator="polynomials",
        role="artificial",
        queries={"train": 2_000, "valid": 1_000, "test": 2_000},  # a fifth of the paper's
        n_leaves=10,
        n_rounds=1_000,
        n_trees=2_000,
    ),
    Case(
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
    total = len(CASES) * (4 + len(RATES))
    with setting.progress.start("rankers", total, "rankers") as bar:
        for case in CASES:
            parts = setting.parts(case.simulator, case.queries)
            models = _table_models(setting, case, parts, bar)
            evaluations = {n: evaluate_ndcg(model, parts["test"]) for n, model in models.items()}
            curves = _curves(setting, case, parts, bar)
            needed = _needed(curves)
            tables += [_table(case, models, evaluations, parts), _trees_table(case, needed)]
            notes += [_note(case, evaluations), _trees_note(case, curves, needed)]
            panels.append(_panel(case, curves))
            values[case.simulator] = _numbers(evaluations, curves)
    notes.append(
        "Validation data chose the rates of nets, their epochs and how many trees the rankers of "
        "the tables keep. Intervals and p-values are over queries, of one training each."
    )
    return Summary("accuracy", tuple(tables), tuple(notes), {"accuracy": tuple(panels)}, values)


def _table_models(setting: Setting, case: Case, parts: Parts, bar: ProgressBar) -> dict[str, Any]:
    """Return the rankers of the table, fitted."""
    seed: Mapping[str, Any] = {"random_state": setting.seed, "valid_measure": FIRST}
    trees: list[TreeRanker] = [
        LambdaMART("NDCG", n_trees=case.n_rounds, n_leaves=case.n_leaves, **WHOLE, **PLAIN, **seed),
        McRank(n_trees=case.n_rounds, **OF_MCRANK, **WHOLE, **seed),
    ]
    for model in trees:
        model.fit(parts["train"], valid=parts["valid"])
        bar.advance(1)
    net = setting.best_net("NDCG", HIDDEN, RATES, parts, bar, n_epochs=EPOCHS, valid_measure=FIRST)
    return dict(zip(METHODS, (*trees, net), strict=True))


def _curves(setting: Setting, case: Case, parts: Parts, bar: ProgressBar) -> dict[str, Line]:
    """Return the test NDCG@10 of LambdaMART and McRank by number of trees."""
    shared: Mapping[str, Any] = {**OF_FIGURE, **WHOLE, "random_state": setting.seed}
    n_rounds = max(1, case.n_trees // TREES_PER_ROUND)
    models = {
        1: LambdaMART("NDCG", n_trees=case.n_trees, **PLAIN, **shared),
        TREES_PER_ROUND: McRank(n_trees=n_rounds, **shared),
    }
    curves = {}
    for name, (trees_per_round, model) in zip(METHODS[:2], models.items(), strict=True):
        model.fit(parts["train"])
        bar.advance(1)
        curves[name] = curve_by_trees(name, model, parts["test"], trees_per_round)
    return curves


def _needed(curves: Mapping[str, Line]) -> list[tuple[float, int | None, int]]:
    """Return values that McRank reaches, and the trees that LambdaMART and McRank need for them."""
    mart, mcrank = (curves[name] for name in METHODS[:2])
    # The best so far: test curves fluctuate, and what counts is when a value is first reached.
    best = np.maximum.accumulate(mcrank.y)
    places = [max(0, round(mark * len(best)) - 1) for mark in MARKS]
    levels = sorted({float(best[place]) for place in places})
    return [(level, _first(mart, level), _first(mcrank, level) or 0) for level in levels]


def _first(line: Line, level: float) -> int | None:
    """Return the fewest trees that reach a value, if any number does."""
    reached = np.flatnonzero(np.asarray(line.y) >= level)
    return int(line.x[reached[0]]) if len(reached) else None


def _table(
    case: Case, models: Mapping[str, Any], evaluations: Mapping[str, Evaluation], parts: Parts
) -> Table:
    pairs = list(combinations(METHODS, 2))
    tests = {(a, b): gains(evaluations[a], evaluations[b], NDCG) for a, b in pairs}
    rows = [
        (
            measure,
            *(with_interval(evaluations[name].per_query[measure]) for name in METHODS),
            *(p_exponent(tests[pair][measure].p) for pair in pairs),
        )
        for measure in NDCG
    ]
    kept = (
        f"{models['LambdaMART'].n_trees_:,} trees",
        f"{TREES_PER_ROUND * models['McRank'].n_trees_:,} trees",
        f"rate {models['LambdaRank'].learning_rate:g}",
    )
    rows.append(("By validation", *kept, *[""] * len(pairs)))
    title = (
        f"{case.simulator} (as {case.role}), {parts['train'].n_queries:,} training queries, "
        f"up to {case.n_rounds:,} rounds: test values and half their 95 % confidence intervals; "
        "p of pairs"
    )
    columns = ("Measure", *METHODS, *(f"{_initials(a)} / {_initials(b)}" for a, b in pairs))
    return Table(title, columns, tuple(rows))


def _initials(name: str) -> str:
    return {"LambdaMART": "λM", "McRank": "Mc", "LambdaRank": "λR"}[name]


def _trees_table(case: Case, needed: Sequence[tuple[float, int | None, int]]) -> Table:
    rows = tuple(
        (
            f"{level:.4f}",
            f"{mcrank:,}",
            "never" if mart is None else f"{mart:,}",
            "-" if mart is None else f"{mcrank / mart:.1f}",
        )
        for level, mart, mcrank in needed
    )
    columns = (f"Test {FIRST}", "Trees of McRank", "Trees of LambdaMART", "Ratio")
    leaves, rate = OF_FIGURE["n_leaves"], OF_FIGURE["learning_rate"]
    title = f"{case.simulator}: trees of {leaves} leaves, at rate {rate}, for the same accuracy"
    return Table(title, columns, rows)


def _panel(case: Case, curves: Mapping[str, Line]) -> Panel:
    title = f"{case.simulator} (as {case.role})"
    return Panel(title, "Trees", f"Test {FIRST}", tuple(curves.values()))


def _note(case: Case, evaluations: Mapping[str, Evaluation]) -> str:
    """Return the order of the rankers, and which neighbours differ significantly."""
    order = sorted(METHODS, key=lambda name: -evaluations[name].mean[FIRST])
    text = order[0]
    for better, worse in pairwise(order):
        gain = gains(evaluations[better], evaluations[worse], [FIRST])[FIRST]
        text += f"{' > ' if gain.p <= LEVEL else ' ~ '}{worse}"
    return (
        f"{case.simulator}, {FIRST} on test data: {text}, where > is significant at {LEVEL} and ~ "
        "is not."
    )


def _trees_note(
    case: Case, curves: Mapping[str, Line], needed: Sequence[tuple[float, int | None, int]]
) -> str:
    level, mart, mcrank = needed[-1]
    fewest = "no number of trees" if mart is None else f"{mart:,}"
    last = ", ".join(f"{name} {line.y[-1]:.4f}" for name, line in curves.items())
    return (
        f"{case.simulator}: for McRank's best test {FIRST} of {level:.4f}, reached with {mcrank:,} "
        f"trees, LambdaMART needs {fewest}; after all {case.n_trees:,}: {last}."
    )


def _numbers(evaluations: Mapping[str, Evaluation], curves: Mapping[str, Line]) -> dict[str, Any]:
    return {
        "test": {name: means_and_intervals(e) for name, e in evaluations.items()},
        "pairs": {
            f"{a} - {b}": gains_as_json(gains(evaluations[a], evaluations[b], NDCG))
            for a, b in combinations(METHODS, 2)
        },
        "curves": curves_as_json(curves.values()),
    }
