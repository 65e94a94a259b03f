"""Optimality, Tables 3 and 4 and Figure 5: training on the measure that is tested, or on others.

The paper claims (Sec. 7.2) that the number of effective pairs, those with a lambda, falls from NDCG
over NDCG@10 and MAP to MRR, and that for equally many it is best to train on the measure that is
tested (Figure 5); for equally many queries, training on NDCG gives the best NDCG@10 and MRR (Tables
3 and 4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rankinite.core.figures import Line, Panel
from rankinite.core.progress import ProgressBar
from rankinite.data.ranking_data import RankingData
from rankinite.evaluation.evaluate import Evaluation
from rankinite.evaluation.tables import Summary, Table
from rankinite.objectives.functional import effective_pairs
from rankinite.objectives.objective import Targets
from rankinite.objectives.pairwise import Lambdas
from rankinite.papers.setting import (
    MEASURES,
    Setting,
    evaluated,
    mean_and_p,
    p_value,
    short,
    with_error,
)
from rankinite.rankers.lambdarank import LambdaRank

HIDDEN = 10
EPOCHS = 30
# Queries of the tables; the paper has 10,000 and 22,000 of web data.
SMALLER, LARGER = 500, 1_100
# Figure 5 has artificial data of several sizes, so that measures can be compared at equally many
# pairs.
SIZES = (125, 250, 500, 1_000, 2_000)
TEST_QUERIES = 1_000
MRR = "MRR(relevant=2)"


@dataclass(frozen=True)
class Trained:
    """A trained net: its evaluation, and the pairs that it learned from.

    Attributes
    ----------
    evaluation
        The four measures on the test set.
    pairs
        Numbers of pairs with a lambda, before training and after it.
    """

    evaluation: Evaluation
    pairs: tuple[int, int]


# By size of the training set at scale 1, and training measure.
Nets = dict[tuple[int, str], Trained]


def matching(setting: Setting) -> Summary:
    """Train two-layer nets for each of four measures, and test each by all four."""
    web = {n: setting.challenge(n, "train") for n in (SMALLER, LARGER)}
    artificial = {n: setting.polynomials(n, "train") for n in _sizes(setting)}
    total = len(MEASURES) * (len(web) + len(artificial))
    with setting.progress.start("nets", total, "nets") as bar:
        web_nets = _nets(setting, setting.challenge, web, bar)
        artificial_nets = _nets(setting, setting.polynomials, artificial, bar)
    tables = [_table(n, web[n].n_queries, web_nets) for n in web]
    tables.append(_pairs_table(artificial, artificial_nets))
    notes = [_note(web[n].n_queries, n, web_nets) for n in web]
    notes.append(
        "Pairs of MRR are those of the paper's Eq. 11, whose swap raises it; the nets also learn "
        "from swaps that lower it. Errors and p-values are over queries, of one training each."
    )
    values = {
        "challenge": {str(web[n].n_queries): _numbers(n, web_nets) for n in web},
        "polynomials": {
            str(data.n_queries): _numbers(n, artificial_nets) for n, data in artificial.items()
        },
    }
    return Summary(
        "matching",
        tuple(tables),
        tuple(notes),
        {"matching": (_figure(list(artificial), artificial_nets),)},
        values,
    )


def _sizes(setting: Setting) -> list[int]:
    """Return the sizes that differ at this scale."""
    return [
        n for k, n in enumerate(SIZES) if setting.queries(n) not in map(setting.queries, SIZES[:k])
    ]


def _nets(
    setting: Setting,
    simulate: Callable[[int, str], RankingData],
    sets: Mapping[int, RankingData],
    bar: ProgressBar,
) -> Nets:
    """Train a net for every measure on every training set."""
    valid, test = (simulate(TEST_QUERIES, part) for part in ("valid", "test"))
    nets = {}
    for n, train in sets.items():
        for measure in MEASURES:
            model = setting.net(measure, HIDDEN, n_epochs=EPOCHS).fit(train, valid=valid)
            # Which pairs have a lambda depends on the ranking, for NDCG@10 and MRR.
            random = setting.random_net(measure, HIDDEN, train)
            pairs = _pairs(measure, random, train), _pairs(measure, model, train)
            nets[n, measure] = Trained(evaluated(model, test, MEASURES), pairs)
            bar.advance(1)
    return nets


def _pairs(measure: str, model: LambdaRank, data: RankingData) -> int:
    """Count the pairs with a lambda; for MRR by Eq. 11, as in the paper."""
    objective = Lambdas(measure, gain_only=measure.startswith("MRR"))
    targets = Targets({None: data.y}, data.offsets, data.top_grade, seed=0)
    return effective_pairs(objective.prepare(targets), model.predict(data))


def _table(n: int, n_queries: int, nets: Nets) -> Table:
    """Return Table 3 or 4: every net by every measure, tested against that trained on it."""
    rows = []
    for target in MEASURES:
        matched = nets[n, target].evaluation.per_query[target]
        best = max(np.nanmean(nets[n, m].evaluation.per_query[target]) for m in MEASURES)
        for trained in MEASURES:
            values = nets[n, trained].evaluation.per_query[target]
            p = "-" if trained == target else f"{p_value(values, matched):.2g}"
            star = " *" if np.nanmean(values) == best else ""
            rows.append((short(target), short(trained), with_error(values) + star, p))
    title = f"Test measures after training on {n_queries:,} queries; * is the best of its target"
    return Table(title, ("Test", "Train", "Test value ± SE", "p against matching"), tuple(rows))


def _pairs_table(data: Mapping[int, RankingData], nets: Nets) -> Table:
    rows = tuple(
        (
            f"{data[n].n_queries:,}",
            short(trained),
            f"{nets[n, trained].pairs[0]:,}",
            f"{nets[n, trained].pairs[1]:,}",
            with_error(nets[n, trained].evaluation.per_query[MRR]),
        )
        for n in data
        for trained in MEASURES
    )
    columns = ("Queries", "Train", "Pairs, first epoch", "Pairs, trained", "Test MRR ± SE")
    return Table("Effective pairs an epoch, and MRR on test data (artificial data)", columns, rows)


def _figure(numbers: Sequence[int], nets: Nets) -> Panel:
    lines = tuple(
        Line(
            f"trained for {short(m)}",
            [nets[n, m].pairs[0] for n in numbers],
            [float(np.nanmean(nets[n, m].evaluation.per_query[MRR])) for n in numbers],
            marked=True,
        )
        for m in MEASURES
    )
    return Panel("Artificial data", "Effective pairs an epoch", "Test MRR", lines, log_x=True)


def _note(n_queries: int, n: int, nets: Nets) -> str:
    won = []
    for target in MEASURES:
        means = {m: np.nanmean(nets[n, m].evaluation.per_query[target]) for m in MEASURES}
        won.append(f"{short(target)} by training on {short(max(means, key=means.__getitem__))}")
    return f"{n_queries:,} queries: best are {', '.join(won)}."


def _numbers(n: int, nets: Nets) -> dict[str, object]:
    return {
        short(trained): {
            "pairs": list(nets[n, trained].pairs),
            "test": {
                short(target): mean_and_p(
                    nets[n, trained].evaluation.per_query[target],
                    nets[n, target].evaluation.per_query[target],
                )
                for target in MEASURES
            },
        }
        for trained in MEASURES
    }
