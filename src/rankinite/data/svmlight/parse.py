"""The strict parser of SVMlight text, in Python: lines, headers, comments, and group sizes.

It defines what is allowed. The compiled kernel parses plain lines; a line with anything unusual in
it comes to `parse_line`, and is either parsed or refused with its column, the offending text and
what was expected.

LETOR writes ``#docid = X inc = 1 prob = 0.02`` behind a document; X is its id, and other values
can be used as label sources. A data set with fields that SVMlight has no place for (feature names,
further labels, weights, ...) has a first line ``#rankinite {...}``, which other tools skip; the
comments of its documents are then JSON lists: comment, document id, further labels.
"""

from __future__ import annotations

import json
import math
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rankinite.core.errors import FileFormatError, RankiniteError
from rankinite.core.format import quoted
from rankinite.core.numerals import DIGITS, parse_number
from rankinite.core.types import Floats, Floats32, Integers
from rankinite.data import checks
from rankinite.data.budget import COPIES_OF_TEXTS, require_memory, require_memory_of_json
from rankinite.data.stream import read_lines
from rankinite.data.svmlight import kernels

# Tokens are separated by the same bytes as in the kernel; a carriage return counts as a blank.
TOKEN = re.compile(rb"[^ \t\r\f\v]+")
QID = re.compile(rb"-?[0-9]+")
LARGEST_FEATURE = 2**31 - 2
MARK = b"#rankinite "
# Arrow's \s has no vertical tab.
ASSIGNED = r"(?:^|[\s\v]){name}[\s\v]*=[\s\v]*(?P<value>[^\s\v]+)"
DOCID = ASSIGNED.format(name="docid")
ONLY_DOCID = r"^[\s\v]*docid[\s\v]*=[\s\v]*[^\s\v]+[\s\v]*$"
# Exceptions of damaged JSON, and of JSON with other types than texts and numbers.
WRONG_JSON = (ValueError, TypeError, OverflowError, RecursionError)
TEXT_A_CHECK = 1 << 24  # bytes of comments; to look at the memory takes longer than a short file
TEXTS_A_BLOCK = 1 << 12  # comments that are Python objects at a time
GROUP_SIZE_SUFFIXES = (".query", ".group")
MOST_DIGITS_OF_SIZES = 15  # more than any file has documents, and fits in 64 bits


@dataclass(frozen=True)
class Line:
    """A parsed line; ``label`` is NaN and ``qid`` is None if it has none."""

    label: float
    qid: int | None
    numbers: Integers
    values: Floats32


class LineError(ValueError):
    """A line that cannot be parsed: the problem, and its column from 1."""

    def __init__(self, column: int, problem: str) -> None:
        super().__init__(problem)
        self.column = column
        self.problem = problem


def parse_line(text: bytes) -> Line:
    """Parse a line with a document.

    Parameters
    ----------
    text
        Bytes of the line without the newline; a comment, from the first ``#`` on, is ignored.

    Raises
    ------
    LineError
        If the line cannot be read.
    """
    mark = text.find(b"#")
    # One after the other, and numbers instead of objects: a line may be as long as the memory.
    tokens = TOKEN.finditer(text, 0, len(text) if mark < 0 else mark)
    token = next(tokens, None)
    label, qid = math.nan, None
    # A colon is that of a query or a feature: the document has no label.
    if token is not None and b":" not in token.group():
        label = _label(token)
        token = next(tokens, None)
    if token is not None and token.group().startswith(b"qid:"):
        qid = _qid(token)
        token = next(tokens, None)
    features = _Features()
    while token is not None:
        try:
            features.add(token)
        except LineError:
            features.refuse_repeated()  # further up in the line, which is the first error then
            raise
        token = next(tokens, None)
    features.refuse_repeated()
    return Line(label, qid, np.array(features.numbers), np.array(features.values))


