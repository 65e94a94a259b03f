"""Objectives, Table 1 and Figure 2: judgements first, clicks second.

The paper claims (Sec. 6.1) that with clicks as a second tier CNDCG rises significantly, "by as much
as 3-5 points", at all depths (in its Table 1 by 2.78 to 4.99), while NDCG stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from rankinite.core.figures import Line, Panel
from rankinite.data.ranking_data import RankingData
from rankinite.evaluation.evaluate import Evaluation
from rankinite.evaluation.tables import Summary, Table
from rankinite.measures.definitions import CNDCG, NDCG
from rankinite.measures.tiers import TieredMeasure
from rankinite.objectives.tiers import ALL_PAIRS, Tiered
from rankinite.papers.setting import (
    DEPTHS,
    LEVEL,
    TOP,
    TREES_OF_OBJECTIVES,
    Boosting,
    Setting,
    at_depths,
    depths_phrase,
    evaluated,
    gains,
    points,
    size_of_objectives,
)
from rankinite.rankers.diagnostic_curves import AGREEMENT
from rankinite.rankers.diagnostics import Diagnostics
from rankinite.rankers.lambdamart import LambdaMART

QUERIES = {"train": 4_000, "valid": 1_500, "test": 4_000}  # a 27th of the paper's
TREES = TREES_OF_OBJECTIVES
WEIGHTS = (0.01, 0.1, 0.2, 0.3, 0.4, 0.5)
# About the standard error of a difference on this many validation queries.
TOLERANCE = 0.003
# The sources of clicks, and the paper's gains of CNDCG at 1, 3 and 10 (Table 1), in points.
SOURCES = {"clicks": (4.57, 3.63, 2.78), "similar_clicks": (4.99, 4.10, 3.54)}


class Tested(NamedTuple):
    """Rankers on the test set, trained on judgements alone, on both, and on clicks alone."""

    judged: Evaluation
    both: Evaluation
    clicked: Evaluation


@dataclass(frozen=True)
class SourceResult:
    """Rankers trained with one source of clicks.

    Attributes
    ----------
    source
        Name of the source.
    baseline
        The ranker trained on judgements alone.
    rankers
        Rankers trained on both, by the weight of clicks.
    chosen
        The best weight on the validation set.
    tested
        Evaluations on the test set.
    """

    source: str
    baseline: LambdaMART
    rankers: Mapping[float, LambdaMART]
    chosen: float
    tested: Tested


def graded(setting: Setting) -> Summary:
    """Train with and without clicks as a second tier, for two sources of clicks."""
    n_fits = 1 + len(SOURCES) * (len(WEIGHTS) + 1)
    with setting.progress.start("boosting", n_fits * TREES["n_trees"], "trees") as bar:
        sets = setting.parts("clicks", QUERIES)
        boosting = Boosting(setting, sets, bar)
        diagnostics = Diagnostics(top=TOP)
        # Judgements alone are the same for both sources. Clicks take part with weight 0, for the
        # diagnostics to compare their lambdas with those of judgements (Figure 2).
        baseline = _fit_graded(boosting, "clicks", 0.0, diagnostics)
        results = [_train_source(boosting, source, baseline) for source in SOURCES]
    tables = (_table(results, sets), *(_sweep(result, sets["valid"]) for result in results))
    notes = (*(_note(result) for result in results), _size_note(sets))
    figures = {"graded": _figure(results, diagnostics)}
    return Summary("graded", tables, notes, figures, _values(results, diagnostics))


def tiers(source: str) -> TieredMeasure:
    """Return the tiered measure: judgements first, this source of clicks second."""
    return TieredMeasure((NDCG(depth=TOP), CNDCG(depth=TOP, source=source)), TOLERANCE)


def _fit_graded(
    boosting: Boosting, source: str, weight: float, diagnostics: Diagnostics | None = None
) -> LambdaMART:
    """Train with a weight of clicks; at weight 0 the best round is chosen by NDCG alone."""
    measure = tiers(source)
    valid_measure = measure if weight else measure.tiers[0]
    objective = Tiered(measure, weights=weight)
    return boosting.fit(
        measure=objective, valid_measure=valid_measure, diagnostics=diagnostics, **TREES
    )


def _train_source(boosting: Boosting, source: str, baseline: LambdaMART) -> SourceResult:
    rankers = {weight: _fit_graded(boosting, source, weight) for weight in WEIGHTS}
    measure = tiers(source)
    values = {weight: _tier_values(model, measure) for weight, model in rankers.items()}
    chosen = WEIGHTS[measure.best(values.values())]
    clicked = boosting.fit(measure=CNDCG(source=source), valid_measure=measure.tiers[1], **TREES)
    measures = [*at_depths("NDCG"), *at_depths("CNDCG", source)]
    models = (baseline, rankers[chosen], clicked)
    tested = Tested(*(evaluated(model, boosting.sets["test"], measures) for model in models))
    return SourceResult(source, baseline, rankers, chosen, tested)


def _tier_values(model: LambdaMART, measure: TieredMeasure) -> list[float]:
    """Return the values of both tiers on the validation set, at the best round."""
    curves = model.history_["valid"]
    return [curves[str(tier)][model.n_trees_ - 1] for tier in measure.tiers]


def _table(results: list[SourceResult], sets: Mapping[str, RankingData]) -> Table:
    rows = []
    for result in results:
        judged, both, clicked = result.tested
        for measures in (at_depths("NDCG"), at_depths("CNDCG", result.source)):
            name = measures[0].replace("@1", "")
            rows.append((f"{name}, judgements alone", *points(judged, measures)))
            second = f"{name}, then {result.source}, w = {result.chosen:g}"
            rows.append((second, *points(both, measures, judged)))
            rows.append((f"{name}, {result.source} alone", *points(clicked, measures, judged)))
    title = (
        f"LambdaMART with and without clicks on {sets['test'].n_queries:,} test queries, in points"
    )
    return Table(title, ("Measure and ranker", *(f"@{d}" for d in DEPTHS)), tuple(rows))


def _sweep(result: SourceResult, valid: RankingData) -> Table:
    """Return both tiers on the validation set, by the weight of clicks."""
    measure = tiers(result.source)
    means = evaluated(result.baseline, valid, [str(tier) for tier in measure.tiers]).mean
    rows = [("0", *(f"{100 * mean:.2f}" for mean in means.values()), str(result.baseline.n_trees_))]
    for weight, model in result.rankers.items():
        values = (f"{100 * value:.2f}" for value in _tier_values(model, measure))
        mark = ", chosen" if weight == result.chosen else ""
        rows.append((f"{weight:g}{mark}", *values, str(model.n_trees_)))
    columns = ("Weight of clicks", *(str(tier) for tier in measure.tiers), "Trees")
    return Table(f"{result.source}: {valid.n_queries:,} validation queries", columns, tuple(rows))


def _note(result: SourceResult) -> str:
    """Return what the second tier gained and the first lost, as text."""
    parts = [
        f"{measures[0].replace('@1', '')} changes by "
        + depths_phrase(gains(result.tested.both, result.tested.judged, measures).values())
        for measures in (at_depths("CNDCG", result.source), at_depths("NDCG"))
    ]
    paper = SOURCES[result.source]
    clicked = gains(result.tested.clicked, result.tested.judged, at_depths("CNDCG", result.source))
    alone = depths_phrase(clicked.values())
    return (
        f"{result.source}: with clicks as the second tier, at the weight that validation chose, "
        f"test {' and '.join(parts)}. Trained for CNDCG alone it changes by {alone}: about so much "
        f"is there to learn from these clicks. The paper's CNDCG gains {paper[0]:.2f} at "
        f"1, {paper[1]:.2f} at 3 and {paper[2]:.2f} at 10, its NDCG between -0.15 and +0.22."
    )


def _size_note(sets: Mapping[str, RankingData]) -> str:
    return (
        f"{size_of_objectives(sets['train'], TREES)} Weight and number of trees are chosen on "
        f"validation data by NDCG@{TOP} and then CNDCG@{TOP}, with a tolerance of "
        f"{100 * TOLERANCE:g} points; p is of paired t-tests, not corrected for their number; "
        f"+ and - are significant at level {LEVEL:g}."
    )


def _figure(results: list[SourceResult], diagnostics: Diagnostics) -> tuple[Panel, ...]:
    gained = tuple(
        Line(
            measures[0].replace("NDCG@1", f"NDCG by {result.source}").split("[")[0],
            DEPTHS,
            [
                100 * gain.difference
                for gain in gains(result.tested.both, result.tested.judged, measures).values()
            ],
            marked=True,
        )
        for result in results
        for measures in (at_depths("NDCG"), at_depths("CNDCG", result.source))
    )
    agreed = tuple(
        Line(
            "all pairs" if name.endswith(ALL_PAIRS) else "tied pairs of clicked documents",
            diagnostics.rounds,
            curve,
        )
        for name, curve in diagnostics.curves.items()
        if name.startswith(AGREEMENT)
    )
    return (
        Panel("Gain by the second tier, in points", "Depth", "Gain", gained),
        Panel("Lambdas of clicks that agree with NDCG's", "Trees", "Share of documents", agreed),
    )


def _values(results: list[SourceResult], diagnostics: Diagnostics) -> dict[str, Any]:
    return {
        "trials": {
            result.source: {
                "chosen": result.chosen,
                "valid": {
                    str(weight): _tier_values(model, tiers(result.source))
                    for weight, model in result.rankers.items()
                },
                **{name: evaluation.mean for name, evaluation in result.tested._asdict().items()},
                "gain_and_p": gains(
                    result.tested.both, result.tested.judged, list(result.tested.judged.mean)
                ),
            }
            for result in results
        },
        "diagnostics": {"rounds": diagnostics.rounds, **diagnostics.curves},
    }
