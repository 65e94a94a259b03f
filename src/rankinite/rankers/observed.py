"""A fit under way that is looked at after every round, and is not changed by that."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankinite.core.container import Content
from rankinite.core.types import Floats
from rankinite.rankers.diagnostics import Diagnostics
from rankinite.rankers.looks import Followed, Moment, Ranks, looks_at
from rankinite.rankers.rounds import Fit, History, Round, Stopping

log = logging.getLogger("rankinite")

DIAGNOSTICS = "diagnostics"


class Seen(NamedTuple):
    """How many rounds were done at the last look, and how documents stood then."""

    n_rounds: int
    order: NDArray[np.int64]


class Observed:
    """A fit that tells diagnostics of every round.

    Parameters
    ----------
    fit
        The fit.
    followed
        What it follows, and how its documents are ranked.
    diagnostics
        What is told; forgets what an earlier fit told it.
    """

    def __init__(self, fit: Fit, followed: Followed, diagnostics: Diagnostics) -> None:
        self._fit = fit
        self._followed = followed
        self._diagnostics = diagnostics
        self._ranks = Ranks(followed.targets)
        self._looks = looks_at(followed, diagnostics)
        diagnostics.begin([name for look in self._looks for name in look.names])
        self._seen = self._stand()

    @property
    def history(self) -> History:
        """The values of measures on validation sets."""
        return self._fit.history

    @property
    def fixed(self) -> Sequence[NDArray[Any]]:
        """What rounds depend on besides the data and the parameters."""
        return self._fit.fixed

    @property
    def n_rounds(self) -> int:
        """How many rounds are done."""
        return self._fit.n_rounds

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to learn."""
        return self._fit.is_done

    def train_scores(self) -> Floats:
        """Return the scores of the training documents after the last round."""
        return self._fit.train_scores()

    def step(self) -> Round:
        """Do one more round, and look at what it did."""
        done = self._fit.step()
        self._look()
        return done

    def to_content(self) -> Content:
        """Return all that is needed to go on, and the curves until now."""
        self._look()  # an interrupt may have come between a round and the look at it
        content = self._fit.to_content()
        kept = {DIAGNOSTICS: self._diagnostics.to_manifest()}
        return Content({**content.manifest, **kept}, content.arrays)

    def go_on_from(self, content: Content, stopping: Stopping) -> int:
        """Go on from what a checkpoint kept, and from its curves if it has these."""
        kept_rounds = self._fit.go_on_from(content, stopping)
        n_rounds = self._fit.n_rounds
        self._diagnostics.go_on_from(content.manifest.get(DIAGNOSTICS), n_rounds)
        if len(self._diagnostics.rounds) < n_rounds:
            log.info(
                "diagnostics: the first rounds were done without these; curves lack %d of %d",
                n_rounds - len(self._diagnostics.rounds),
                n_rounds,
            )
        self._seen = self._stand()
        return kept_rounds

    def _stand(self) -> Seen:
        """Return how documents stand."""
        order = self._ranks.order(self._followed.ranking(self._fit.train_scores()))
        return Seen(self._fit.n_rounds, order)

    def _look(self) -> None:
        """Look at the last round, unless that was done."""
        number = self._fit.n_rounds
        if number == self._seen.n_rounds:
            return
        scores = self._fit.train_scores()
        ranked_by = self._followed.ranking(scores)
        moment = Moment(scores, ranked_by, self._seen.order, self._ranks.order(ranked_by))
        values = [value for look in self._looks for value in look.values(moment)]
        self._diagnostics.add(number, values)
        self._seen = Seen(number, moment.order)
