"""The arguments of fit, checked and prepared: data sets, targets, gradients and start scores."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankinite.core.errors import DataError, UsageError
from rankinite.core.types import Floats
from rankinite.data.ranking_data import RankingData
from rankinite.measures.measure import Measure
from rankinite.measures.text import MeasureLike, parse_measures
from rankinite.objectives.objective import Gradients, Objective, Targets
from rankinite.rankers.base import Base
from rankinite.rankers.checkpoint import digest_of
from rankinite.rankers.early_stopping import ValidationSet
from rankinite.rankers.inputs import (
    InputData,
    Valid,
    checked_doc_weights,
    queries_with_weight,
    training_data,
    validation_sets,
)
from rankinite.rankers.learner import Learner

log = logging.getLogger("rankinite")

# Validation sets are measured by this if neither the user nor the objective names a measure.
DEFAULT_MEASURE = "NDCG@10"


@dataclass(frozen=True)
class TrainingInputs:
    """The inputs of a fit, after all checks.

    Attributes
    ----------
    data, targets
        The training data, and its labels, queries and weights for objectives.
    objective, gradients
        The objective, and its gradients, prepared for the training data.
    measures
        The measures of validation sets.
    start
        The constant score of each output before the first round; 0 if there is a base.
    scores
        The scores of the training data before the first round, one row per output.
    valid
        The validation sets by name.
    seed
        The seed of the fit.
    """

    data: RankingData
    targets: Targets
    objective: Objective
    gradients: Gradients
    measures: Sequence[Measure]
    start: Floats
    scores: Floats
    valid: Mapping[str, ValidationSet]
    seed: int

    def training_set(self, owner: str) -> ValidationSet:
        """Return the training data as a set to measure, without queries of weight 0."""
        queries, docs = queries_with_weight(self.data)
        data = self.data if len(queries) == self.data.n_queries else self.data[queries]
        return _measured(owner, "the training set", data, self.measures, self.scores[:, docs])

    def digest(self, learner: Learner) -> str:
        """Return a digest of all that rounds depend on besides parameters."""
        sets = {"": self.data, **{name: valid.data for name, valid in self.valid.items()}}
        return digest_of(
            sets,
            [
                self.targets.doc_weight,
                self.scores,
                *(valid.start for valid in self.valid.values()),
                *learner.inputs,
                *self.gradients.checkpoint_arrays,
            ],
        )


def validation_measure(objective: Objective, valid_measure: Any) -> Any:
    """Return the measure of validation sets, or several: the user's, or that of training."""
    return training_measure(objective) if valid_measure is None else valid_measure


def training_measure(objective: Objective) -> MeasureLike:
    """Return the measure that an objective improves; a usual one if it has none."""
    measure: MeasureLike = objective.measure or DEFAULT_MEASURE
    return measure


def prepare(
    owner: str,
    objective: Objective,
    X: Any,
    y: ArrayLike | None,
    *,
    qid: ArrayLike | None,
    valid: Valid,
    query_weight: ArrayLike | None,
    sample_weight: ArrayLike | None,
    base: Base,
    valid_base: Any,
    valid_measure: Any,
    seed: int,
) -> TrainingInputs:
    """Check the arguments of fit, and prepare the objective for the training data."""
    train = training_data(owner, X, y, qid, query_weight)
    data = train.data
    sets = validation_sets(owner, valid, data.feature_names)
    weights = checked_doc_weights(owner, sample_weight, train)
    targets = Targets(
        data.all_labels, data.offsets, data.top_grade, data.query_weight, weights, seed
    )
    gradients = objective.prepare(targets)
    # The scores of a base are on a scale of their own, which a constant would not fit.
    start = gradients.start if base.value is None else np.zeros(len(gradients.start))
    measures = parse_measures(validation_measure(objective, valid_measure))

    def measured(name: str, valid_set: InputData) -> ValidationSet:
        scores = base.validation_scores(start, name, valid_set, valid_base)
        return _measured(owner, f"the validation set {name!r}", valid_set.data, measures, scores)

    return TrainingInputs(
        data,
        targets,
        objective,
        gradients,
        measures,
        start,
        valid={name: measured(name, valid_set) for name, valid_set in sets.items()},
        scores=base.training_scores(start, train),
        seed=seed,
    )


def _measured(
    owner: str, called: str, data: RankingData, measures: Sequence[Measure], start: Floats
) -> ValidationSet:
    try:
        return ValidationSet(data, measures, start)
    except (DataError, UsageError) as problem:
        raise type(problem)(f"{owner}: {called}: {problem}") from None


def check_validation_sets(
    owner: str, inputs: TrainingInputs, ranking: Callable[[Floats], Floats]
) -> None:
    """Refuse validation sets in which no query counts, before training begins."""
    top_grade = inputs.data.top_grade
    for name, valid in inputs.valid.items():
        for measure, value in valid.measure(ranking(valid.start)).items():
            if np.isnan(value):
                raise DataError(
                    f"{owner}: no query of the validation set {name!r} counts for {measure}: none "
                    "has a relevant document; give others, or another valid_measure"
                )
        graded = [str(m) for m in valid.measures if getattr(m, "top_grade", 0.0) is None]
        if graded and valid.data.top_grade != top_grade:
            log.warning(
                "%s: the top grade of %r is %g, that of the training data %g; give both sets "
                "the same top_grade",
                ", ".join(graded),
                name,
                valid.data.top_grade,
                top_grade,
            )
