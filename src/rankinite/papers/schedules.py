"""Objectives, Table 2 and Figures 3, 4 and 7: objectives that change during training.

The paper claims (Sec. 6.2) that gradient descent beats the Newton step, and a transition to the
sigmoid cost both of them, at all depths but 1 and 2; a transition to the sigmoid cost at 3 is
worse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from rankinite.core.figures import Line, Panel
from rankinite.data.ranking_data import RankingData
from rankinite.evaluation.evaluate import Evaluation
from rankinite.evaluation.tables import Summary, Table
from rankinite.objectives.constructions import SigmoidCost
from rankinite.objectives.transition import (
    ExponentialGrowth,
    LevellingGrowth,
    LinearGrowth,
    Transition,
)
from rankinite.papers.setting import (
    DEPTHS,
    FEWEST,
    LEVEL,
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
from rankinite.rankers.diagnostics import Diagnostics
from rankinite.rankers.lambdamart import LambdaMART
from rankinite.runs.training import diagnosed

QUERIES = {"train": 2_000, "valid": 1_500, "test": 4_000}  # a 54th of the paper's
TREES = TREES_OF_OBJECTIVES
VALID_MEASURE = "NDCG@3"
SHARES = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
RATES = (0.1, 0.2, 0.4)
STARTS = (0.1, 0.25, 0.5)
DRAWN = (1, 3, 10)

NEWTON, DESCENT = "Newton step", "gradient descent"
# Schedules of the weight, and the etas of the paper's sweep (Sec. 6.2); levelling is not in the
# paper, but looks more like its Figure 6 than the printed exponential, which is at 1 within some
# tens of rounds.
GROWTHS: Mapping[str, tuple[Callable[[float, float], Any], Sequence[float]]] = {
    "exponential": (ExponentialGrowth, (100.0, 250.0)),
    "linear": (LinearGrowth, (0.1, 0.01, 0.001)),
    "levelling": (LevellingGrowth, (100.0, 250.0)),
}
LATER = {"S": SigmoidCost("NDCG"), "S@3": SigmoidCost("NDCG@3")}
TRANSITIONS = (
    ("S", "exponential"),
    ("S", "linear"),
    ("S", "levelling"),
    ("S@3", "exponential"),
    ("S@3", "linear"),
)
# NDCG at ranks 1, 3 and 10 in the paper's Table 2.
PAPER = {
    NEWTON: (62.27, 61.66, 65.17),
    DESCENT: (62.47, 61.94, 65.51),
    "L + S, exponential": (62.66, 62.15, 65.71),
    "L + S, linear": (62.56, 62.19, 65.68),
    "L + S@3, exponential": (62.23, 61.75, 65.03),
    "L + S@3, linear": (62.3, 61.82, 65.14),
}


@dataclass(frozen=True)
class Candidate:
    """Parameters, and the ranker that was trained with them."""

    parameters: Mapping[str, Any]
    ranker: LambdaMART

    @property
    def value(self) -> float:
        """The validation measure at the best round."""
        return self.ranker.history_["valid"][VALID_MEASURE][self.ranker.n_trees_ - 1]


def schedules(setting: Setting) -> Summary:
    """Compare the Newton step, gradient descent, and transitions to the sigmoid cost."""
    # For the progress bar: all that is tried on all data, the ranker with diagnostics, and the
    # chosen ones on smaller shares.
    n_shared = 2 + sum(later == "S" for later, _ in TRANSITIONS)
    n_sweep = 2 * len(RATES) + sum(1 for _ in _transitions(RATES[0]))
    n_sweep += len(TRANSITIONS) * (len(RATES) - 1)
    n_fits = n_sweep + 1 + n_shared * (len(SHARES) - 1)
    with setting.progress.start("boosting", n_fits * TREES["n_trees"], "trees") as bar:
        sets = setting.parts("challenge", QUERIES)
        boosting = Boosting(setting, sets, bar)
        chosen = _chosen(boosting)
        diagnostics = Diagnostics()
        # Diagnostics are recorded while training, so the chosen one is trained once more.
        diagnosed_ranker = _fit(boosting, chosen[NEWTON].parameters, diagnostics=diagnostics)
        tested = _tested(boosting, chosen)
    whole = {name: by_share[SHARES[-1]] for name, by_share in tested.items()}
    tables = (_table(whole, sets), _settings(chosen), _by_share(tested, sets["train"]))
    figures = {
        "schedules": _figure(tested),
        "schedules-diagnostics": tuple(diagnosed(diagnostics, diagnosed_ranker)),
    }
    notes = (*_notes(whole), _size_note(sets))
    return Summary("schedules", tables, notes, figures, _values(tested, chosen))


def _fit(boosting: Boosting, parameters: Mapping[str, Any], **options: Any) -> LambdaMART:
    return boosting.fit(**TREES, valid_measure=VALID_MEASURE, **parameters, **options)


def _best(boosting: Boosting, grid: Iterable[Mapping[str, Any]], *others: Candidate) -> Candidate:
    """Return the best candidate of a grid, and of others, by the validation measure."""
    candidates = [Candidate(point, _fit(boosting, point)) for point in grid]
    return max([*others, *candidates], key=lambda candidate: candidate.value)


def _chosen(boosting: Boosting) -> dict[str, Candidate]:
    """Return the best candidate of every method.

    A schedule is chosen at the best learning rate of gradient descent, and then its rate.
    """
    chosen = {
        name: _best(boosting, ({"step": step, "learning_rate": rate} for rate in RATES))
        for name, step in ((NEWTON, "newton"), (DESCENT, "gradient"))
    }
    # One after the other: all pairs of schedule and rate are nearly three times as many trainings.
    usual = chosen[DESCENT].parameters["learning_rate"]
    for name in dict.fromkeys(name for name, _ in _transitions(usual)):
        grid = (point for method, point in _transitions(usual) if method == name)
        first = _best(boosting, grid)
        rates = (rate for rate in RATES if rate != usual)
        others = ({**first.parameters, "learning_rate": rate} for rate in rates)
        chosen[name] = _best(boosting, others, first)
    return chosen


def _transitions(rate: float) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield method and parameters of all transitions that are tried."""
    for later, growth in TRANSITIONS:
        kind, etas = GROWTHS[growth]
        for start, eta in product(STARTS, etas):
            objective = Transition("NDCG", LATER[later], kind(start, eta))
            yield (
                f"L + {later}, {growth}",
                {"measure": objective, "step": "gradient", "learning_rate": rate},
            )


