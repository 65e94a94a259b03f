"""RankingData: queries with their documents, features and labels; validated once, then shared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankinite.core.errors import DataError, UsageError
from rankinite.core.format import refuse_text, some_of
from rankinite.core.memory import require_memory
from rankinite.core.params import Whole, check
from rankinite.core.types import Floats, Floats32, Integers
from rankinite.data import checks
from rankinite.data.categories import NO_TABLES, Tables, checked_tables
from rankinite.data.sparse import is_sparse, same_entries, to_csr
from rankinite.data.splits import are_samples, fold_queries, origins, split_queries
from rankinite.data.tables import feature_names_of


@dataclass(frozen=True, eq=False, init=False, repr=False)
class RankingData:
    """A data set for learning to rank: queries, their documents, features and labels.

    Immutable. Splits, folds and slices share the feature matrix and hold only new indexes.

    Parameters
    ----------
    X
        Features, one row per document; NaN means missing. Stored as float32, without a copy if
        they already are float32 in C order (also in a mapped file); a warning names features whose
        values float32 cannot tell apart. A SciPy sparse matrix stays sparse, in CSR format; entries
        that are not stored are 0, not missing.
    y
        Labels, one per document: finite, at least 0. NaN means that the document has no label,
        which is allowed for documents that have a label in another source (see ``labels``).
        Without ``y``, or if all of it is NaN, the set can be scored, but not learned from.
    qid
        Query id of each document; the documents of a query must be contiguous.
    group_sizes
        Number of documents of each query, instead of ``qid``. The query ids are then 1, 2, ...
    labels
        Further label sources by name, one value per document; NaN means no label.
    query_weight
        One weight per query.
    doc_ids, comments
        One text per document: its id, and the comment behind ``#`` in a text file.
    feature_names
        One name per feature; by default the names of a frame's columns, or "1", "2", ...
    top_grade
        Largest label that a document can have; the largest label in ``y`` by default, 0 without.
    categories
        By categorical feature, the texts of its categories: ``X`` has k for the k-th of them. No
        texts, ``()``, if the whole numbers in ``X`` are the categories.
    group
        Bring the documents of each query together if they are not contiguous, instead of
        refusing them.

    Attributes
    ----------
    matrix : float32 array or scipy.sparse.csr_array
        Feature matrix, which several data sets may share.
    rows : int64 array or None
        Row of ``matrix`` that holds each document; None if document i is row i.
    offsets : int64 array
        Query q has the documents ``offsets[q]`` to ``offsets[q + 1] - 1``.
    qids : array
        One id per query, as in the file.
    doc_id_column, comment_column : Arrow array or None
        Ids and comments of the documents. Arrow keeps millions of texts in two buffers;
        ``doc_ids`` and ``comments`` give them as numpy arrays.

    Examples
    --------
    >>> data = RankingData(X=[[0.5], [0.1], [0.9]], y=[0, 1, 2], qid=[7, 7, 8])
    >>> data
    <RankingData: 2 queries, 3 documents, 1 feature, top grade 2>
    >>> data[1].X
    array([[0.9]], dtype=float32)
    """

    matrix: Floats32
    rows: Integers | None
    y: Floats
    offsets: Integers
    qids: NDArray[Any]
    labels: Mapping[str, Floats]
    query_weight: Floats | None
    feature_names: Sequence[str]
    top_grade: float
    doc_id_column: Any
    comment_column: Any
    categories: Tables

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        *,
        group_sizes: ArrayLike | None = None,
        labels: Mapping[str, ArrayLike] | None = None,
        query_weight: ArrayLike | None = None,
        doc_ids: Sequence[str] | None = None,
        comments: Sequence[str] | None = None,
        feature_names: Sequence[str] | None = None,
        top_grade: float | None = None,
        categories: Mapping[str, Sequence[str]] | None = None,
        group: bool = False,
    ) -> None:
        # Names come before the checks of values, whose messages use them.
        matrix, rounding = checks.feature_matrix(X)
        n_docs, n_features = matrix.shape
        if feature_names is None:
            feature_names = feature_names_of(X)
        names = checks.feature_names(feature_names, n_features)
        checks.require_finite_features(matrix, names)
        rounding.warn(names)
        grades = np.full(n_docs, np.nan) if y is None else checks.label_array("y", y, n_docs)
        sources = {
            name: checks.label_source_array(name, values, n_docs)
            for name, values in (labels or {}).items()
        }
        checks.require_label_in_some_source(grades, sources)
        texts = {
            "doc_id_column": checks.text_array("doc_ids", doc_ids, n_docs),
            "comment_column": checks.text_array("comments", comments, n_docs),
        }
        order, offsets, qids = checks.query_layout(qid, group_sizes, n_docs, group=group)
        weight = checks.weight_array(query_weight, len(qids))
        self._set(
            matrix=matrix,
            rows=order,
            y=grades if order is None else grades[order],
            offsets=offsets,
            qids=qids,
            labels={n: v if order is None else v[order] for n, v in sources.items()},
            query_weight=weight,
            feature_names=names,
            top_grade=checks.top_grade(top_grade, grades),
            categories=checked_tables(categories, names, matrix),
            **{n: t if t is None or order is None else t.take(order) for n, t in texts.items()},
        )

    def _set(self, **fields: Any) -> None:
        # Data sets share arrays, so that a write to one of them would change the others.
        fields["labels"] = MappingProxyType(dict(fields["labels"]))
        fields["categories"] = MappingProxyType(dict(fields.get("categories", NO_TABLES)))
        for value in (*fields.values(), *fields["labels"].values()):
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def unchecked(cls, **fields: Any) -> Self:
        """Make a data set of fields that are known to be valid, such as those of a file reader."""
        new = object.__new__(cls)
        new._set(**fields)
        return new

    def replace(self, **changes: Any) -> Self:
        """Return the data set with some fields replaced; the new values are not checked."""
        return self.unchecked(
            **{name: getattr(self, name) for name in self.__dataclass_fields__} | changes
        )

    # A mapping proxy, which keeps labels from being changed, cannot be pickled.
    def __getstate__(self) -> dict[str, Any]:
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**fields, "labels": dict(self.labels), "categories": dict(self.categories)}

    def __setstate__(self, fields: dict[str, Any]) -> None:
        self._set(**fields)

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.qids)

    @property
    def n_docs(self) -> int:
        """Number of documents."""
        return len(self.y)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.matrix.shape[1])

    @property
    def X(self) -> Floats32:  # noqa: N802 the field's name for features
        """Features of the documents; a copy if the data set is an index into a larger matrix."""
        if self.rows is None:
            return self.matrix
        copied: Floats32 = self.matrix[self.rows]
        if not is_sparse(copied):
            copied.flags.writeable = False
        return copied

    def dense(self, owner: str = "dense") -> RankingData:
        """Return the data set with an array in place of a sparse matrix; itself if it has none.

        Parameters
        ----------
        owner
            Start of the message if the array would not fit into memory.
        """
        if not is_sparse(self.matrix):
            return self
        what = f"a dense matrix of {self.n_docs:,} documents x {self.n_features:,} features"
        n_bytes = 4 * self.n_docs * self.n_features
        require_memory(owner, what, n_bytes, "rankers of trees take sparse matrices as they are")
        features: Any = self.X
        return self.replace(matrix=features.toarray(), rows=None)

    @property
    def sizes(self) -> Integers:
        """Number of documents of each query."""
        return np.diff(self.offsets)

    @property
    def qid(self) -> NDArray[Any]:
        """Query id of each document."""
        return np.repeat(self.qids, self.sizes)

    @property
    def origins(self) -> Integers:
        """One number per query, the same for query 12 and its samples 12~1, 12~2 and so on."""
        return origins(self.qids)

    @property
    def origin(self) -> Integers:
        """Number from ``origins`` of each document: groups that a split must keep together."""
        return np.repeat(self.origins, self.sizes)

    @property
    def originals(self) -> RankingData:
        """The data set without samples such as 12~1; the data set itself if it has none."""
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
    def is_labelled(self) -> bool:
        """Whether some document has a label, in ``y`` or in another source."""
        return not all(np.isnan(labels).all() for labels in self.all_labels.values())

    @property
    def doc_ids(self) -> NDArray[np.object_] | None:
        """Id of each document, if documents have ids."""
        return _as_objects(self.doc_id_column)

    @property
    def comments(self) -> NDArray[np.object_] | None:
        """Comment of each document, if there are comments."""
        return _as_objects(self.comment_column)

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
        labels = f"top grade {self.top_grade:g}" if self.is_labelled else "no labels"
        return f"<RankingData: {counts}, {labels}>"

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
        starts = self.offsets[queries]
        docs, offsets = concatenated_ranges(starts, self.offsets[queries + 1] - starts)
        return self.with_documents(queries, self.qids[queries], docs, offsets)

    def with_documents(
        self, queries: Integers, qids: NDArray[Any], docs: Integers, offsets: Integers
    ) -> RankingData:
        """Return some of the queries, or samples of them, with some of their documents.

        Parameters
        ----------
        queries, qids
            For each new query, the number of the query that it is or samples, and its id.
        docs, offsets
            Documents of the new queries, and where those of each query begin.
        """
        return self.replace(
            rows=docs if self.rows is None else self.rows[docs],
            y=self.y[docs],
            offsets=offsets,
            qids=qids,
            labels={name: values[docs] for name, values in self.labels.items()},
            query_weight=None if self.query_weight is None else self.query_weight[queries],
            doc_id_column=None if self.doc_id_column is None else self.doc_id_column.take(docs),
            comment_column=None if self.comment_column is None else self.comment_column.take(docs),
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
        # Queries are told apart by their ids, in files, splits and paired tests.
        if len(np.unique(picked)) < len(picked):
            raise UsageError("RankingData: a query is chosen twice; expected each once at most")
        return picked

    def __iter__(self) -> Iterator[RankingData]:
        """Iterate over the queries, each as a data set."""
        return (self._picked(np.array([q])) for q in range(self.n_queries))

    def with_query_weight(self, weights: ArrayLike) -> RankingData:
        """Return the data set with other query weights."""
        return self.replace(query_weight=checks.weight_array(weights, self.n_queries))

    @property
    def all_labels(self) -> dict[str | None, Floats]:
        """Labels of each source; ``y`` has the key None."""
        return dict([(None, self.y), *self.labels.items()])

    def with_labels(self, labels: Mapping[str, ArrayLike]) -> RankingData:
        """Return the data set with further label sources; sources of the same name are replaced.

        Documents without a label in ``y`` must still have one in some source.
        """
        added = {
            name: checks.label_source_array(name, values, self.n_docs)
            for name, values in labels.items()
        }
        sources = {**self.labels, **added}
        checks.require_label_in_some_source(self.y, sources)
        return self.replace(labels=sources)

    def select_features(self, features: Sequence[str] | Sequence[int] | slice) -> RankingData:
        """Return the data set with some of the features, chosen by name or column from 0."""
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
        matrix = self.matrix[:, columns]
        return self.replace(
            matrix=to_csr(matrix) if is_sparse(matrix) else np.ascontiguousarray(matrix),
            feature_names=names,
            categories={name: t for name, t in self.categories.items() if name in names},
        )

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
        """Shuffle the queries and split them into parts; samples stay with their query.

        Parameters
        ----------
        parts
            Number of parts of equal size (sizes differ by one query at most, samples not
            counted), or the proportions of the parts: ``[0.6, 0.2, 0.2]``.
        seed
            Seed of the shuffle.
        """
        return [self._picked(queries) for queries in split_queries(self.qids, parts, seed)]

    def folds(self, n: int = 10, *, seed: int = 0) -> Iterator[tuple[RankingData, RankingData]]:
        """Iterate over n pairs (train, valid); each query is in exactly one of the valid parts.

        These are the bags without replacement of Ensemble, Sec. 4.3: train on nine tenths,
        validate on the other tenth, ten times. Samples are in the training parts that contain
        their query and in no validation part: validation data is never augmented.

        Parameters
        ----------
        n
            Number of folds.
        seed
            Seed of the shuffle.
        """
        pairs = fold_queries(self.qids, n, seed)
        return ((self._picked(train), self._picked(valid)) for train, valid in pairs)

    def equals(self, other: RankingData) -> bool:
        """Return whether two data sets hold the same values, bit for bit."""
        return (
            self.feature_names == other.feature_names
            and self.top_grade == other.top_grade
            and self.categories == other.categories
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


def concatenated_ranges(starts: Integers, sizes: Integers) -> tuple[Integers, Integers]:
    """Return the numbers of several ranges in one array, and the offsets of the ranges.

    >>> [array.tolist() for array in concatenated_ranges(np.array([7, 2]), np.array([2, 3]))]
    [[7, 8, 2, 3, 4], [0, 2, 5]]
    """
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], sizes), offsets


def rows_of(data: RankingData) -> Integers:
    """Return the row of the feature matrix that holds each document."""
    return np.arange(data.n_docs) if data.rows is None else data.rows


def _as_objects(texts: Any) -> NDArray[np.object_] | None:
    return None if texts is None else texts.to_numpy(zero_copy_only=False)


def _same_features(left: Floats32, right: Floats32) -> bool:
    """Return whether the bits are the same, where any NaN equals any other."""
    if is_sparse(left) or is_sparse(right):
        return same_entries(left, right)
    if left.shape != right.shape:
        return False
    differ = left.view(np.uint32) != right.view(np.uint32)
    # Processors make NaN with and without a sign.
    return bool((np.isnan(left[differ]) & np.isnan(right[differ])).all())


def _same(left: NDArray[Any] | None, right: NDArray[Any] | None) -> bool:
    if left is None or right is None:
        return left is right
    return np.array_equal(left, right, equal_nan=left.dtype.kind == "f")
