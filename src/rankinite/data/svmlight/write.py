"""Writer of SVMlight/LETOR files, with the shortest decimal that reads back to the same bits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rankinite.core.progress import Progress, ProgressBar, Silent
from rankinite.core.types import Floats
from rankinite.data import checks
from rankinite.data.names import NumberedNames
from rankinite.data.ranking_data import RankingData
from rankinite.data.sparse import dense_rows
from rankinite.data.stream import create_text
from rankinite.data.svmlight import kernels
from rankinite.data.svmlight.parse import Header, plain_texts

VALUES_A_BLOCK = 1 << 20  # values whose texts are in memory at a time


def write_svmlight(
    data: RankingData, path: str | Path, *, progress: Progress | None = None
) -> None:
    """Write a data set as SVMlight text; zeros are left out, and ``.gz`` is compressed.

    Fields that SVMlight has no place for (feature names, further labels, weights, query ids that
    are not numbers) go into comments, from which `read_svmlight` restores them. Every line has a
    label, or none has; a data set in which some documents are unlabelled is refused.

    Parameters
    ----------
    data
        Data set to write.
    path
        File to write; it appears whole or not at all.
    progress
        Progress reporter.
    """
    target = Path(path)
    is_labelled = not np.isnan(data.y).all()
    if is_labelled:
        checks.require_all_labels(
            target.name, data.y, "a line of text needs one: save as Parquet, which does not"
        )
    comments, as_json = _document_comments(data.comment_column, data.doc_id_column, data.labels)
    numbers, numbered = _feature_numbers(data.feature_names)
    header = Header(
        feature_names=None if numbered else list(data.feature_names),
        # The one that a reader derives from the lines.
        top_grade=None
        if data.top_grade == (data.y.max() if is_labelled else 0.0)
        else data.top_grade,
        qids=None if data.qids.dtype.kind == "i" else data.qids.tolist(),
        query_weight=None if data.query_weight is None else data.query_weight.tolist(),
        documents=list(data.labels) if as_json else None,
        has_comments=as_json and data.comment_column is not None,
        has_doc_ids=as_json and data.doc_id_column is not None,
        categories={name: list(texts) for name, texts in data.categories.items()} or None,
    )
    with (
        create_text(target) as stream,
        (progress or Silent()).start(f"Writing {target.name}", data.n_docs, "documents") as bar,
    ):
        stream.write(header.line())
        _write_documents(stream, data, numbers, comments, bar)


def _feature_numbers(names: Sequence[str]) -> tuple[NDArray[np.int64], bool]:
    """Return the numbers to write, and whether they are the names of the features."""
    for first in (1, 0):
        if names == NumberedNames(len(names), first):
            return np.arange(first, first + len(names)), True
    return np.arange(1, len(names) + 1), False


def _document_comments(
    comments: Any, doc_ids: Any, labels: Mapping[str, Floats]
) -> tuple[list[str], bool]:
    """Return one comment per document, and whether they are JSON lists that need a header.

    The columns are Arrow arrays or None; the list is empty if there is nothing to write.
    """
    plain = _plain_comments(comments, doc_ids)
    if plain is not None and not labels:
        return plain, False
    n_docs = len(next(c for c in (comments, doc_ids, *labels.values()) if c is not None))
    rows = zip(
        [""] * n_docs if comments is None else comments.to_pylist(),
        [""] * n_docs if doc_ids is None else doc_ids.to_pylist(),
        *(_json_numbers(values) for values in labels.values()),
        strict=True,
    )
    return [json.dumps(row, ensure_ascii=True) for row in rows], True


def _plain_comments(comments: Any, doc_ids: Any) -> list[str] | None:
    """Return comments that a reader can parse into both columns, or None if there are none."""
    if comments is None and doc_ids is None:
        return []
    written = comments
    if comments is None:
        written = pc.binary_join_element_wise(
            pa.scalar("docid = ", pa.large_string()), doc_ids, pa.scalar("", pa.large_string())
        )
    if pc.max(pc.binary_length(written)).as_py() == 0:
        return None  # a reader cannot distinguish empty comments from none
    if pc.any(pc.match_substring_regex(written, r"[\n\r\x00]")).as_py():
        return None
    # What the reader would make of them, and not what is intended, decides.
    if plain_texts(written) != {"comment_column": comments, "doc_id_column": doc_ids}:
        return None
    texts: list[str] = written.to_pylist()
    return texts


def _json_numbers(values: Floats) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


def _write_documents(
    stream: BinaryIO,
    data: RankingData,
    numbers: NDArray[np.int64],
    comments: list[str],
    bar: ProgressBar,
) -> None:
    qids = data.qids if data.qids.dtype.kind == "i" else np.arange(1, data.n_queries + 1)
    queries = np.repeat(qids, data.sizes)
    prefixes = _strings([f" {number}:" for number in numbers])
    n_rows = max(1, VALUES_A_BLOCK // data.n_features)
    for start in range(0, data.n_docs, n_rows):
        docs = slice(start, min(start + n_rows, data.n_docs))
        values = dense_rows(data.matrix, docs if data.rows is None else data.rows[docs])
        written = values.view(np.uint32) != 0  # by bits: -0.0 is written, and read back
        if start == 0:
            # The first line has the first and the last feature even if they are 0: a reader
            # derives the number of features from the lines.
            written[0, [0, -1]] = True
        heads = [
            f"{label}qid:{qid}"
            for label, qid in zip(_labels(data.y[docs]), queries[docs], strict=True)
        ]
        tails = [f" #{text}\n" if text else "\n" for text in comments[docs]]
        stream.write(
            _assemble(
                _strings(heads),
                _strings(tails or ["\n"] * len(heads)),
                prefixes,
                _arrow_buffers(pa.array(values[written]).cast(pa.large_string())),
                written,
            )
        )
        bar.advance(docs.stop - docs.start)


def _assemble(
    heads: tuple[NDArray[Any], NDArray[Any]],
    tails: tuple[NDArray[Any], NDArray[Any]],
    prefixes: tuple[NDArray[Any], NDArray[Any]],
    values: tuple[NDArray[Any], NDArray[Any]],
    written: NDArray[np.bool_],
) -> memoryview:
    per_prefix = np.diff(prefixes[0])
    # The exact length, so that the kernel fills one buffer and nothing grows.
    length = sum(len(part[1]) for part in (heads, tails, values)) + int(
        (written.sum(axis=0) * per_prefix).sum()
    )
    out = np.empty(length, np.uint8)
    kernels.write_lines(*heads, *tails, *prefixes, *values, written, out)
    return out.data


def _labels(labels: NDArray[np.float64]) -> list[str]:
    """Return the shortest text of each label and a blank; nothing for a document without one."""
    texts = pa.array(labels).cast(pa.large_string()).to_pylist()
    return ["" if text == "nan" else f"{text} " for text in texts]


def _strings(texts: list[str]) -> tuple[NDArray[Any], NDArray[Any]]:
    return _arrow_buffers(pa.array(texts, pa.large_string()))


def _arrow_buffers(array: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the offsets and the bytes of a column of texts."""
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int64)[: len(array) + 1]
    text = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return ends, text[: ends[-1]]
