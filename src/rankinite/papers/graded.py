"""Objectives, Table 1 and Figure 2: judgements first, clicks second."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from rankinite.core.progress import ProgressBar
from rankinite.data.ranking_data import RankingData
from rankinite.evaluation.evaluate import Evaluation, evaluate
from rankinite.evaluation.summary import Line, Panel, Sheet, Summary
from rankinite.measures.measure import CNDCG, NDCG
from rankinite.measures.tiers import TieredMeasure
from rankinite.objectives.tiers import ALL_PAIRS, Tiered
from rankinite.papers.setting import (
    DEPTHS,
    LEVEL,
    TOP,
    Setting,
    at_depths,
    counting,
    gains,
    row_of,
    told,
)
from rankinite.rankers.diagnostics import AGREEMENT, Diagnostics
from rankinite.rankers.lambdamart import LambdaMART

# A 27th of the paper's queries, and a quarter of its trees, which have 30 leaves there.
QUERIES = {"train": 4_000, "valid": 1_500, "test": 4_000}
TREES: Mapping[str, Any] = {
    "n_trees": 250,
    "n_leaves": 15,
    "truncation": None,
    "patience": None,
}
WEIGHTS = (0.01, 0.1, 0.2, 0.3, 0.4, 0.5)
# About the standard error of a difference on this many validation queries.
TOLERANCE = 0.003
# The sources, and what the paper's CNDCG gains by them at ranks 1, 3 and 10, in points.
SOURCES = {"clicks": (4.57, 3.63, 2.78), "similar_clicks": (4.99, 4.10, 3.54)}


class Tested(NamedTuple):
    """Rankers on the test set: of judgements alone, of both, of clicks alone."""

    judged: Evaluation
    both: Evaluation
    clicked: Evaluation


@dataclass(frozen=True)
class Trial:
    """What came of one label source.

    Attributes
    ----------
    source
        Its name.
    baseline
        The ranker that follows judgements alone.
    rankers
        Those that follow clicks, too, by the weight of clicks.
    chosen
        The weight that is best on the validation set.
    tested
        The baseline on the test set, the chosen one, and one that follows clicks alone.
    """

    source: str
    baseline: LambdaMART
    rankers: Mapping[float, LambdaMART]
    chosen: float
    tested: Tested


def graded(setting: Setting) -> Summary:
    """Train with and without clicks as a second tier, for two sources of clicks.

    The paper: CNDCG rises by 3 to 5 points at all depths, and NDCG stays as it is.
    """
    n_fits = 1 + len(SOURCES) * (len(WEIGHTS) + 1)
    with setting.progress.start("boosting", n_fits * TREES["n_trees"], "trees") as bar:
        sets = {part: setting.clicks(n, part) for part, n in QUERIES.items()}
        diagnostics = Diagnostics(top=TOP)
        baseline = _fit_graded(setting, "clicks", 0.0, sets, bar, diagnostics)
        trials = [_trial(setting, source, baseline, sets, bar) for source in SOURCES]
    sheets = (_table(trials, sets), *(_sweep(trial, sets["valid"]) for trial in trials))
    notes = (*(_note(trial) for trial in trials), _size_note(sets))
    figures = {"graded": _figure(trials, diagnostics)}
    return Summary("graded", sheets, notes, figures, _values(trials, diagnostics))


def tiers(source: str) -> TieredMeasure:
    """Return the measure: judgements first, this source second."""
    return TieredMeasure((NDCG(depth=TOP), CNDCG(depth=TOP, source=source)), TOLERANCE)


def _fit(
    setting: Setting,
    measure: Any,
    judge: Any,
    sets: Mapping[str, RankingData],
    bar: ProgressBar,
    diagnostics: Diagnostics | None = None,
) -> LambdaMART:
    model = LambdaMART(measure, valid_measure=judge, random_state=setting.seed, **TREES)
    return model.fit(
        sets["train"], valid=sets["valid"], callbacks=[counting(bar)], diagnostics=diagnostics
    )


def _fit_graded(
    setting: Setting,
    source: str,
    weight: float,
    sets: Mapping[str, RankingData],
    bar: ProgressBar,
    diagnostics: Diagnostics | None = None,
) -> LambdaMART:
    """Train with a weight of clicks; without any, the number of trees is chosen by NDCG alone."""
    measure = tiers(source)
    judge = measure if weight else measure.tiers[0]
    return _fit(setting, Tiered(measure, weights=weight), judge, sets, bar, diagnostics)


def _trial(
    setting: Setting,
    source: str,
    baseline: LambdaMART,
    sets: Mapping[str, RankingData],
    bar: ProgressBar,
) -> Trial:
    rankers = {weight: _fit_graded(setting, source, weight, sets, bar) for weight in WEIGHTS}
    measure = tiers(source)
    found = {weight: _tier_values(model, measure) for weight, model in rankers.items()}
    chosen = WEIGHTS[measure.best(found.values())]
    clicked = _fit(setting, CNDCG(source=source), measure.tiers[1], sets, bar)
    measures = [*at_depths("NDCG"), *at_depths("CNDCG", source)]
    tested = Tested(
        *(
            evaluate(model.predict(sets["test"]), sets["test"], measures)
            for model in (baseline, rankers[chosen], clicked)
        )
    )
    return Trial(source, baseline, rankers, chosen, tested)


def _tier_values(model: LambdaMART, measure: TieredMeasure) -> list[float]:
    """Return the values of both tiers on the validation set, at the trees that are kept."""
    curves = model.history_["valid"]
    return [curves[str(tier)][model.n_trees_ - 1] for tier in measure.tiers]


def _table(trials: list[Trial], sets: Mapping[str, RankingData]) -> Sheet:
    rows = []
    for trial in trials:
        judged, both, clicked = trial.tested
        for measures in (at_depths("NDCG"), at_depths("CNDCG", trial.source)):
            name = measures[0].replace("@1", "")
            rows.append((f"{name}, judgements alone", *row_of(judged, measures)))
            second = f"{name}, then {trial.source}, w = {trial.chosen:g}"
            rows.append((second, *row_of(both, measures, judged)))
            rows.append((f"{name}, {trial.source} alone", *row_of(clicked, measures, judged)))
    title = (
        f"LambdaMART with and without clicks on {sets['test'].n_queries:,} test queries, in points"
    )
    return Sheet(title, ("Measure and ranker", *(f"@{d}" for d in DEPTHS)), tuple(rows))


def _sweep(trial: Trial, valid: RankingData) -> Sheet:
    """Return what each weight comes to on the validation set."""
    measure = tiers(trial.source)
    scores = trial.baseline.predict(valid)
    means = evaluate(scores, valid, [str(tier) for tier in measure.tiers]).mean
    rows = [("0", *(f"{100 * mean:.2f}" for mean in means.values()), str(trial.baseline.n_trees_))]
    for weight, model in trial.rankers.items():
        values = (f"{100 * value:.2f}" for value in _tier_values(model, measure))
        mark = ", chosen" if weight == trial.chosen else ""
        rows.append((f"{weight:g}{mark}", *values, str(model.n_trees_)))
    columns = ("Weight of clicks", *(str(tier) for tier in measure.tiers), "Trees")
    return Sheet(f"{trial.source}: {valid.n_queries:,} validation queries", columns, tuple(rows))


def _note(trial: Trial) -> str:
    """Say what the second tier gained and the first lost."""
    parts = [
        f"{measures[0].replace('@1', '')} changes by "
        + told(gains(trial.tested.both, trial.tested.judged, measures))
        for measures in (at_depths("CNDCG", trial.source), at_depths("NDCG"))
    ]
    paper = SOURCES[trial.source]
    own = at_depths("CNDCG", trial.source)
    alone = told(gains(trial.tested.clicked, trial.tested.judged, own))
    return (
        f"{trial.source}: with clicks as the second tier, at the weight that validation chose, "
        f"test {' and '.join(parts)}. Trained for CNDCG alone it changes by {alone}: about so much "
        f"is there to learn from these clicks. The paper's CNDCG gains {paper[0]:.2f} at "
        f"1, {paper[1]:.2f} at 3 and {paper[2]:.2f} at 10, its NDCG between -0.12 and +0.22."
    )


def _size_note(sets: Mapping[str, RankingData]) -> str:
    return (
        f"Rankers learned from {sets['train'].n_queries:,} queries (the paper: 108,000), with "
        f"{TREES['n_trees']} trees of {TREES['n_leaves']} leaves at most (1,000 of 30). Weight and "
        f"number of trees are chosen on validation data by NDCG@{TOP} and then CNDCG@{TOP}, with a "
        f"tolerance of {100 * TOLERANCE:g} points; p is of paired t-tests, not corrected for their "
        f"number; + and - are significant at level {LEVEL:g}."
    )


def _figure(trials: list[Trial], diagnostics: Diagnostics) -> tuple[Panel, ...]:
    gained = tuple(
        Line(
            measures[0].replace("NDCG@1", f"NDCG by {trial.source}").split("[")[0],
            DEPTHS,
            [100 * gain for gain, _ in gains(trial.tested.both, trial.tested.judged, measures)],
            marked=True,
        )
        for trial in trials
        for measures in (at_depths("NDCG"), at_depths("CNDCG", trial.source))
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


def _values(trials: list[Trial], diagnostics: Diagnostics) -> dict[str, Any]:
    return {
        "trials": {
            trial.source: {
                "chosen": trial.chosen,
                "valid": {
                    str(weight): _tier_values(model, tiers(trial.source))
                    for weight, model in trial.rankers.items()
                },
                **{name: found.mean for name, found in trial.tested._asdict().items()},
                "gain_and_p": {
                    m: gains(trial.tested.both, trial.tested.judged, [m])[0]
                    for m in trial.tested.judged.mean
                },
            }
            for trial in trials
        },
        "diagnostics": {"rounds": diagnostics.rounds, **diagnostics.curves},
    }
