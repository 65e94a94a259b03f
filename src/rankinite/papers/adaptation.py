"""LambdaSMART, Tables 2 to 4: rankers of background domains, adapted to one with few queries.

The paper claims (Sec. 5.5) that LambdaSMART, trees grown on top of a background ranker, is better
than that ranker, than one trained in the domain and than their interpolation: not for long queries
(Table 2), but for names (Table 3) and, from each of three languages, for Korean (Table 4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rankinite.core.figures import Line, Panel
from rankinite.core.progress import ProgressBar
from rankinite.data.ranking_data import RankingData
from rankinite.data.simulate.challenge import domain
from rankinite.data.simulate.markets import DOMAIN_QUERIES
from rankinite.ensembles.average import Interpolation
from rankinite.evaluation.evaluate import Evaluation
from rankinite.evaluation.tables import Summary, Table
from rankinite.papers.setting import (
    FIRST,
    LEVEL,
    NDCG,
    Gain,
    Setting,
    curve_by_trees,
    curves_as_json,
    evaluate_ndcg,
    gain_texts,
    gains,
    gains_as_json,
    means_and_intervals,
    significant_phrase,
    with_error,
)
from rankinite.rankers.lambdamart import LambdaMART
from rankinite.rankers.lambdarank import LambdaRank
from rankinite.rankers.parameters import PAPER

# Evaluations of rankers, by number of training queries and name of the ranker.
Sizes = Mapping[int, Mapping[str, Evaluation]]

HIDDEN = 15
EPOCHS = 30
# As elsewhere in the papers, validation data choose the learning rate of nets.
RATES = (1e-4, 3e-4, 1e-3)
# The paper's (Sec. 5.5): every tree sees 70 % of the documents, as randomness is "crucial to the
# performance", and lambdas are not normalised. All trees are grown, and the validation set, too
# small for early stopping, chooses the best round.
TREES: Mapping[str, Any] = {
    "preset": PAPER,
    "n_trees": 500,
    "n_leaves": 20,
    "learning_rate": 0.1,
    "docs_per_tree": 0.7,
    "queries_per_tree": 1.0,
    "truncation": None,
    "normalise": "none",
    "patience": None,
}
# About the ratio of the paper, whose test sets of 318 to 372 queries (Sec. 5.1) are too small to
# see less than a point.
BACKGROUND = {"train": 4_000, "valid": 500}
TARGET = {"train": 800, "valid": 400, "test": 2_000}
# Smaller numbers of training queries of the target.
FEWER = (100, 200, 400)
IN_DOMAIN, INTERPOLATION, ALONE = "in-domain", "interpolation", "LambdaMART without a base"


@dataclass(frozen=True)
class Adaptation:
    """A target domain, and the backgrounds that rankers are adapted from.

    Attributes
    ----------
    table
        Table of the paper.
    target, backgrounds
        Domains of the simulator.
    paper
        Result of LambdaSMART in the paper.
    """

    table: str
    target: str
    backgrounds: tuple[str, ...]
    paper: str


ADAPTATIONS = (
    Adaptation("Table 2", "long", ("web",), "no significant gain"),
    Adaptation(
        "Table 3",
        "names",
        ("web",),
        "better than background, in-domain and interpolation by all three",
    ),
    Adaptation(
        "Table 4",
        "small",
        ("near", "middle", "far"),
        "from every background better than that, than in-domain and than interpolation",
    ),
)


@dataclass(frozen=True)
class Adapted:
    """Rankers of an adaptation on the target's test data.

    Attributes
    ----------
    evaluations
        Evaluations by the name of the ranker.
    smart
        The rankers that are LambdaSMART, and the background that each is adapted from.
    n_trees
        Number of trees of the boosted rankers.
    weights
        Weights of the interpolation, by ranker.
    curves
        The first measure by the number of trees.
    """

    evaluations: Mapping[str, Evaluation]
    smart: Mapping[str, str]
    n_trees: Mapping[str, int]
    weights: Mapping[str, float]
    curves: tuple[Line, ...]

    def baselines(self, name: str) -> list[str]:
        """Return the rankers that a LambdaSMART is compared with."""
        return [self.smart[name], IN_DOMAIN, INTERPOLATION, ALONE]


def adaptation(setting: Setting) -> Summary:
    """Adapt rankers to three domains, and compare them with what they are made of.

    There are nets for backgrounds and target; their interpolation, weighted by the target's
    validation set; LambdaSMART, which grows trees on a background net from the target's training
    data; and LambdaMART without a base, which is not in the paper and shows what trees do alone.
    """
    tables, notes, panels, by_size = [], [], [], []
    values: dict[str, Any] = {}
    nets: dict[str, LambdaRank] = {}
    with setting.progress.start("rankers", _n_rankers(setting), "rankers") as bar:
        for adaptation in ADAPTATIONS:
            for name in adaptation.backgrounds:
                if name not in nets:  # two targets share the web
                    parts = {p: _simulated(setting, name, n, p) for p, n in BACKGROUND.items()}
                    nets[name] = _net(setting, parts, bar)
            parts = {p: _simulated(setting, adaptation.target, n, p) for p, n in TARGET.items()}
            backgrounds = {name: nets[name] for name in adaptation.backgrounds}
            adapted = _adapted(setting, backgrounds, parts, bar)
            sizes = _sizes(setting, adaptation.backgrounds[0], nets, adapted, parts, bar)
            tables += [
                _table(adaptation, adapted, parts),
                _tests(adaptation, adapted),
                _sizes_table(adaptation, sizes),
            ]
            notes += _notes(adaptation, adapted)
            title = f"{adaptation.target}, adapted from {', '.join(adaptation.backgrounds)}"
            panels.append(Panel(title, "Trees", f"Test {FIRST}", adapted.curves))
            by_size.append(_sizes_panel(adaptation, sizes))
            values[adaptation.target] = _numbers(adapted, sizes)
    notes.append(
        "Validation data chose the rates of nets, their epochs, the weights of interpolations and "
        "how many trees are kept. Errors and p-values are over queries, of one training each."
    )
    figures = {"adaptation": tuple(panels), "adaptation-queries": tuple(by_size)}
    return Summary("adaptation", tuple(tables), tuple(notes), figures, values)


def _n_rankers(setting: Setting) -> int:
    """Return the number of rankers that are fitted in all."""
    backgrounds = {name for adaptation in ADAPTATIONS for name in adaptation.backgrounds}
    trees = sum(1 + len(adaptation.backgrounds) for adaptation in ADAPTATIONS)
    nets = len(RATES) * (len(backgrounds) + len(ADAPTATIONS))
    return nets + trees + len(ADAPTATIONS) * len(_fewer(setting)) * (len(RATES) + 2)


def _fewer(setting: Setting) -> list[int]:
    """Return the numbers of training queries that are tried besides all of them."""
    # At a small scale several become the least number of queries that a setting allows.
    numbers = {setting.queries(n) for n in FEWER}
    return sorted(numbers - {setting.queries(TARGET["train"])})


def _simulated(setting: Setting, name: str, n: int, part: str) -> RankingData:
    n_queries = min(setting.queries(n), DOMAIN_QUERIES[part])
    return domain(name, n_queries, part=part, seed=setting.seed)


def _net(setting: Setting, parts: Mapping[str, RankingData], bar: ProgressBar) -> LambdaRank:
    return setting.best_net("NDCG", HIDDEN, RATES, parts, bar, n_epochs=EPOCHS, valid_measure=FIRST)


def _trees(
    setting: Setting, base: LambdaRank | None, parts: Mapping[str, RankingData], bar: ProgressBar
) -> LambdaMART:
    model = LambdaMART("NDCG", base=base, valid_measure=FIRST, random_state=setting.seed, **TREES)
    model.fit(parts["train"], valid=parts["valid"])
    bar.advance(1)
    return model


def _adapted(
    setting: Setting,
    backgrounds: Mapping[str, LambdaRank],
    parts: Mapping[str, RankingData],
    bar: ProgressBar,
) -> Adapted:
    members: dict[str, LambdaRank] = {f"background {n}": net for n, net in backgrounds.items()}
    smart = {f"LambdaSMART from {n}": f"background {n}" for n in backgrounds}
    members[IN_DOMAIN] = _net(setting, parts, bar)
    mixed = Interpolation(members, measure=FIRST).fit(parts["valid"])
    bases = {**{name: members[base] for name, base in smart.items()}, ALONE: None}
    boosted = {name: _trees(setting, base, parts, bar) for name, base in bases.items()}
    test = parts["test"]
    models: dict[str, Any] = {**members, INTERPOLATION: mixed, **boosted}
    evaluations = {name: evaluate_ndcg(model, test) for name, model in models.items()}
    curves = tuple(
        # A LambdaSMART starts at its background, LambdaMART at nothing.
        curve_by_trees(name, model, test, start=evaluations.get(smart.get(name, "")))
        for name, model in boosted.items()
    )
    n_trees = {name: model.n_trees_ for name, model in boosted.items()}
    weights = dict(zip(members, map(float, mixed.weights_), strict=True))
    return Adapted(evaluations, smart, n_trees, weights, curves)


def _table(adaptation: Adaptation, adapted: Adapted, parts: Mapping[str, RankingData]) -> Table:
    rows = tuple(
        (
            name,
            *(with_error(evaluation.per_query[measure]) for measure in NDCG),
            f"{adapted.n_trees[name]:,}" if name in adapted.n_trees else "-",
        )
        for name, evaluation in adapted.evaluations.items()
    )
    title = (
        f"{adaptation.target} (as {adaptation.table}), {parts['train'].n_queries:,} training "
        "queries: test values ± standard error; the last ranker is not in the paper"
    )
    return Table(title, ("Ranker", *NDCG, "Trees"), rows)


def _tests(adaptation: Adaptation, adapted: Adapted) -> Table:
    rows = tuple(
        (name, baseline, *gain_texts(_gains(adapted, name, baseline).values()))
        for name in adapted.smart
        for baseline in adapted.baselines(name)
    )
    title = (
        f"{adaptation.target}: what LambdaSMART gains; * is significant at {LEVEL} by the paired "
        "t-test"
    )
    return Table(title, ("Ranker", "Against", *NDCG), rows)


def _gains(adapted: Adapted, name: str, baseline: str) -> dict[str, Gain]:
    return gains(adapted.evaluations[name], adapted.evaluations[baseline], NDCG)


def _notes(adaptation: Adaptation, adapted: Adapted) -> list[str]:
    notes = []
    for name in adapted.smart:
        results = "; ".join(
            f"against {baseline} {significant_phrase(_gains(adapted, name, baseline).values())}"
            for baseline in adapted.baselines(name)
        )
        notes.append(
            f"{adaptation.target}, {name}, significant of {len(NDCG)} measures: {results}. "
            f"In the paper's {adaptation.table}: {adaptation.paper}."
        )
    weights = ", ".join(f"{name} {weight:.3g}" for name, weight in adapted.weights.items())
    return [*notes, f"{adaptation.target}, weights of the interpolation: {weights}."]


def _sizes(
    setting: Setting,
    background: str,
    nets: Mapping[str, LambdaRank],
    adapted: Adapted,
    parts: Mapping[str, RankingData],
    bar: ProgressBar,
) -> Sizes:
    """Return the evaluations of rankers that learn from fewer of the target's training queries."""
    names = (f"background {background}", IN_DOMAIN, ALONE, f"LambdaSMART from {background}")
    test = parts["test"]
    sizes = {}
    for n in _fewer(setting):
        # The first queries, so that a larger set holds the smaller ones.
        fewer = {**parts, "train": parts["train"][:n]}
        models = (
            _net(setting, fewer, bar),
            _trees(setting, None, fewer, bar),
            _trees(setting, nets[background], fewer, bar),
        )
        learned = [evaluate_ndcg(model, test) for model in models]
        sizes[n] = dict(zip(names, (adapted.evaluations[names[0]], *learned), strict=True))
    sizes[parts["train"].n_queries] = {name: adapted.evaluations[name] for name in names}
    return sizes


