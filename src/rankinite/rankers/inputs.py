"""The arguments of fit, checked and prepared: data sets, targets, gradients and start scores.

Arrays and frames become `RankingData`; the objective is prepared for the training data; and the
scores of a base are those that training starts from. The result, `TrainingInputs`, is all that a
learner needs besides its parameters.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankinite.core.errors import DataError, UsageError
from rankinite.core.params import SEED, check
from rankinite.core.types import Floats
from rankinite.data.categories import (
    Tables,
    codes_by_text,
    encode_frame,
    extended_tables,
    match_codes,
    with_categories,
)
from rankinite.data.checks import require_labels
from rankinite.data.queries import query_ids
from rankinite.data.ranking_data import RankingData
from rankinite.data.splits import first_sample
from rankinite.data.tables import plain_array
from rankinite.measures.measure import Measure
from rankinite.measures.text import MeasureLike, parse_measures
from rankinite.objectives.objective import Gradients, Objective, Targets
from rankinite.rankers.aliases import explain_fit_argument
from rankinite.rankers.base import Base
from rankinite.rankers.callbacks import Learner, ValidationSet
from rankinite.rankers.checkpoint import digest_of
from rankinite.rankers.columns import Columns, InputData, doc_weights_of, positions_of
from rankinite.rankers.features import feature_matrix, match_features
from rankinite.rankers.ranker import DEFAULT_MEASURE, refuse_besides

log = logging.getLogger("rankinite")

Valid = Any
# The name of a validation set that the caller did not name.
VALID = "valid"


@dataclass(frozen=True)
class FitArguments:
    """The data that the caller passed to fit, as in `LambdaMART.fit`, before any check.

    Attributes
    ----------
    X, y, qid, group
        The training data.
    valid
        The validation sets.
    query_weight, sample_weight
        Weights of queries and of documents.
    position
        The position at which each document was shown.
    valid_base
        The base's scores of the validation sets, if the base is scores.
    """

    X: Any
    y: ArrayLike | None
    qid: ArrayLike | None
    group: ArrayLike | None
    valid: Valid
    query_weight: ArrayLike | None
    valid_base: Any
    sample_weight: ArrayLike | None = None
    position: ArrayLike | None = None


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


def prepare(
    owner: str,
    objective: Objective,
    arguments: FitArguments,
    base: Base,
    valid_measure: Any,
    seed: int,
    *,
    columns: Columns = Columns(),  # noqa: B008 immutable
    takes_sparse: bool = True,
    categorical: Sequence[str | int] = (),
) -> TrainingInputs:
    """Check the arguments of fit, and prepare the objective for the training data.

    Parameters
    ----------
    owner
        The ranker that is fitted, for messages.
    objective
        What training follows.
    arguments
        The arguments of fit.
    base
        The base that training starts from.
    valid_measure
        The measure of validation sets, or several; that of training if None.
    seed
        The seed of the fit.
    columns
        The label sources that hold weights and positions.
    takes_sparse
        Whether the learner takes sparse matrices; others are made dense.
    categorical
        Features that are categorical, by name or column, besides those of the data.
    """
    train = training_data(
        owner,
        arguments.X,
        arguments.y,
        arguments.qid,
        arguments.query_weight,
        group=arguments.group,
        categorical=categorical,
    )
    data = train.data if takes_sparse else train.data.dense(owner)
    if objective.measure is not None and np.isnan(data.y).all():
        for measure in parse_measures(objective.measure):
            # Without a lambda, training would end with a model that ranks nothing.
            if measure.source is None:
                raise DataError(
                    f"{owner}: the data set has no labels in y, which {measure} needs; give y, or "
                    f"name a label source, as in {measure}[clicks]"
                )
    sets = validation_sets(owner, arguments.valid, data.feature_names, data.categories)
    if not takes_sparse:
        sets = {name: replace(valid, data=valid.data.dense(owner)) for name, valid in sets.items()}
    targets = Targets(
        data.all_labels,
        data.offsets,
        data.top_grade,
        data.query_weight,
        doc_weights_of(owner, arguments.sample_weight, columns, train),
        seed,
        None
        if columns.position is None
        else positions_of(owner, arguments.position, columns.position, train),
    )
    gradients = objective.prepare(targets)
    if columns.correct is not None:
        gradients = columns.correct(gradients, targets)
    # The scores of a base are on a scale of their own, which a constant would not fit.
    start = gradients.start if base.value is None else np.zeros(len(gradients.start))
    measures = parse_measures(validation_measure(objective, valid_measure))

    def measured(name: str, valid_set: InputData) -> ValidationSet:
        scores = base.validation_scores(
            name, start, valid_set.data, valid_set.arrange, arguments.valid_base
        )
        return _measured(owner, f"the validation set {name!r}", valid_set.data, measures, scores)

    return TrainingInputs(
        data,
        targets,
        objective,
        gradients,
        measures,
        start,
        valid={name: measured(name, valid_set) for name, valid_set in sets.items()},
        scores=base.start_scores(start, data, train.arrange),
        seed=seed,
    )


def validation_measure(objective: Objective, valid_measure: Any) -> Any:
    """Return the measure of validation sets, or several: the user's, or that of training."""
    return training_measure(objective) if valid_measure is None else valid_measure


def training_measure(objective: Objective) -> MeasureLike:
    """Return the measure that an objective improves; a usual one if it has none."""
    measure: MeasureLike = objective.measure or DEFAULT_MEASURE
    return measure


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
        # Measures without a top grade of their own take that of the data set.
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


