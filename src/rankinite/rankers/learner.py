"""What rankers that learn in rounds have in common: how they are fitted, and kept in a file.

A round is a tree, or several, or an epoch. What a round is, and how a fitted ranker scores, is the
business of `TreeRanker` and `LambdaRank`.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankinite.core.container import Content
from rankinite.core.errors import DataError, ModelFileError, RankiniteError, UsageError
from rankinite.core.params import Whole, check
from rankinite.core.progress import Progress, Silent
from rankinite.core.types import Floats
from rankinite.data.ranking_data import RankingData
from rankinite.measures.measure import Measure
from rankinite.measures.text import MeasureLike, deciding_measure, parse_measures
from rankinite.measures.tiers import TieredMeasure
from rankinite.objectives.objective import Gradients, Objective, Targets
from rankinite.rankers.base import Based, is_model
from rankinite.rankers.checkpoint import Checkpoint, digest_of
from rankinite.rankers.diagnostics import Diagnostics
from rankinite.rankers.inputs import (
    Given,
    Valid,
    given_doc_weights,
    seed_of,
    that_count,
    training_data,
    validation_sets,
)
from rankinite.rankers.looks import Followed
from rankinite.rankers.manifest import Curves, Manifest, plain, write_history
from rankinite.rankers.observed import Observed
from rankinite.rankers.ranker import Ranker
from rankinite.rankers.rounds import Callback, Fit, Stopping, Watched, as_callbacks

log = logging.getLogger("rankinite")


# What validation sets are measured by if neither the user nor the objective says.
DEFAULT_MEASURE = "NDCG@10"


@dataclass(frozen=True)
class Beginning:
    """What a fit begins with.

    Attributes
    ----------
    data, targets
        The training data, and what is to be learned of it.
    gradients
        The objective, prepared.
    scores
        The scores before the first round, one row for each output.
    watched
        The validation sets by name.
    seed
        The seed of the fit.
    """

    data: RankingData
    targets: Targets
    gradients: Gradients
    scores: Floats
    watched: Mapping[str, Watched]
    seed: int


class Learner(Based):
    """A ranker that learns in rounds, on top of a base if it has one.

    Attributes
    ----------
    history_ : dict
        The values of measures on the validation sets: ``history_["valid"]["NDCG@10"]`` has one
        value a round.
    n_rounds_ : int
        How many rounds the fit did.
    seed_ : int
        The seed of the fit: ``random_state``, or what was drawn from it.
    """

    # What a round is called, of which there are several.
    rounds: ClassVar[str]
    # Parameters that may differ between a fit and the one that goes on from its checkpoint.
    free_parameters: ClassVar[Sequence[str]]

    random_state: Any
    valid_measure: Any
    history_: Curves
    n_rounds_: int
    seed_: int

    @property
    @abstractmethod
    def kept_rounds_(self) -> int:
        """The round after which the ranker was best, and as which it was kept."""

    @abstractmethod
    def _objective(self) -> Objective:
        """Return what the ranker follows."""

    @abstractmethod
    def _stopping(self, watched: Mapping[str, Watched]) -> Stopping:
        """Return when the fit has enough."""

    @abstractmethod
    def _begin(self, beginning: Beginning, **options: Any) -> Fit:
        """Return the fit, before its first round."""

    @abstractmethod
    def _keep(self, fit: Any, start: Floats, best: int) -> None:
        """Keep what the fit has come to: the best of its rounds."""

    @abstractmethod
    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Return what was learned, as arrays."""

    @abstractmethod
    def _set_arrays(self, content: Content, manifest: Manifest) -> None:
        """Take what was learned from a model file, or refuse it."""

    def _ranking(self, scores: Floats) -> Floats:
        """Return the scores that documents are ranked by, from those of the outputs."""
        first: Floats = scores[0]
        return first

    def _followed(self) -> MeasureLike:
        """Return the measure that is to be improved; a usual one if the objective has none."""
        return self._objective().measure or DEFAULT_MEASURE

    def _judges(self) -> Any:
        """Return what validation sets are measured by, one or several."""
        return self._followed() if self.valid_measure is None else self.valid_measure

    def _measures(self) -> Sequence[Measure]:
        return parse_measures(self._judges())

    def _deciding(self) -> Measure | TieredMeasure:
        """Return the first of the measures, with its tiers: by it the best round is chosen."""
        return deciding_measure(self._judges())

    def _check_measures(self) -> None:
        """Refuse texts that are no measures, before anything is done."""
        self._objective()
        self._measures()

    def _fit(
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
        diagnostics: Diagnostics | None = None,
        sample_weight: ArrayLike | None = None,
        **options: Any,
    ) -> Self:
        self._check_parameters()
        self._check_measures()
        called = as_callbacks(self._name, callbacks)
        given = training_data(self._name, X, y, qid, query_weight)
        data = given.data
        sets = validation_sets(self._name, valid, data.feature_names)
        weights = given_doc_weights(self._name, sample_weight, given)
        seed = seed_of(self._name, self.random_state)
        targets = _targets(data, weights, seed)
        gradients = self._objective().prepare(targets)
        start = gradients.start if self.base is None else np.zeros(len(gradients.start))
        watched = {name: self._watch(name, one, start, valid_base) for name, one in sets.items()}
        self._refuse_unmeasured(watched, data.top_grade)
        scores = self._start_scores(start, given, self.base, "base")
        beginning = Beginning(data, targets, gradients, scores, watched, seed)
        fit = self._begin(beginning, **options)
        stopping = self._stopping(watched)
        seen: Fit = fit if diagnostics is None else self._observed(fit, beginning, diagnostics)
        keeper = None
        if checkpoint is not None:
            keeper = self._keeper(beginning, fit, Path(checkpoint))
            keeper.resume(seen, stopping)
        try:
            self._learn(seen, stopping, called, progress or Silent(), keeper)
        except RankiniteError:
            raise  # of a fit that cannot be, nothing is kept
        except BaseException:
            self._take(beginning, fit, start, stopping)
            raise
        self._take(beginning, fit, start, stopping)
        return self

    def _take(self, beginning: Beginning, fit: Fit, start: Floats, stopping: Stopping) -> None:
        """Take what the fit has come to, by itself or until an interrupt."""
        self._remember(beginning.data)
        self.seed_ = beginning.seed
        # An interrupt may have come between a round's values and the round's end.
        self.n_rounds_ = fit.n_rounds
        self.history_ = fit.history.first(fit.n_rounds).values
        self._keep(fit, start, stopping.standing(fit.history, fit.n_rounds).best)

    def _observed(self, fit: Fit, beginning: Beginning, diagnostics: Diagnostics) -> Observed:
        """Return the fit with diagnostics switched on."""
        if not isinstance(diagnostics, Diagnostics):
            raise UsageError(
                f"{self._name}: diagnostics is a {type(diagnostics).__name__}; give a Diagnostics()"
            )
        queries, docs = that_count(beginning.data)
        counting = beginning.data[queries]
        watched = self._watched("the training set", counting, beginning.scores[:, docs])
        followed = Followed(
            self._objective(), beginning.gradients, beginning.targets, self._ranking, docs, watched
        )
        return Observed(fit, followed, diagnostics)

    def _watch(self, name: str, found: Given, start: Floats, valid_base: Any) -> Watched:
        scores = self._start_scores(start, found, *self._base_of(name, valid_base))
        return self._watched(f"the validation set {name!r}", found.data, scores)

    def _watched(self, called: str, data: RankingData, scores: Floats) -> Watched:
        try:
            return Watched(data, self._measures(), scores)
        except (DataError, UsageError) as problem:
            raise type(problem)(f"{self._name}: {called}: {problem}") from None

    def _refuse_unmeasured(self, watched: Mapping[str, Watched], top_grade: float) -> None:
        """Refuse validation sets that cannot tell anything, before training begins."""
        for name, found in watched.items():
            for measure, value in found.measure(self._ranking(found.start)).items():
                if np.isnan(value):
                    raise DataError(
                        f"{self._name}: no query of the validation set {name!r} counts for "
                        f"{measure}: none has a relevant document; give others, or another "
                        "valid_measure"
                    )
            graded = [str(m) for m in found.measures if getattr(m, "top_grade", 0.0) is None]
            if graded and found.data.top_grade != top_grade:
                log.warning(
                    "%s: the top grade of %r is %g, that of the training data %g; give both sets "
                    "the same top_grade",
                    ", ".join(graded),
                    name,
                    found.data.top_grade,
                    top_grade,
                )

    def _keeper(self, beginning: Beginning, fit: Fit, path: Path) -> Checkpoint:
        check(f"{self._name} with a checkpoint", "random_state", self.random_state, Whole(0))
        watched = beginning.watched
        digest = digest_of(
            {"": beginning.data, **{name: found.data for name, found in watched.items()}},
            [
                beginning.targets.doc_weight,
                beginning.scores,
                *(found.start for found in watched.values()),
                *fit.fixed,
                *beginning.gradients.checkpoint_arrays,
            ],
        )
        parameters = {
            name: value
            for name, value in self._plain_parameters().items()
            if name not in self.free_parameters
        }
        return Checkpoint(path, parameters, digest)

    def _learn(
        self,
        fit: Fit,
        stopping: Stopping,
        callbacks: Sequence[Callback],
        progress: Progress,
        keeper: Checkpoint | None,
    ) -> None:
        """Do rounds until there are enough; a Ctrl-C leaves what was done, and its checkpoint."""
        try:
            with progress.start("training", stopping.most, self.rounds) as bar:
                bar.advance(min(fit.n_rounds, stopping.most))
                standing = stopping.standing(fit.history, fit.n_rounds)
                while not stopping.has_enough(standing, fit.n_rounds):
                    if fit.is_done:
                        log.info(
                            "%s: there is nothing left to learn after %d rounds",
                            self._name,
                            fit.n_rounds,
                        )
                        break
                    done = fit.step()
                    standing = stopping.after(standing, done)
                    bar.advance(1)
                    bar.note(str(done))
                    if keeper is not None:
                        keeper.write_sometimes(fit)
                    answers = [callback(done) for callback in callbacks]
                    if any(answer is True for answer in answers):
                        break
        finally:
            if keeper is not None:
                keeper.write(fit)

    def _content(self) -> Content:
        if is_model(self.base) and not isinstance(self.base, Ranker):
            raise UsageError(
                f"{self._name}: the base is a {type(self.base).__name__}, which a model file "
                "cannot hold; give its scores as base, or a ranker of rankinite"
            )
        parameters = self._plain_parameters()
        if not Whole(0).allows(self.random_state):
            parameters["random_state"] = self.seed_
        manifest = {
            "parameters": parameters,
            "based_on_scores": self.base is not None and not is_model(self.base),
            "feature_names": list(self.feature_names_),
            "top_grade": self.top_grade_,
            "n_rounds": self.n_rounds_,
            "history": write_history(self.history_),
        }
        return Content(manifest, self._arrays())

    def _plain_parameters(self) -> dict[str, Any]:
        """Return the parameters as a file can hold them, without the base."""
        return {
            name: plain(value)
            for name, value in self.get_params(deep=False).items()
            if name != "base"
        }

    @classmethod
    def _from_content(cls, content: Content, base: Ranker | None) -> Self:
        manifest = Manifest.read(content.manifest)
        new = cls._with_parameters(manifest.parameters)
        new.feature_names_ = manifest.feature_names
        new.n_features_in_ = len(manifest.feature_names)
        new.top_grade_ = manifest.top_grade
        new.n_rounds_ = manifest.n_rounds
        new.history_ = manifest.history
        new.seed_ = new.random_state
        new._set_arrays(content, manifest)
        if manifest.based_on_scores or base is not None:
            new._set_base(np.zeros(0) if base is None else base)
        return new

    @classmethod
    def _with_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """Make an unfitted ranker of what a file says, if `fit` would take it."""
        try:
            new = cls(**parameters)
            new._check_parameters()
            check(cls.__name__, "random_state", new.random_state, Whole(0))
        except (TypeError, UsageError) as problem:
            raise ModelFileError(f"the manifest of the file is not understood: {problem}") from None
        return new


def _targets(data: RankingData, doc_weight: Floats | None, seed: int) -> Targets:
    return Targets(
        data.all_labels,
        data.offsets,
        data.top_grade,
        data.query_weight,
        doc_weight,
        seed,
    )
