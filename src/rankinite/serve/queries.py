"""Our own JSON: queries with documents in, rankings out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta, Raw, Struct

from rankinite.core.jit import frozen
from rankinite.core.types import Floats, Floats32
from rankinite.serve.batches import (
    Batch,
    Columns,
    RequestError,
    Value,
    bad_request,
    explained,
    score,
    shortened,
    stacked,
)
from rankinite.serve.kernels import read_numbers
from rankinite.serve.limits import Limits
from rankinite.serve.repository import Served

if TYPE_CHECKING:
    from rankinite.explanation.attribution import Attribution

Identity = Annotated[str, Meta(max_length=1000)] | int
MATRIX_SCHEMA = {
    "description": "One row per document, one number per feature of the model, in its order (or in "
    "that of `feature_names`). null is a missing value.",
    "type": "array",
    "items": {"type": "array", "items": {"type": ["number", "string", "null"]}},
}
# Raw is JSON of any kind, null too; only what is not there is empty.
ABSENT = Raw()


# What is asked


class Document(Struct, forbid_unknown_fields=True):
    """A document with its features."""

    features: Annotated[
        dict[str, float | str | None] | list[float | str | None],
        Meta(
            description="By name, where absent ones are missing; or one number per feature of the "
            "model, in its order. null is missing, a text is a category."
        ),
    ]
    id: Annotated[Identity | None, Meta(description="Returned in the ranking.")] = None
    base_score: Annotated[
        float | None, Meta(description="For models that were trained on top of scores.")
    ] = None


class Query(Struct, forbid_unknown_fields=True):
    """A query: its documents, or their features as a matrix."""

    id: Annotated[Identity | None, Meta(description="Returned in the answer.")] = None
    documents: Annotated[
        list[Document] | None, Meta(description="The documents, each with features.")
    ] = None
    features: Annotated[Raw, Meta(extra_json_schema=MATRIX_SCHEMA)] = msgspec.field(
        default_factory=Raw
    )
    ids: Annotated[
        list[Identity] | None, Meta(description="With a matrix: the documents, row by row.")
    ] = None
    feature_names: Annotated[
        list[str] | None,
        Meta(description="With a matrix: its columns. Features that it lacks are missing."),
    ] = None
    base_scores: Annotated[
        list[float] | None, Meta(description="With a matrix: as base_score of a document.")
    ] = None


class RankRequest(Query, forbid_unknown_fields=True):
    """Many queries; or one, without the list around it."""

    queries: Annotated[list[Query] | None, Meta(description="Queries to rank.")] = None
    ignore_unknown: Annotated[
        bool,
        Meta(
            description="Whether features that the model does not know are left out, not refused."
        ),
    ] = False
    explain: Annotated[
        bool,
        Meta(description="Whether to return what the features add to the score of each document."),
    ] = False


# What is answered


class Ranked(Struct, omit_defaults=True):
    """A document in its place."""

    id: Annotated[
        str | int, Meta(description="The document's id, or its place in the request, from 0.")
    ]
    score: Annotated[float, Meta(description="Larger is better.")]
    expected: Annotated[
        float | None,
        Meta(description="With explain: the score of a document of which nothing is known."),
    ] = None
    contributions: Annotated[
        dict[str, float] | None,
        Meta(
            description="With explain: what the features add to that, the largest first. It adds "
            "up to the score, or to its log odds for models that predict chances; features that "
            "add nothing are left out."
        ),
    ] = None


class Ranking(Struct, omit_defaults=True):
    """The documents of a query, the best one first."""

    ranking: list[Ranked]
    id: Annotated[str | int | None, Meta(description="The query's id, if it has one.")] = None


class RankAnswer(Struct, omit_defaults=True):
    """Rankings: of the queries, or of the only one without a list around it."""

    model: str
    version: str
    queries: list[Ranking] | None = None
    ranking: list[Ranked] | None = None
    id: str | int | None = None


REQUESTS = msgspec.json.Decoder(RankRequest)
ROWS = msgspec.json.Decoder(list[list[float | str | None]])
ENCODER = msgspec.json.Encoder()
LOOKAHEAD = 100  # bytes to the second bracket of a matrix; behind more of blanks it is read slowly


def answer(served: Served, body: bytes, limits: Limits) -> tuple[bytes, int, int]:
    """Rank what a body asks for; return the answer, and the number of queries and documents.

    Parameters
    ----------
    served
        The model.
    body
        The JSON of a `RankRequest`.
    limits
        How many documents there may be.
    """
    limits.check_brackets(body)
    request: RankRequest = decoded(REQUESTS, body)
    queries = _queries_of(request)
    # Those that have a list; rows of matrices are counted when they are read.
    limits.check_documents(sum(len(query.documents or ()) for query in queries))
    n_docs = 0
    matrices: list[Floats32] = []
    for k, query in enumerate(queries):
        where = "" if request.queries is None else f"queries[{k}]: "
        try:
            matrices.append(_matrix(query, served.columns, ignore_unknown=request.ignore_unknown))
        except RequestError as problem:
            raise RequestError(problem.status, where + problem.reason) from None
        n_docs += len(matrices[-1])
        limits.check_documents(n_docs)
    sizes = [len(matrix) for matrix in matrices]
    batch = Batch(stacked(matrices, len(served.columns)), sizes, _base_scores(queries, sizes))
    scores = score(served.ranker, batch)
    attribution = None
    if request.explain and n_docs:
        attribution = explained(served.ranker, batch, served.columns.codes)
    rankings = _rankings(queries, scores, sizes, attribution)
    model, version = served.name, served.version
    result = RankAnswer(model, version, rankings)
    if request.queries is None:
        only = rankings[0]
        result = RankAnswer(model, version, ranking=only.ranking, id=only.id)
    return ENCODER.encode(result), len(queries), n_docs


def decoded(decoder: Any, body: Any) -> Any:
    """Decode JSON; refuse what is not as expected, in a sentence that says where."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as problem:
        what = str(problem).replace(" - at `$", " at `body")
        raise bad_request(f"the body is not as expected: {what[:500]}") from None
    except msgspec.DecodeError as problem:
        hint = "; a missing value is null" if b"NaN" in body else ""
        raise bad_request(f"the body is no JSON: {problem}{hint}") from None
    except UnicodeDecodeError:
        raise bad_request("the body is no JSON: it has a text that is not UTF-8") from None
    except RecursionError:
        raise bad_request("the body is nested too deep") from None


