"""From what users write to an objective: texts, measures, functions, objectives."""

from __future__ import annotations

from typing import Any

from rankinite.core.errors import UsageError
from rankinite.measures.custom import FUNCTIONS
from rankinite.measures.definitions import MEASURES
from rankinite.measures.text import is_measure_name, parse_measure
from rankinite.measures.tiers import TieredMeasure
from rankinite.objectives import constructions as constructions  # registers its classes
from rankinite.objectives.custom import CUSTOM, as_objective
from rankinite.objectives.objective import OBJECTIVES, NamedObjective, Objective, parse_call
from rankinite.objectives.pairwise import Lambdas
from rankinite.objectives.tiers import Tiered

# The paper's name of the usual lambda gradient.
ALIASES = {"ranknetweightpairs": "lambdas"}


def parse_objective(
    objective: Any, *, truncation: int | None = None, normalise: str = "none"
) -> Objective:
    """Return the objective that a ranker is to improve.

    Parameters
    ----------
    objective
        A measure as text, value or function of ranked labels, for its lambda gradients; tiers of
        measures, as in ``"NDCG@3 > CNDCG@3[clicks]"``, for those of `Tiered`; ``"RankNet"`` for
        pairs that all count the same; the text of another construction around a measure, such as
        ``"LocalCost(NDCG@10)"``, where ``Lambdas`` and ``RankNetWeightPairs`` mean the usual one;
        the text of a `Transition`; the name of a registered objective; a function of (scores,
        labels, offsets), see `FunctionObjective`; or an objective.
    truncation, normalise
        See `Lambdas`. Some objectives have neither, and ignore them.

    Examples
    --------
    >>> str(parse_objective("localcost(ndcg(gain=linear)@10)"))
    'LocalCost(NDCG(gain=linear)@10)'
    """
    if isinstance(objective, str):
        return _from_text(objective, truncation=truncation, normalise=normalise)
    if isinstance(objective, type) and issubclass(objective, Objective):
        objective = objective()
    value = as_objective(objective)
    if value is not None:
        return value.with_options(truncation=truncation, normalise=normalise)
    return _of_measure(objective, truncation=truncation, normalise=normalise)


def objective_classes() -> dict[str, type[NamedObjective]]:
    """Return the classes of objectives with a text, by name."""
    # Importing a module registers its classes; this one not at the top, because a Transition
    # contains texts of objectives and its module imports `parse_objective`.
    from rankinite.objectives import transition  # noqa: F401

    return OBJECTIVES


def _from_text(text: str, **options: Any) -> Objective:
    call = parse_call(text)
    # Measures first: their names also match the pattern of a call, tiers and depths do not.
    if call is None or is_measure_name(call.name):
        return _of_measure(text, **options)
    name = ALIASES.get(call.name.lower(), call.name.lower())
    for known, kind in objective_classes().items():
        if known.lower() == name:
            return kind.from_call(call, **options)
    if name in CUSTOM:
        call.options(call.name, 0, ())  # it has none
        return CUSTOM[name].with_options(**options)
    kind_of_name = "measure" if call.inside is None else "measure or objective"
    raise UsageError(
        f"{text!r}: there is no {kind_of_name} {call.name!r}; known are "
        f"{', '.join((*MEASURES, *FUNCTIONS))}, and the objectives "
        f"{', '.join((*OBJECTIVES, *CUSTOM))}; one of your own is given as the class or function "
        "itself, or registered with measures.register or objectives.register (a model file keeps "
        "its name only)"
    )


def _of_measure(measure: Any, *, truncation: int | None, normalise: str) -> Objective:
    value = parse_measure(measure) if isinstance(measure, str) else measure
    if isinstance(value, TieredMeasure):
        return Tiered(value).with_options(truncation=truncation, normalise=normalise)
    return Lambdas(value, truncation=truncation, normalise=normalise)
