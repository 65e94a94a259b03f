"""The slow, obvious reader of SVMlight text: a whole file in plain Python, from the grammar.

It shares nothing with the package. It returns what a file holds, or that it is refused, and the
first line that cannot be read if it is a line's fault.
"""

import gzip
import json
import math
import re
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

NUMBER_BYTES = frozenset(b"0123456789+-.eE")
DIGITS = frozenset(b"0123456789")
HEADER = b"#rankinite "
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
DOCID = re.compile(r"(?:^|[ \t\r\f\v])docid[ \t\r\f\v]*=[ \t\r\f\v]*([^ \t\r\f\v]+)")
BLANKS = " \t\r\f\v"

# Numbers, good and bad, at which a reader may stumble: the first 20 are good values.
ODD_NUMBERS = (
    "0 1 2 3.5 .5 5. -0 -0.0 +1 1e3 1E-3 1e+2 007 0.1 0.30000001192092896 16777217 1.17549435e-38 "
    "1e-45 7e-46 3.4028235e38 3.4028236e38 1e39 -1e39 1e-400 1e400 1e60 1e-61 0e99999 1e00005 "
    "123456789.123456789 0.1234567890123456789012345 99999999 9999999.9999999 "
    "1.00000005960464477539 1.000000059604644775390625 1.00000005960464477540 "
    "00000000000000000000001 "
    "nan NaN -nan +NAN inf -inf - + . -. e5 1e 1e+ 1.2.3 0x10 1_0 1,5 \u0661 --1 +-1 1f 1d5"
)
ODD_WHOLES = (
    "0 1 2 3 4 5 7 12 150 01 0000000000000000000002 -1 -0 +1 1.0 1e2 999999 1000001 4194304 "
    "2147483646 2147483647 4294967297 9223372036854775807 9223372036854775808 "
    "-9223372036854775808 -9223372036854775809 18446744073709551617 "
    "123456789012345678901234567890 x"
)
NUMBERS, WHOLES = ODD_NUMBERS.split(), ODD_WHOLES.split()


def random_numbers(seed: int, n: int) -> list[str]:
    """Return numbers in many forms, among them those next to where float32 rounds."""
    rng = np.random.default_rng(seed)
    texts = []
    for _ in range(n // 10):
        wide = float(rng.normal() * 10.0 ** rng.integers(-6, 7))
        digits = "".join(map(str, rng.integers(0, 10, 30)))
        point = int(rng.integers(1, 30))
        low = rng.integers(0, 0x7F7FFFFF, dtype=np.uint32).view(np.float32)
        middle = (float(low) + float(np.nextafter(low, np.float32(np.inf)))) / 2
        beside = np.nextafter(middle, rng.choice([-np.inf, np.inf]))
        texts += [f"{wide:.6f}", f"{wide:.17g}", f"{wide:e}", repr(wide), f"{wide:+.25f}"]
        texts += [f"{digits[:point]}.{digits[point:]}", f".{digits}e-{rng.integers(0, 60)}"]
        texts += [f"{digits[0]}.{digits[1:9]}E{rng.integers(-400, 38):+05d}"]
        texts += [f"{middle:.60e}", f"{float(beside):.{rng.integers(8, 25)}e}"]
    return [text for text in texts if abs(float(text)) < 3.4e38]


def float32s(texts: list[str]) -> np.ndarray:
    """Return what the grammar says that these values are."""
    return np.array([np.float32(float(text)) for text in texts], np.float32)


class RefusedError(Exception):
    """The file is not what the grammar says."""


@dataclass(frozen=True)
class Refused:
    """The answer for a file that is not what the grammar says."""

    line: int | None


@dataclass
class Content:
    """What a file holds; ``rows`` map feature numbers to float32 values."""

    rows: list[dict[int, np.float32]] = field(default_factory=list)
    labels: list[float] = field(default_factory=list)
    ids: list[int | None] = field(default_factory=list)
    comments: list[str] | None = None
    doc_ids: list[str] | None = None
    first: int = 1
    width: int = 0
    qids: list[Any] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    sources: dict[str, list[float]] = field(default_factory=dict)
    weights: list[float] | None = None
    top_grade: float = 0.0

    def matrix(self) -> np.ndarray:
        matrix = np.zeros((len(self.rows), self.width), np.float32)
        for i, row in enumerate(self.rows):
            for feature, value in row.items():
                matrix[i, feature - self.first] = value
        return matrix


def read(
    data: bytes,
    *,
    sizes: bytes | None = None,
    n_features: int | None = None,
    comments: bool = True,
    group: bool = False,
) -> Content | Refused:
    """Read the bytes of a file (and those of its group sizes)."""
    line = None
    try:
        lines = _lines(data)
        line = 1
        header = _header(lines[0])
        content = Content()
        remarks = []
        for line, text in enumerate(lines, 1):  # noqa: B007
            _line(content, text, remarks if comments else None)
        line = None
        _whole_file(content, header, remarks if comments else None, sizes, n_features, group)
    except RefusedError:
        return Refused(line)
    return content


def assert_same(data: Any, content: Content) -> None:
    """Compare a data set with the result of the reference, bit for bit."""
    np.testing.assert_array_equal(data.X.view(np.uint32), content.matrix().view(np.uint32))
    np.testing.assert_array_equal(data.y.view(np.uint64), _bits(content.labels))
    assert data.qids.tolist() == content.qids
    assert data.offsets.tolist() == content.offsets
    assert _listed(data.comments) == content.comments
    assert _listed(data.doc_ids) == content.doc_ids
    assert list(data.feature_names) == content.names
    assert data.labels.keys() == content.sources.keys()
    for name, column in content.sources.items():
        np.testing.assert_array_equal(data.labels[name], column)
    assert _listed(data.query_weight) == content.weights
    assert data.top_grade == content.top_grade


def _bits(labels: list[float]) -> np.ndarray:
    return np.array(labels, np.float64).view(np.uint64)


def _listed(column: Any) -> list[Any] | None:
    return None if column is None else column.tolist()


def _line(content: Content, line: bytes, remarks: list[str] | None) -> None:
    text, _, remark = line.partition(b"#")
    tokens = [token.group() for token in re.finditer(rb"[^ \t\r\f\v]+", text)]
    if tokens:
        _document(content, tokens)
        if remarks is not None:
            remarks.append(_decoded(remark[:-1] if remark.endswith(b"\r") else remark))


def _whole_file(
    content: Content,
    header: dict[str, Any],
    remarks: list[str] | None,
    sizes: bytes | None,
    n_features: int | None,
    group: bool,
) -> None:
    _demand(content.rows)
    _demand(len({math.isnan(label) for label in content.labels}) == 1)
    _columns(content, n_features)
    if header.get("documents") is not None:
        _demand(remarks is not None)
        _json_comments(content, header, remarks)
    elif remarks and any(remarks):
        _plain_comments(content, remarks)
    _queries(content, sizes, group)
    _apply_header(content, header)


def _demand(condition: Any) -> None:
    if not condition:
        raise RefusedError


def _lines(data: bytes) -> list[bytes]:
    _demand(data)
    if data.startswith(b"\x1f\x8b"):
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError, zlib.error):
            raise RefusedError from None
    if data.startswith(BYTE_ORDER_MARK):
        data = b"   " + data[3:]
    return data.split(b"\n")


