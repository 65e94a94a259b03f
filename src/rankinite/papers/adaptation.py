"""LambdaSMART, Tables 2 to 4: rankers of background domains, adapted to one with few queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rankinite.core.figures import Line, Panel
from rankinite.core.progress import ProgressBar
from rankinite.data.ranking_data import RankingData
from rankinite.data.simulate.challenge import QUERIES, domain
from rankinite.ensembles.interpolation import Interpolation
from rankinite.evaluation.evaluate import Evaluation, evaluate
from rankinite.evaluation.summary import Summary
from rankinite.evaluation.tables import Table
from rankinite.papers.setting import (
    NDCG,
    Setting,
    compared,
    differences,
    evaluated,
    numbers,
    p_values,
    verdict,
    with_error,
)
from rankinite.rankers.lambdamart import LambdaMART
from rankinite.rankers.lambdarank import LambdaRank

# By number of training queries: evaluations by ranker.
Sizes = Mapping[int, Mapping[str, Evaluation]]

FIRST = NDCG[0]
HIDDEN = 15
EPOCHS = 30
# As elsewhere in the papers, validation data choose the rate of nets.
RATES = (1e-4, 3e-4, 1e-3)
# The paper's: every tree sees 70 % of the documents, and lambdas are as they come. All trees are
# grown, and the validation set says how many are kept: it is too small to stop by.
TREES: Mapping[str, Any] = {
    "n_trees": 500,
    "n_leaves": 20,
    "learning_rate": 0.1,
    "docs_per_tree": 0.7,
    "queries_per_tree": 1.0,
    "truncation": None,
    "normalise": "none",
    "patience": None,
}
TREES_A_POINT = 10
# About as much more as in the paper; its test sets are too small to see less than a point.
BACKGROUND = {"train": 4_000, "valid": 500}
TARGET = {"train": 800, "valid": 400, "test": 2_000}
# How many training queries the target has where fewer are tried.
FEWER = (100, 200, 400)
IN_DOMAIN, INTERPOLATION, ALONE = "in-domain", "interpolation", "LambdaMART without a base"


@dataclass(frozen=True)
class Adaptation:
    """A target domain, and where rankers are adapted from.

    Attributes
    ----------
    table
        The paper's.
    target, backgrounds
        Domains of the simulator.
    paper
        What the paper found of LambdaSMART.
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
    """What rankers of one adaptation are worth on the target's test data.

    Attributes
    ----------
    found
        By the name of the ranker.
    smart
        The rankers that are LambdaSMART, and the name of the background that each is adapted from.
    kept
        How many trees each has, if it has any.
    weights
        Of the interpolation, by ranker.
    curves
        The first measure by the number of trees.
    """

    found: Mapping[str, Evaluation]
    smart: Mapping[str, str]
    kept: Mapping[str, int]
    weights: Mapping[str, float]
    curves: tuple[Line, ...]

    def rivals(self, name: str) -> list[str]:
        """Return whom a LambdaSMART is tested against."""
        return [self.smart[name], IN_DOMAIN, INTERPOLATION, ALONE]


def adaptation(setting: Setting) -> Summary:
    """Adapt rankers to three domains, and test them against what they are made of.

    Nets are for background and target; their interpolation has weights by the target's validation
    set; LambdaSMART grows trees from a background net on the target's training data, LambdaMART
    without one. The last is not in the paper: it tells what trees alone are worth.
    """
    tables, notes, panels, by_size = [], [], [], []
    values: dict[str, Any] = {}
    nets: dict[str, LambdaRank] = {}
    with setting.progress.start("rankers", _n_rankers(setting), "rankers") as bar:
        for one in ADAPTATIONS:
            for name in one.backgrounds:
                if name not in nets:
                    parts = {p: _simulated(setting, name, n, p) for p, n in BACKGROUND.items()}
                    nets[name] = _net(setting, parts, bar)
            parts = {p: _simulated(setting, one.target, n, p) for p, n in TARGET.items()}
            adapted = _adapted(setting, {name: nets[name] for name in one.backgrounds}, parts, bar)
            sizes = _sizes(setting, one.backgrounds[0], nets, adapted, parts, bar)
            tables += [_table(one, adapted, parts), _tests(one, adapted), _sizes_table(one, sizes)]
            notes += _notes(one, adapted)
            title = f"{one.target}, adapted from {', '.join(one.backgrounds)}"
            panels.append(Panel(title, "Trees", f"Test {FIRST}", adapted.curves))
            by_size.append(_sizes_panel(one, sizes))
            values[one.target] = _numbers(adapted, sizes)
    notes.append(
        "Validation data chose the rates of nets, their epochs, the weights of interpolations and "
        "how many trees are kept. Errors and p-values are over queries, of one training each."
    )
    figures = {"adaptation": tuple(panels), "adaptation-queries": tuple(by_size)}
    return Summary("adaptation", tuple(tables), tuple(notes), figures, values)