class _Features:
    """Features of a line, as they are read."""

    def __init__(self) -> None:
        self.numbers, self.values, self.columns = array("q"), array("f"), array("q")

    def add(self, token: re.Match[bytes]) -> None:
        number, value = _feature(token)
        self.numbers.append(number)
        self.values.append(value)
        self.columns.append(token.start() + 1)

    def refuse_repeated(self) -> None:
        numbers = np.array(self.numbers)
        order = np.argsort(numbers, kind="stable")
        again = order[1:][numbers[order[1:]] == numbers[order[:-1]]]
        if len(again) > 0:
            k = int(again.min())
            raise LineError(self.columns[k], f"feature {numbers[k]} occurs twice in this line")


def parse_label(text: bytes) -> float:
    """Parse the label of a line with a document."""
    return _label(next(TOKEN.finditer(text, 0, len(text.partition(b"#")[0]))))


def _label(token: re.Match[bytes]) -> float:
    text = token.group()
    column = token.start() + 1
    try:
        value = parse_number(text)
    except ValueError:
        raise LineError(
            column, f"{quoted(text)} is not a label; expected a number such as 2 or 0.5"
        ) from None
    if not math.isfinite(value):
        raise LineError(column, f"label {quoted(text)} does not fit in a 64-bit float")
    if value < 0:
        raise LineError(column, f"label {quoted(text)} is negative; expected 0 or more")
    return value


def _qid(token: re.Match[bytes]) -> int:
    text = token.group()[4:]
    column = token.start() + 5
    if QID.fullmatch(text) is None:
        raise LineError(column, f"{quoted(text)} is not a query id; expected a whole number")
    # Twenty digits decide; Python refuses to convert thousands of them.
    value = int(text.lstrip(b"-0")[:20] or b"0") * (-1 if text.startswith(b"-") else 1)
    if not -(2**63) <= value < 2**63:
        raise LineError(column, f"query id {quoted(text)} does not fit in a 64-bit integer")
    return value


def _feature(token: re.Match[bytes]) -> tuple[int, float]:
    text = token.group()
    column = token.start() + 1
    number_text, colon, value_text = text.partition(b":")
    if number_text == b"qid":
        raise LineError(column, "unexpected qid; expected it once, directly behind the label")
    if not colon or DIGITS.fullmatch(number_text) is None:
        raise LineError(column, f"{quoted(text)} is not a feature; expected number:value")
    number = int(number_text.lstrip(b"0")[:20] or b"0")
    if number > LARGEST_FEATURE:
        raise LineError(
            column,
            f"feature number {quoted(number_text)} is too large; "
            f"expected at most {LARGEST_FEATURE}",
        )
    return number, _value(value_text, column + len(number_text) + 1, number)


def _value(text: bytes, column: int, number: int) -> float:
    try:
        wide = parse_number(text, nan=True)
    except ValueError:
        raise LineError(
            column, f"{quoted(text)} is not a value of feature {number}; expected a number or nan"
        ) from None
    with np.errstate(over="ignore"):  # an infinity is refused below
        value = np.float32(wide)
    if np.isinf(value):
        raise LineError(
            column, f"value {quoted(text)} of feature {number} does not fit in a 32-bit float"
        )
    return float(value)


