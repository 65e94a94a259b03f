"""Small files of SVMlight text, valid and damaged, and whether both readers agree about them."""

from __future__ import annotations

import gzip
import random
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankinite.core.errors import FileFormatError, RankiniteError
from rankinite.data.svmlight import read_svmlight, write_svmlight
from tests.naive import svmlight as naive_svmlight
from tests.naive.svmlight import NUMBERS, WHOLES

# Between these two numbers of features, whether the matrix fits depends on the blocks.
SURELY_FITS = 200
SURELY_TOO_LARGE = 1_000_000
FREE = 4 * SURELY_TOO_LARGE

ODD_REMARKS = (
    "|docid = D1|docid=D2 |  docid = é|docid = GX1 inc = 1 prob = 0.5|a # b|x\r|\vdocid\v=\vV|"
    'mydocid = 1|["", "d"]|["c", "d", 1.5]|["c", "d", null]|["\\ud800", ""]|\0|\u2028|docid ='
)
REMARKS = ODD_REMARKS.split("|")
HEADERS = (
    '{"feature_names": ["a", "b"]}',
    '{"top_grade": 4.0}',
    '{"top_grade": 1e400, "qids": ["x"]}',
    '{"qids": ["q", "r"], "query_weight": [1.0, 0.5]}',
    '{"documents": [], "has_doc_ids": true}',
    '{"documents": ["clicks"], "has_comments": true}',
    '{"documents": ["a", "a"]}',
    '{"feature_names": 3}',
    '{"query_weight": 0}',
    "[[",
)
OWN_FILES = (  # as our writer makes them for what SVMlight cannot hold
    b'#rankinite {"documents": ["clicks", "b"], "has_comments": true, "has_doc_ids": true}\n'
    b'1 qid:1 1:0.5 2:3 #["c", "d", 1.5, null]\n0 qid:2 1:7 #["", "e\\n", 0.0, 2]\n',
    b'#rankinite {"feature_names": ["x", "y"], "top_grade": 4.0, "qids": ["p", "q"], '
    b'"query_weight": [0.5, 2.0]}\n2 qid:1 1:1 2:0\n0 qid:1 2:4\n1 qid:2 1:1e-3\n',
)
BYTES = b' \t\n\r\f\v#:.+-eE0123456789qidnaN\0\xff\xc3\xa9_x"[]{},='


def random_file(rng: random.Random) -> bytes:
    """Build a small file that the grammar allows."""
    first = rng.choice([1, 1, 1, 0])
    ending = rng.choice(["\n", "\n", "\r\n", " \n"])
    blank = rng.choice([" ", " ", "\t", " \v\f"])
    named = rng.random() < 0.8
    lines = []
    for qid in range(1, rng.randrange(2, 6)):
        for _ in range(rng.randrange(1, 4)):
            label = rng.choice(["0", "1", "2", "4", "0.5", "1e-3", "0.12345678901234567"])
            features = rng.sample(range(first, 13), rng.randrange(1, 6))
            pairs = [f"{feature}:{_plain(rng)}" for feature in features]
            remark = rng.choice(["", "", *(f"#{remark}" for remark in REMARKS[:6])])
            lines.append(blank.join([label, *([f"qid:{qid}"] if named else []), *pairs, remark]))
    return (ending.join(lines) + rng.choice([ending, ""])).encode()


def _plain(rng: random.Random) -> str:
    number = rng.choice([rng.randrange(-99, 100), rng.uniform(-1e6, 1e6), rng.uniform(-1, 1)])
    return rng.choice([str(number), rng.choice(NUMBERS[:20])])


@dataclass(frozen=True)
class Mutant:
    """A damaged file and how to read it."""

    data: bytes
    sizes: bytes | None
    options: dict[str, Any]
    block: int
    piece: int
    written: bool = False  # and read again


def mutant(rng: random.Random, files: list[bytes]) -> Mutant:
    data = rng.choice(OWN_FILES if rng.random() < 0.08 else files)
    sizes = None
    if b"qid:" not in data or rng.random() < 0.05:
        sizes = b"%d\n" * 2 % (rng.randrange(1, 4), rng.randrange(1, 4))
        if rng.random() < 0.8:
            sizes = b"%d\n" % len(data.splitlines())
        if rng.random() < 0.2:
            sizes = _damage(rng, sizes, files)
    if rng.random() < 0.06:
        data = b"#rankinite " + rng.choice(HEADERS).encode() + b"\n" + data
    for _ in range(rng.choice([0, 1, 1, 1, 1, 2, 4])):
        data = _damage(rng, data, files)
    if rng.random() < 0.15:
        data = _compressed(rng, data)
    options: dict[str, Any] = {
        "n_features": rng.choice([None, None, None, None, 3, 12, 20]),
        "comments": rng.random() < 0.85,
        "group": rng.random() < 0.2,
    }
    block = rng.choice([1, 7, 16, 64, 200, 4096])
    piece = rng.choice([1, 8, 50, 4096])
    return Mutant(data, sizes, options, block, piece, written=rng.random() < 0.1)


