"""The trainer: how a fit of trees or nets runs, from checked inputs to the best round.

A round is a tree, or several, or an epoch. A `Learner` computes it: boosted trees (boosting.py), or
gradient descent of a net (gradient_descent.py). All the rest is here, in the order in which it
happens: `TrainedMixin` checks the parameters and builds the objective, `prepare`
(training_inputs.py) makes data sets of the arguments of fit, `Trainer` runs the rounds, with
validation, early stopping, checkpoints and callbacks, and the mixin keeps the best round.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from rankinite.core.container import Content
from rankinite.core.errors import RankiniteError, UsageError
from rankinite.core.params import Whole, check
from rankinite.core.progress import Progress, Silent
from rankinite.core.types import Floats
from rankinite.data.ranking_data import RankingData
from rankinite.measures.measure import Measure
from rankinite.measures.text import deciding_measure, parse_measures
from rankinite.objectives.objective import Objective
from rankinite.rankers.base import Base
from rankinite.rankers.callbacks import Callback, Round, Values, as_callbacks
from rankinite.rankers.checkpoint import Checkpoint
from rankinite.rankers.diagnostic_curves import TrainingState, curves_of
from rankinite.rankers.diagnostics import Diagnostics, DiagnosticsCallback
from rankinite.rankers.early_stopping import (
    BestRound,
    EarlyStopping,
    History,
    ValidationSet,
)
from rankinite.rankers.inputs import Valid, queries_with_weight, seed_of
from rankinite.rankers.learner import Learner
from rankinite.rankers.model_file import Curves, plain_parameters, read_history, write_history
from rankinite.rankers.training_inputs import (
    TrainingInputs,
    check_validation_sets,
    prepare,
    validation_measure,
)

log = logging.getLogger("rankinite")


class TrainedMixin(ABC):
    """A ranker that a `Trainer` fits, on top of a base if it has one.

    Attributes
    ----------
    history_ : dict
        The values of measures on the validation sets: ``history_["valid"]["NDCG@10"]`` has one
        value per round.
    n_rounds_ : int
        Number of rounds that the fit did.
    seed_ : int
        The seed of the fit: ``random_state``, or what was drawn from it.
    """

    # The name of rounds, in the plural.
    rounds: ClassVar[str]
    # Parameters that may differ between a fit and the one that resumes from its checkpoint.
    free_parameters: ClassVar[Sequence[str]]

    base: Any
    random_state: Any
    valid_measure: Any
    patience: int | None
    min_improvement: float
    history_: Curves
    n_rounds_: int
    seed_: int

    @property
    @abstractmethod
    def kept_rounds_(self) -> int:
        """The number of the best round, as which the ranker was kept."""

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

    @abstractmethod
    def _check_parameters(self) -> None:
        """Refuse values that parameters cannot have."""

    @abstractmethod
    def _remember(self, data: RankingData) -> None:
        """Keep the features of the training data."""

    @abstractmethod
    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""

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

    def _train(
        self,
        X: Any,
        y: ArrayLike | None,
        *,
        qid: ArrayLike | None,
        valid: Valid,
        query_weight: ArrayLike | None,
        valid_base: Any,
        callbacks: Sequence[Callback],
        progress: Progress | None,
        checkpoint: str | Path | None,
        diagnostics: Diagnostics | None,
        sample_weight: ArrayLike | None = None,
        **options: Any,
    ) -> Self:
        """Fit the ranker; further options are those of its learner."""
        owner = type(self).__name__
        self._check_parameters()
        objective = self.check_objective()
        listed = as_callbacks(owner, callbacks)
        inputs = prepare(
            owner,
            objective,
            X,
            y,
            qid=qid,
            valid=valid,
            query_weight=query_weight,
            sample_weight=sample_weight,
            base=Base(owner, self.base),
            valid_base=valid_base,
            valid_measure=self.valid_measure,
            seed=seed_of(owner, self.random_state),
        )
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
            _diagnostics_callback(owner, diagnostics, learner, inputs, self._ranking),
            self._checkpoint(inputs, learner, checkpoint),
        )
        trainer.resume()
        try:
            trainer.run(listed, progress or Silent(), self.rounds)
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
        owner = f"{type(self).__name__} with a checkpoint"
        # A seed that was drawn would be another one when the fit is resumed.
        check(owner, "random_state", self.random_state, Whole(0))
        parameters = {
            name: value
            for name, value in plain_parameters(self).items()
            if name not in self.free_parameters
        }
        return Checkpoint(Path(path), parameters, inputs.digest(learner))

    def _keep_best(self, inputs: TrainingInputs, trainer: Trainer) -> None:
        """Keep the best round of a fit that has ended, or was interrupted."""
        self._remember(inputs.data)
        self.seed_ = inputs.seed
        self.n_rounds_ = trainer.learner.n_rounds
        self.history_ = trainer.completed_history().values
        self._keep(trainer.learner, inputs.start, trainer.best_round().number)


def _diagnostics_callback(
    owner: str,
    diagnostics: Any,
    learner: Learner,
    inputs: TrainingInputs,
    ranking: Callable[[Floats], Floats],
) -> DiagnosticsCallback | None:
    if diagnostics is None:
        return None
    if not isinstance(diagnostics, Diagnostics):
        raise UsageError(
            f"{owner}: diagnostics is a {type(diagnostics).__name__}; give a Diagnostics()"
        )
    state = TrainingState(
        inputs.objective,
        inputs.gradients,
        inputs.targets,
        queries_with_weight(inputs.data)[1],
        inputs.training_set(owner),
    )
    return DiagnosticsCallback(
        diagnostics,
        curves_of(state, diagnostics.top, diagnostics.highly_relevant),
        learner,
        ranking,
    )


class Trainer:
    """Runs the rounds of one fit.

    Parameters
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
    """

    def __init__(
        self,
        owner: str,
        learner: Learner,
        sets: Mapping[str, ValidationSet],
        early_stopping: EarlyStopping,
        ranking: Callable[[Floats], Floats],
        diagnostics: DiagnosticsCallback | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.owner = owner
        self.learner = learner
        self.sets = sets
        self.early_stopping = early_stopping
        self.ranking = ranking
        self.diagnostics = diagnostics
        self.checkpoint = checkpoint
        self.history = History({name: {} for name in sets})

    def completed_history(self) -> History:
        """Return the history of the committed rounds.

        An interrupt may have come between the values of a round and its commit.
        """
        return self.history.first(self.learner.n_rounds)

    def best_round(self) -> BestRound:
        """Return the best of the committed rounds."""
        return self.early_stopping.best_round(self.history, self.learner.n_rounds)

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
                    bar.note(str(done))
                    if self.checkpoint is not None and self.checkpoint.is_due:
                        self.checkpoint.write(learner.n_rounds, self.to_content)
                    # All callbacks are called, also after one that stops the fit.
                    answers = [callback(done) for callback in callbacks]
                    if any(answer is True for answer in answers):
                        break
        finally:
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
        learner.commit(done, best)
        if self.diagnostics is not None:
            self.diagnostics(done)
        return done, best

    def _measure(self) -> Values:
        """Return the values of all measures after the step of a round."""
        values = {}
        for name, measured in self.sets.items():
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
        reach = self.early_stopping.stops_after(history, n_rounds)
        self.learner.restore(content, reach, history)
        self.history = history.first(reach)
        if self.diagnostics is not None:
            self.diagnostics.restore(content.manifest)
        return n_rounds
