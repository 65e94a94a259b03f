"""Ensemble, Table 1: ensembles of six rankers, compared with their average.

The paper claims that ensembles that learn from labels have "no clear advantage over simple
averaging" (Sec. 4.3); its differences to the average are at most 0.002 (Table 1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rankinite.core.types import Floats
from rankinite.data.augment import augment
from rankinite.data.concat import concat
from rankinite.data.ranking_data import RankingData
from rankinite.ensembles.average import Average
from rankinite.ensembles.best_mix import BestMix
from rankinite.ensembles.combine import HIDDEN
from rankinite.ensembles.stacked import Stacked
from rankinite.evaluation.evaluate import Evaluation, evaluate
from rankinite.evaluation.tables import Summary, Table
from rankinite.papers.setting import LEVEL, Gain, Setting, count_significant, gains, with_error
from rankinite.rankers.lambdamart import LambdaMART
from rankinite.rankers.parameters import PAPER

MEASURES = ("ERR", "NDCG@10")
TARGETS = ("ERR", "NDCG")
QUERIES = 5_000
VALID_QUERIES = 300
# All trees are grown, as in the paper: ERR rises so unsteadily that patience would end it too soon.
TREES: Mapping[str, Any] = {
    "preset": PAPER,
    "n_trees": 300,
    "n_leaves": 20,
    "learning_rate": 0.1,
    "patience": None,
}
HIDDEN_UNITS = 25  # of the nets among the members, the best of the paper's sweep (Sec. 4.2)
EPOCHS = 60
STACKED_EPOCHS = 100
# Tree 1 first mixes rankers that differ in their measure alone, Tree 2 the least similar ones.
TREE_1, TREE_2 = "(((1 3)(2 4))(5 6))", "(((4 5)(1 6))(2 3))"
ALL = "all 6, average"
# ERR and NDCG in the paper's table.
OF_PAPER = {
    "1. LambdaMART for ERR": (0.455, 0.774),
    "2. LambdaMART for ERR, Aug70": (0.456, 0.781),
    "3. LambdaMART for NDCG": (0.455, 0.778),
    "4. LambdaMART for NDCG, Aug70": (0.457, 0.784),
    "5. LambdaRank for ERR": (0.447, 0.749),
    "6. LambdaRank for NDCG": (0.447, 0.757),
    ALL: (0.459, 0.783),
    "all 6, Tree 1 of best mixes": (0.458, 0.784),
    "all 6, Tree 2 of best mixes": (0.458, 0.785),
    "all 6, linear net for NDCG": (0.457, 0.785),
    "all 6, linear net for ERR": (0.457, 0.785),
    "all 6, two-layer net for NDCG": (0.458, 0.785),
    "all 6, two-layer net for ERR": (0.458, 0.785),
    "2 and 4, average": (0.457, 0.785),
    "1 to 4, average": (0.458, 0.784),
}
N_MEMBERS = 6  # the first rows of the table


def combiners(setting: Setting) -> Summary:
    """Combine six rankers in nine ways, and compare each with the average of all.

    As in the paper, queries are split into ten parts: rankers are trained on the first six,
    ensembles are fitted to the next two and tested on the last two.
    """
    train, fitting, test = _parts(setting)
    with setting.progress.start("rankers", len(OF_PAPER), "rankers") as bar:
        scores: list[tuple[Floats, Floats]] = []
        evaluations = {}
        for model in _members(setting, train):
            # Combinations need nothing but scores: members are neither kept nor asked again.
            scores.append((model.predict(fitting), model.predict(test)))
            name = list(OF_PAPER)[len(scores) - 1]
            evaluations[name] = evaluate(scores[-1][1], test, MEASURES)
            bar.advance(1)
        for name, members, ensemble in _ensembles(setting):
            fitting_scores, test_scores = (
                {str(k): scores[k - 1][part] for k in members} for part in range(2)
            )
            ensemble.fit(fitting, member_scores=fitting_scores)
            combined = ensemble.predict(test, member_scores=test_scores)
            evaluations[name] = evaluate(combined, test, MEASURES)
            bar.advance(1)
    compared = {name: gains(e, evaluations[ALL], MEASURES) for name, e in evaluations.items()}
    notes = (*_notes(compared), _paper_note(), _size_note(setting, train, fitting))
    values = {
        name: {
            m: {"mean": evaluation.mean[m], "gain": gain.difference, "p_value": gain.p}
            for m, gain in compared[name].items()
        }
        for name, evaluation in evaluations.items()
    }
    return Summary("combiners", (_table(evaluations, compared, test),), notes, {}, values)


def _parts(setting: Setting) -> tuple[RankingData, RankingData, RankingData]:
    """Return the parts 01 to 06, 07 and 08, and 09 and 10 of ten."""
    parts = setting.challenge(QUERIES, "train").split(10, seed=setting.seed)
    return concat(parts[:6]), concat(parts[6:8]), concat(parts[8:])


def _members(setting: Setting, train: RankingData) -> Iterator[Any]:
    """Yield the six rankers of the table, fitted; the validation set chooses their best rounds."""
    valid = setting.challenge(VALID_QUERIES, "valid")
    samples = augment(train, 0.7, 5, seed=setting.seed)
    for target in TARGETS:
        for data in (train, samples):
            trees = LambdaMART(target, random_state=setting.seed, **TREES)
            yield trees.fit(data, valid=valid)
    for target in TARGETS:
        yield setting.net(target, HIDDEN_UNITS, n_epochs=EPOCHS).fit(train, valid=valid)


def _ensembles(setting: Setting) -> Iterator[tuple[str, Sequence[int], Any]]:
    """Yield name, members and unfitted ensemble of every row of the table below the members."""
    every = range(1, N_MEMBERS + 1)
    yield ALL, every, Average()
    for k, tree in enumerate((TREE_1, TREE_2), 1):
        yield f"all 6, Tree {k} of best mixes", every, BestMix(tree=tree, measure="NDCG@10")
    for layers, hidden in (("linear", 0), ("two-layer", HIDDEN)):
        for target in reversed(TARGETS):  # in the order of the paper's rows
            net = setting.net(target, hidden, n_epochs=STACKED_EPOCHS)
            yield f"all 6, {layers} net for {target}", every, Stacked(ranker=net)
    yield "2 and 4, average", (2, 4), Average()
    yield "1 to 4, average", (1, 2, 3, 4), Average()


def _table(
    evaluations: Mapping[str, Evaluation],
    compared: Mapping[str, Mapping[str, Gain]],
    test: RankingData,
) -> Table:
    rows = []
    for name, evaluation in evaluations.items():
        cells = [
            text
            for m, gain in compared[name].items()
            for text in (
                with_error(evaluation.per_query[m]),
                "" if name == ALL else f"{gain.p:.2g}{gain.sign}",
            )
        ]
        rows.append((name, *cells, *(f"{value:.3f}" for value in OF_PAPER[name])))
    measured = (column for m in MEASURES for column in (m, "p"))
    columns = ("Ranker", *measured, "ERR, paper", "NDCG, paper")
    title = f"Six rankers and ensembles of them on {test.n_queries:,} test queries"
    return Table(title, columns, tuple(rows))


def _notes(compared: Mapping[str, Mapping[str, Gain]]) -> list[str]:
    """Return how the learned ensembles compare with the average of all."""
    learned = _learned()
    notes = [
        "p is of the paired t-test against the average of all 6; + is significantly better at "
        f"level {LEVEL}, - significantly worse. Means are given with their standard errors."
    ]
    for m in MEASURES:
        by_name = {name: compared[name][m] for name in learned}
        better, worse = count_significant(by_name.values())
        best = max(learned, key=lambda name: by_name[name].difference)
        notes.append(
            f"{m}: of {len(learned)} ensembles that learn from labels, {better} are "
            f"significantly better than the average and {worse} worse; the best is {best}, "
            f"{by_name[best].difference:+.4f} (p = {by_name[best].p:.2g}, not corrected for "
            f"{len(learned)} tests)."
        )
    return notes


def _learned() -> list[str]:
    """Return the ensembles that learn from labels."""
    return [name for name in list(OF_PAPER)[N_MEMBERS:] if "average" not in name]


def _paper_note() -> str:
    ranges = []
    for k, target in enumerate(TARGETS):
        differences = [OF_PAPER[name][k] - OF_PAPER[ALL][k] for name in _learned()]
        ranges.append(f"{min(differences):+.3f} to {max(differences):+.3f} {target}")
    return (
        f"In the paper these differ from the average by {' and '.join(ranges)}, without a test; it "
        "calls that no clear advantage."
    )


def _size_note(setting: Setting, train: RankingData, fitting: RankingData) -> str:
    return (
        f"Rankers learned from {train.n_queries:,} queries, ensembles from "
        f"{fitting.n_queries:,}; the paper's from 11,966 and 3,989. LambdaMART has up to "
        f"{TREES['n_trees']} trees of {TREES['n_leaves']} leaves (the paper: 3,000 of 50 to 400), "
        f"nets {HIDDEN_UNITS} units and up to {EPOCHS} epochs; "
        f"{setting.queries(VALID_QUERIES):,} other queries choose how many are kept. "
        "Best mixes are for NDCG@10. The epochs of combining nets are chosen by the "
        "queries that they learn from."
    )
