"""What is known of models besides their scores: learning curves, importances, seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rankinite.experiments.runs.bench import Bench
from rankinite.experiments.runs.plan import Member, Plan
from rankinite.experiments.runs.results import Curve, MemberFacts
from rankinite.experiments.runs.units import Unit, read_done
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
    trainings = _trainings(plan, members)
    found = {}
    for name in plan.recipe.models:
        first = plan.member(name, plan.first)
        last = members.get(name, first)
        models = [bench.model(unit.key, {}) for unit in last.fits]
        seconds = sum(read_done(bench.folder, unit).seconds for unit in trainings[name].values())
        curves = tuple(_curve(one) for one in models)
        found[name] = MemberFacts(curves, _importances(models), seconds, name in members)
    return found


def _trainings(plan: Plan, members: Mapping[str, Member]) -> dict[str, dict[str, Unit]]:
    """Return all trainings by model and key; those that made score features are the scorer's."""
    found: dict[str, dict[str, Unit]] = {name: {} for name in plan.recipe.models}
    for member in (*(plan.member(name, plan.first) for name in found), *members.values()):
        model = member.model
        if model.trained_as is None:
            found[model.name] |= {unit.key: unit for unit in member.fits}
        if model.features is not None and member.features is not None:
            scorer = plan.recipe.features[model.features].scores_of
            found[scorer] |= {unit.key: unit for unit in member.features.needs}
    return found


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
