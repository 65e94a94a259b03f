"""Climbing: a net's weights follow an objective, one epoch after the other.

All that an epoch draws is keyed by the seed and its number, and what an epoch leaves behind is one
value, taken on at its end. So a fit that goes on from a checkpoint gives the bytes of one that was
never stopped.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.container import Content
from rankinite.core.errors import ModelFileError, UsageError
from rankinite.core.random import generator
from rankinite.core.types import Floats, Floats32
from rankinite.data.ranking_data import RankingData
from rankinite.nets.epochs import AdamState, EpochRunner
from rankinite.nets.net import Net
from rankinite.rankers.judging import Judging, Standing
from rankinite.rankers.manifest import read_history, write_history
from rankinite.rankers.rounds import History, Round, Stopping, Watched

log = logging.getLogger("rankinite")


# Optimality, Sec. 7: where training accuracy falls, the rate does, by this and so often.
SLOWER = 0.8
HOW_OFTEN = 0.3
# Floats32 that reach this have run away.
LARGEST_WEIGHT = 1e15
# After running away training begins again with a rate that is so much smaller, so many times.
MUCH_SLOWER = 0.1
MOST_FLIGHTS = 8


@dataclass(frozen=True)
class Pace:
    """How a net is taught.

    Attributes
    ----------
    optimiser
        ``"adam"``, or ``"sgd"`` as in the papers.
    learning_rate
        How large the first steps are.
    n_epochs
        How many epochs there are.
    patience
        After so many epochs without one that improves, weights are drawn anew (``"sgd"``).
    most_restarts
        How often weights are drawn anew at most; as often as epochs allow if None.
    weight_decay
        What share of the weights, times the learning rate, a step takes away (``"adam"``).
    """

    optimiser: str
    learning_rate: float
    n_epochs: int
    patience: int | None
    most_restarts: int | None
    weight_decay: float


@dataclass(frozen=True, eq=False)
class State:
    """What an epoch leaves to the next.

    Attributes
    ----------
    n_epochs
        How many are done.
    n_restarts, n_flights
        How often weights were drawn anew, and how often because they had run away.
    since
        How many epochs were done when this began from random weights.
    rate
        The learning rate.
    train
        The training set's measure after the last epoch.
    standing, standing_since
        How all epochs compare, and those since then.
    weights, best_weights
        As kernels take them.
    moments
        Those of Adam.
    """

    n_epochs: int
    n_restarts: int
    n_flights: int
    since: int
    rate: float
    train: float
    standing: Standing
    standing_since: Standing
    weights: Floats32
    best_weights: Floats32
    moments: AdamState


# How epochs compare follows from the history.
WHOLE = ("n_epochs", "n_restarts", "n_flights", "since")
NUMBERS = (*WHOLE, "rate", "train")


class Climb:
    """One fit under way.

    Parameters
    ----------
    net
        The net before training.
    teacher
        The training data and the objective.
    pace
        How steps are taken.
    seed
        The seed of the fit.
    watched
        The sets that are measured after every epoch; the last is the training set if ``"sgd"``
        needs it.
    judging
        What decides between epochs.
    queries
        The queries that an epoch goes through.
    data, start
        The training data, and the scores that the net's are added to.
    """

    def __init__(
        self,
        net: Net,
        teacher: EpochRunner,
        pace: Pace,
        seed: int,
        watched: Mapping[str, Watched],
        judging: Judging,
        queries: NDArray[np.int64],
        data: RankingData,
        start: Floats,
    ) -> None:
        self.net = net
        self.teacher = teacher
        self.pace = pace
        self.seed = seed
        self.watched = watched
        self.judging = judging
        self.history = History({name: {} for name in watched})
        self._queries = queries
        self._data = data
        self._start = start
        weights = net.packed()
        self.state = State(
            n_epochs=0, n_restarts=0, n_flights=0, since=0, rate=pace.learning_rate,
            train=-np.inf, standing=Standing(), standing_since=Standing(), weights=weights,
            best_weights=weights, moments=self._new_moments(),
        )  # fmt: skip

    @property
    def fixed(self) -> list[NDArray[np.float32]]:
        """The weights that the fit begins with, which may have been learned before."""
        return [self.net.weights, self.net.inputs.means, self.net.inputs.scales]

    @property
    def n_rounds(self) -> int:
        """How many epochs are done."""
        return self.state.n_epochs

    @property
    def is_done(self) -> bool:
        """Whether weights may not be drawn anew any more, and do not get better."""
        most = self.pace.most_restarts
        return most is not None and self.state.n_restarts >= most and self._is_flat()

    @property
    def best(self) -> Net:
        """The net after its best epoch."""
        return self.net.with_packed(self.state.best_weights)

    def step(self) -> Round:
        """Do one more epoch, from new weights if these do not get better."""
        state = self._taught(self._restarted(self.state) if self._is_flat() else self.state)
        while not _is_sound(state.weights) or not np.isfinite(self.teacher.scores).all():
            state = self._taught(self._fled(state))
        values = self._measure(state.weights)
        self.history.add(values)
        self.state = self._judged(state, values)
        return Round(self.state.n_epochs, values)

    def train_scores(self) -> Floats:
        """Return the scores of the training documents by the weights after the last epoch.

        Those that the teacher has are of the weights when it last came by.
        """
        net = self.net.with_packed(self.state.weights)
        return net.add_to(self._start.copy(), self._data.matrix, self._data.rows)[np.newaxis]

    def to_content(self) -> Content:
        """Return the state, and the history until then."""
        state = self.state
        history = write_history(self.history.first(self.n_rounds).values)
        arrays = {
            "numbers": np.array([float(getattr(state, name)) for name in NUMBERS]),
            "weights": state.weights,
            "best_weights": state.best_weights,
            "first": state.moments.first_moment,
            "second": state.moments.second_moment,
            "n_steps": np.array([state.moments.n_steps]),
        }
        return Content({"history": history}, arrays)

    def go_on_from(self, content: Content, stopping: Stopping) -> int:
        """Go on from the state that a checkpoint kept; return how many epochs it has."""
        arrays = content.arrays
        like = self.to_content().arrays
        if arrays.keys() != like.keys() or any(
            arrays[name].shape != like[name].shape or arrays[name].dtype != like[name].dtype
            for name in like
        ):
            raise ModelFileError("holds another net than that of the fit")
        numbers = dict(zip(NUMBERS, arrays["numbers"].tolist(), strict=True))
        if not _is_possible(numbers, arrays):
            raise ModelFileError("holds numbers that no fit comes to")
        n_epochs = int(numbers["n_epochs"])
        history = History(read_history(content.manifest.get("history"), n_epochs))
        history.refuse_others(self.watched)
        if n_epochs > stopping.most:
            raise ModelFileError(f"has {n_epochs} epochs, and the fit is to have {stopping.most}")
        self.history = history
        self.state = State(
            **{name: int(value) if name in WHOLE else value for name, value in numbers.items()},
            standing=self._standing(0, n_epochs),
            standing_since=self._standing(int(numbers["since"]), n_epochs),
            weights=arrays["weights"].copy(),
            best_weights=arrays["best_weights"].copy(),
            moments=AdamState(
                arrays["first"].copy(), arrays["second"].copy(), int(arrays["n_steps"][0])
            ),
        )
        return n_epochs

    def _standing(self, since: int, n_epochs: int) -> Standing:
        """Return how epochs ``since + 1`` to ``n_epochs`` compare."""
        standing = Standing(improved=since)
        for done in self.history.rounds(since, n_epochs):
            standing = self.judging.after(standing, done.number, done.values)
        return standing

    def _new_moments(self) -> AdamState:
        adam = self.pace.optimiser == "adam"
        return AdamState.zeros(len(self.net.packed())) if adam else AdamState.empty()

    def _restarted(self, state: State) -> State:
        """Return the state with new weights."""
        random = generator(self.seed, "weights", state.n_restarts + 1)
        return replace(
            state,
            n_restarts=state.n_restarts + 1,
            since=state.n_epochs,
            rate=self.pace.learning_rate * MUCH_SLOWER**state.n_flights,
            train=-np.inf,
            standing_since=Standing(improved=state.n_epochs),
            weights=Net.draw(self.net.inputs, self.net.hidden, random).packed(),
            moments=self._new_moments(),
        )

    def _taught(self, state: State) -> State:
        """Return the state after going through the queries once."""
        number = state.n_epochs
        order = generator(self.seed, "epoch", number).permutation(self._queries)
        weights = state.weights.copy()
        since = number - state.since  # objectives that change begin anew with new weights
        moments = self.teacher.run(
            order, since, weights, state.moments, self._rate(state), self.pace.weight_decay
        )
        return replace(state, weights=weights, moments=moments)

    def _fled(self, state: State) -> State:
        """Return the state with new weights, and a smaller rate, after weights have run away."""
        if state.n_flights >= MOST_FLIGHTS:
            raise UsageError(
                f"LambdaRank: the weights run away, even with a learning rate of {state.rate:g}; "
                f"give a smaller learning_rate than {self.pace.learning_rate:g}, or labels and "
                "features of a usual size"
            )
        log.warning(
            "training: the weights run away in epoch %d with a learning rate of %g; they are "
            "drawn anew, with a tenth of it (a smaller learning_rate avoids this)",
            state.n_epochs + 1,
            state.rate,
        )
        return self._restarted(replace(state, n_flights=state.n_flights + 1))

    def _rate(self, state: State) -> float:
        if self.pace.optimiser == "sgd":
            return state.rate
        share = (state.n_epochs - state.since) / max(self.pace.n_epochs - state.since, 1)
        return state.rate * 0.5 * (1.0 + math.cos(math.pi * share))

    def _is_flat(self) -> bool:
        """Tell whether no epoch has improved for long enough to begin anew."""
        state, patience = self.state, self.pace.patience
        if self.pace.optimiser != "sgd" or patience is None:
            return False
        return state.n_epochs - state.standing_since.improved >= patience

    def _measure(self, weights: Floats32) -> dict[str, dict[str, float]]:
        net = self.net.with_packed(weights)
        values = {}
        for name, found in self.watched.items():
            scores = net.add_to(found.start[0].copy(), found.data.matrix, found.data.rows)
            # No query of the training set may count, and then it is worth nothing.
            values[name] = {m: float(np.nan_to_num(v)) for m, v in found.measure(scores).items()}
        return values

    def _judged(self, state: State, values: Mapping[str, Mapping[str, float]]) -> State:
        """Return the state after an epoch with these values."""
        number = state.n_epochs + 1
        state = replace(
            state,
            n_epochs=number,
            standing=self.judging.after(state.standing, number, values),
            standing_since=self.judging.after(state.standing_since, number, values),
        )
        if state.standing.best == number:
            state = replace(state, best_weights=state.weights.copy())
        if self.pace.optimiser == "sgd":
            *_, of_training_set = values.values()
            trained = next(iter(of_training_set.values()))
            draw = generator(self.seed, "rate", number).random()
            if trained < state.train and draw < HOW_OFTEN:
                state = replace(state, rate=state.rate * SLOWER)
            state = replace(state, train=trained)
        return state


def _is_sound(weights: Floats32) -> bool:
    with np.errstate(invalid="ignore"):
        return bool((np.abs(weights) < LARGEST_WEIGHT).all())


def _is_possible(numbers: Mapping[str, float], arrays: Mapping[str, NDArray[Any]]) -> bool:
    """Tell whether a checkpoint's numbers can be those of a fit."""
    whole = [numbers[name] for name in WHOLE]
    return (
        all(0 <= value < 1 << 53 and value == int(value) for value in whole)
        and numbers["since"] <= numbers["n_epochs"]
        and 0.0 < numbers["rate"] < np.inf
        and not np.isnan(numbers["train"])
        and _is_sound(arrays["weights"])
        and _is_sound(arrays["best_weights"])
        and bool(np.isfinite(arrays["first"]).all() and (arrays["second"] >= 0.0).all())
        and bool((arrays["n_steps"] >= 0).all())
    )
