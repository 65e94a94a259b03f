"""The kernels of the text reader and writer against naive references, with and without the JIT."""

import random
import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from rankinite.data.svmlight import kernels
from tests.naive import svmlight as naive_svmlight
from tests.naive.svmlight import NUMBERS, WHOLES, random_numbers

pytestmark = pytest.mark.kernel

PADDING = b"\0" * 64
DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
TEXTS = [*NUMBERS, *random_numbers(1, 600), *random_numbers(2, 600)]


@pytest.fixture(autouse=True)
def silent_wraparound() -> Iterator[None]:
    """Without the JIT, numpy warns where compiled integers wrap around."""
    with np.errstate(over="ignore"):
        yield


def as_text(line: bytes) -> np.ndarray:
    return np.frombuffer(line + b"\n" + PADDING, np.uint8)


def column_of(parts: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Return texts as Arrow keeps them: offsets and bytes."""
    offsets = np.cumsum([0, *map(len, parts)])
    return offsets, np.frombuffer(b"".join(parts), np.uint8)


def test_read_digits_takes_the_digits_in_front() -> None:
    rng = random.Random(1)
    words = [bytes(rng.choices(b"0123456789", k=k)) + rng.randbytes(8 - k) for k in range(9)] * 60
    words += [bytes([byte]) * 8 for byte in range(256)]
    words += [b"1234567" + bytes([byte]) for byte in range(256)]
    for word in words:
        digits = re.match(rb"[0-9]*", word)[0]
        number_and_length = kernels.read_digits(np.uint64(int.from_bytes(word, "little")))
        assert number_and_length == (int(digits or b"0"), len(digits)), word


def test_read_number_keeps_the_first_18_digits() -> None:
    for text in TEXTS:
        behind, mantissa, exponent, negative, fine = kernels.read_number(as_text(text.encode()), 0)
        if DECIMAL.fullmatch(text) is None:
            assert not fine or behind < len(text.encode()), text
            continue
        if re.search(r"[eE][+-]?[0-9]{5}", text):
            assert not fine, "such powers are left to Python"
            continue
        assert fine
        assert behind == len(text)
        assert negative == text.startswith("-")
        exact = abs(Fraction(text))
        kept = int(mantissa) * Fraction(10) ** int(exponent)
        assert kept <= exact
        assert exact - kept <= exact / 10**17
        if len(re.sub(r"[eE].*|\D", "", text).lstrip("0")) <= 18:
            assert kept == exact


def test_read_value_is_right_or_says_no() -> None:
    n_read = 0
    for text in TEXTS:
        value, negative, behind = kernels.read_value(as_text(text.encode()), 0)
        if behind != len(text.encode()):
            continue
        expected = naive_svmlight.value(text.encode())
        parsed = -value if negative else value
        assert np.float32(parsed).view(np.uint32) == expected.view(np.uint32), text
        n_read += 1
    assert n_read > len(TEXTS) / 2


@pytest.mark.parametrize("text", ["-", "+", ".", "-.", "", "e5", "1e", "1e+", "inf", "na", "--1"])
def test_read_value_refuses_what_is_no_number(text: str) -> None:
    _, _, behind = kernels.read_value(as_text(text.encode()), 0)
    assert behind < 0


class Row:
    """What `read_line` fills."""

    def __init__(self, line: bytes, first: int, width: int) -> None:
        self.text = as_text(line)
        self.values = np.full(width, 7, np.float32)
        self.label = np.zeros(1)
        self.qid, self.comment, self.largest = (np.zeros(1, np.int64) for _ in range(3))
        self.state, self.behind = kernels.read_line(
            self.text,
            0,
            first,
            self.values,
            self.values.view(np.int32),
            self.label,
            self.qid,
            self.comment,
            self.largest,
        )


def random_line(rng: random.Random) -> bytes:
    label = rng.choice(["0", "1", "2.5", *NUMBERS])
    qid = rng.choice(["qid:3", "qid:3", "qid:-12", "", f"qid:{rng.choice(WHOLES)}"])
    features = rng.sample(range(1, 9), rng.randrange(6))
    values = rng.choice([["1", "0.25", "-3.5", "12345.678", "0.1234567"], TEXTS])
    tokens = [label, qid, *(f"{feature}:{rng.choice(values)}" for feature in features)]
    if rng.random() < 0.2:
        tokens.insert(rng.randrange(len(tokens)), f"{rng.choice(WHOLES)}:{rng.choice(NUMBERS)}")
    blank = rng.choice([" ", "  ", "\t", "\v", "\f"])
    return (blank.join(tokens) + rng.choice(["", " ", "\r", "#", " #x y", "# 1:1"])).encode()


def agrees(row: Row, line: bytes, first: int, width: int) -> bool:
    """Check a line against the reference; return whether the kernel parsed it itself."""
    if row.state == kernels.ODD or row.largest[0] - first >= width:
        return False
    text = line
    if row.state == kernels.LONG_LABEL:  # the kernel does not vouch for it
        text = re.sub(rb"^[^ \t\r\f\v#]+", b"1", line)
    expected = naive_svmlight.read(text, sizes=b"1", n_features=width, comments=False)
    assert isinstance(expected, naive_svmlight.Content), line
    matrix = np.zeros(width, np.float32)
    for feature, value in expected.rows[0].items():
        matrix[feature - first] = value
    np.testing.assert_array_equal(row.values.view(np.uint32), matrix.view(np.uint32))
    assert row.largest[0] == max(expected.rows[0], default=-1)
    assert row.qid[0] == (kernels.NO_QID if expected.ids[0] is None else expected.ids[0])
    assert row.comment[0] == (line.index(b"#") + 1 if b"#" in line else -1)
    if row.state == kernels.DOCUMENT:
        assert row.label[0] == expected.labels[0]
    return True


@pytest.mark.parametrize("first", [0, 1])
def test_read_line_is_right_or_says_odd(first: int) -> None:
    rng = random.Random(first)
    lines = [random_line(rng) for _ in range(300)]
    n_read = sum(agrees(Row(line, first, 9), line, first, 9) for line in lines)
    assert n_read > 60


@pytest.mark.parametrize("place", ["{} qid:1 1:1", "1 qid:{} 1:1", "1 {}:1", "1 1:{}", "1 2:{}#"])
def test_read_line_with_odd_numbers_everywhere(place: str) -> None:
    lines = [place.format(text).encode() for text in [*NUMBERS, *WHOLES]]
    assert sum(agrees(Row(line, 1, 9), line, 1, 9) for line in lines) > 5


PLAIN = "1 qid:7 1:0.5 2:-3 4:1e-5 5:nan 8:123456.789 9:0.000012345678901 #docid = x"


@pytest.mark.parametrize("line", [PLAIN, "3.25 2:007 1:+1", "0\tqid:-5\t3:.5\r", "1", "2 qid:1#"])
def test_read_line_reads_plain_lines_by_itself(line: str) -> None:
    row = Row(line.encode(), 1, 9)
    assert row.state == kernels.DOCUMENT
    assert agrees(row, line.encode(), 1, 9)


@pytest.mark.parametrize("line", ["", " \t\r\f\v", "# 1 qid:1 1:1", " #"])
def test_read_line_finds_no_document(line: str) -> None:
    row = Row(line.encode(), 1, 2)
    assert row.state == kernels.NO_DOCUMENT
    assert row.comment[0] == (line.index("#") + 1 if "#" in line else -1)
    assert row.behind <= len(line)


def test_read_line_reports_a_feature_without_a_column() -> None:
    row = Row(b"1 qid:1 1:2 50:1 2:3", 1, 2)
    assert (row.state, row.largest[0]) == (kernels.DOCUMENT, 50)


def random_cuts(rng: random.Random, length: int) -> np.ndarray:
    return np.array(
        [0, *sorted(rng.sample(range(1, length), min(rng.randrange(8), length - 1))), length]
    )


@pytest.mark.parametrize("seed", range(12))
def test_blocks_hold_the_lines_that_end_in_them(seed: int) -> None:
    rng = random.Random(seed)
    lines = [
        rng.choice([random_line(rng), random_line(rng), b"", b" \t", b"#", b"\r", b" # 1"])
        for _ in range(rng.randrange(2, 20))
    ]
    text = np.frombuffer(b"\n".join(lines) + b"\n" + PADDING, np.uint8)
    starts = np.cumsum([0, *(len(line) + 1 for line in lines)])
    begins = random_cuts(rng, int(starts[-1]))
    is_document = np.array([line.strip()[:1] not in (b"", b"#") for line in lines])
    n_lines, n_docs = np.empty((2, len(begins) - 1), np.int64)
    kernels.count_lines(0, len(n_lines), text, begins, n_lines, n_docs)
    inside = [(a < starts[1:]) & (starts[1:] <= b) for a, b in pairwise(begins)]
    assert n_lines.tolist() == [int(ending.sum()) for ending in inside]
    assert n_docs.tolist() == [int(is_document[ending].sum()) for ending in inside]

    n = int(is_document.sum())
    matrix = np.empty((n, 9), np.float32)
    labels, numbers = np.zeros(n), [np.empty(n, np.int64) for _ in range(6)]
    states = np.empty(n, np.uint8)
    firsts = [np.concatenate([[0], np.cumsum(counts)]) for counts in (n_lines, n_docs)]
    out = (matrix, matrix.view(np.int32), labels, *numbers, states)
    kernels.read_blocks(0, len(n_lines), text, begins, *firsts, 1, *out)
    qids, comments, largest, line_numbers, doc_starts, doc_ends = numbers
    assert line_numbers.tolist() == np.flatnonzero(is_document).tolist()
    for i, number in enumerate(line_numbers.tolist()):
        row = Row(lines[number], 1, 9)
        assert (doc_starts[i], doc_ends[i]) == (starts[number], starts[number + 1] - 1)
        assert states[i] == row.state
        assert largest[i] == row.largest[0]
        if row.state == kernels.DOCUMENT:
            assert (labels[i], qids[i]) == (row.label[0], row.qid[0])
            np.testing.assert_array_equal(matrix[i].view(np.uint32), row.values.view(np.uint32))
        if row.state != kernels.ODD and row.comment[0] >= 0:
            assert comments[i] == doc_starts[i] + row.comment[0]


def test_gather_text_copies_pieces() -> None:
    text = b"the quick brown fox"
    pieces = [(4, 9), (0, 3), (7, 7), (16, 19)]
    begins, ends = (np.array(side) for side in zip(*pieces, strict=True))
    out = np.empty((ends - begins).sum(), np.uint8)
    kernels.gather_text(np.frombuffer(text, np.uint8), begins, ends, out)
    assert out.tobytes() == b"quickthefox"


def test_write_lines_joins_the_written_values() -> None:
    rng = random.Random(1)
    n_rows, n_columns = 7, 5
    written = np.array([[rng.random() < 0.6 for _ in range(n_columns)] for _ in range(n_rows)])
    heads = [b"%d qid:%d" % (i % 3, i) for i in range(n_rows)]
    tails = [b" #%d\n" % i if i % 2 else b"\n" for i in range(n_rows)]
    prefixes = [b" %d:" % (10**j) for j in range(n_columns)]
    values = [str(rng.random())[: rng.randrange(3, 9)].encode() for _ in range(written.sum())]
    rest = iter(values)
    expected = b""
    for i in range(n_rows):
        pairs = [prefixes[j] + next(rest) for j in range(n_columns) if written[i, j]]
        expected += heads[i] + b"".join(pairs) + tails[i]
    out = np.empty(len(expected), np.uint8)
    columns = (array for part in (heads, tails, prefixes, values) for array in column_of(part))
    kernels.write_lines(*columns, written, out)
    assert out.tobytes() == expected
