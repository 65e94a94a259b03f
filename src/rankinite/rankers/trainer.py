"""The trainer: how a fit of trees or nets runs, from checked inputs to the best round.

A round is a tree, or several, or an epoch. A `Learner` computes it: boosted trees (boosting.py), or
gradient descent of a net (gradient_descent.py). All the rest is here, in the order in which it
happens: `TrainedRanker` checks the parameters and builds the objective, `prepare` (inputs.py) makes
data sets of the arguments of fit, `Trainer` runs the rounds, with validation, early stopping,
checkpoints and callbacks, and the ranker keeps the best round.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankinite.core.container import Content
from rankinite.core.progress import Progress
from rankinite.core.types import Floats
from rankinite.rankers.callbacks import (
    Callback,
    History,
    Learner,
    Round,
    ValidationSet,
    Values,
)
from rankinite.rankers.checkpoint import Checkpoint
from rankinite.rankers.diagnostics import DiagnosticsCallback
from rankinite.rankers.early_stopping import BestRound, EarlyStopping
from rankinite.rankers.model_file import (
    read_history,
    write_history,
)

log = logging.getLogger("rankinite")


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
