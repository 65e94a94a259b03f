"""Files of scores (one number per line, or a TREC run) and of labels (TREC qrels)."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from rankinite.core.errors import DataError, FileFormatError, UsageError
from rankinite.core.format import quoted
from rankinite.core.memory import refusing_to_run_out
from rankinite.core.numerals import BYTES_OF_NUMBERS, parse_number
from rankinite.core.params import OneOf, check
from rankinite.core.types import Floats, Integers
from rankinite.data.ranking_data import RankingData
from rankinite.data.stream import create_text, read_lines, read_pieces

log = logging.getLogger("rankinite")

RUN_FIELDS = 6  # query Q0 document rank score tag


def check_scores(scores: ArrayLike, data: RankingData) -> Floats:
    """Return scores as float64, one finite number per document."""
    try:
        array = np.ascontiguousarray(scores, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise DataError(f"scores: cannot be made numbers: {problem}") from None
    if array.shape != (data.n_docs,):
        raise DataError(
            f"scores: an array of shape {array.shape} for {data.n_docs} documents; "
            "expected one score per document"
        )
    bad = ~np.isfinite(array)
    if bad.any():
        doc = int(bad.argmax())
        raise DataError(
            f"scores: the score of document {doc} is {array[doc]}; expected a finite number"
        )
    return array


def feature_scores(data: RankingData, feature: str) -> Floats:
    """Return the values of a feature as scores; documents with a missing value rank last.

    Parameters
    ----------
    data
        The data set.
    feature
        Name of the feature.
    """
    values = data.select_features([feature]).dense("scores").X[:, 0].astype(np.float64)
    # Below every float32 value, and finite.
    return np.nan_to_num(values, nan=float(np.finfo(np.float32).min) * 2)


def load_scores(
    path: str | Path,
    data: RankingData,
    *,
    missing: str = "refuse",
    order: Integers | None = None,
) -> Floats:
    """Load the scores of a data set's documents.

    Parameters
    ----------
    path
        File with one number per line, in the order of the documents; or a TREC run (``query Q0
        document rank score tag``), whose documents are identified by query and document id.
        Documents without ids have the ids 1, 2, ... within their query. May be gzip.
    data
        The data set.
    missing
        Documents that a run lacks: ``"refuse"`` the run, or rank them ``"last"``.
    order
        Line of each document in a file of numbers, if the documents were reordered when the data
        set was loaded with ``group``; it is ``data.rows`` then.
    """
    check("load_scores", "missing", missing, OneOf(["refuse", "last"]))
    source = Path(path)
    with refusing_to_run_out(source):
        lines = enumerate(read_lines(source), 1)
        first = next(((number, _fields(line)) for number, line in lines if _fields(line)), None)
        if first is None:
            raise FileFormatError(source, "there are no scores in this file")
        number, fields = first
        if len(fields) == RUN_FIELDS:
            return _from_run(source, data, missing)
        if len(fields) != 1:
            problem = f"{len(fields)} fields; expected a score alone, or the 6 fields of a TREC run"
            raise FileFormatError(source, problem, number)
        scores = _from_numbers(source, data.n_docs)
    return scores if order is None else scores[order]


def save_scores(
    scores: ArrayLike, data: RankingData, path: str | Path, *, run: str | None = None
) -> None:
    """Save scores: one number per line, or as a TREC run.

    Parameters
    ----------
    scores
        One score per document.
    data
        Data set that they belong to.
    path
        File to write; it appears whole or not at all, and ``.gz`` is compressed.
    run
        Name of a TREC run; by default one number per line is written. Tied documents are in the
        order of the data set.
    """
    array = check_scores(scores, data)
    with create_text(path) as file:
        if run is None:
            # The shortest text that reads back to the same bits.
            file.writelines(f"{score!r}\n".encode() for score in array.tolist())
            return
        if run.split() != [run]:
            raise UsageError(f"save_scores: {run!r} is no name for a run; use one word")
        ids, qids = _document_names(data), _query_names(data)
        for q, start in enumerate(data.offsets[:-1].tolist()):
            chosen = array[start : data.offsets[q + 1]]
            for rank, i in enumerate(np.argsort(-chosen, kind="stable").tolist(), 1):
                score = float(chosen[i])
                line = f"{qids[q]} Q0 {ids[start + i]} {rank} {score!r} {run}\n"
                file.write(line.encode())


def save_qrels(data: RankingData, path: str | Path) -> None:
    """Save the labels as TREC qrels (``query 0 document label``); labels must be whole.

    Documents without a label are left out: qrels contain judged documents only.
    """
    judged = ~np.isnan(data.y)
    fractional = judged & (data.y != np.floor(data.y))
    if fractional.any():
        doc = int(fractional.argmax())
        raise DataError(
            f"qrels hold whole labels only, and document {doc} has label {data.y[doc]:g}"
        )
    qids = np.repeat(np.array(_query_names(data), object), data.sizes)
    rows = zip(qids, _document_names(data), data.y.tolist(), judged.tolist(), strict=True)
    with create_text(path) as file:
        file.writelines(
            f"{qid} 0 {name} {int(label)}\n".encode()
            for qid, name, label, is_judged in rows
            if is_judged
        )


def _from_numbers(path: Path, n_docs: int) -> Floats:
    """Read one number per line; lines without are passed over."""
    scores = np.empty(n_docs)
    n_scores = n_lines = 0
    for text in read_pieces(path):
        values = _plain_numbers(text)
        if values is None or not np.isfinite(values).all():
            values = _one_by_one(path, text, n_lines)
        # What is too much is counted, for the message.
        kept = values[: max(0, n_docs - n_scores)]
        scores[n_scores : n_scores + len(kept)] = kept
        n_scores += len(values)
        n_lines += text.count(b"\n")
    if n_scores != n_docs:
        problem = f"{n_scores} scores for {n_docs} documents; expected one per document"
        raise FileFormatError(path, problem)
    return scores


def _plain_numbers(text: bytes) -> Floats | None:
    """Return the numbers of a text with one per line; None if anything is unusual."""
    blanks = text.translate(None, BYTES_OF_NUMBERS + b"\n")
    tokens = text.split()
    if blanks.strip() or (
        blanks and len(tokens) != sum(1 for line in text.split(b"\n") if line.strip())
    ):
        return None
    try:
        return np.fromiter(map(float, tokens), np.float64, len(tokens))
    except ValueError:
        return None


def _one_by_one(path: Path, text: bytes, n_lines: int) -> Floats:
    """Read one number per line, and blame the first line that has none."""
    values = []
    for number, line in enumerate(text.split(b"\n"), n_lines + 1):
        fields = line.split()
        if len(fields) > 1:
            raise FileFormatError(path, f"{len(fields)} fields; expected a score alone", number)
        if fields:
            values.append(_score(path, number, fields[0]))
    return np.array(values)


def _fields(line: bytes) -> list[str]:
    return line.decode("utf-8", "backslashreplace").split()


def _from_run(path: Path, data: RankingData, missing: str) -> Floats:
    queries = [str(qid) for qid in data.qid.tolist()]
    keys = zip(queries, _document_names(data), strict=True)
    place = {key: doc for doc, key in enumerate(keys)}
    if len(place) != data.n_docs:
        raise DataError("the data set has a document id twice in a query; a run cannot tell which")
    scores = np.full(data.n_docs, np.nan)
    for number, line in enumerate(read_lines(path), 1):
        fields = _fields(line)
        if not fields:
            continue
        if len(fields) != RUN_FIELDS:
            raise FileFormatError(
                path, f"{len(fields)} fields; expected: query Q0 document rank score tag", number
            )
        doc = place.get((fields[0], fields[2]))
        if doc is None:
            problem = f"the data set has no document {fields[2]!r} in a query {fields[0]!r}"
            raise FileFormatError(path, problem, number)
        if not np.isnan(scores[doc]):
            problem = f"document {fields[2]!r} of query {fields[0]!r} occurs a second time"
            raise FileFormatError(path, problem, number)
        scores[doc] = _score(path, number, fields[4])
    return _fill_missing(path, scores, data, missing)


def _fill_missing(path: Path, scores: Floats, data: RankingData, missing: str) -> Floats:
    absent = np.isnan(scores)
    if absent.any() and missing == "refuse":
        doc = int(absent.argmax())
        raise FileFormatError(
            path,
            f"the run lacks {absent.sum()} of {data.n_docs} documents, such as "
            f"{_document_names(data)[doc]!r} of query {data.qid[doc]}; "
            "rank them last (missing='last', --missing last) or complete the run",
        )
    not_in_run = np.logical_and.reduceat(absent, data.offsets[:-1])
    if not_in_run.any():
        log.warning(
            "%s: %d queries are not in the run, such as %s; their documents count as tied",
            path,
            not_in_run.sum(),
            data.qids[not_in_run.argmax()],
        )
    for start, end in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        query_scores = scores[start:end]
        missing_here = np.isnan(query_scores)
        if missing_here.all():
            # Tied: a measure counts every order of them alike, which favours no system.
            query_scores[:] = 0.0
        elif missing_here.any():
            lowest = np.nanmin(query_scores)
            # Not by 1 alone: for a large score, x - 1 may round to x.
            query_scores[missing_here] = lowest - 1.0 - abs(lowest)
    return scores


def _document_names(data: RankingData) -> list[str]:
    """Return document ids; without them, positions 1, 2, ... within each query."""
    if data.doc_ids is not None:
        return _single_words("document", data.doc_ids.tolist())
    positions = np.arange(data.n_docs) - np.repeat(data.offsets[:-1], data.sizes) + 1
    return [str(position) for position in positions.tolist()]


def _query_names(data: RankingData) -> list[str]:
    return _single_words("query", [str(qid) for qid in data.qids.tolist()])


def _single_words(what: str, names: list[str]) -> list[str]:
    for number, name in enumerate(names):
        if name.split() != [name]:
            raise DataError(
                f"{what} {number} has the id {name!r}; TREC files need one word for each"
            )
    return names


def _score(path: Path, number: int, text: str | bytes) -> float:
    try:
        score = parse_number(text)
    except ValueError:
        score = np.nan
    if not np.isfinite(score):
        problem = f"{quoted(text)} is not a score; expected a number"
        raise FileFormatError(path, problem, number)
    return score
