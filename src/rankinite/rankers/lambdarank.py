"""LambdaRank: nets that follow the lambda gradient of a measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankinite.core.compilation import compile_ahead
from rankinite.core.container import checked_array
from rankinite.core.errors import DataError, ModelFileError, UsageError
from rankinite.core.format import some_of
from rankinite.core.progress import Progress
from rankinite.core.random import generator
from rankinite.core.types import Floats
from rankinite.data.checks import require_data_set
from rankinite.data.ranking_data import RankingData
from rankinite.measures.measure import Measure
from rankinite.measures.scorer import Scorer, mean_of_counted
from rankinite.measures.text import parse_measures
from rankinite.nets.epochs import EpochRunner
from rankinite.nets.inputs import Standardiser
from rankinite.nets.net import Net, PerturbedScores
from rankinite.objectives.objective import Objective
from rankinite.objectives.parse import parse_objective
from rankinite.rankers.callbacks import Callback, ValidationSet
from rankinite.rankers.diagnostics import Diagnostics
from rankinite.rankers.early_stopping import EarlyStopping
from rankinite.rankers.features import check_features
from rankinite.rankers.gradient_descent import LearningSchedule, NetLearner
from rankinite.rankers.inputs import (
    FitArguments,
    TrainingInputs,
    Valid,
    queries_with_weight,
    refuse_unknown,
)
from rankinite.rankers.model_file import Manifest
from rankinite.rankers.parameters import ALL, LambdaRankParameters
from rankinite.rankers.ranker import COPIES_HAVE_RANKS
from rankinite.rankers.trained_ranker import TrainedRanker

TRAIN = "train"
# Epochs unless n_epochs is given: Adam needs few, and the winners' nets had 500.
EPOCHS = {"adam": 40, "sgd": 500}


class LambdaRank(LambdaRankParameters, TrainedRanker):
    """A net that follows lambda gradients (Optimality; Ensemble, Sec. 4.1 and 4.2).

    Features are standardised inside the model, and so are their ranks among the training documents;
    a missing one counts as the mean, and one more than ten standard deviations from it as ten. With
    a ``base`` the net's scores are added to those of
    another ranker.

    Without a validation set the training set decides which epoch is best; its curve is then
    ``history_["train"]``.

    Attributes
    ----------
    net_
        The net that predict uses.
    best_epoch_ : int
        The epoch whose weights are kept.
    history_ : dict
        The values of measures by set: ``history_["valid"]["NDCG@10"]`` has one value per epoch.
    n_rounds_ : int
        How many epochs there were.
    seed_ : int
        The seed of the fit: ``random_state``, or what was drawn from it.

    Examples
    --------
    >>> import rankinite as rk
    >>> train = rk.polynomials(40, part="train", n_features=5)
    >>> model = rk.LambdaRank("NDCG@10", hidden=10, n_epochs=60).fit(train)
    >>> rk.evaluate(model.predict(train), train, "NDCG@10").mean["NDCG@10"] > 0.6
    True
    """

    expected_failed_checks: ClassVar[Mapping[str, str]] = {
        **TrainedRanker.expected_failed_checks,
        "check_sample_weight_equivalence_on_dense_data": COPIES_HAVE_RANKS,
        "check_sample_weight_equivalence_on_sparse_data": COPIES_HAVE_RANKS,
    }
    rounds: ClassVar[str] = "epochs"

    net_: Net
    start_: float

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        valid: Valid = None,
        query_weight: ArrayLike | None = None,
        valid_base: Any = None,
        callbacks: Sequence[Callback] = (),
        progress: Progress | bool | None = None,
        checkpoint: str | Path | None = None,
        begin_with: LambdaRank | None = None,
        diagnostics: Diagnostics | None = None,
        **unknown: Any,
    ) -> Self:
        """Train the net.

        Parameters
        ----------
        X, y, qid, group, sample_weight, valid, query_weight, valid_base
            As in `LambdaMART.fit`.
        callbacks
            Called with a `Round` after every epoch; one that returns True stops training.
        progress
            True for a progress bar, or a progress reporter, as in `LambdaMART.fit`.
        checkpoint
            A file that keeps the weights while training, and from which training resumes if it
            exists.
        begin_with
            A fitted net of the same layers, whose weights to begin with; random ones if None, and
            after every restart. These weights themselves, before the first epoch, do not compete
            for the best epoch.
        diagnostics
            Records curves of lambdas and rankings, one value per epoch; see `Diagnostics`.
        """
        refuse_unknown(self._name, unknown)
        arguments = FitArguments(X, y, qid, group, valid, query_weight, valid_base, sample_weight)
        kernel = "rankinite.nets.kernels.backprop.train_queries"
        compile_ahead("rankinite.nets.epochs:compile_training", kernel)
        return self._train(
            arguments, callbacks, progress, checkpoint, diagnostics, begin_with=begin_with
        )

    @property
    def best_epoch_(self) -> int:
        """The epoch whose weights are kept."""
        return self.best_round_

    def objective(self) -> Objective:
        """Return the objective that training follows."""
        return parse_objective(self.measure, truncation=self.truncation, normalise=self.normalise)

    @property
    def max_rounds(self) -> int:
        """Number of epochs at most."""
        return EPOCHS[self.optimiser] if self.n_epochs is None else int(self.n_epochs)

    @property
    def _architecture(self) -> str:
        sizes = ", ".join(map(str, self._sizes()))
        return f"hidden=[{sizes}], activation={self.activation}, rank_inputs={self.rank_inputs}"

    def _sizes(self) -> tuple[int, ...]:
        if isinstance(self.hidden, Sequence):
            return tuple(int(n) for n in self.hidden)
        return (int(self.hidden),) if self.hidden else ()

    def _stopping_patience(self) -> int | None:
        # With sgd, patience is that of restarts.
        return self.patience if self.optimiser == "adam" else None

    def _measured_sets(self, inputs: TrainingInputs) -> dict[str, ValidationSet]:
        if TRAIN in inputs.valid:
            raise UsageError(
                f"LambdaRank: a validation set is called {TRAIN!r}, which is what the curve of "
                "the training set is called; give it another name"
            )
        sets = dict(inputs.valid)
        # The rate of sgd depends on training accuracy; and without a validation set the training
        # set decides.
        if self.optimiser == "sgd" or not sets:
            sets[TRAIN] = inputs.training_set(self._name)
        return sets

    def _new_learner(
        self,
        inputs: TrainingInputs,
        sets: Mapping[str, ValidationSet],
        early_stopping: EarlyStopping,
        *,
        begin_with: LambdaRank | None = None,
        **_options: Any,
    ) -> NetLearner:
        if len(inputs.gradients.start) != 1:
            raise UsageError(
                f"LambdaRank: the objective has {len(inputs.gradients.start)} outputs, and a "
                "net has one score; use McRank, or another objective"
            )
        data = inputs.data
        if data.categories:
            raise DataError(
                f"LambdaRank: the features {some_of(list(data.categories))} are categorical, and "
                "nets take numbers; leave them out with select_features, give a column of 0 and 1 "
                "for each category that matters, or use a ranker of trees"
            )
        queries, _ = queries_with_weight(data)
        weighted = data if len(queries) == data.n_queries else data[queries]
        # Queries of weight 0 count for nothing, also not for the means and deviations of features.
        net = self._first_net(weighted, inputs.seed, begin_with)
        runner = EpochRunner(
            net,
            data.matrix,
            data.rows,
            data.offsets,
            inputs.gradients,
            np.ascontiguousarray(inputs.scores[0]),
            len(queries) if self.queries_per_step == ALL else int(self.queries_per_step),
        )
        schedule = LearningSchedule(
            self.optimiser, self.learning_rate, self.max_rounds, self.patience,
            self.most_restarts, self.weight_decay,
        )  # fmt: skip
        return NetLearner(net, runner, schedule, inputs, sets, early_stopping, queries)

    def _first_net(self, data: RankingData, seed: int, begin_with: LambdaRank | None) -> Net:
        """Return the net before the first epoch."""
        if begin_with is None:
            inputs = Standardiser.fit(
                data.matrix, data.rows, data.n_docs, rank_inputs=self.rank_inputs
            )
            random = generator(seed, "weights", 0)
            return Net.draw(inputs, self._sizes(), self.activation, random)
        if not isinstance(begin_with, LambdaRank):
            raise UsageError(
                f"{self._name}: begin_with is a {type(begin_with).__name__}; expected a fitted "
                "LambdaRank (a ranker whose scores to add to is a base)"
            )
        begin_with._check_fitted()
        check_features(
            f"{self._name} with begin_with", begin_with.feature_names_, data.feature_names
        )
        if begin_with._architecture != self._architecture:
            raise UsageError(
                f"{self._name}: begin_with has {begin_with._architecture}, and this net "
                f"{self._architecture}; give both the same"
            )
        # With its standardiser: weights mean nothing to inputs that are scaled otherwise.
        return begin_with.net_

    def _keep(self, learner: NetLearner, start: Floats, best: int) -> None:
        self.net_ = learner.best
        self.best_round_ = best
        self.start_ = float(start[0])

    @property
    def _start(self) -> Floats:
        return np.array([self.start_])

    def predict(
        self, X: Any, qid: ArrayLike | None = None, *, base_scores: ArrayLike | None = None
    ) -> Floats:
        """Return one score per document; larger is better."""
        X = self._matched(X)
        matrix, rows = self._features_of(X)
        n_docs = (matrix if rows is None else rows).shape[0]
        scores = self._start_scores(X, qid, n_docs, base_scores)[0]
        return self.net_.add_to(scores, matrix, rows)

    def raw_scores(self, X: Any, qid: ArrayLike | None = None) -> Floats:
        """Return the scores as a matrix of one row."""
        return self.predict(X, qid)[np.newaxis]

    def output_contributions(self, X: Any) -> tuple[Floats, Floats]:
        """Return what each feature adds to the net's score, see `net_contributions`."""
        from rankinite.nets.contributions import net_contributions

        values, expected = net_contributions(self.net_, *self._features_of(X), self.n_features_in_)
        return values[np.newaxis], expected + self._start

    def along(
        self, X: RankingData, measure: Any = None, *, base_scores: ArrayLike | None = None
    ) -> AlongNet:
        """Return a measure as a function of the weights, for `local_optimality`.

        Parameters
        ----------
        X
            The queries to measure; the training data, to see whether training has ended in a
            local optimum.
        measure
            One measure; the first of validation if None.
        base_scores
            The scores of the base, for a net whose base was given as scores.

        Examples
        --------
        >>> import rankinite as rk
        >>> train = rk.polynomials(40, part="train", n_features=5)
        >>> net = rk.LambdaRank(hidden=0, n_epochs=20, rank_inputs=False).fit(train)
        >>> along = net.along(train, "NDCG")
        >>> along.n_weights
        5
        """
        require_data_set(f"{self._name}.along", X)
        chosen = self.validation_measures()[:1] if measure is None else parse_measures(measure)
        if len(chosen) != 1:
            raise UsageError(
                f"{self._name}.along: {measure!r} are {len(chosen)} measures; give one measure"
            )
        X = self._matched(X).dense(self._name)
        scores = self._start_scores(X, None, X.n_docs, base_scores)[0]
        return AlongNet(self.net_, X, chosen[0], scores)

    def importances(self) -> dict[str, float]:
        """Return how steep the score can be along each feature, by name, the steepest first.

        That is how far the score moves at most where the feature moves by a standard deviation.
        """
        self._check_fitted()
        return self._by_importance(self._importance_values())

    def _importance_values(self) -> Floats:
        return self.net_.slopes(self.n_features_in_)

    def _model_arrays(self) -> dict[str, NDArray[Any]]:
        numbers = {"start": self._start, "best_epoch": np.array([self.best_epoch_])}
        return {**self.net_.to_arrays(), **numbers}

    def _set_model(self, arrays: Mapping[str, NDArray[Any]], manifest: Manifest) -> None:
        if "activation" not in manifest.parameters:
            # The file is older than these parameters, when there was no choice.
            self.activation, self.rank_inputs = "tanh", False
        self.net_ = Net.from_arrays(
            arrays, self.n_features_in_, self.activation, rank_inputs=self.rank_inputs
        )
        if self.net_.hidden != self._sizes():
            raise ModelFileError("the net in the file has other layers than its parameters say")
        start = checked_array(arrays, "start", np.float64, 1)
        epoch = checked_array(arrays, "best_epoch", np.int64, 1, low=0, high=manifest.n_rounds)
        # Files of earlier versions say it once.
        if manifest.best_round not in (None, int(epoch[0])):
            raise ModelFileError(
                "the file says in two places which epoch was best, and differently"
            )
        self.start_, self.best_round_ = float(start[0]), int(epoch[0])