def _n_rankers(setting: Setting) -> int:
    """Return how many rankers are fitted in all."""
    backgrounds = {name for one in ADAPTATIONS for name in one.backgrounds}
    trees = sum(1 + len(one.backgrounds) for one in ADAPTATIONS)
    nets = len(RATES) * (len(backgrounds) + len(ADAPTATIONS))
    return nets + trees + len(ADAPTATIONS) * len(_fewer(setting)) * (len(RATES) + 2)


def _fewer(setting: Setting) -> list[int]:
    """Return the numbers of training queries that are tried beside the whole."""
    numbers = {setting.queries(n) for n in FEWER}
    return sorted(numbers - {setting.queries(TARGET["train"])})


def _simulated(setting: Setting, name: str, n: int, part: str) -> RankingData:
    n_queries = min(setting.queries(n), QUERIES[part])
    return domain(name, n_queries, part=part, seed=setting.seed)


def _net(setting: Setting, parts: Mapping[str, RankingData], bar: ProgressBar) -> LambdaRank:
    """Return the best of several nets, by the validation set."""
    nets = []
    for rate in RATES:
        net = setting.net("NDCG", HIDDEN, learning_rate=rate, n_epochs=EPOCHS, valid_measure=FIRST)
        nets.append(net.fit(parts["train"], valid=parts["valid"]))
        bar.advance(1)
    return max(nets, key=lambda one: max(one.history_["valid"][FIRST]))


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
    boosted = {}
    for name, base in bases.items():
        boosted[name] = _trees(setting, base, parts, bar)
    test = parts["test"]
    models: dict[str, Any] = {**members, INTERPOLATION: mixed, **boosted}
    found = {name: evaluated(model.predict(test), test) for name, model in models.items()}
    curves = tuple(
        _curve(name, model, test, found.get(smart.get(name, ""))) for name, model in boosted.items()
    )
    kept = {name: model.n_trees_ for name, model in boosted.items()}
    weights = dict(zip(members, map(float, mixed.weights_), strict=True))
    return Adapted(found, smart, kept, weights, curves)


def _curve(name: str, model: LambdaMART, test: RankingData, start: Evaluation | None) -> Line:
    """Return the first measure by number of trees, from the background on if there is one."""
    values = [] if start is None else [start.mean[FIRST]]
    values += [
        evaluate(scores, test, FIRST, drop_single_label=True).mean[FIRST]
        for scores in model.staged_predict(test, every=TREES_A_POINT)
    ]
    steps = range(start is None, len(values) + (start is None))
    return Line(name, [min(TREES_A_POINT * k, model.n_trees_) for k in steps], values)


def _table(one: Adaptation, adapted: Adapted, parts: Mapping[str, RankingData]) -> Table:
    rows = tuple(
        (
            name,
            *(with_error(found.per_query[measure]) for measure in NDCG),
            f"{adapted.kept[name]:,}" if name in adapted.kept else "-",
        )
        for name, found in adapted.found.items()
    )
    title = (
        f"{one.target} (as {one.table}), {parts['train'].n_queries:,} training queries: test "
        "values ± standard error; the last ranker is not in the paper"
    )
    return Table(title, ("Ranker", *NDCG, "Trees"), rows)


