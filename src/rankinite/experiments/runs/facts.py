"""What is known of models besides their scores: learning curves, importances, seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rankinite.experiments.runs.bench import Bench
from rankinite.experiments.runs.plan import Member, Plan, all_needed
from rankinite.experiments.runs.results import Curve, MemberFacts
from rankinite.experiments.runs.units import Unit, seconds_of
from rankinite.experiments.runs.work import Fit
from rankinite.rankers.learner import Learner
from rankinite.rankers.tree_ranker import TreeRanker


def facts_of(plan: Plan, bench: Bench, members: Mapping[str, Member]) -> dict[str, MemberFacts]:
    """Return the facts of every model of a recipe.

    Parameters
    ----------
    plan, bench
        The units of the recipe, and where they are.
    members
        The models that were trained again on all training queries.
    """
    found = {}
    for name, model in plan.recipe.models.items():
        first = plan.member(name, plan.first)
        last = members.get(name, first)
        models = [bench.model(unit.key, {}) for unit in last.fits]
        seconds = 0.0
        if model.trained_as is None:
            seconds = _seconds(bench, [*first.fits, *(last.fits if last is not first else ())])
        curves = tuple(_curve(one) for one in models)
        found[name] = MemberFacts(curves, _importances(models), seconds)
    return found


def _seconds(bench: Bench, units: Sequence[Unit]) -> float:
    fits = [unit for unit in all_needed(units).values() if isinstance(unit.work, Fit)]
    return sum(seconds_of(bench.folder, unit) for unit in fits)


def _curve(model: Learner) -> Curve:
    """Return the curve of the measure that decided which round was kept."""
    measure = str(model._measures()[0])
    values = model.history_["valid"][measure]
    return Curve(measure, model.rounds, tuple(float(v) for v in values), model.kept_rounds_)


def _importances(models: Sequence[Learner]) -> dict[str, float]:
    """Return the mean share of every feature, the largest first; nothing for nets."""
    trees = [model for model in models if isinstance(model, TreeRanker)]
    if not trees:
        return {}
    shares = np.mean([model.feature_importances_ for model in trees], axis=0)
    order = np.argsort(-shares, kind="stable")
    return {trees[0].feature_names_[j]: float(shares[j]) for j in order}