def _sizes_table(adaptation: Adaptation, sizes: Sizes) -> Table:
    names = list(next(iter(sizes.values())))
    base, alone, smart = names[0], names[2], names[3]
    rows = tuple(
        (
            f"{n:,}",
            *(f"{evaluations[name].mean[FIRST]:.4f}" for name in names),
            *gain_texts(
                [
                    gains(evaluations[smart], evaluations[baseline], [FIRST])[FIRST]
                    for baseline in (base, alone)
                ]
            ),
        )
        for n, evaluations in sizes.items()
    )
    title = f"{adaptation.target}: test {FIRST} by the target's number of training queries"
    return Table(title, ("Queries", *names, "Against background", "Against no base"), rows)


def _sizes_panel(adaptation: Adaptation, sizes: Sizes) -> Panel:
    names = list(next(iter(sizes.values())))
    lines = tuple(
        Line(name, list(sizes), [e[name].mean[FIRST] for e in sizes.values()], marked=True)
        for name in names
    )
    title = f"{adaptation.target}, adapted from {adaptation.backgrounds[0]}"
    return Panel(title, "Training queries of the target", f"Test {FIRST}", lines)


def _numbers(adapted: Adapted, sizes: Sizes) -> dict[str, Any]:
    return {
        "test": {name: means_and_intervals(e) for name, e in adapted.evaluations.items()},
        "trees": dict(adapted.n_trees),
        "weights": dict(adapted.weights),
        "tests": {
            name: {
                baseline: gains_as_json(_gains(adapted, name, baseline))
                for baseline in adapted.baselines(name)
            }
            for name in adapted.smart
        },
        "sizes": {
            str(n): {name: means_and_intervals(e) for name, e in evaluations.items()}
            for n, evaluations in sizes.items()
        },
        "curves": curves_as_json(adapted.curves),
    }
