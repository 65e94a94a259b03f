"""Rankers that are trained in rounds: what a fit keeps, and how it is saved and scores.

How a fit runs is in ``trainer.py``. A process that only scores imports nothing of it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankinite.core import __version__
from rankinite.core.container import Content
from rankinite.core.errors import RankiniteError, UsageError
from rankinite.core.params import SEED, check
from rankinite.core.types import Floats
from rankinite.rankers.base import Base
from rankinite.rankers.model_file import (
    Curves,
    Manifest,
    plain_parameters,
    restore_base,
    restore_ranker,
    trained_content,
)
from rankinite.rankers.parameters import CommonParameters
from rankinite.rankers.ranker import Ranker

if TYPE_CHECKING:
    from rankinite.core.progress import Progress
    from rankinite.measures.measure import Measure
    from rankinite.objectives.objective import Objective
    from rankinite.rankers.callbacks import Callback, Learner, ValidationSet
    from rankinite.rankers.checkpoint import Checkpoint
    from rankinite.rankers.columns import Columns
    from rankinite.rankers.diagnostics import Diagnostics
    from rankinite.rankers.early_stopping import EarlyStopping
    from rankinite.rankers.inputs import FitArguments, TrainingInputs
    from rankinite.rankers.trainer import Trainer


class TrainedRanker(CommonParameters, Ranker):
    """A ranker that a `Trainer` fits, on top of a base if it has one.

    Attributes
    ----------
    history_ : dict
        The values of measures on the validation sets: ``history_["valid"]["NDCG@10"]`` has one
        value per round.
    best_round_ : int
        The number of the best round by the validation set; without one, that of the last.
    n_rounds_ : int
        Number of rounds that the fit did.
    seed_ : int
        The seed of the fit: ``random_state``, or what was drawn from it.
    n_queries_, n_docs_ : int or None
        Numbers of queries, and of their documents, that it learned from; None if a model file has
        none.
    version_ : str or None
        The version of rankinite that fitted it.
    """

    learns_in_rounds: ClassVar[bool] = True
    # Whether the learner takes sparse matrices as they are.
    takes_sparse: ClassVar[bool] = False
    # The name of rounds, in the plural.
    rounds: ClassVar[str]
    # Parameters that may differ between a fit and the one that resumes from its checkpoint.
    free_parameters: ClassVar[Sequence[str]] = ()

    base: Any
    history_: Curves
    best_round_: int
    n_rounds_: int
    seed_: int
    n_queries_: int | None
    n_docs_: int | None
    version_: str | None

    @abstractmethod
    def objective(self) -> Objective:
        """Return the objective that training follows."""

    @property
    @abstractmethod
    def max_rounds(self) -> int:
        """Number of rounds at most."""

    @abstractmethod
    def _new_learner(
        self,
        inputs: TrainingInputs,
        sets: Mapping[str, ValidationSet],
        early_stopping: EarlyStopping,
        **options: Any,
    ) -> Learner:
        """Return the learner before its first round.

        Parameters
        ----------
        inputs
            The training data, validation sets and gradients.
        sets
            The data sets that are measured after every round.
        early_stopping
            Compares rounds.
        options
            The arguments of fit that only this kind of ranker has.
        """

    @abstractmethod
    def _keep(self, learner: Any, start: Floats, best: int) -> None:
        """Keep the best round of a learner."""

    @property
    @abstractmethod
    def _start(self) -> Floats:
        """The constant score of each output, that rounds are added to."""

    @abstractmethod
    def _model_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the model that was kept."""

    @abstractmethod
    def _set_model(self, arrays: Mapping[str, NDArray[Any]], manifest: Manifest) -> None:
        """Take the model from the arrays of a file, or refuse them."""

    @abstractmethod
    def raw_scores(self, X: Any, qid: ArrayLike | None = None) -> Floats:
        """Return what the model computes before predict makes scores of it: outputs x documents.

        Parameters
        ----------
        X, qid
            As in `predict`.
        """

    @abstractmethod
    def output_contributions(self, X: Any) -> tuple[Floats, Floats]:
        """Return what each feature adds to the raw scores, without the part of a base.

        The result are contributions, outputs x documents x features, and the value of each output
        that they are added to.

        Parameters
        ----------
        X
            As in `predict`.
        """

    @abstractmethod
    def _importance_values(self) -> Floats:
        """Return how important each feature is, on the scale of the model."""

    def _named_categorical_features(self) -> Sequence[str | int]:
        """Return the features that the user says are categorical."""
        return ()

    def _stopping_patience(self) -> int | None:
        """Return the patience of early stopping; None if it does not stop."""
        return self.patience

    def _ranking(self, scores: Floats) -> Floats:
        """Return the scores that documents are ranked by, from those of the outputs."""
        first: Floats = scores[0]
        return first

    def _measured_sets(self, inputs: TrainingInputs) -> Mapping[str, ValidationSet]:
        """Return the sets that are measured after every round; the first decides."""
        return inputs.valid

    def _columns(self, arguments: FitArguments) -> Columns:
        """Return which label sources hold weights and positions, and the use of positions."""
        from rankinite.rankers.columns import Columns

        if arguments.position is not None:
            raise UsageError(
                f"{self._name}: position was given, and {self._name} does not correct for "
                "positions; use LambdaMART, or give sample_weight, 1 over the propensity"
            )
        return Columns(self.weight_source)

    def check_objective(self) -> Objective:
        """Return the objective; refuse objectives and measures that fit would refuse."""
        from rankinite.measures.text import parse_measures
        from rankinite.rankers.inputs import validation_measure

        objective = self.objective()
        parse_measures(validation_measure(objective, self.valid_measure))
        return objective

    def validation_measure(self) -> Any:
        """Return ``valid_measure``, or the measure of the objective if that is None."""
        from rankinite.rankers.inputs import validation_measure

        return validation_measure(self.objective(), self.valid_measure)

    def validation_measures(self) -> Sequence[Measure]:
        """Return the measures of validation sets, tier by tier."""
        from rankinite.measures.text import parse_measures

        return parse_measures(self.validation_measure())

    def _score_measure(self) -> Measure:
        return self.validation_measures()[0]

    def _train(
        self,
        arguments: FitArguments,
        callbacks: Sequence[Callback],
        progress: Progress | bool | None,
        checkpoint: str | Path | None,
        diagnostics: Diagnostics | None,
        **options: Any,
    ) -> Self:
        """Fit the ranker; further options are those of its learner."""
        from rankinite.core.progress import as_progress
        from rankinite.rankers.callbacks import as_callbacks
        from rankinite.rankers.diagnostics import diagnostics_callback
        from rankinite.rankers.inputs import check_validation_sets, prepare, seed_of
        from rankinite.rankers.trainer import Trainer

        owner = self._name
        self._check_parameters()
        objective = self.check_objective()
        listed, reporter = as_callbacks(owner, callbacks), as_progress(owner, progress)
        seed = seed_of(owner, self.random_state)
        base = Base(owner, self.base)
        inputs = prepare(
            owner,
            objective,
            arguments,
            base,
            self.valid_measure,
            seed,
            columns=self._columns(arguments),
            takes_sparse=self.takes_sparse,
            categorical=self._named_categorical_features(),
        )
        # Before features are binned or weights are drawn, which takes long on large data.
        check_validation_sets(owner, inputs, self._ranking)
        sets = self._measured_sets(inputs)
        early_stopping = self._early_stopping(inputs, sets)
        learner = self._new_learner(inputs, sets, early_stopping, **options)
        trainer = Trainer(
            owner,
            learner,
            sets,
            early_stopping,
            self._ranking,
            None
            if diagnostics is None
            else diagnostics_callback(owner, diagnostics, learner, inputs, self._ranking),
            self._checkpoint(inputs, learner, checkpoint),
        )
        trainer.resume()
        try:
            trainer.run(listed, reporter, self.rounds)
        except RankiniteError:
            raise  # of a fit that is impossible, nothing is kept
        except BaseException:
            # After Ctrl-C, or an error of a callback, the ranker can predict.
            self._keep_best(inputs, trainer)
            raise
        self._keep_best(inputs, trainer)
        return self

    def _early_stopping(
        self, inputs: TrainingInputs, sets: Mapping[str, ValidationSet]
    ) -> EarlyStopping:
        from rankinite.measures.text import deciding_measure
        from rankinite.rankers.early_stopping import EarlyStopping
        from rankinite.rankers.inputs import validation_measure

        deciding = deciding_measure(validation_measure(inputs.objective, self.valid_measure))
        first = next(iter(sets), None)
        patience = self._stopping_patience()
        return EarlyStopping(self.max_rounds, patience, first, deciding, self.min_improvement)

    def _checkpoint(
        self, inputs: TrainingInputs, learner: Learner, path: str | Path | None
    ) -> Checkpoint | None:
        if path is None:
            return None
        from rankinite.rankers.checkpoint import Checkpoint

        # A seed that was drawn would be another one when the fit is resumed.
        check(f"{self._name} with a checkpoint", "random_state", self.random_state, SEED)
        parameters = {
            name: value
            for name, value in plain_parameters(self).items()
            if name not in self.free_parameters
        }
        return Checkpoint(Path(path), parameters, inputs.digest(learner))

    def _keep_best(self, inputs: TrainingInputs, trainer: Trainer) -> None:
        """Keep the best round of a fit that has ended, or was interrupted."""
        from rankinite.rankers.inputs import queries_with_weight

        # Only now: a fit that fails leaves an earlier one as it was.
        self._remember(inputs.data)
        # Queries of weight 0 leave no trace in the model.
        self.n_queries_, self.n_docs_ = map(len, queries_with_weight(inputs.data))
        self.version_ = __version__
        self.seed_ = inputs.seed
        self.n_rounds_ = trainer.learner.n_rounds
        self.history_ = trainer.completed_history().values
        self._keep(trainer.learner, inputs.start, trainer.best_round().number)

    def _start_scores(
        self, X: Any, qid: ArrayLike | None, n_docs: int, base_scores: ArrayLike | None
    ) -> Floats:
        """Return the scores that predict adds those of the model to, one row per output."""
        base = Base(self._name, self.base)
        return base.prediction_scores(self._start, X, qid, n_docs, base_scores)

    @property
    def feature_importances_(self) -> Floats:
        """The share of each feature in the sum of all `importances`."""
        self._check_fitted()
        values = self._importance_values()
        total = values.sum()
        return values / total if total > 0 else values

    def _by_importance(self, values: Floats) -> dict[str, float]:
        """Return the values of features by name, the largest first."""
        order = np.argsort(-values, kind="stable")
        return {self.feature_names_[j]: float(values[j]) for j in order}

    def _content(self) -> Content:
        return trained_content(self, self._model_arrays())

    @classmethod
    def from_content(cls, content: Content, base: Ranker | None) -> Self:
        """Return the fitted ranker of a model file."""
        manifest = Manifest.read(content.manifest)
        ranker = restore_ranker(cls, manifest)
        ranker._set_model(content.arrays, manifest)
        restore_base(ranker, manifest, base)
        return ranker