class AlongNet:
    """The value of a measure at a net's weights + step x direction; see `local_optimality`.

    Parameters
    ----------
    net
        The net.
    data
        The queries to measure.
    measure
        The measure; the value is its mean over the queries that count.
    start
        The scores that the net's are added to, one per document.
    """

    def __init__(self, net: Net, data: RankingData, measure: Measure, start: Floats) -> None:
        self._shifts = PerturbedScores(net, data.matrix, data.rows, start)
        self._scorer = Scorer([measure], data.all_labels, data.offsets, data.top_grade)

    @property
    def n_weights(self) -> int:
        """Number of weights that can be moved: all but the bias of the score.

        The bias changes no ranking.
        """
        return self._shifts.n_weights

    def __call__(self, directions: Floats, steps: Floats) -> Floats:
        """Return the values, one row per direction and one column per step."""
        values = np.empty((len(directions), len(steps)))
        for k, direction in enumerate(directions):
            scores_at = self._shifts.along(direction)
            for j, step in enumerate(steps):
                values[k, j] = self._value(scores_at(float(step)))
        return values

    def _value(self, scores: Floats) -> float:
        # Weights that were moved too far give no finite scores, and so no value.
        if not np.isfinite(scores).all():
            return np.nan
        return mean_of_counted(self._scorer.per_query(scores)[0])
