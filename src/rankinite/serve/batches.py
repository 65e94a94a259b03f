"""Documents of requests as a matrix, whichever way they came, and their scores."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import DataError, RankiniteError, UsageError
from rankinite.core.format import some_of
from rankinite.core.types import Floats, Floats32
from rankinite.data.ranking_data import RankingData
from rankinite.rankers.base import Base
from rankinite.rankers.ranker import Ranker

if TYPE_CHECKING:
    from rankinite.explanation.attribution import Attribution

# What a feature of a request can be: a number, the text of a category, or missing.
Value = float | str | None


class RequestError(RankiniteError):
    """A request that cannot be answered.

    Parameters
    ----------
    status
        The HTTP status that says so.
    reason
        What is wrong, and what was expected.
    retry_after
        After how many seconds the client may try again; None if that is of no use.
    """

    def __init__(self, status: int, reason: str, retry_after: int | None = None) -> None:
        super().__init__(status, reason, retry_after)
        self.status = status
        self.reason = reason
        self.retry_after = retry_after

    def __str__(self) -> str:
        return self.reason


def bad_request(reason: str) -> RequestError:
    """Return the error of a request that is not as expected."""
    return RequestError(400, reason)


@dataclass(frozen=True)
class Batch:
    """The documents of a request.

    Attributes
    ----------
    X
        Their features, query by query.
    sizes
        The number of documents of each query.
    base_scores
        For a ranker that was fitted on top of scores: those of these documents.
    """

    X: Floats32
    sizes: Sequence[int]
    base_scores: Floats | None = None


def needs_base_scores(ranker: Ranker) -> bool:
    """Tell whether a ranker was fitted on top of scores, which no model file has for others."""
    return Base(type(ranker).__name__, getattr(ranker, "base", None)).is_scores


def score(ranker: Ranker, batch: Batch) -> Floats:
    """Return the scores of the documents of a request."""
    if len(batch.X) == 0:
        return np.zeros(0)
    options: dict[str, Any] = {}
    if needs_base_scores(ranker):
        if batch.base_scores is None:
            raise bad_request(
                "this model was trained on top of scores of another one; give those scores, as "
                "base_score of each document or base_scores of a query (0 for what was learned on "
                "top)"
            )
        options["base_scores"] = batch.base_scores
    elif batch.base_scores is not None:
        raise bad_request("there are base scores, and this model needs none; leave them out")
    try:
        scores = ranker.predict(
            batch.X, np.repeat(np.arange(len(batch.sizes)), batch.sizes), **options
        )
    except DataError as problem:
        raise bad_request(str(problem)) from None
    return scores


def explained(ranker: Ranker, batch: Batch, codes: Mapping[int, Mapping[str, int]]) -> Attribution:
    """Return what each feature adds to the score of each document of a request."""
    # Here, because requests that ask for it are few, and the first one loads its code.
    from rankinite.explanation.attribution import attribute

    names = ranker.feature_names_
    data = RankingData(
        batch.X,
        qid=np.repeat(np.arange(len(batch.sizes)), batch.sizes),
        feature_names=names,
        categories={names[j]: list(texts) for j, texts in codes.items() if texts},
    )
    try:
        return attribute(ranker, data)
    except (DataError, UsageError) as problem:
        raise bad_request(str(problem)) from None


class Columns:
    """The features of a model: where each stands, and the codes of its categories.

    Parameters
    ----------
    ranker
        The model.
    """

    def __init__(self, ranker: Ranker) -> None:
        self.names: Sequence[str] = tuple(ranker.feature_names_)
        self.places = {name: j for j, name in enumerate(self.names)}
        self.codes: dict[int, Mapping[str, int]] = {
            self.places[name]: codes for name, codes in ranker.categories_.items()
        }

    def __len__(self) -> int:
        return len(self.names)

    def place(self, name: str) -> int:
        """Return the column of a feature."""
        if name not in self.places:
            near = difflib.get_close_matches(name[:200], self.names, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"it knows {some_of(list(self.names))}"
            raise bad_request(
                f"the model has no feature {shortened(name)}; {hint} "
                '("ignore_unknown": true leaves out what it does not know)'
            )
        return self.places[name]

    def chosen(self, names: Iterable[str], *, ignore_unknown: bool) -> list[int]:
        """Return the columns of some features, each of which may be there once; -1 if ignored."""
        places = [
            self.places.get(name, -1) if ignore_unknown else self.place(name) for name in names
        ]
        known = [place for place in places if place >= 0]
        if len(set(known)) < len(known):
            twice = next(place for place in known if known.count(place) > 1)
            raise bad_request(f"the feature {self.names[twice]!r} is there twice; expected once")
        return places

    def by_name(self, features: Mapping[str, Value], *, ignore_unknown: bool) -> list[Value]:
        """Return the values of a document in the order of the columns; absent ones are missing."""
        if not ignore_unknown and not features.keys() <= self.places.keys():
            for name in features:
                self.place(name)
        return [features.get(name) for name in self.names]

    def matrix(self, rows: Sequence[Sequence[Value]]) -> Floats32:
        """Return the matrix of rows that have a value for each column."""
        X: Floats32
        if self.codes:
            rows = [self._coded(k, row) for k, row in enumerate(rows)]
        try:
            with np.errstate(over="ignore"):
                X = np.array(rows, np.float32).reshape(len(rows), len(self))
        except (ValueError, TypeError, OverflowError):
            raise self._explain(rows) from None
        # numpy would take "1.5" for a number.
        if not self.codes and any(str in set(map(type, row)) for row in rows):
            raise self._explain(rows)
        return X

    def _coded(self, k: int, row: Sequence[Value]) -> list[Value]:
        values = list(row)
        for place, codes in self.codes.items():
            if isinstance(values[place], str):
                # A category that training has not seen is missing.
                values[place] = codes.get(str(values[place]), math.nan)
        for place, value in enumerate(values):
            if isinstance(value, str):
                raise self._no_number(k, place, value)
        return values

    def _explain(self, rows: Sequence[Sequence[Value]]) -> RequestError:
        for k, row in enumerate(rows):
            for place, value in enumerate(row):
                if isinstance(value, str):
                    return self._no_number(k, place, value)
        return bad_request("a feature has a number that is too large for a 32-bit float")

    def _no_number(self, k: int, place: int, value: str) -> RequestError:
        return bad_request(
            f"feature {self.names[place]!r} of document {k} (counted from 0) is the text "
            f"{shortened(value)}; expected a number, or null for missing"
        )


def shortened(text: str, most: int = 60) -> str:
    """Return a text of a client in quotes, of limited length."""
    return repr(text if len(text) <= most else text[:most] + "...")


def stacked(matrices: Sequence[NDArray[np.float32]], n_columns: int) -> Floats32:
    """Return matrices one below the other."""
    if len(matrices) == 1:
        return matrices[0]
    return np.concatenate([np.zeros((0, n_columns), np.float32), *matrices])