# Header and comments


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
    categories: Mapping[str, Sequence[str]] | None = None

    @classmethod
    def parse(cls, path: Path, line: bytes) -> Header:
        """Parse a header; a first line with any other comment gives an empty one."""
        text = line.lstrip(b" ")
        if not text.startswith(MARK):
            return cls()
        require_memory_of_json(path, "the header", len(text))
        try:
            values = json.loads(text[len(MARK) :])
            unknown = [name for name in values if name not in cls.__dataclass_fields__]
            if unknown:
                raise ValueError(f"{quoted(unknown[0])} is no field of it")
            return cls(**values)._checked()
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
        if not isinstance(self.categories, dict | None):
            raise TypeError("categories has lists by feature")
        for texts_of_feature in (self.categories or {}).values():
            for text in _list(texts_of_feature):
                _text(text)
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
        # SVMlight's ids are numbers, so the lines have 1, 2, ... in place of the header's ids.
        if (qids != np.arange(1, len(qids) + 1)).any():
            problem = "the header names queries 1, 2, ... in this order; restore the lines' order"
            raise FileFormatError(path, problem, 1, 1)
        try:
            return checks.text_ids(self.qids)
        except RankiniteError as problem:
            raise FileFormatError(path, f"the header is damaged: {problem}", 1, 1) from None

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
    sizes: list[int] = field(default_factory=list)
    n_bytes: int = 0
    n_checked: int = TEXT_A_CHECK

    def take(
        self,
        text: NDArray[np.uint8],
        begins: Integers,
        ends: Integers,
        lines: Integers,
    ) -> None:
        """Copy the comments that begin at these positions (-1 for none) and end with the line."""
        self.sizes.append(len(begins))
        if not (begins >= 0).any():
            self.blocks.append(None)
            return
        ends = ends - (text[ends - 1] == ord("\r"))
        begins = np.where(begins < 0, ends, begins)
        lengths = np.maximum(ends - begins, 0)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        self.n_bytes += int(offsets[-1])
        if self.n_bytes > self.n_checked:
            n_bytes = COPIES_OF_TEXTS * self.n_bytes
            require_memory(self.path, "the text of the comments", n_bytes)
            self.n_checked = self.n_bytes + TEXT_A_CHECK
        copied = np.empty(offsets[-1], np.uint8)
        kernels.gather_text(text, begins, begins + lengths, copied)
        # Arrow takes the buffers as they are: no text becomes a Python object.
        texts = pa.LargeStringArray.from_buffers(
            len(begins), pa.py_buffer(offsets), pa.py_buffer(copied)
        )
        self._check_encoding(texts, lines)
        self.blocks.append(texts)

    def _check_encoding(self, texts: Any, lines: Integers) -> None:
        try:
            texts.validate(full=True)
        except pa.ArrowInvalid:
            # Arrow does not say which text is invalid, and the message names its line.
            for text, line in zip(texts.cast(pa.large_binary()), lines, strict=True):
                content = text.as_py()
                try:
                    content.decode()
                except UnicodeDecodeError as problem:
                    raise FileFormatError(
                        self.path,
                        f"the comment is not UTF-8 (byte {content[problem.start]:#04x}); "
                        "convert the file, or leave comments out (comments=False, --no-comments)",
                        int(line),
                    ) from None

    def array(self) -> Any:
        """Return all comments as one column, or None if there are none; called once."""
        whole = checks.concat_texts(self.blocks, self.sizes) if self.n_bytes > 0 else None
        self.blocks.clear()
        return whole


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
    return plain_texts(comments), labels


def plain_texts(comments: Any) -> dict[str, Any]:
    """Return the columns that are in comments of a file without a header."""
    if comments is None:
        return {"comment_column": None, "doc_id_column": None}
    doc_ids = None
    if pc.any(pc.match_substring_regex(comments, DOCID)).as_py():
        values = pc.struct_field(pc.extract_regex(comments, DOCID), "value")
        doc_ids = pc.fill_null(values, "").cast(pa.large_string())
        # Comments that say nothing but the id are not kept a second time.
        if pc.all(pc.match_substring_regex(comments, ONLY_DOCID)).as_py():
            comments = None
    return {"comment_column": comments, "doc_id_column": doc_ids}


def _source(path: Path, comments: Any, name: str, lines: Integers) -> Floats:
    """Return the values of ``name = value`` in the comments; NaN for documents without it."""
    pattern = ASSIGNED.format(name=re.escape(name))
    if comments is None or not pc.any(pc.match_substring_regex(comments, pattern)).as_py():
        raise FileFormatError(path, f"no comment holds {name} = <number>, to be a label source")
    texts = pc.struct_field(pc.extract_regex(comments, pattern), "value")
    values = np.full(len(texts), np.nan)
    for i, text in enumerate(_objects(texts)):
        if text is None:
            continue
        try:
            values[i] = parse_number(text, nan=True)
        except ValueError:
            problem = f"{name} = {quoted(text)} in the comment is not a number"
            raise FileFormatError(path, problem, int(lines[i])) from None
    return _checked(path, name, values)