def _tests(one: Adaptation, adapted: Adapted) -> Table:
    rows = tuple(
        (name, rival, *compared(adapted.found[name], adapted.found[rival]))
        for name in adapted.smart
        for rival in adapted.rivals(name)
    )
    title = f"{one.target}: what LambdaSMART gains; * is significant at 0.05 by the paired t-test"
    return Table(title, ("Ranker", "Against", *NDCG), rows)


def _notes(one: Adaptation, adapted: Adapted) -> list[str]:
    notes = []
    for name in adapted.smart:
        mine = adapted.found[name]
        told = "; ".join(
            f"against {rival} {verdict(differences(mine, other), p_values(mine, other))}"
            for rival in adapted.rivals(name)
            for other in [adapted.found[rival]]
        )
        notes.append(
            f"{one.target}, {name}, significant of {len(NDCG)} measures: {told}. In the paper's "
            f"{one.table}: {one.paper}."
        )
    weights = ", ".join(f"{name} {weight:.3g}" for name, weight in adapted.weights.items())
    return [*notes, f"{one.target}, weights of the interpolation: {weights}."]


def _sizes(
    setting: Setting,
    background: str,
    nets: Mapping[str, LambdaRank],
    adapted: Adapted,
    parts: Mapping[str, RankingData],
    bar: ProgressBar,
) -> Sizes:
    """Return what rankers are worth that learn from fewer of the target's training queries."""
    names = (f"background {background}", IN_DOMAIN, ALONE, f"LambdaSMART from {background}")
    test = parts["test"]
    found = {}
    for n in _fewer(setting):
        fewer = {**parts, "train": parts["train"][:n]}
        models = (
            _net(setting, fewer, bar),
            _trees(setting, None, fewer, bar),
            _trees(setting, nets[background], fewer, bar),
        )
        learned = [evaluated(model.predict(test), test) for model in models]
        found[n] = dict(zip(names, (adapted.found[names[0]], *learned), strict=True))
    found[parts["train"].n_queries] = {name: adapted.found[name] for name in names}
    return found


def _sizes_table(one: Adaptation, sizes: Sizes) -> Table:
    names = list(next(iter(sizes.values())))
    base, alone, smart = names[0], names[2], names[3]
    rows = tuple(
        (
            f"{n:,}",
            *(f"{found[name].mean[FIRST]:.4f}" for name in names),
            compared(found[smart], found[base])[0],
            compared(found[smart], found[alone])[0],
        )
        for n, found in sizes.items()
    )
    title = f"{one.target}: test {FIRST} by the target's number of training queries"
    return Table(title, ("Queries", *names, "Against background", "Against no base"), rows)


def _sizes_panel(one: Adaptation, sizes: Sizes) -> Panel:
    names = list(next(iter(sizes.values())))
    lines = tuple(
        Line(name, list(sizes), [found[name].mean[FIRST] for found in sizes.values()], marked=True)
        for name in names
    )
    title = f"{one.target}, adapted from {one.backgrounds[0]}"
    return Panel(title, "Training queries of the target", f"Test {FIRST}", lines)


def _numbers(adapted: Adapted, sizes: Sizes) -> dict[str, Any]:
    return {
        "test": {name: numbers(found) for name, found in adapted.found.items()},
        "trees": dict(adapted.kept),
        "weights": dict(adapted.weights),
        "tests": {
            name: {
                rival: {
                    "difference": differences(adapted.found[name], adapted.found[rival]),
                    "p_value": p_values(adapted.found[name], adapted.found[rival]),
                }
                for rival in adapted.rivals(name)
            }
            for name in adapted.smart
        },
        "sizes": {
            str(n): {name: numbers(one) for name, one in found.items()}
            for n, found in sizes.items()
        },
        "curves": {
            line.label: {"trees": list(line.x), FIRST: list(line.y)} for line in adapted.curves
        },
    }
