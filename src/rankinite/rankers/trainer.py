"""The trainer: how a fit of trees or nets runs, from checked inputs to the best round.

A round is a tree, or several, or an epoch. A `Learner` computes it: boosted trees (boosting.py), or
gradient descent of a net (gradient_descent.py). All the rest is here, in the order in which it
happens: `TrainedRanker` checks the parameters and builds the objective, `prepare` (inputs.py) makes
data sets of the arguments of fit, `Trainer` runs the rounds, with validation, early stopping,
checkpoints and callbacks, and the ranker keeps the best round.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankinite.core import __version__
from rankinite.core.container import Content
from rankinite.core.errors import RankiniteError, UsageError
from rankinite.core.params import Whole, check
from rankinite.core.progress import Progress, as_progress
from rankinite.core.types import Floats
from rankinite.measures.measure import Measure
from rankinite.measures.text import deciding_measure, parse_measures
from rankinite.objectives.objective import Objective
from rankinite.rankers.base import Base
from rankinite.rankers.callbacks import (
    Callback,
    History,
    Learner,
    Round,
    ValidationSet,
    Values,
    as_callbacks,
)
from rankinite.rankers.checkpoint import Checkpoint
from rankinite.rankers.columns import Columns
from rankinite.rankers.diagnostics import Diagnostics, DiagnosticsCallback, diagnostics_callback
from rankinite.rankers.early_stopping import BestRound, EarlyStopping
from rankinite.rankers.inputs import (
    FitArguments,
    TrainingInputs,
    check_validation_sets,
    prepare,
    queries_with_weight,
    seed_of,
    validation_measure,
)
from rankinite.rankers.model_file import (
    Curves,
    Manifest,
    plain_parameters,
    read_history,
    restore_base,
    restore_ranker,
    trained_content,
    write_history,
)
from rankinite.rankers.parameters import CommonParameters
from rankinite.rankers.ranker import Ranker

log = logging.getLogger("rankinite")


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
        if arguments.position is not None:
            raise UsageError(
                f"{self._name}: position was given, and {self._name} does not correct for "
                "positions; use LambdaMART, or give sample_weight, 1 over the propensity"
            )
        return Columns(self.weight_source)

    def check_objective(self) -> Objective:
        """Return the objective; refuse objectives and measures that fit would refuse."""
        objective = self.objective()
        parse_measures(validation_measure(objective, self.valid_measure))
        return objective

    def validation_measure(self) -> Any:
        """Return ``valid_measure``, or the measure of the objective if that is None."""
        return validation_measure(self.objective(), self.valid_measure)

    def validation_measures(self) -> Sequence[Measure]:
        """Return the measures of validation sets, tier by tier."""
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
        deciding = deciding_measure(validation_measure(inputs.objective, self.valid_measure))
        first = next(iter(sets), None)
        patience = self._stopping_patience()
        return EarlyStopping(self.max_rounds, patience, first, deciding, self.min_improvement)

    def _checkpoint(
        self, inputs: TrainingInputs, learner: Learner, path: str | Path | None
    ) -> Checkpoint | None:
        if path is None:
            return None
        # A seed that was drawn would be another one when the fit is resumed.
        check(f"{self._name} with a checkpoint", "random_state", self.random_state, Whole(0))
        parameters = {
            name: value
            for name, value in plain_parameters(self).items()
            if name not in self.free_parameters
        }
        return Checkpoint(Path(path), parameters, inputs.digest(learner))

    def _keep_best(self, inputs: TrainingInputs, trainer: Trainer) -> None:
        """Keep the best round of a fit that has ended, or was interrupted."""
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


@dataclass(eq=False)
class Trainer:
    """Runs the rounds of one fit.

    Attributes
    ----------
    owner
        The ranker that is fitted, for messages.
    learner
        The model under training.
    sets
        The data sets that are measured after every round, by name.
    early_stopping
        When to stop, and which round is best.
    ranking
        From the scores of the outputs to the scores that documents are ranked by.
    diagnostics
        Called after every round, before the callbacks of the user; None if they are not wanted.
    checkpoint
        Where the fit is kept while it runs; None if it is not.
    history
        The values of all rounds so far.
    """

    owner: str
    learner: Learner
    sets: Mapping[str, ValidationSet]
    early_stopping: EarlyStopping
    ranking: Callable[[Floats], Floats]
    diagnostics: DiagnosticsCallback | None
    checkpoint: Checkpoint | None
    history: History = field(init=False)

    def __post_init__(self) -> None:
        self.history = History({name: {} for name in self.sets})

    def completed_history(self) -> History:
        """Return the history of the committed rounds.

        An interrupt may have come between the values of a round and its commit.
        """
        return self.history.first(self.learner.n_rounds)

    def best_round(self) -> BestRound:
        """Return the best of the committed rounds."""
        return self.early_stopping.best_round(self.history, self.learner.n_rounds)

    def round_weights(self) -> Floats:
        """Return how much the model after each committed round counts in the mean over rounds."""
        n_queries = next((measured.data.n_queries for measured in self.sets.values()), 0)
        return self.early_stopping.round_weights(self.history, self.learner.n_rounds, n_queries)

    def run(self, callbacks: Sequence[Callback], progress: Progress, unit: str) -> None:
        """Do rounds until it is time to stop; Ctrl-C leaves whole rounds, and their checkpoint.

        Parameters
        ----------
        callbacks
            Called after every round; one that returns True stops the fit.
        progress
            Progress reporter.
        unit
            The name of rounds.
        """
        learner, early_stopping = self.learner, self.early_stopping
        try:
            with progress.start("training", early_stopping.n_rounds, unit) as bar:
                # The rounds of a checkpoint count as done, and its best is the one to beat.
                bar.advance(min(learner.n_rounds, early_stopping.n_rounds))
                best = self.best_round()
                while not early_stopping.is_over(best, learner.n_rounds):
                    if learner.is_done:
                        log.info(
                            "%s: there is nothing left to learn after %d rounds",
                            self.owner,
                            learner.n_rounds,
                        )
                        break
                    done, best = self._do_round(best)
                    bar.advance(1)
                    bar.note(done.summary)
                    if self.checkpoint is not None and self.checkpoint.is_due:
                        self.checkpoint.write(learner.n_rounds, self.to_content)
                    # All callbacks are called, also after one that stops the fit.
                    answers = [callback(done) for callback in callbacks]
                    if any(answer is True for answer in answers):
                        break
        finally:
            # Also after an interrupt, and if the last rounds were too quick for `is_due`.
            if self.checkpoint is not None:
                self.checkpoint.write(learner.n_rounds, self.to_content)

    def _do_round(self, best: BestRound) -> tuple[Round, BestRound]:
        """Do one more round; return it, and the best round after it."""
        learner = self.learner
        learner.step()
        done = Round(learner.n_rounds + 1, self._measure())
        best = self.early_stopping.update(best, done)
        # First the values, then the round: values without a round are cut off, while a round
        # without values could not be compared with others.
        self.history.add(done.values)
        learner.commit(done, is_best=best.number == done.number)
        if self.diagnostics is not None:
            self.diagnostics(done)
        return done, best

    def _measure(self) -> Values:
        """Return the values of all measures after the step of a round."""
        values = {}
        for name, measured in self.sets.items():
            # By the scores that predict will rank by: chances or expected grades, not raw outputs.
            scores = self.ranking(self.learner.validation_scores(name))
            # Only in a training set it may be that no query counts; its value is then 0.
            values[name] = {
                measure: float(np.nan_to_num(value))
                for measure, value in measured.measure(scores).items()
            }
        return values

    def to_content(self) -> Content:
        """Return all that is needed to resume the fit, for a checkpoint."""
        manifest: dict[str, Any] = {}
        if self.diagnostics is not None:
            manifest = self.diagnostics.to_manifest()
        content = self.learner.to_content()
        manifest = {"history": write_history(self.completed_history().values), **manifest}
        return Content({**content.manifest, **manifest}, content.arrays)

    def resume(self) -> None:
        """Resume from the checkpoint, if there is one."""
        if self.checkpoint is not None:
            self.checkpoint.resume(self._restore)

    def _restore(self, content: Content) -> int:
        """Resume after the rounds of a checkpoint; return how many it holds.

        A fit that would have stopped earlier takes as many of them as it would have done itself.
        """
        n_rounds = self.learner.n_rounds_in(content)
        history = History(read_history(content.manifest.get("history"), n_rounds))
        history.check_measures({name: measured.measures for name, measured in self.sets.items()})
        # Patience or the number of rounds may be smaller than in the fit that wrote the file.
        reach = self.early_stopping.stops_after(history, n_rounds)
        self.learner.restore(content, reach, history)
        self.history = history.first(reach)
        if self.diagnostics is not None:
            self.diagnostics.restore(content.manifest)
        return n_rounds