def _compressed(rng: random.Random, data: bytes) -> bytes:
    cut = rng.randrange(len(data) + 1)
    members = [data[:cut], data[cut:]] if rng.random() < 0.3 else [data]
    packed = b"".join(gzip.compress(member, mtime=0) for member in members)
    if rng.random() < 0.4:
        packed = rng.choice([_replace_byte, _flip_bit, _truncate, _insert])(rng, packed)
    return packed


def _damage(rng: random.Random, data: bytes, files: list[bytes]) -> bytes:
    if not data:
        return data
    if rng.random() < 0.08:
        other = rng.choice(files)
        return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other)) :]
    return rng.choice(DAMAGES)(rng, data)


def _flip_bit(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def _replace_byte(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([rng.choice(BYTES)]) + data[at + 1 :]


def _insert(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + bytes(rng.choices(BYTES, k=rng.choice([1, 1, 2, 30]))) + data[at:]


def _delete(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.choice([1, 1, 2, 10]) :]


def _truncate(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _random_bytes(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + rng.randbytes(rng.randrange(1, 9)) + data[at:]


def _parts(rng: random.Random, data: bytes, separator: bytes) -> bytes:
    """Swap, double or drop tokens or lines; what separates them stays."""
    parts = re.split(b"(" + separator + b")", data)
    i, j = rng.randrange(len(parts)), rng.randrange(len(parts))
    action = rng.randrange(3)
    if action == 0:
        parts[i], parts[j] = parts[j], parts[i]
    elif action == 1:
        parts[i:i] = parts[j : j + 2]
    else:
        del parts[i : i + 2]
    return b"".join(parts)


def _tokens(rng: random.Random, data: bytes) -> bytes:
    return _parts(rng, data, rb"[ \t]")


def _whole_lines(rng: random.Random, data: bytes) -> bytes:
    return _parts(rng, data, rb"\n")


def _odd(pattern: bytes, texts: Any) -> Any:
    def change(rng: random.Random, data: bytes) -> bytes:
        places = list(re.finditer(pattern, data))
        if not places:
            return data
        place = rng.choice(places)
        return data[: place.start(1)] + rng.choice(texts).encode() + data[place.end(1) :]

    return change


DAMAGES = (
    *(_flip_bit, _replace_byte, _insert, _delete, _truncate, _random_bytes, _tokens, _whole_lines),
    _odd(rb":([^ \t\n]*)", NUMBERS),
    _odd(rb"^([^ \n]*)", NUMBERS),
    _odd(rb"\s(\d*):", WHOLES),
    _odd(rb"qid:(\S*)", WHOLES),
    _odd(rb"([#\n])", [f"#{remark}\n" for remark in REMARKS]),
)


def sizes_of(data: bytes) -> bytes | None:
    return None if b"qid:" in data else b"%d\n" % len(data.splitlines())


def verdict(folder: Path, damaged: Mutant) -> str:
    """Read a file with both readers, compare, and say what became of it."""
    path = folder / "data.txt"
    path.write_bytes(damaged.data)
    beside = path.with_name("data.txt.query")
    beside.unlink(missing_ok=True)
    if damaged.sizes is not None:
        beside.write_bytes(damaged.sizes)
    expected = naive_svmlight.read(damaged.data, sizes=damaged.sizes, **damaged.options)
    try:
        data = read_svmlight(path, **damaged.options)
    except RankiniteError as error:
        assert not isinstance(expected, naive_svmlight.Content) or expected.width > SURELY_FITS
        _check_place(error, expected)
        return "refused"
    assert isinstance(expected, naive_svmlight.Content)
    assert expected.width < SURELY_TOO_LARGE
    naive_svmlight.assert_same(data, expected)
    if damaged.written:
        write_svmlight(data, path)
        assert read_svmlight(path).equals(data)
    return "read"


def _check_place(error: RankiniteError, expected: Any) -> None:
    """The first bad line is blamed, unless an earlier one has a feature too many."""
    assert isinstance(error, FileFormatError)
    assert str(error).startswith(f"{error.path}:")
    if isinstance(expected, naive_svmlight.Refused) and expected.line is not None:
        early = ("compressed file", "n_features is", "a data set of")
        if any(words in error.problem for words in early):
            assert error.line is None or error.line <= expected.line
        else:
            assert error.line == expected.line