def _decoded(remark: bytes) -> str:
    try:
        return remark.decode()
    except UnicodeDecodeError:
        raise RefusedError from None


def number(text: bytes) -> float:
    """Read a plain decimal number; of these bytes, `float` takes nothing else."""
    _demand(text and NUMBER_BYTES.issuperset(text))
    try:
        return float(text)
    except ValueError:
        raise RefusedError from None


def value(text: bytes) -> np.float32:
    """Read the value of a feature."""
    if text.lower() in (b"nan", b"+nan", b"-nan"):
        return np.float32(np.nan)
    with np.errstate(over="ignore"):
        narrow = np.float32(number(text))
    _demand(np.isfinite(narrow))
    return narrow


def _whole(text: bytes) -> int:
    _demand(text and DIGITS.issuperset(text))
    significant = text.lstrip(b"0")
    _demand(len(significant) < 40)
    return int(significant or b"0")


def _document(content: Content, tokens: list[bytes]) -> None:
    label, qid = math.nan, None
    if b":" not in tokens[0]:
        label = number(tokens[0])
        _demand(math.isfinite(label) and label >= 0)
        tokens = tokens[1:]
    if tokens and tokens[0].startswith(b"qid:"):
        text = tokens[0][4:]
        qid = -_whole(text[1:]) if text.startswith(b"-") else _whole(text)
        _demand(-(2**63) <= qid < 2**63)
        tokens = tokens[1:]
    row: dict[int, np.float32] = {}
    for token in tokens:
        name, colon, text = token.partition(b":")
        _demand(colon)
        feature = _whole(name)
        _demand(feature <= 2**31 - 2 and feature not in row)
        row[feature] = value(text)
    content.labels.append(label)
    content.ids.append(qid)
    content.rows.append(row)


def _columns(content: Content, n_features: int | None) -> None:
    used = {feature for row in content.rows for feature in row}
    _demand(used or n_features)
    content.first = 0 if 0 in used else 1
    needed = max(used, default=0) - content.first + 1
    _demand(n_features is None or needed <= n_features)
    content.width = n_features or needed
    if content.width < 10**6:
        content.names = [str(content.first + j) for j in range(content.width)]