def training_data(
    owner: str,
    X: Any,
    y: ArrayLike | None,
    qid: ArrayLike | None,
    query_weight: ArrayLike | None,
    *,
    group: ArrayLike | None = None,
    categorical: Sequence[str | int] = (),
) -> InputData:
    """Return the training set, from a RankingData, or from arrays or a frame with y and qid."""
    if isinstance(X, RankingData):
        refuse_besides(owner, y=y, qid=qid, group=group)
        require_labels(owner, X)
        X = with_categories(owner, X, categorical)
        return InputData(X if query_weight is None else X.with_query_weight(query_weight))
    if y is None:
        raise UsageError(
            f"{owner}: requires y to be passed, but the target y is None; "
            "give labels, or a RankingData"
        )
    X, tables = encode_frame(owner, X, categorical)
    matrix, names = feature_matrix(owner, X)
    data = RankingData(
        X=matrix,
        y=_labels(owner, y),
        qid=query_ids(owner, matrix.shape[0], qid, group),
        feature_names=names,
        query_weight=query_weight,
        categories=tables,
        group=True,  # documents of a query may stand apart in arrays
    )
    require_labels(owner, data)
    return InputData(with_categories(owner, data, categorical), data.rows)


def _labels(owner: str, y: ArrayLike) -> NDArray[Any]:
    labels = plain_array(y)
    if labels.dtype.kind == "c":
        raise DataError(f"{owner}: y has complex numbers; labels are real numbers of at least 0")
    if labels.ndim == 2 and labels.shape[1] == 1:
        from sklearn.utils.validation import column_or_1d

        # Takes the column, and warns as scikit-learn does.
        return np.asarray(column_or_1d(labels, warn=True))
    return labels


def validation_sets(
    owner: str,
    valid: Valid,
    features: Sequence[str],
    categories: Tables | None,
    *,
    categorical: Sequence[str] = (),
) -> dict[str, InputData]:
    """Return validation sets by name, from one set, a tuple (X, y, qid), or several by name.

    Parameters
    ----------
    owner
        Who is fitted, for messages.
    valid
        The validation sets.
    features, categories
        The features of the training data, and its categories, whose codes the sets then have.
        With None they keep their own, for members that look categories up by their texts.
    categorical
        Columns of texts that are categorical, besides those of the training data.
    """
    texts = [*(categories or ()), *categorical]
    return {
        name: _validation_set(owner, name, value, features, categories, texts)
        for name, value in sets_by_name(valid).items()
    }


def sets_by_name(valid: Valid) -> dict[str, Any]:
    """Return validation sets by name, as the caller passed each."""
    if valid is None:
        return {}
    sets = valid if isinstance(valid, Mapping) else {VALID: valid}
    return {str(name): value for name, value in sets.items()}


def _validation_set(
    owner: str,
    name: str,
    value: Any,
    features: Sequence[str],
    categories: Tables | None,
    texts: Sequence[str],
) -> InputData:
    if not isinstance(value, (RankingData, tuple, list)):
        raise UsageError(
            f"{owner}: valid is a {type(value).__name__}; expected a RankingData, (X, y, qid), "
            "or several of these by name"
        )
    try:
        if isinstance(value, RankingData):
            valid = InputData(value)
        elif len(value) == 3:
            X, y, qid = value
            valid = training_data(owner, X, y, qid, None, categorical=texts)
        else:
            raise UsageError(
                f"it has {len(value)} parts; expected a RankingData, (X, y, qid), or several of "
                "these by name"
            )
        if valid.data.n_queries == 0:
            raise DataError("it has no queries; give some, or leave valid out")
        require_labels(owner, valid.data)
        sample = first_sample(valid.data.qids)
        if sample is not None:
            raise DataError(
                f"it holds samples, such as {sample!r} (an id that ends in ~ and a number), and "
                "validation data is never augmented; leave them out (valid.originals, or "
                "rankinite data convert --originals)"
            )
        matched = match_features(owner, valid.data, features)
        if categories is not None:
            matched = _with_codes(owner, matched, categories)
        return replace(valid, data=matched)
    except (DataError, UsageError) as problem:
        raise type(problem)(f"{owner}: the validation set {name!r}: {problem}") from None


def _with_codes(owner: str, data: RankingData, categories: Tables) -> RankingData:
    """Return a data set with the codes of other tables, and further codes for what they lack."""
    # A base, or a scorer, may know categories that the training data lack.
    tables = extended_tables(categories, data.categories)
    if data.categories == tables:
        return data
    codes = codes_by_text(tables)
    matrix = match_codes(owner, data.matrix, data.feature_names, data.categories, codes)
    return data.replace(matrix=matrix, categories=tables)


def queries_with_weight(data: RankingData) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the queries whose weight is not 0, and their documents."""
    if data.query_weight is None:
        return np.arange(data.n_queries), np.arange(data.n_docs)
    some = data.query_weight > 0.0
    return np.flatnonzero(some), np.flatnonzero(np.repeat(some, data.sizes))


def seed_of(owner: str, random_state: Any) -> int:
    """Return the seed: ``random_state`` if it is a number, or one drawn from it."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    # As scikit-learn does: the same RandomState gives another seed at every fit.
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    check(owner, "random_state", random_state, SEED)
    return int(random_state)


def refuse_unknown(owner: str, unknown: Mapping[str, Any]) -> None:
    """Refuse arguments that fit does not have, with a hint at the name that they have here."""
    for name in unknown:
        hint = explain_fit_argument(name, unknown) or f"see help({owner}.fit)"
        raise UsageError(f"{owner}.fit: there is no parameter {name!r}; {hint}")
