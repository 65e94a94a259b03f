"""Comments of SVMlight files: document ids, label sources, and fields that SVMlight lacks.

LETOR writes ``#docid = X inc = 1 prob = 0.02`` behind a document; X is its id, and other values
can be used as label sources. A data set with fields that SVMlight has no place for (feature names,
further labels, weights, ...) has a first line ``#rankinite {...}``, which other tools skip; the
comments of its documents are then JSON lists: comment, document id, further labels.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rankinite.core.errors import FileFormatError, RankiniteError
from rankinite.core.types import Floats, Integers
from rankinite.data import checks
from rankinite.data.svmlight import kernels
from rankinite.data.svmlight.parse import NAN, NUMBER

MARK = b"#rankinite "
# Arrow's \s has no vertical tab.
ASSIGNED = r"(?:^|[\s\v]){name}[\s\v]*=[\s\v]*(?P<value>[^\s\v]+)"
DOCID = ASSIGNED.format(name="docid")
ONLY_DOCID = r"^[\s\v]*docid[\s\v]*=[\s\v]*[^\s\v]+[\s\v]*$"
# Exceptions of damaged JSON, and of JSON with other types than texts and numbers.
WRONG_JSON = (ValueError, TypeError, OverflowError, RecursionError)


@dataclass(frozen=True)
class Header:
    """Fields of the header line of a file, all optional."""

    feature_names: Sequence[str] | None = None
    top_grade: float | None = None
    qids: Sequence[str] | None = None
    query_weight: Sequence[float] | None = None
    documents: Sequence[str] | None = None
    has_comments: bool = False
    has_doc_ids: bool = False

    @classmethod
    def parse(cls, path: Path, line: bytes) -> Header:
        """Parse a header; a first line with any other comment gives an empty one."""
        text = line.lstrip(b" ")
        if not text.startswith(MARK):
            return cls()
        try:
            return cls(**json.loads(text[len(MARK) :]))._checked()
        except WRONG_JSON as problem:
            raise FileFormatError(
                path, f"the header is damaged ({problem}); restore or remove this line", 1, 1
            ) from None

    def _checked(self) -> Header:
        for names in (self.feature_names, self.qids, self.documents):
            texts = [] if names is None else [_text(text) for text in _list(names)]
            if len(set(texts)) < len(texts):
                raise ValueError("it has a name twice")
        if self.top_grade is not None and not 0 <= _number(self.top_grade) < np.inf:
            raise ValueError(f"{self.top_grade} is no top grade")
        weights = [] if self.query_weight is None else _list(self.query_weight)
        for weight in weights:
            _number(weight)
        if not isinstance(self.has_comments, bool) or not isinstance(self.has_doc_ids, bool):
            raise TypeError("has_comments and has_doc_ids are true or false")
        return self

    def line(self) -> bytes:
        """Return the header as a line of text; empty if no field is set."""
        fields = {name: value for name, value in vars(self).items() if value not in (None, False)}
        if not fields:
            return b""
        return MARK + json.dumps(fields, ensure_ascii=True).encode() + b"\n"

    def qids_for(self, path: Path, qids: NDArray[Any]) -> NDArray[Any]:
        """Return the query ids of the header, or the numbers of the lines if it has none."""
        if self.qids is None:
            return qids
        self._check_length(path, "qids", self.qids, len(qids))
        if (qids != np.arange(1, len(qids) + 1)).any():
            problem = "the header names queries 1, 2, ... in this order; restore the lines' order"
            raise FileFormatError(path, problem, 1, 1)
        return np.array(self.qids)

    def weights_for(self, path: Path, n_queries: int) -> Floats | None:
        """Return the query weights of the header."""
        if self.query_weight is None:
            return None
        self._check_length(path, "query_weight", self.query_weight, n_queries)
        try:
            return checks.weight_array(self.query_weight, n_queries)
        except RankiniteError as problem:
            raise FileFormatError(path, f"the header is damaged: {problem}", 1, 1) from None

    def _check_length(self, path: Path, name: str, values: Sequence[Any], expected: int) -> None:
        if len(values) != expected:
            problem = f"the header's {name} is not a list of {expected}, one per query"
            raise FileFormatError(path, problem, 1, 1)


@dataclass
class CommentColumn:
    """Collects the comments of a file, block by block."""

    path: Path
    blocks: list[Any] = field(default_factory=list)
    is_empty: bool = True

    def take(
        self,
        text: NDArray[np.uint8],
        begins: Integers,
        ends: Integers,
        lines: Integers,
    ) -> None:
        """Copy the comments that begin at these positions (-1 for none) and end with the line."""
        if not (begins >= 0).any():
            self.blocks.append(len(begins))
            return
        ends = ends - (text[ends - 1] == ord("\r"))
        begins = np.where(begins < 0, ends, begins)
        lengths = np.maximum(ends - begins, 0)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        copied = np.empty(offsets[-1], np.uint8)
        kernels.gather_text(text, begins, begins + lengths, copied)
        array = pa.LargeStringArray.from_buffers(
            len(begins), pa.py_buffer(offsets), pa.py_buffer(copied)
        )
        self._check_encoding(array, lines)
        self.is_empty = self.is_empty and len(copied) == 0
        self.blocks.append(array)

    def _check_encoding(self, array: Any, lines: Integers) -> None:
        try:
            array.validate(full=True)
        except pa.ArrowInvalid:
            for text, line in zip(array.cast(pa.large_binary()).to_pylist(), lines, strict=True):
                try:
                    text.decode()
                except UnicodeDecodeError as problem:
                    raise FileFormatError(
                        self.path,
                        f"the comment is not UTF-8 (byte {text[problem.start]:#04x}); "
                        "convert the file, or leave comments out (comments=False, --no-comments)",
                        int(line),
                    ) from None

    def array(self) -> Any:
        """Return all comments as one column, or None if there are none."""
        if self.is_empty:
            return None
        return pa.concat_arrays(
            [
                pa.array([""] * block, pa.large_string()) if isinstance(block, int) else block
                for block in self.blocks
            ]
        )


def interpret(
    path: Path,
    column: CommentColumn | None,
    header: Header,
    sources: Sequence[str],
    lines: Integers,
) -> tuple[dict[str, Any], dict[str, Floats]]:
    """Return the text columns and the further labels in the comments."""
    comments = None if column is None else column.array()
    if header.documents is not None:
        if column is None:
            raise FileFormatError(
                path, "the comments of this file hold its labels or document ids; keep comments", 1
            )
        for name in set(sources) - set(header.documents):
            raise FileFormatError(path, f"the header names no label source {name!r}", 1)
        texts, labels = _from_json(path, comments, header, lines)
        return texts, {name: labels[name] for name in sources or labels}
    labels = {name: _source(path, comments, name, lines) for name in sources}
    return _plain_texts(comments), labels


def _plain_texts(comments: Any) -> dict[str, Any]:
    if comments is None:
        return {"comment_column": None, "doc_id_column": None}
    doc_ids = None
    if pc.any(pc.match_substring_regex(comments, DOCID)).as_py():
        values = pc.struct_field(pc.extract_regex(comments, DOCID), "value")
        doc_ids = pc.fill_null(values, "").cast(pa.large_string())
        if pc.all(pc.match_substring_regex(comments, ONLY_DOCID)).as_py():
            comments = None
    return {"comment_column": comments, "doc_id_column": doc_ids}


def _source(path: Path, comments: Any, name: str, lines: Integers) -> Floats:
    """Return the values of ``name = value`` in the comments; NaN for documents without it."""
    pattern = ASSIGNED.format(name=re.escape(name))
    if comments is None or not pc.any(pc.match_substring_regex(comments, pattern)).as_py():
        raise FileFormatError(path, f"no comment holds {name} = <number>, to be a label source")
    texts = pc.struct_field(pc.extract_regex(comments, pattern), "value").to_pylist()
    values = np.full(len(texts), np.nan)
    for i, text in enumerate(texts):
        if text is None:
            continue
        if not (NUMBER.fullmatch(text.encode()) or NAN.fullmatch(text.encode())):
            problem = f"{name} = {text!r} in the comment is not a number"
            raise FileFormatError(path, problem, int(lines[i]))
        values[i] = float(text)
    return _checked(path, name, values)


def _from_json(
    path: Path, comments: Any, header: Header, lines: Integers
) -> tuple[dict[str, Any], dict[str, Floats]]:
    names = list(header.documents or ())
    rows = []
    texts = [""] * len(lines) if comments is None else comments.to_pylist()
    for text, line in zip(texts, lines, strict=True):
        try:
            comment, doc_id, *values = _list(json.loads(text))
            rows.append((_text(comment), _text(doc_id), [_number(value) for value in values]))
            if len(values) != len(names):
                raise ValueError(f"{len(values)} labels for {len(names)} sources")
        except WRONG_JSON as problem:
            problem_text = f"the comment does not fit the header of the file: {problem}"
            raise FileFormatError(path, problem_text, int(line)) from None
    table = np.array([row[2] for row in rows], np.float64).reshape(len(rows), len(names))
    return {
        "comment_column": _texts(row[0] for row in rows) if header.has_comments else None,
        "doc_id_column": _texts(row[1] for row in rows) if header.has_doc_ids else None,
    }, {
        name: _checked(path, name, np.ascontiguousarray(table[:, k]))
        for k, name in enumerate(names)
    }


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r:.30} is not a list")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.30} is not a text")
    value.encode()
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, type(None))):
        raise TypeError(f"{value!r:.30} is not a number")
    return float("nan") if value is None else float(value)


def _texts(values: Any) -> Any:
    return pa.array(list(values), pa.large_string())


def _checked(path: Path, name: str, values: Floats) -> Floats:
    try:
        return checks.label_source_array(name, values, len(values))
    except RankiniteError as problem:
        raise FileFormatError(path, str(problem)) from None


def document_comments(
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
    if _plain_texts(written) != {"comment_column": comments, "doc_id_column": doc_ids}:
        return None
    texts: list[str] = written.to_pylist()
    return texts


def _json_numbers(values: Floats) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]
