"""Gradient descent of nets: the learner whose rounds are epochs of stochastic gradient steps.

All that an epoch draws is keyed by the seed and its number, and the result of an epoch is one
value, a `State`, taken over when the round is committed. So a fit that is resumed from a checkpoint
gives the bytes of one that was never stopped.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.container import LARGEST, Content, checked_array
from rankinite.core.elementary import cospi
from rankinite.core.errors import ModelFileError, UsageError
from rankinite.core.random import generator
from rankinite.core.types import Floats, Floats32, Integers
from rankinite.nets.epochs import EpochRunner
from rankinite.nets.kernels.adam import AdamState
from rankinite.nets.net import Net
from rankinite.rankers.callbacks import History, Round, ValidationSet
from rankinite.rankers.early_stopping import BestRound, EarlyStopping
from rankinite.rankers.inputs import TrainingInputs

log = logging.getLogger("rankinite")


# Optimality, Sec. 7: where training accuracy falls, the learning rate is multiplied by this, with
# this probability.
RATE_DECAY = 0.8
DECAY_PROBABILITY = 0.3
# More steps, restarts and the like than any fit does; floats hold whole numbers up to here.
MOST_COUNTED = 1 << 53
# After divergence training restarts with the learning rate times this, at most this many times.
DIVERGENCE_DECAY = 0.1
MAX_DIVERGENCES = 8


@dataclass(frozen=True)
class LearningSchedule:
    """Steps of gradient descent: their sizes, and when to restart from random weights.

    Attributes
    ----------
    optimiser
        ``"adam"``, or ``"sgd"`` as in the papers.
    learning_rate
        The size of the first steps.
    n_epochs
        Number of epochs at most.
    patience
        Restart after this many epochs without an improvement (``"sgd"``).
    most_restarts
        Number of restarts at most; as many as epochs allow if None.
    weight_decay
        The share of the weights, times the learning rate, that a step takes away (``"adam"``).
    """

    optimiser: str
    learning_rate: float
    n_epochs: int
    patience: int | None
    most_restarts: int | None
    weight_decay: float


@dataclass(frozen=True, eq=False)
class State:
    """The state between two epochs.

    Attributes
    ----------
    n_epochs
        Number of epochs that are done.
    n_restarts, n_divergences
        Number of restarts from random weights, and of those because weights had diverged.
    restarted_at
        Number of epochs that were done at the last restart.
    learning_rate
        The learning rate.
    train_value
        The training set's measure after the last epoch.
    best_since_restart
        The best epoch since the last restart.
    weights, best_weights
        The weights, and those of the best of all epochs, as kernels take them.
    moments
        The moments of Adam.
    """

    n_epochs: int
    n_restarts: int
    n_divergences: int
    restarted_at: int
    learning_rate: float
    train_value: float
    best_since_restart: BestRound
    weights: Floats32
    best_weights: Floats32
    moments: AdamState


# The numbers that a checkpoint holds, in this order; the best epochs follow from the history.
WHOLE_NUMBERS = ("n_epochs", "n_restarts", "n_divergences", "restarted_at")
NUMBERS = (*WHOLE_NUMBERS, "learning_rate", "train_value")


class NetLearner:
    """A net under training; a round is an epoch.

    Parameters
    ----------
    net
        The net before training.
    runner
        Computes epochs on the training data.
    schedule
        Sizes of steps, and restarts.
    inputs
        The training data, and the scores that the net's are added to.
    sets
        The sets that are measured after every epoch; with ``"sgd"`` the last is the training set.
    early_stopping
        Compares epochs.
    queries
        The queries of an epoch.
    """

    def __init__(
        self,
        net: Net,
        runner: EpochRunner,
        schedule: LearningSchedule,
        inputs: TrainingInputs,
        sets: Mapping[str, ValidationSet],
        early_stopping: EarlyStopping,
        queries: Integers,
    ) -> None:
        self.net = net
        self.runner = runner
        self.schedule = schedule
        self.seed = inputs.seed
        self.sets = sets
        self.early_stopping = early_stopping
        self._queries = queries
        self._data = inputs.data
        self._start = inputs.scores[0]
        # Ranks of features are made once, and not for every epoch.
        self._inputs = {
            name: net.inputs_of(measured.data.matrix, measured.data.rows)
            for name, measured in sets.items()
        }
        weights = net.packed()
        self.state = State(
            n_epochs=0, n_restarts=0, n_divergences=0, restarted_at=0,
            learning_rate=schedule.learning_rate, train_value=-np.inf,
            best_since_restart=BestRound(), weights=weights, best_weights=weights,
            moments=self._new_moments(),
        )  # fmt: skip
        self._next = self.state

    @property
    def inputs(self) -> list[NDArray[np.float32]]:
        """The weights before training, which may come from another fit."""
        inputs = self.net.inputs
        cut_points = [] if inputs.ranks is None else [inputs.ranks.values]
        return [self.net.weights, inputs.means, inputs.scales, *cut_points]

    @property
    def n_rounds(self) -> int:
        """Number of epochs that were committed."""
        return self.state.n_epochs

    @property
    def is_done(self) -> bool:
        """Whether there are no restarts left, and the weights do not improve."""
        most = self.schedule.most_restarts
        return most is not None and self.state.n_restarts >= most and self._is_flat()

    @property
    def best(self) -> Net:
        """The net after its best epoch."""
        return self.net.with_packed(self.state.best_weights)

    def step(self) -> None:
        """Compute one more epoch, from random weights if these do not improve."""
        # A restart belongs to the round: if that is interrupted, neither has happened.
        state = self._after_epoch(self._restarted(self.state) if self._is_flat() else self.state)
        # Scores may overflow while all weights are still finite.
        while (
            not self.net.with_packed(state.weights).is_bounded
            or not np.isfinite(self.runner.scores).all()
        ):
            state = self._after_epoch(self._restarted_with_lower_rate(state))
        self._next = state

    def validation_scores(self, name: str) -> Floats:
        """Return the scores of a set after the epoch, in one row."""
        net = self.net.with_packed(self._next.weights)
        return net.add_scores(self.sets[name].start[0].copy(), self._inputs[name])[np.newaxis]

    def commit(self, done: Round, *, is_best: bool) -> None:
        """Take over the epoch; keep its weights if it is the best."""
        state = replace(
            self._next,
            n_epochs=done.number,
            best_since_restart=self.early_stopping.update(self._next.best_since_restart, done),
        )
        if is_best:
            state = replace(state, best_weights=state.weights.copy())
        if self.schedule.optimiser == "sgd":
            state = self._with_decayed_rate(state, done)
        self.state = state

    def train_scores(self) -> Floats:
        """Return the scores of the training documents by the weights after the last epoch.

        The scores that the runner has are of older weights: it computed those of a query before
        the steps that came after it.
        """
        net = self.net.with_packed(self.state.weights)
        return net.add_to(self._start.copy(), self._data.matrix, self._data.rows)[np.newaxis]

    def to_content(self) -> Content:
        """Return the state after the last epoch."""
        state = self.state
        arrays = {
            "numbers": np.array([float(getattr(state, name)) for name in NUMBERS]),
            "weights": state.weights,
            "best_weights": state.best_weights,
            "first": state.moments.first_moment,
            "second": state.moments.second_moment,
            "n_steps": np.array([state.moments.n_steps]),
        }
        return Content({}, arrays)

    def n_rounds_in(self, content: Content) -> int:
        """Return the number of epochs that a checkpoint holds."""
        return int(self._numbers_in(content)["n_epochs"])

    def restore(self, content: Content, n_rounds: int, history: History) -> None:
        """Resume from the state of a checkpoint; it cannot be an earlier one."""
        numbers, arrays = self._numbers_in(content), content.arrays
        if numbers["n_epochs"] != n_rounds:
            raise ModelFileError(
                f"has {int(numbers['n_epochs'])} epochs, and the fit is to have {n_rounds}"
            )
        # The best epochs are not in the file, because they follow from the history.
        restarted_at = int(numbers["restarted_at"])
        best = BestRound(improved=restarted_at)
        for done in history.rounds(restarted_at, n_rounds):
            best = self.early_stopping.update(best, done)
        self.state = State(
            **{
                name: int(value) if name in WHOLE_NUMBERS else value
                for name, value in numbers.items()
            },
            best_since_restart=best,
            weights=arrays["weights"].copy(),
            best_weights=arrays["best_weights"].copy(),
            moments=AdamState(
                arrays["first"].copy(), arrays["second"].copy(), int(arrays["n_steps"][0])
            ),
        )

    def _numbers_in(self, content: Content) -> dict[str, Any]:
        """Return the numbers of a checkpoint, or refuse one that is not of this net."""
        arrays, n = content.arrays, len(self.state.weights)
        n_moments = len(self.state.moments.first_moment)
        numbers = checked_array(arrays, "numbers", np.float64, len(NUMBERS), low=None)
        checked_array(arrays, "n_steps", np.int64, 1, low=0, high=MOST_COUNTED)
        checked_array(arrays, "second", np.float32, n_moments, low=0)
        checked_array(arrays, "first", np.float32, n_moments)
        of_weights = [
            checked_array(arrays, name, np.float32, n) for name in ("weights", "best_weights")
        ]
        by_name = dict(zip(NUMBERS, numbers.tolist(), strict=True))
        is_bounded = all(self.net.with_packed(weights).is_bounded for weights in of_weights)
        # What only fills rows up stays 0 for ever.
        is_padding = np.ones(n, np.bool_)
        is_padding[self.net.positions] = False
        rows = [*of_weights, *([arrays["first"], arrays["second"]] if n_moments else [])]
        if not _are_possible(by_name) or not is_bounded or any(r[is_padding].any() for r in rows):
            raise ModelFileError("holds numbers that no fit comes to")
        return by_name

    def _new_moments(self) -> AdamState:
        is_adam = self.schedule.optimiser == "adam"
        return AdamState.zeros(len(self.net.packed())) if is_adam else AdamState.empty()

    def _restarted(self, state: State) -> State:
        """Return the state with new random weights."""
        # Number 0 are the weights before the first epoch.
        random = generator(self.seed, "weights", state.n_restarts + 1)
        return replace(
            state,
            n_restarts=state.n_restarts + 1,
            restarted_at=state.n_epochs,
            learning_rate=self.schedule.learning_rate * DIVERGENCE_DECAY**state.n_divergences,
            # Nothing is smaller, so the first epoch does not lower the rate.
            train_value=-np.inf,
            # Patience counts from the restart, and is not over at once.
            best_since_restart=BestRound(improved=state.n_epochs),
            weights=Net.draw(
                self.net.inputs, self.net.hidden, self.net.activation, random
            ).packed(),
            moments=self._new_moments(),
        )

    def _after_epoch(self, state: State) -> State:
        """Return the state with the weights after going through the queries once."""
        number = state.n_epochs
        order = generator(self.seed, "epoch", number).permutation(self._queries)
        weights = state.weights.copy()
        # Objectives that change by the round begin anew with new weights.
        since_restart = number - state.restarted_at
        moments = self.runner.run(
            order,
            since_restart,
            weights,
            state.moments,
            self._current_rate(state),
            self.schedule.weight_decay,
        )
        return replace(state, weights=weights, moments=moments)

    def _restarted_with_lower_rate(self, state: State) -> State:
        """Return the state with new weights and a lower rate, after weights have diverged."""
        if state.n_divergences >= MAX_DIVERGENCES:
            raise UsageError(
                "LambdaRank: the weights diverge, even with a learning rate of "
                f"{state.learning_rate:g}; give a smaller learning_rate than "
                f"{self.schedule.learning_rate:g}, or labels and features of a usual size"
            )
        log.warning(
            "training: the weights diverge in epoch %d with a learning rate of %g; training "
            "restarts from random weights with a tenth of it (a smaller learning_rate avoids this)",
            state.n_epochs + 1,
            state.learning_rate,
        )
        return self._restarted(replace(state, n_divergences=state.n_divergences + 1))

    def _current_rate(self, state: State) -> float:
        """Return the learning rate of an epoch; that of Adam falls to 0 along a cosine."""
        if self.schedule.optimiser == "sgd":
            return state.learning_rate
        # Adam restarts only if weights have diverged; the cosine then spans the epochs left.
        n_left = max(self.schedule.n_epochs - state.restarted_at, 1)
        share = (state.n_epochs - state.restarted_at) / n_left
        return state.learning_rate * 0.5 * (1.0 + cospi(share))

    def _is_flat(self) -> bool:
        """Tell whether no epoch has improved for long enough to restart."""
        state, patience = self.state, self.schedule.patience
        if self.schedule.optimiser != "sgd" or patience is None:
            return False
        return state.n_epochs - state.best_since_restart.improved >= patience

    def _with_decayed_rate(self, state: State, done: Round) -> State:
        """Return the state with a lower rate, sometimes, if training accuracy has fallen."""
        # With sgd the training set is always measured, and is the last; its first measure counts.
        *_, of_training_set = done.values.values()
        train_value = next(iter(of_training_set.values()))
        draw = generator(self.seed, "rate", done.number).random()
        if train_value < state.train_value and draw < DECAY_PROBABILITY:
            state = replace(state, learning_rate=state.learning_rate * RATE_DECAY)
        return replace(state, train_value=train_value)


def _are_possible(numbers: Mapping[str, float]) -> bool:
    """Tell whether a checkpoint's numbers can be those of a fit."""
    whole = [numbers[name] for name in WHOLE_NUMBERS]
    return (
        all(0 <= value < MOST_COUNTED and value == int(value) for value in whole)
        and numbers["restarted_at"] <= numbers["n_epochs"]
        and numbers["n_divergences"] <= MAX_DIVERGENCES
        and 0.0 < numbers["learning_rate"] < np.inf
        # Nothing is smaller than the value before the first epoch.
        and numbers["train_value"] <= LARGEST
    )