def _plain_comments(content: Content, remarks: list[str]) -> None:
    matches = [DOCID.search(remark) for remark in remarks]
    content.comments = remarks
    if any(matches):
        content.doc_ids = ["" if match is None else match[1] for match in matches]
        if all(
            match
            and not remark[: match.start()].strip(BLANKS)
            and not remark[match.end() :].strip(BLANKS)
            for match, remark in zip(matches, remarks, strict=True)
        ):
            content.comments = None


def _queries(content: Content, sizes: bytes | None, group: bool) -> None:
    ids = content.ids
    if all(qid is None for qid in ids):
        counts = _group_sizes(sizes)
        _demand(sum(counts) == len(ids))
        content.qids = list(range(1, len(counts) + 1))
    else:
        _demand(None not in ids)
        content.qids = list(dict.fromkeys(ids))
        counts = [ids.count(qid) for qid in content.qids]
        order = sorted(range(len(ids)), key=lambda i: content.qids.index(ids[i]))
        _demand(group or order == sorted(order))
        _reorder(content, order)
    content.offsets = [sum(counts[:q]) for q in range(len(counts) + 1)]


def _reorder(content: Content, order: list[int]) -> None:
    for name in ("rows", "labels", "comments", "doc_ids"):
        column = getattr(content, name)
        if column is not None:
            setattr(content, name, [column[i] for i in order])
    content.sources = {n: [column[i] for i in order] for n, column in content.sources.items()}


def _group_sizes(sizes: bytes | None) -> list[int]:
    _demand(sizes)
    texts = [line.strip() for line in b"\n".join(_lines(sizes)).splitlines()]
    counts = [_whole(text) for text in texts if text]
    _demand(counts and min(counts) > 0)
    return counts


def _header(line: bytes) -> dict[str, Any]:
    line = line.lstrip(b" ")
    if not line.startswith(HEADER):
        return {}
    said = _json(line[len(HEADER) :])
    _demand(isinstance(said, dict))
    for name, what in said.items():
        if name in ("has_comments", "has_doc_ids"):
            _demand(isinstance(what, bool))
        elif what is None:
            _demand(name in ("feature_names", "qids", "documents", "top_grade", "query_weight"))
        elif name in ("feature_names", "qids", "documents"):
            _demand(isinstance(what, list) and all(_is_text(text) for text in what))
            _demand(len(set(what)) == len(what))
        elif name == "query_weight":
            _demand(isinstance(what, list))
            _demand(all(0 <= _json_number(weight) < math.inf for weight in what) and any(what))
        else:
            _demand(name == "top_grade" and 0 <= _json_number(what) < math.inf)
    return said


def _json(text: bytes | str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise RefusedError from None


def _is_text(what: Any) -> bool:
    return isinstance(what, str) and not any(0xD800 <= ord(letter) < 0xE000 for letter in what)


def _json_number(what: Any) -> float:
    _demand(type(what) in (int, float))
    try:
        return float(what)
    except OverflowError:
        raise RefusedError from None


def _json_comments(content: Content, header: dict[str, Any], remarks: list[str]) -> None:
    names = header["documents"]
    rows = [_json(remark) for remark in remarks]
    for row in rows:
        _demand(isinstance(row, list) and len(row) == 2 + len(names))
        _demand(_is_text(row[0]) and _is_text(row[1]))
    content.comments = [row[0] for row in rows] if header.get("has_comments") else None
    content.doc_ids = [row[1] for row in rows] if header.get("has_doc_ids") else None
    for k, name in enumerate(names):
        _demand(name and not set(name) & set("[]>,\n"))
        column = [math.nan if row[2 + k] is None else _json_number(row[2 + k]) for row in rows]
        _demand(all(math.isnan(value) or 0 <= value < math.inf for value in column))
        content.sources[name] = column


def _apply_header(content: Content, header: dict[str, Any]) -> None:
    if header.get("feature_names") is not None:
        content.names = header["feature_names"]
        _demand(len(content.names) == content.width)
    if header.get("qids") is not None:
        _demand(len(header["qids"]) == len(content.qids))
        _demand(content.qids == list(range(1, len(content.qids) + 1)))
        content.qids = header["qids"]
    if header.get("query_weight") is not None:
        content.weights = [float(weight) for weight in header["query_weight"]]
        _demand(len(content.weights) == len(content.qids))
    content.top_grade = 0.0 if math.isnan(content.labels[0]) else max(content.labels)
    if header.get("top_grade") is not None:
        _demand(header["top_grade"] >= content.top_grade)
        content.top_grade = float(header["top_grade"])
