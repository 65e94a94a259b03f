"""LambdaRank: nets that follow the lambda gradient of a measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankinite.core.container import Content
from rankinite.core.errors import ModelFileError, UsageError
from rankinite.core.params import Constraint, Either, OneOf, Real, Whole
from rankinite.core.progress import Progress
from rankinite.core.random import generator
from rankinite.core.types import Floats
from rankinite.data.checks import data_set
from rankinite.data.ranking_data import RankingData
from rankinite.measures.text import parse_measures
from rankinite.nets.epochs import Teacher
from rankinite.nets.net import MOST_UNITS, Net, Standardiser
from rankinite.objectives.objective import Objective
from rankinite.objectives.parse import parse_objective
from rankinite.rankers.along import AlongNet
from rankinite.rankers.climbing import Climb, Pace
from rankinite.rankers.diagnostics import Diagnostics
from rankinite.rankers.inputs import Valid, check_features, refuse_unknown, that_count
from rankinite.rankers.judging import Judging
from rankinite.rankers.learner import Beginning, Learner
from rankinite.rankers.manifest import Manifest
from rankinite.rankers.rounds import Callback, Stopping, Watched

TRAIN = "train"
ALL = "all"
# If nobody says: few are enough for one, and the winners had 500 of the other.
EPOCHS = {"adam": 100, "sgd": 500}
WHOLE_UNITS = Whole(0, MOST_UNITS)


@dataclass(frozen=True)
class _Hidden:
    """How many units hidden layers have: one number, or one for each layer."""

    def allows(self, value: Any) -> bool:
        if isinstance(value, (list, tuple)):
            return all(Whole(1, MOST_UNITS).allows(one) for one in value)
        return WHOLE_UNITS.allows(value)

    def __str__(self) -> str:
        return (
            f"a whole number from 0 (a linear net) to {MOST_UNITS}, or several from 1, one for "
            "each hidden layer"
        )


class LambdaRank(Learner):
    """A net that follows lambda gradients (Optimality; Ensemble, Sec. 4.1 and 4.2).

    Features are standardised inside the model; a missing one counts as the mean, and one more than
    ten standard deviations from it as ten. With a ``base`` the net's scores are added to those of
    another ranker.

    Without a validation set the training set decides which epoch is best; its curve is then
    ``history_["train"]``.

    Parameters
    ----------
    measure
        What to improve, as a text or a value: ``"NDCG"``, ``"ERR"``, ``"MAP@10"``; tiers, as in
        ``"NDCG@3 > CNDCG@3[clicks]"`` (see `Tiered`); ``"RankNet"``; or an objective, such as a
        `Transition`.
    hidden
        How many units the hidden layer has, or several for several layers; 0 is a linear net.
    optimiser
        ``"adam"``, whose rate falls to 0 along a cosine; or ``"sgd"``, the papers' way: straight
        along the lambdas, at a rate that is multiplied by 0.8 with a chance of 30 % whenever
        training accuracy has fallen, and from new random weights whenever ``patience`` is over
        (Optimality, Sec. 7). With ``"adam"`` nets were better on every validation set that was
        tried, in a tenth of the time.
    learning_rate
        How large the first steps are.
    n_epochs
        How many times to go through the queries at most; None is 100 with ``"adam"`` and 500, as
        the winners had, with ``"sgd"``.
    queries_per_step
        How many queries a step is for, or ``"all"``.
    weight_decay
        ``"adam"``: what share of the weights, times the rate, every step takes away.
    patience
        After so many epochs without improvement stop (``"adam"``), or draw new weights
        (``"sgd"``); never if None.
    most_restarts
        ``"sgd"``: how often new weights are drawn at most; as often as there is time if None.
    min_improvement
        What counts as an improvement.
    truncation, normalise
        See `Lambdas`.
    base
        A fitted ranker, or one score for each training document, to add to.
    valid_measure
        What validation sets are measured by; the first, tier after tier, decides. The measure of
        training if None.
    random_state
        The seed; None for another one every time.

    Attributes
    ----------
    net_
        The net that predict uses.
    best_epoch_ : int
        The epoch whose weights are kept.
    history_ : dict
        The values of measures by set: ``history_["valid"]["NDCG@10"]`` has one value an epoch.
    n_rounds_ : int
        How many epochs there were.
    seed_ : int
        The seed of the fit: ``random_state``, or what was drawn from it.

    Examples
    --------
    >>> import rankinite as rk
    >>> train = rk.polynomials(40, part="train", n_features=5)
    >>> model = rk.LambdaRank("NDCG@10", hidden=10, n_epochs=20).fit(train)
    >>> rk.evaluate(model.predict(train), train, "NDCG@10").mean["NDCG@10"] > 0.6
    True
    """

    rounds: ClassVar[str] = "epochs"
    free_parameters: ClassVar[Sequence[str]] = ("base",)
    constraints: ClassVar[Mapping[str, Constraint]] = {
        "hidden": _Hidden(),
        "optimiser": OneOf(list(EPOCHS)),
        "learning_rate": Real(0, low_open=True),
        "n_epochs": Either(Whole(1), OneOf([None])),
        "queries_per_step": Either(Whole(1), OneOf([ALL])),
        "patience": Either(Whole(1), OneOf([None])),
        "most_restarts": Either(Whole(0), OneOf([None])),
        "weight_decay": Real(0),
        "min_improvement": Real(0),
        "truncation": Either(Whole(1), OneOf([None])),
        "normalise": OneOf(["none", "deviation", "distance"]),
    }

    net_: Net
    best_epoch_: int
    start_: float

    def __init__(
        self,
        measure: Any = "NDCG",
        *,
        hidden: int | Sequence[int] = 25,
        optimiser: str = "adam",
        learning_rate: float = 1e-3,
        n_epochs: int | None = None,
        queries_per_step: int | str = 1,
        weight_decay: float = 0.2,
        patience: int | None = 50,
        most_restarts: int | None = None,
        truncation: int | None = None,
        normalise: str = "none",
        base: Any = None,
        valid_measure: Any = None,
        min_improvement: float = 0.0,
        random_state: Any = 0,
    ) -> None:
        self.measure = measure
        self.hidden = hidden
        self.optimiser = optimiser
        self.learning_rate = learning_rate
        self.n_epochs = n_epochs
        self.queries_per_step = queries_per_step
        self.patience = patience
        self.most_restarts = most_restarts
        self.weight_decay = weight_decay
        self.truncation = truncation
        self.normalise = normalise
        self.base = base
        self.valid_measure = valid_measure
        self.min_improvement = min_improvement
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        valid: Valid = None,
        query_weight: ArrayLike | None = None,
        valid_base: Any = None,
        callbacks: Sequence[Callback] = (),
        progress: Progress | None = None,
        checkpoint: str | Path | None = None,
        begin_with: LambdaRank | None = None,
        diagnostics: Diagnostics | None = None,
        **unknown: Any,
    ) -> Self:
        """Teach the net.

        Parameters
        ----------
        X, y, qid, valid, query_weight, valid_base
            As in `LambdaMART.fit`.
        callbacks
            Called with a `Round` after every epoch; one that returns True stops training.
        progress
            Who wants to know how far it is.
        checkpoint
            A file to keep the weights in while training, and to go on from if it is there.
        begin_with
            A fitted net of the same layers, whose weights to begin with; random ones if None, and
            whenever weights are drawn anew. What they are worth before the first epoch does not
            compete with what comes after it.
        diagnostics
            What to tell of lambdas and rankings after every epoch; see `Diagnostics`.
        """
        refuse_unknown(self._name, unknown)
        return self._fit(
            X,
            y,
            qid=qid,
            valid=valid,
            query_weight=query_weight,
            valid_base=valid_base,
            callbacks=callbacks,
            progress=progress,
            checkpoint=checkpoint,
            diagnostics=diagnostics,
            begin_with=begin_with,
        )

    @property
    def kept_rounds_(self) -> int:
        """The epoch whose weights are kept."""
        return self.best_epoch_

    def _objective(self) -> Objective:
        return parse_objective(self.measure, truncation=self.truncation, normalise=self.normalise)

    def _most_epochs(self) -> int:
        return EPOCHS[self.optimiser] if self.n_epochs is None else int(self.n_epochs)

    def _sizes(self) -> tuple[int, ...]:
        if isinstance(self.hidden, Sequence):
            return tuple(int(n) for n in self.hidden)
        return (int(self.hidden),) if self.hidden else ()

    def _stopping(self, watched: Mapping[str, Watched]) -> Stopping:
        waits = self.patience if self.optimiser == "adam" else None
        return Stopping(self._most_epochs(), waits, self._judging(watched))

    def _judging(self, watched: Mapping[str, Watched]) -> Judging:
        return Judging(next(iter(watched), TRAIN), self._deciding(), self.min_improvement)

    def _begin(
        self, beginning: Beginning, *, begin_with: LambdaRank | None = None, **_options: Any
    ) -> Climb:
        data, watched = beginning.data, dict(beginning.watched)
        if len(beginning.gradients.start) != 1:
            raise UsageError(
                f"LambdaRank: the objective has {len(beginning.gradients.start)} outputs, and a "
                "net has one score; use McRank, or another objective"
            )
        if TRAIN in watched:
            raise UsageError(
                f"LambdaRank: a validation set is called {TRAIN!r}, which is what the curve of "
                "the training set is called; give it another name"
            )
        queries, docs = that_count(data)
        counting = data if len(queries) == data.n_queries else data[queries]
        if self.optimiser == "sgd" or not watched:
            scores = beginning.scores[:, docs]
            watched[TRAIN] = self._watched("the training set", counting, scores)
        net = self._first_net(counting, beginning.seed, begin_with)
        start = np.ascontiguousarray(beginning.scores[0])
        teacher = Teacher(
            net,
            data.base,
            data.rows,
            data.offsets,
            beginning.gradients,
            start,
            len(queries) if self.queries_per_step == ALL else int(self.queries_per_step),
        )
        pace = Pace(
            self.optimiser, self.learning_rate, self._most_epochs(), self.patience,
            self.most_restarts, self.weight_decay,
        )  # fmt: skip
        judging = self._judging(beginning.watched)
        return Climb(net, teacher, pace, beginning.seed, watched, judging, queries, data, start)

    def _first_net(self, data: RankingData, seed: int, begin_with: LambdaRank | None) -> Net:
        """Return the net before the first epoch."""
        if begin_with is None:
            inputs = Standardiser.fit(data.base, data.rows, data.n_docs)
            return Net.draw(inputs, self._sizes(), generator(seed, "weights", 0))
        if not isinstance(begin_with, LambdaRank):
            raise UsageError(
                f"{self._name}: begin_with is a {type(begin_with).__name__}; expected a fitted "
                "LambdaRank (a ranker whose scores to add to is a base)"
            )
        begin_with._check_fitted()
        check_features(
            f"{self._name} with begin_with", begin_with.feature_names_, data.feature_names
        )
        if begin_with.net_.hidden != self._sizes():
            raise UsageError(
                f"{self._name}: begin_with has hidden={list(begin_with.net_.hidden)}, and this net "
                f"{list(self._sizes())}; give both the same"
            )
        return begin_with.net_

    def _keep(self, fit: Climb, start: Floats, best: int) -> None:
        self.net_ = fit.best
        self.best_epoch_ = best
        self.start_ = float(start[0])

    @property
    def _start(self) -> Floats:
        return np.array([self.start_])

    def predict(
        self, X: Any, qid: ArrayLike | None = None, *, base_scores: ArrayLike | None = None
    ) -> Floats:
        """Return one score a document; larger is better."""
        matrix, rows = self._features_of(X)
        scores = self._scores_before(X, qid, len(matrix if rows is None else rows), base_scores)
        return self.net_.add_to(scores[0], matrix, rows)

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
        >>> along = rk.LambdaRank(hidden=0, n_epochs=20).fit(train).along(train, "NDCG")
        >>> along.n_weights
        5
        """
        data_set(f"{self._name}.along", X)
        chosen = self._measures()[:1] if measure is None else parse_measures(measure)
        if len(chosen) != 1:
            raise UsageError(
                f"{self._name}.along: {measure!r} are {len(chosen)} measures; give one measure"
            )
        self._features_of(X)  # other features are refused
        scores = self._scores_before(X, None, X.n_docs, base_scores)
        return AlongNet(self.net_, X, chosen[0], scores[0])

    @property
    def feature_importances_(self) -> Floats:
        """The share of each feature in the slopes of the score."""
        self._check_fitted()
        slopes = self.net_.slopes(self.n_features_in_)
        total = slopes.sum()
        return slopes / total if total > 0 else slopes

    def importances(self) -> dict[str, float]:
        """Return how steep the score can be along each feature, by name, the steepest first.

        That is how far the score moves at most where the feature moves by a standard deviation.
        """
        self._check_fitted()
        slopes = self.net_.slopes(self.n_features_in_)
        order = np.argsort(-slopes, kind="stable")
        return {self.feature_names_[j]: float(slopes[j]) for j in order}

    def _arrays(self) -> dict[str, NDArray[Any]]:
        numbers = {"start": self._start, "best_epoch": np.array([self.best_epoch_])}
        return {**self.net_.to_arrays(), **numbers}

    def _set_arrays(self, content: Content, manifest: Manifest) -> None:
        self.net_ = Net.from_arrays(content.arrays, self.n_features_in_)
        if self.net_.hidden != self._sizes():
            raise ModelFileError("the net in the file has other layers than its parameters say")
        start, epoch = (content.arrays.get(name) for name in ("start", "best_epoch"))
        if start is None or start.shape != (1,) or not np.isfinite(start).all():
            raise ModelFileError("the file has no score to begin with")
        if epoch is None or epoch.shape != (1,) or not 0 <= epoch[0] <= manifest.n_rounds:
            raise ModelFileError("the file does not say which epoch was best")
        self.start_, self.best_epoch_ = float(start[0]), int(epoch[0])