def _queries_of(request: RankRequest) -> Sequence[Query]:
    if request.queries is None:
        return [request]
    beside = [
        name for name in Query.__struct_fields__ if getattr(request, name) not in (None, ABSENT)
    ]
    if beside:
        raise bad_request(f"there is {beside[0]!r} beside 'queries'; move it into a query")
    return request.queries


def _matrix(query: Query, columns: Columns, *, ignore_unknown: bool) -> Floats32:
    """Return the features of a query's documents."""
    if (query.documents is None) == (query.features == ABSENT):
        what = "neither 'documents' nor" if query.documents is None else "both 'documents' and"
        raise bad_request(
            f"there are {what} 'features'; expected one of the two, as in "
            '{"documents": [{"id": "a", "features": {"NAME": 1.5}}]} or {"features": [[1.5, 2]]}'
        )
    if query.documents is not None:
        for name in ("ids", "feature_names", "base_scores"):
            if getattr(query, name) is not None:
                raise bad_request(f"{name!r} belongs to a matrix of features, not to documents")
        return _matrix_of_documents(query.documents, columns, ignore_unknown=ignore_unknown)
    X = _matrix_of_rows(query, columns, ignore_unknown=ignore_unknown)
    for name in ("ids", "base_scores"):
        values = getattr(query, name)
        if values is not None and len(values) != len(X):
            raise bad_request(f"there are {len(values)} {name} for {len(X)} rows of features")
    return X


def _matrix_of_documents(
    documents: Sequence[Document], columns: Columns, *, ignore_unknown: bool
) -> Floats32:
    n_named = sum(document.id is not None for document in documents)
    if 0 < n_named < len(documents):
        raise bad_request("some documents have an id and some have none; expected all or none")
    rows: list[Sequence[Value]] = []
    for k, document in enumerate(documents):
        name = k if document.id is None else document.id
        shown = shortened(name) if isinstance(name, str) else name
        if isinstance(document.features, dict):
            try:
                rows.append(columns.by_name(document.features, ignore_unknown=ignore_unknown))
            except RequestError as problem:
                raise bad_request(f"document {shown}: {problem}") from None
            continue
        if len(document.features) != len(columns):
            raise bad_request(
                f"document {shown} has {len(document.features)} features; expected {len(columns)}, "
                "or features by name"
            )
        rows.append(document.features)
    return columns.matrix(rows)