def _tested(
    boosting: Boosting, chosen: Mapping[str, Candidate]
) -> dict[str, dict[float, Evaluation]]:
    """Return the test evaluations of all methods, by the share of training data.

    Transitions to the cost at 3 are trained on all data only, as in the paper.
    """
    train, test = boosting.sets["train"], boosting.sets["test"]
    tested: dict[str, dict[float, Evaluation]] = {}
    for name, candidate in chosen.items():
        tested[name] = {}
        for share in SHARES if "S@3" not in name else SHARES[-1:]:
            model = candidate.ranker
            if share < 1.0:
                n_queries = max(FEWEST, round(train.n_queries * share))
                model = _fit(boosting, candidate.parameters, train=train[:n_queries])
            tested[name][share] = evaluated(model, test, at_depths("NDCG"))
    return tested


def _table(whole: Mapping[str, Evaluation], sets: Mapping[str, RankingData]) -> Table:
    rows = []
    for name, evaluation in whole.items():
        baseline = whole[NEWTON] if name == DESCENT else whole[DESCENT]
        row = points(evaluation, at_depths("NDCG"), None if name == NEWTON else baseline)
        rows.append((name, *row, "/".join(f"{value:g}" for value in PAPER.get(name, ()))))
    title = (
        f"NDCG on {sets['test'].n_queries:,} test queries, in points; + and - against gradient "
        "descent, and of gradient descent against the Newton step"
    )
    columns = ("Method", *(f"@{depth}" for depth in DEPTHS), "Paper @1/3/10")
    return Table(title, columns, tuple(rows))


def _settings(chosen: Mapping[str, Candidate]) -> Table:
    """Return the parameters that were chosen."""
    rows = tuple(
        (
            name,
            f"{candidate.parameters['learning_rate']:g}",
            str(getattr(candidate.parameters.get("measure"), "schedule", "")),
            str(candidate.ranker.n_trees_),
            f"{100 * candidate.value:.2f}",
        )
        for name, candidate in chosen.items()
    )
    title = "What was chosen on validation data"
    return Table(title, ("Method", "Learning rate", "Schedule", "Trees", VALID_MEASURE), rows)


def _by_share(tested: Mapping[str, Mapping[float, Evaluation]], train: RankingData) -> Table:
    """Return the validation measure on the test set, by the share of training data."""
    shared = {name: by_share for name, by_share in tested.items() if len(by_share) == len(SHARES)}
    rows = tuple(
        (
            name,
            *(
                points(
                    by_share[share],
                    [VALID_MEASURE],
                    None if name in (NEWTON, DESCENT) else tested[DESCENT][share],
                )[0]
                for share in SHARES
            ),
        )
        for name, by_share in shared.items()
    )
    title = f"{VALID_MEASURE} on the test set by the share of {train.n_queries:,} training queries"
    return Table(title, ("Method", *(f"{100 * share:g} %" for share in SHARES)), rows)


def _notes(whole: Mapping[str, Evaluation]) -> Iterator[str]:
    """Yield sentences on how methods compare."""
    pairs = [(DESCENT, NEWTON), *((name, DESCENT) for name in whole if name.startswith("L + S,"))]
    pairs += [
        (f"L + S@3, {growth}", f"L + S, {growth}") for later, growth in TRANSITIONS if later != "S"
    ]
    for name, baseline in pairs:
        by_depth = gains(whole[name], whole[baseline], at_depths("NDCG"))
        yield f"{name} against {baseline}: {depths_phrase(by_depth.values())}."


def _size_note(sets: Mapping[str, RankingData]) -> str:
    return (
        f"{size_of_objectives(sets['train'], TREES)} All is chosen by {VALID_MEASURE} on "
        f"{sets['valid'].n_queries:,} validation queries with all training data, the number of "
        "trees with each share. Levelling is not in the paper. p is of paired t-tests, not "
        f"corrected for their number; level {LEVEL:g}."
    )


def _figure(tested: Mapping[str, Mapping[float, Evaluation]]) -> tuple[Panel, ...]:
    shown = [name for name, by_share in tested.items() if len(by_share) == len(SHARES)]
    return tuple(
        Panel(
            f"NDCG@{depth} by share of training data",
            "Share",
            f"NDCG@{depth}",
            tuple(
                Line(
                    name,
                    SHARES,
                    [e.mean[f"NDCG@{depth}"] for e in tested[name].values()],
                    marked=True,
                )
                for name in shown
            ),
            log_x=True,
        )
        for depth in DRAWN
    )


def _values(
    tested: Mapping[str, Mapping[float, Evaluation]], chosen: Mapping[str, Candidate]
) -> dict[str, Any]:
    return {
        name: {
            "parameters": {key: str(value) for key, value in chosen[name].parameters.items()},
            "valid": chosen[name].value,
            "by_share": {f"{share:g}": evaluation.mean for share, evaluation in by_share.items()},
        }
        for name, by_share in tested.items()
    }
