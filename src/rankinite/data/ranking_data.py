"""RankingData: queries, their documents, features and labels; made once, checked once, shared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankinite.core.errors import DataError, UsageError
from rankinite.core.format import refuse_text, some_of
from rankinite.core.params import Whole, check
from rankinite.core.types import Floats, Integers
from rankinite.data import checks
from rankinite.data.samples import are_samples, origins
from rankinite.data.splits import fold_queries, split_queries


@dataclass(frozen=True, eq=False, init=False, repr=False)
class RankingData:
    """Queries with their documents: a matrix of features, labels, and what belongs to them.

    Immutable; splits, folds and slices share the feature matrix and hold only new indexes.

    Parameters
    ----------
    X
        Features, one row a document; NaN means missing. Kept as float32, without a copy if it
        already is that.
    y
        Labels, one a document: finite, at least 0. NaN means that the document has none, and is
        fine for one that has a label in a further source.
    qid
        The query of every document; documents of one query stand together.
    group_sizes
        Instead of ``qid``: how many documents each query has. Queries are then called 1, 2, ...
    labels
        Further label sources by name, one value a document; NaN means that the document has none.
    query_weight
        One weight a query.
    doc_ids, comments
        One text a document: its name, and what stood behind ``#`` in a text file.
    feature_names
        One name a feature; "1", "2", ... if not given.
    top_grade
        The largest label there can be; the largest label seen if not given.
    group
        Bring documents of one query together instead of refusing them when they stand apart.

    Attributes
    ----------
    base : float32 array
        The matrix of features, which several sets may share.
    rows : int64 array or None
        The row of ``base`` that holds each document; None if document i is row i.
    offsets : int64 array
        Query q has the documents ``offsets[q]`` to ``offsets[q + 1] - 1``.
    qids : array
        One id a query, as it stood in the file.

    Examples
    --------
    >>> data = RankingData(X=[[0.5], [0.1], [0.9]], y=[0, 1, 2], qid=[7, 7, 8])
    >>> data
    <RankingData: 2 queries, 3 documents, 1 feature, top grade 2>
    >>> data[1].X
    array([[0.9]], dtype=float32)
    """

    base: NDArray[np.float32]
    rows: Integers | None
    y: Floats
    offsets: Integers
    qids: NDArray[Any]
    labels: Mapping[str, Floats]
    query_weight: Floats | None
    feature_names: tuple[str, ...]
    top_grade: float
    _doc_ids: Any = field()
    _comments: Any = field()

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        *,
        group_sizes: ArrayLike | None = None,
        labels: Mapping[str, ArrayLike] | None = None,
        query_weight: ArrayLike | None = None,
        doc_ids: Sequence[str] | None = None,
        comments: Sequence[str] | None = None,
        feature_names: Sequence[str] | None = None,
        top_grade: float | None = None,
        group: bool = False,
    ) -> None:
        base = checks.feature_matrix(X)
        n_docs, n_features = base.shape
        names = checks.names_of_features(feature_names, n_features)
        checks.finite_features(base, names)
        grades = checks.label_array("y", y, n_docs)
        sources = {
            name: checks.source_array(name, values, n_docs)
            for name, values in (labels or {}).items()
        }
        checks.each_labelled(grades, sources)
        checks.some_labelled("y", grades)
        texts = {
            "_doc_ids": checks.text_array("doc_ids", doc_ids, n_docs),
            "_comments": checks.text_array("comments", comments, n_docs),
        }
        order, offsets, qids = checks.queries(qid, group_sizes, n_docs, group=group)
        weight = checks.weight_array(query_weight, len(qids))
        self._set(
            base=base,
            rows=order,
            y=grades if order is None else grades[order],
            offsets=offsets,
            qids=qids,
            labels={n: v if order is None else v[order] for n, v in sources.items()},
            query_weight=weight,
            feature_names=names,
            top_grade=checks.grade(top_grade, grades),
            **{n: t if t is None or order is None else t.take(order) for n, t in texts.items()},
        )

    def _set(self, **fields: Any) -> None:
        fields["labels"] = MappingProxyType(dict(fields["labels"]))
        for value in (*fields.values(), *fields["labels"].values()):
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def _trusted(cls, **fields: Any) -> Self:
        """Make a set of fields that are known to be right: a reader's, or parts of another set."""
        new = object.__new__(cls)
        new._set(**fields)
        return new

    def _with(self, **changes: Any) -> Self:
        return self._trusted(
            **{name: getattr(self, name) for name in self.__dataclass_fields__} | changes
        )

    def __getstate__(self) -> dict[str, Any]:
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**fields, "labels": dict(self.labels)}

    def __setstate__(self, fields: dict[str, Any]) -> None:
        self._set(**fields)

    @property
    def n_queries(self) -> int:
        """How many queries there are."""
        return len(self.qids)

    @property
    def n_docs(self) -> int:
        """How many documents there are."""
        return len(self.y)

    @property
    def n_features(self) -> int:
        """How many features a document has."""
        return int(self.base.shape[1])

    @property
    def X(self) -> NDArray[np.float32]:  # noqa: N802 the field's name for features
        """The features of the documents; copied out if the set is an index into a larger one."""
        if self.rows is None:
            return self.base
        copied: NDArray[np.float32] = self.base[self.rows]
        copied.flags.writeable = False
        return copied

    @property
    def sizes(self) -> Integers:
        """How many documents each query has."""
        return np.diff(self.offsets)

    @property
    def qid(self) -> NDArray[Any]:
        """The query id of every document."""
        return np.repeat(self.qids, self.sizes)

    @property
    def origins(self) -> Integers:
        """One number a query, the same for a query 12 and its samples 12~1, 12~2 and so on."""
        return origins(self.qids)

    @property
    def origin(self) -> Integers:
        """The number from ``origins`` of every document: groups that no split may part."""
        return np.repeat(self.origins, self.sizes)

    @property
    def originals(self) -> RankingData:
        """The set without samples, such as 12~1; the set itself if it has none."""
        sampled = are_samples(self.qids)
        if not sampled.any():
            return self
        if sampled.all():
            raise DataError(
                f"originals: all queries are samples, such as {str(self.qids[0])!r}; "
                "the queries that they were drawn from are not in this set"
            )
        return self[~sampled]

    @property
    def doc_ids(self) -> NDArray[np.object_] | None:
        """The name of every document, if documents have names."""
        return _as_objects(self._doc_ids)

    @property
    def comments(self) -> NDArray[np.object_] | None:
        """What stood behind ``#`` at every document, if anything did."""
        return _as_objects(self._comments)

    def __len__(self) -> int:
        return self.n_queries

    def __repr__(self) -> str:
        counts = ", ".join(
            f"{count:,} {word if count == 1 else plural}"
            for count, word, plural in (
                (self.n_queries, "query", "queries"),
                (self.n_docs, "document", "documents"),
                (self.n_features, "feature", "features"),
            )
        )
        return f"<RankingData: {counts}, top grade {self.top_grade:g}>"

    @overload
    def __getitem__(self, chosen: int | slice) -> RankingData: ...
    @overload
    def __getitem__(self, chosen: ArrayLike) -> RankingData: ...
    def __getitem__(self, chosen: int | slice | ArrayLike) -> RankingData:
        """Return some of the queries: by number, slice, list of numbers or boolean mask."""
        queries = self._query_numbers(chosen)
        if len(queries) == 0:
            raise UsageError("RankingData: the chosen slice has no queries; choose at least one")
        return self._picked(queries)

    def _picked(self, queries: Integers) -> RankingData:
        begins = self.offsets[queries]
        docs, offsets = runs(begins, self.offsets[queries + 1] - begins)
        return self._made_of(queries, self.qids[queries], docs, offsets)

    def _made_of(
        self, queries: Integers, qids: NDArray[Any], docs: Integers, offsets: Integers
    ) -> RankingData:
        """Return queries that are some of ours, or samples of them, with some of our documents."""
        return self._with(
            rows=docs if self.rows is None else self.rows[docs],
            y=self.y[docs],
            offsets=offsets,
            qids=qids,
            labels={name: values[docs] for name, values in self.labels.items()},
            query_weight=None if self.query_weight is None else self.query_weight[queries],
            _doc_ids=None if self._doc_ids is None else self._doc_ids.take(docs),
            _comments=None if self._comments is None else self._comments.take(docs),
        )

    def _query_numbers(self, chosen: int | slice | ArrayLike) -> Integers:
        numbers = np.arange(self.n_queries)
        index = chosen if isinstance(chosen, slice) else np.atleast_1d(np.asarray(chosen))
        if isinstance(index, np.ndarray) and index.size == 0:
            return numbers[:0]
        if isinstance(index, np.ndarray) and index.ndim > 1:
            raise UsageError(
                f"RankingData: queries are chosen by an array of shape {index.shape}; "
                "expected one dimension"
            )
        try:
            picked: Integers = numbers[index]
        except IndexError as problem:
            raise UsageError(
                f"RankingData: there are {self.n_queries} queries, 0 to {self.n_queries - 1}; "
                f"{problem}"
            ) from None
        if len(np.unique(picked)) < len(picked):
            raise UsageError("RankingData: a query is chosen twice; expected each once at most")
        return picked

    def __iter__(self) -> Iterator[RankingData]:
        """Go through the queries, each as a set of its own."""
        return (self._picked(np.array([q])) for q in range(self.n_queries))

    def with_query_weight(self, weights: ArrayLike) -> RankingData:
        """Return the set with other query weights."""
        return self._with(query_weight=checks.weight_array(weights, self.n_queries))

    @property
    def all_labels(self) -> dict[str | None, Floats]:
        """The labels of every source; the data set's own under None."""
        return dict([(None, self.y), *self.labels.items()])

    def with_labels(self, labels: Mapping[str, ArrayLike]) -> RankingData:
        """Return the set with further label sources; one of the same name is replaced.

        Documents without a label in ``y`` must keep one in some source.
        """
        added = {
            name: checks.source_array(name, values, self.n_docs) for name, values in labels.items()
        }
        sources = {**self.labels, **added}
        checks.each_labelled(self.y, sources)
        return self._with(labels=sources)

    def select_features(self, features: Sequence[str] | Sequence[int] | slice) -> RankingData:
        """Return the set with some of the features, by name or by column number from 0."""
        refuse_text("select_features", "features", features)
        if isinstance(features, slice):
            columns = list(range(self.n_features))[features]
        else:
            place = {name: j for j, name in enumerate(self.feature_names)}
            columns = [self._column(feature, place) for feature in features]
        if not columns:
            raise UsageError("select_features: no feature is chosen; choose at least one")
        names = tuple(self.feature_names[j] for j in columns)
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise UsageError(f"select_features: feature {twice!r} is chosen twice")
        return self._with(base=np.ascontiguousarray(self.base[:, columns]), feature_names=names)

    def _column(self, feature: str | int, place: Mapping[str, int]) -> int:
        if isinstance(feature, str):
            if feature not in place:
                raise UsageError(
                    f"there is no feature called {feature!r}; "
                    f"the features are {some_of(self.feature_names)}"
                )
            return place[feature]
        check("select_features", "a column", feature, Whole(0, self.n_features - 1))
        return int(feature)

    def split(self, parts: int | Sequence[float], *, seed: int = 0) -> list[RankingData]:
        """Shuffle the queries and cut them into parts; samples stay with their query.

        Parameters
        ----------
        parts
            How many parts of equal size (sizes differ by one query at most, samples not
            counted), or the proportions of the parts: ``[0.6, 0.2, 0.2]``.
        seed
            Another seed gives another shuffle.
        """
        return [self._picked(queries) for queries in split_queries(self.qids, parts, seed)]

    def folds(self, n: int = 10, *, seed: int = 0) -> Iterator[tuple[RankingData, RankingData]]:
        """Go through n pairs (train, valid): every query is in exactly one of the valid parts.

        These are the bags without replacement of Ensemble, Sec. 4.3: train on nine tenths,
        validate on the other tenth, ten times. Samples are in the train part that has their
        query, and in no valid part: validation data is never augmented.

        Parameters
        ----------
        n
            How many pairs.
        seed
            Another seed gives another shuffle.
        """
        pairs = fold_queries(self.qids, n, seed)
        return ((self._picked(train), self._picked(valid)) for train, valid in pairs)

    def equals(self, other: RankingData) -> bool:
        """Tell whether two sets hold the same, to the last bit; how they share is no matter."""
        return (
            self.feature_names == other.feature_names
            and self.top_grade == other.top_grade
            and self.labels.keys() == other.labels.keys()
            and self.qids.dtype.kind == other.qids.dtype.kind
            and _same_features(self.X, other.X)
            and _same(self.y, other.y)
            and _same(self.offsets, other.offsets)
            and _same(self.qids, other.qids)
            and all(_same(self.labels[name], other.labels[name]) for name in self.labels)
            and _same(self.query_weight, other.query_weight)
            and _same(self.doc_ids, other.doc_ids)
            and _same(self.comments, other.comments)
        )


def runs(starts: Integers, sizes: Integers) -> tuple[Integers, Integers]:
    """Return runs of numbers one behind the other, and where each of them begins and ends.

    >>> [array.tolist() for array in runs(np.array([7, 2]), np.array([2, 3]))]
    [[7, 8, 2, 3, 4], [0, 2, 5]]
    """
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], sizes), offsets


def _as_objects(texts: Any) -> NDArray[np.object_] | None:
    return None if texts is None else texts.to_numpy(zero_copy_only=False)


def _same_features(one: NDArray[np.float32], other: NDArray[np.float32]) -> bool:
    """Compare bits, but any NaN is like another: processors make them with and without a sign."""
    if one.shape != other.shape:
        return False
    unlike = one.view(np.uint32) != other.view(np.uint32)
    return bool((np.isnan(one[unlike]) & np.isnan(other[unlike])).all())


def _same(one: NDArray[Any] | None, other: NDArray[Any] | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