def _objects(texts: Any) -> Iterator[str | None]:
    """Iterate over a column of texts, of which few are Python objects at a time."""
    for start in range(0, len(texts), TEXTS_A_BLOCK):
        yield from texts.slice(start, TEXTS_A_BLOCK).to_pylist()


def _from_json(
    path: Path, comments: Any, header: Header, lines: Integers
) -> tuple[dict[str, Any], dict[str, Floats]]:
    names = list(header.documents or ())
    table = np.empty((len(names), len(lines)))
    kept: dict[str, list[Any]] = {"comment_column": [], "doc_id_column": []}
    texts = iter([""] * len(lines)) if comments is None else _objects(comments)
    for start in range(0, len(lines), TEXTS_A_BLOCK):
        rows = []
        for line, text in zip(lines[start : start + TEXTS_A_BLOCK], texts, strict=False):
            rows.append(_json_row(path, text or "", len(names), int(line)))
            table[:, start + len(rows) - 1] = rows[-1][2:]
        for k, column in enumerate(kept.values()):
            column.append(pa.array([row[k] for row in rows], pa.large_string()))
    has_column = {"comment_column": header.has_comments, "doc_id_column": header.has_doc_ids}
    return {
        name: pa.concat_arrays(column) if has_column[name] else None
        for name, column in kept.items()
    }, {name: _checked(path, name, table[k]) for k, name in enumerate(names)}


def _json_row(path: Path, text: str, n_sources: int, line: int) -> tuple[Any, ...]:
    """Return comment, document id and labels of a comment that our writer made."""
    require_memory_of_json(path, f"the comment of line {line}", len(text))
    try:
        comment, doc_id, *values = _list(json.loads(text))
        if len(values) != n_sources:
            raise ValueError(f"{len(values)} labels for {n_sources} sources")
        return (_text(comment), _text(doc_id), *map(_number, values))
    except WRONG_JSON as problem:
        problem_text = f"the comment does not fit the header of the file: {problem}"
        raise FileFormatError(path, problem_text, line) from None


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r:.30} is not a list")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.30} is not a text")
    value.encode()  # JSON can spell half of a surrogate pair, which is a ValueError here
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, type(None))):
        raise TypeError(f"{value!r:.30} is not a number")
    return float("nan") if value is None else float(value)


def _checked(path: Path, name: str, values: Floats) -> Floats:
    try:
        return checks.label_source_array(name, values, len(values))
    except RankiniteError as problem:
        raise FileFormatError(path, str(problem)) from None


# Group sizes, in a file of their own


def group_sizes_beside(path: Path) -> Path | None:
    """Return the file of group sizes beside a file of documents, if there is one."""
    names = [path.name, path.name.removesuffix(".gz")]
    for name in dict.fromkeys(names):
        for suffix in GROUP_SIZE_SUFFIXES:
            if path.with_name(name + suffix).is_file():
                return path.with_name(name + suffix)
    return None


def read_group_sizes(path: Path, n_docs: int) -> tuple[Integers, int]:
    """Read group sizes, one whole number above 0 per line; return them, and their sum.

    After sizes of more than ``n_docs`` documents only the sum goes on.
    """
    sizes = array("q")
    total = number = 0
    for line in read_lines(path):
        number += 1
        digits = line.strip().lstrip(b"0")
        if not line.strip():
            continue
        if not digits.isdigit() or len(digits) > MOST_DIGITS_OF_SIZES:
            problem = f"{quoted(line.strip())} is not a group size; expected a whole number above 0"
            raise FileFormatError(path, problem, number, 1)
        total += int(digits)
        if total <= n_docs:
            sizes.append(int(digits))
    if total == 0:
        raise FileFormatError(path, "there are no group sizes in this file")
    return np.array(sizes), total