def _matrix_of_rows(query: Query, columns: Columns, *, ignore_unknown: bool) -> Floats32:
    raw = memoryview(query.features)
    places = None
    width = len(columns)
    if query.feature_names is not None:
        places = columns.chosen(query.feature_names, ignore_unknown=ignore_unknown)
        width = len(places)
    # A matrix; one list of all numbers would be taken for one whatever its shape was meant to be.
    X = numbers(raw, width) if bytes(raw[1:LOOKAHEAD]).lstrip()[:1] in (b"[", b"]") else None
    if X is None:
        return _explained_rows(raw, columns, places)
    return X if places is None else _spread(X, places, len(columns))


def numbers(raw: memoryview, n_columns: int) -> Floats32 | None:
    """Return an array of JSON as a matrix; None if it is no array of numbers in such rows."""
    if n_columns == 0 or bytes(raw[:1]) != b"[":
        return None
    # Between two numbers there is a comma.
    values = np.empty(bytes(raw).count(b",") + 1, np.float32)
    n = read_numbers(frozen(np.frombuffer(raw, np.uint8)), n_columns, values)
    if n < 0 or n % n_columns:
        return None
    return values[:n].reshape(-1, n_columns)


def _explained_rows(raw: memoryview, columns: Columns, places: Sequence[int] | None) -> Floats32:
    """Return rows with texts of categories, or say why they are no matrix."""
    try:
        rows: list[list[Value]] = decoded(ROWS, raw)
    except RequestError as problem:
        raise bad_request(str(problem).replace("`body", "`features")) from None
    width = len(columns) if places is None else len(places)
    for k, row in enumerate(rows):
        if len(row) != width:
            raise bad_request(f"row {k} of features has {len(row)} values; expected {width}")
    if places is None:
        return columns.matrix(rows)
    spread: list[list[Value]] = []
    for row in rows:
        values: list[Value] = [None] * len(columns)
        for place, value in zip(places, row, strict=True):
            if place >= 0:
                values[place] = value
        spread.append(values)
    return columns.matrix(spread)


def _spread(X: Floats32, places: Sequence[int], n_columns: int) -> Floats32:
    """Return a matrix with all columns of the model; those that are not there are missing."""
    full = np.full((len(X), n_columns), np.nan, np.float32)
    taken = [j for j, place in enumerate(places) if place >= 0]
    full[:, [places[j] for j in taken]] = X[:, taken]
    return full


def _base_scores(queries: Sequence[Query], sizes: Sequence[int]) -> Floats | None:
    """Return the base scores of all documents, or None if there are none."""
    parts: list[Sequence[float | None]] = []
    for query, size in zip(queries, sizes, strict=True):
        if query.documents is not None:
            parts.append([document.base_score for document in query.documents])
        else:
            parts.append([None] * size if query.base_scores is None else query.base_scores)
    values = [value for part in parts for value in part]
    given_values = [value for value in values if value is not None]
    if not given_values:
        return None
    if len(given_values) < len(values):
        raise bad_request("some documents have a base score and some have none; give all of them")
    return np.array(given_values)


def _rankings(
    queries: Sequence[Query],
    scores: Floats,
    sizes: Sequence[int],
    attribution: Attribution | None,
) -> list[Ranking]:
    rankings = []
    first = 0
    for query, size in zip(queries, sizes, strict=True):
        of_query = scores[first : first + size]
        first += size
        # Documents of equal scores stay in the order of the request.
        order = np.argsort(-of_query, kind="stable").tolist()
        values = of_query.tolist()
        ids = _ids_of(query)
        ranked: list[Ranked] = [
            Ranked(k if ids is None else ids[k], values[k])
            if attribution is None
            else _explained(k if ids is None else ids[k], values[k], attribution, first - size + k)
            for k in order
        ]
        rankings.append(Ranking(ranked, query.id))
    return rankings


def _explained(name: Any, value: float, attribution: Attribution, doc: int) -> Ranked:
    """Return a document with what its features add to its score, the largest first."""
    added = attribution.values[doc]
    order = [int(j) for j in np.argsort(-np.abs(added), kind="stable") if added[j] != 0.0]
    contributions = {attribution.names[j]: float(added[j]) for j in order}
    return Ranked(name, value, float(attribution.expected[doc]), contributions)


def _ids_of(query: Query) -> Sequence[Any] | None:
    if query.documents is None:
        return query.ids
    if not query.documents or query.documents[0].id is None:
        return None
    return [document.id for document in query.documents]
