"""Hostile data sets and scores: damaged and generated text, forged Parquet, small files of much."""

from __future__ import annotations

import gzip
import json
import math
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import rankinite as rk
from rankinite.core import memory
from rankinite.core.threads import set_threads
from rankinite.data import stream
from rankinite.data.frames import read_parquet
from rankinite.data.scores import load_scores
from rankinite.data.svmlight import read
from tests.attacks import Outcome
from tests.attacks.damage import damaged
from tests.attacks.texts import FREE, Mutant, mutant, random_file, verdict
from tests.attacks.tries import refused_or

T = TypeVar("T")
PROJECT = Path(__file__).parents[2]
SHOWN = 300


def pick(rng: np.random.Generator, choices: Sequence[T]) -> T:
    """Return one of some choices as it is; numpy's would end before a NUL."""
    return choices[int(rng.integers(len(choices)))]


# Text


def text(rng: np.random.Generator, n: int) -> Iterator[Outcome]:
    """Damage SVMlight text, plain and gzip; the reader agrees with the naive one."""
    draw = random.Random(int(rng.integers(2**62)))
    files: list[bytes] = []
    before = stream.BLOCK, read.SMALLEST_BLOCK, memory.available_memory
    set_threads(1)
    memory.available_memory = lambda: FREE
    try:
        for number in range(n):
            if number % 50 == 0:
                files = [random_file(draw), random_file(draw)]
            yield _agreement(mutant(draw, files))
    finally:
        stream.BLOCK, read.SMALLEST_BLOCK, memory.available_memory = before


def _agreement(tried: Mutant) -> Outcome:
    stream.BLOCK, read.SMALLEST_BLOCK = tried.block, tried.piece
    try:
        return Outcome(verdict(Path(), tried))
    except Exception as problem:
        return Outcome("wrong", f"{type(problem).__name__}: {problem}: {tried}"[: 2 * SHOWN])


# Scores

DATA = rk.RankingData(
    np.zeros((4, 1)), [0, 1, 2, 0], ["x", "x", "y", "y"], doc_ids=["a", "b", "a", "ü"]
)
RUNS = list(zip(["x", "x", "y", "y"], ["a", "b", "a", "ü"], strict=True))
NUMBERS = (
    *("0", "1", "-1", "+2", "1.5", ".5", "5.", "1e3", "1E-3", "-0.0", "1e400", "1e-400", "1_0"),
    *("1_000.5", "0x1", "nan", "inf", "-Infinity", "1\0", "\0001", "1,5", "1.", ".", "-", "e5"),
    *("1e", "1e+", "--1", "1.2.3", "1d5", "1f", "1L", "1\xa0", "1\u2028", "true"),
    "\N{ARABIC-INDIC DIGIT ONE}",
    "\N{DEVANAGARI DIGIT ONE}",
    "\N{FULLWIDTH DIGIT ONE}",
)
DIGITS = set("0123456789+-.eE")


def scores(rng: np.random.Generator, n: int) -> Iterator[Outcome]:
    """Generate and damage files of scores and runs: what is read is what Python's floats are."""
    for _ in range(n):
        numbers = [pick(rng, NUMBERS[:10]) for _ in range(4 + int(rng.integers(3) == 0))]
        if rng.random() < 0.5:
            numbers[int(rng.integers(4))] = pick(rng, NUMBERS)
        is_run = rng.random() < 0.4
        ending = pick(rng, ["\n", "\r\n", "\n\n", " \n"])
        lines = (
            [f"{q} Q0 {d} 1 {s} t" for (q, d), s in zip(RUNS, numbers, strict=False)]
            if is_run
            else numbers
        )
        content = (ending.join(lines) + ending).encode()
        if rng.random() < 0.5:
            _, content = damaged(rng, content)
        packed = rng.random() < 0.2
        path = Path("scores")
        path.write_bytes(gzip.compress(content, 1, mtime=0) if packed else content)
        read_back: list[Any] = []
        outcome = refused_or("read", repr(content), lambda: read_back.append(_scores(path)))  # noqa: B023
        expected = _expected(content)
        if not outcome.bad and read_back and read_back[0] != expected:
            outcome = Outcome("wrong", f"{content!r} gives {read_back}, not {expected}"[:SHOWN])
        if not outcome.bad and not read_back and expected is not None:
            outcome = Outcome("wrong", f"{content!r} is refused; it is {expected}"[:SHOWN])
        yield outcome


def _scores(path: Path) -> list[float]:
    return load_scores(path, DATA).tolist()


def _expected(content: bytes) -> list[float] | None:
    """Return the scores of a file, in the slow and obvious way; None if it must be refused."""
    if content[:2] == b"\x1f\x8b" or content[:4] == b"PAR1":
        return None
    if content.startswith(b"\xef\xbb\xbf"):
        content = b"   " + content[3:]
    lines = [line.decode("utf-8", "backslashreplace") for line in content.split(b"\n")]
    rows = [line.split() for line in lines if line.split()]
    if rows and len(rows[0]) == 6:
        if not all(len(row) == 6 for row in rows) or len(rows) != 4:
            return None
        by_name = {(row[0], row[2]): _number(row[4]) for row in rows}
        if sorted(by_name) != sorted(RUNS):
            return None
        numbers = [by_name[name] for name in RUNS]
    else:
        # As bytes: other blanks than those of ASCII separate nothing.
        words = [line.split() for line in content.split(b"\n") if line.split()]
        if len(words) != 4 or not all(len(row) == 1 for row in words):
            return None
        numbers = [_number(row[0].decode("latin-1")) for row in words]
    return numbers if all(map(math.isfinite, numbers)) else None


def _number(word: str) -> float:
    try:
        return float(word) if set(word) <= DIGITS else math.nan
    except ValueError:
        return math.nan


# Parquet

N_ROWS = 6
QIDS = [7, 7, 7, 9, 9, 9]


def parquet(rng: np.random.Generator, n: int) -> Iterator[Outcome]:
    """Damage bytes, forge metadata and choose odd types; files are read or refused."""
    path = Path("data.parquet")
    whole = _tables(rng)
    for _ in range(n):
        kind = int(rng.integers(4))
        if kind == 0:
            what, table = _forged(rng)
        elif kind == 1:
            what, table = _odd_types(rng)
        else:
            name = pick(rng, list(whole))
            what, content = damaged(rng, whole[name])
            path.write_bytes(content)
            yield refused_or("read", f"{name}: {what}", lambda: _used(path))
            continue
        try:
            pq.write_table(table, path, row_group_size=int(rng.integers(1, 8)))
        except (pa.ArrowException, ValueError, TypeError):
            yield Outcome("no such file")  # Arrow cannot write it
            continue
        yield refused_or("read", what, lambda: _used(path))


def _used(path: Path) -> None:
    """Read a file and look at all that was read."""
    data = read_parquet(path)
    assert data.X.shape == (data.n_docs, data.n_features)
    repr((data, data.feature_names, data.qid, data.doc_ids, data.comments, dict(data.labels)))
    assert data.equals(data)


def _plain() -> dict[str, Any]:
    return {
        "qid": QIDS,
        "label": [0.0, 1.0, 2.0, 0.0, 1.0, 1.0],
        "a": pa.array(np.arange(N_ROWS), pa.float32()),
        "b": pa.array(["x", "y", None, "x", "x", "y"]).dictionary_encode(),
    }


def _tables(rng: np.random.Generator) -> dict[str, bytes]:
    """Return the bytes of some valid files."""
    data = rk.polynomials(3, n_features=3, n_docs=4).with_labels({"clicks": np.ones(12)})
    rk.save(data, "ours.parquet")
    table = pa.table(_plain())
    pq.write_table(table, "theirs.parquet", row_group_size=4)
    pq.write_table(table, "plain.parquet", use_dictionary=False, compression="none")
    table.to_pandas().set_index("a").to_parquet("pandas.parquet")
    return {path.name: path.read_bytes() for path in Path().glob("*.parquet")}


JSON_VALUES: tuple[Any, ...] = (
    *(0, 5, -1, 1.5, 1e308, True, None, "", "a", "qid", "nothing", "a\0", "\x1b[31m", "é" * 99),
    *([], {}, [1], ["a"], ["a", "a"], [["a"]], [None], {"a": 5}, {"a": "a"}, {"a": ["b"]}),
    *([{}], [{"field_name": 5}], [{"field_name": "a", "pandas_type": "categorical"}], [[[[]]]]),
)
ODD_JSON = (
    *("", "{", "[1]", "5", "null", '"a"', "[" * 100_000, '{"a":' * 50_000, "NaN", "1" * 5000),
    *("\x00", '{"a": "\\ud800"}', "{}" * 3, '{"index_columns": 5}', '{"columns": {"a": 1}}'),
)
KEYS = {
    "rankinite": (
        *("label", "qid", "labels", "features", "query_weight", "doc_id", "comment"),
        *("top_grade", "categorical_features", "more"),
    ),
    "pandas": ("index_columns", "columns", "column_indexes", "pandas_version", "more"),
}
SAVED = {
    "rankinite": {
        "label": "label",
        "qid": "qid",
        "labels": {},
        "features": ["a"],
        "query_weight": None,
        "doc_id": None,
        "comment": None,
        "top_grade": 4.0,
    },
    "pandas": {
        "index_columns": ["a"],
        "pandas_version": "2.0",
        "columns": [{"field_name": "b", "pandas_type": "categorical"}],
    },
}


def _forged(rng: np.random.Generator) -> tuple[str, Any]:
    """Return a table with other metadata than it should have."""
    metadata: dict[str | bytes, str | bytes] = {}
    for name, keys in KEYS.items():
        chance = rng.random()
        if chance < 0.25:
            metadata[name] = pick(rng, ODD_JSON)
        elif chance < 0.3:
            metadata[name] = rng.bytes(9)
        elif chance < 0.8:
            said: dict[str, Any] = dict(SAVED[name])
            for _ in range(int(rng.integers(1, 3))):
                said[pick(rng, keys)] = pick(rng, JSON_VALUES)
            metadata[name] = json.dumps(said)
    return repr(metadata)[:SHOWN], pa.table(_plain()).replace_schema_metadata(metadata)


ODD_COLUMNS: tuple[Callable[[], Any], ...] = (
    lambda: pa.array([[1.0]] * N_ROWS),
    lambda: pa.array([{"x": 1}] * N_ROWS),
    lambda: pa.array([None] * N_ROWS),
    lambda: pa.array([1, 1, None, 2, 2, 2]),
    lambda: pa.array([2**63, 1, 1, 2, 2, 2], pa.uint64()),
    lambda: pa.array([2.0**53, 2.0**53 + 2, 1, 2, 2, 2]),
    lambda: pa.array([math.nan, math.inf, -math.inf, 0, 1, 1]),
    lambda: pa.array([1e300] * N_ROWS),
    lambda: pa.array(["a\0", "a", "a", "b", "b", "b"]),
    lambda: pa.array([b"\xff", b"a", b"a", b"b", b"b", b"b"]),
    lambda: pa.array(["x" * 100_000] * N_ROWS),
    lambda: pa.array([1, 2, 3, 4, 5, 6], pa.decimal128(38, 10)),
    lambda: pa.array([1, 2, 3, 4, 5, 6], pa.timestamp("ns")),
    lambda: pa.array([1, 2, 3, 4, 5, 6], pa.duration("s")),
    lambda: pa.array([1, 2, 3, 4, 5, 6], pa.date32()),
    lambda: pa.array([True, False, None, True, True, True]),
    lambda: pa.array([1.0, 2, 3, 4, 5, 6], pa.float16()),
    lambda: pa.array([b"ab"] * N_ROWS, pa.binary(2)),
    lambda: pa.DictionaryArray.from_arrays([0, 0, 0, 1, 1, 1], ["q", "r"]),
    lambda: pa.DictionaryArray.from_arrays([0, 0, 0, 1, 1, None], [1.5, 2.5]),
    lambda: pa.DictionaryArray.from_arrays([0, 0, 0, 1, 1, 1], pa.array([[1], [2]])),
    lambda: pa.array([[("a", 1)]] * N_ROWS, pa.map_(pa.string(), pa.int64())),
    lambda: pa.array([[1, 2]] * N_ROWS, pa.list_(pa.int8(), 2)),
)
NAMES = ("qid", "label", "a", "b", "", "a.b", "qid.x", "a\0", "\x1b[2J", "x" * 70_000, "é", "docid")


def _odd_types(rng: np.random.Generator) -> tuple[str, Any]:
    """Return a table with columns of other types, and with other names."""
    columns = list(_plain().items())
    what = []
    for _ in range(int(rng.integers(1, 4))):
        name = pick(rng, NAMES)
        number = int(rng.integers(len(ODD_COLUMNS)))
        what.append(f"{name[:9]!r}: {number}")
        at = int(rng.integers(len(columns)))
        columns[at : at + int(rng.integers(2))] = [(name, ODD_COLUMNS[number]())]
    names, arrays = zip(*columns, strict=True)
    table = pa.Table.from_arrays([pa.array(a) for a in arrays], names=list(names))
    if rng.random() < 0.3:
        said = SAVED["rankinite"] | {"doc_id": names[-1], "features": ["a"]}
        table = table.replace_schema_metadata({"rankinite": json.dumps(said)})
    return f"columns {what}", table


# Small files that claim much

ROOM = 2 << 30
SECONDS = 20.0  # of the processor, which none of the files needs
READER = """
import resource, sys, time
import rankinite as rk, pyarrow.parquet
from rankinite.core.errors import RankiniteError
with open("warm.txt", "w") as file: file.write("1 qid:1 1:1\\n")
rk.load("warm.txt")
data = rk.RankingData([[1.0]] * 3, [0, 1, 2], [1, 1, 1])
with open("/proc/self/statm") as file:
    size = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + int(sys.argv[1]),) * 2)
for path in sys.argv[2:]:
    start = time.process_time()
    try:
        rk.load_scores(path, data) if path.startswith("scores") else rk.load(path)
        what = "read"
    except RankiniteError as problem:
        what = "refused" if str(problem).startswith(path) else f"no name: {problem}"
    except BaseException as problem:
        what = f"{type(problem).__name__}: {problem}"
    print(f"{time.process_time() - start:.2f}", what.replace("\\n", " "), flush=True)
"""


def small(rng: np.random.Generator, n: int) -> Iterator[Outcome]:
    """Read small files that claim much, in a process with little room for them."""
    for start in range(0, n, 10):
        paths = [_small_file(rng, number) for number in range(start, min(start + 10, n))]
        yield from _read_in_child(paths)
        for path in paths:
            Path(path).unlink()


def _read_in_child(paths: list[str]) -> Iterator[Outcome]:
    start = time.perf_counter()
    process = subprocess.run(
        [sys.executable, "-c", READER, str(ROOM), *paths],
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
    )
    lines = process.stdout.splitlines()
    for path, line in zip(paths, lines, strict=False):
        seconds, _, what = line.partition(" ")
        bad = "" if what in ("read", "refused") else f"{path}: {what}"[:SHOWN]
        if float(seconds) > SECONDS:
            bad = f"{path}: takes {seconds} s"
        yield Outcome(what.partition(":")[0], bad)
    for path in paths[len(lines) :]:
        elapsed = time.perf_counter() - start
        said = process.stderr.strip()[-SHOWN:]
        yield Outcome("death", f"{path}: exit {process.returncode} after {elapsed:.0f} s: {said}")


def _small_file(rng: np.random.Generator, number: int) -> str:
    """Write a file of a random kind; return its name, which says what is in it."""
    kind = pick(rng, SMALL_FILES)
    times = int(rng.integers(1, 10))
    prefix, suffix, content = kind(rng, times)
    path = f"{prefix}-{kind.__name__}-{times}-{number}{suffix}"
    if callable(content):
        content(path)
    else:
        Path(path).write_bytes(content)
    return path


Content = tuple[str, str, Any]


def _packed(piece: bytes, n: int, head: bytes = b"", tail: bytes = b"") -> bytes:
    """Compress many copies of a piece of text."""
    # Each member is the same, so it is compressed once.
    member = gzip.compress(piece * max(1, (1 << 20) // len(piece)), 9, mtime=0)
    parts = [gzip.compress(part, 9, mtime=0) if part else b"" for part in (head, tail)]
    return parts[0] + member * n + parts[1]


def feature(rng: np.random.Generator, times: int) -> Content:
    number = int(10.0 ** rng.uniform(5, 9.33))
    return "text", ".txt", b"1 qid:1 1:1\n" * times + b"1 qid:1 %d:1\n" % number


def newlines(rng: np.random.Generator, times: int) -> Content:
    piece = pick(rng, [b"\n", b" \n", b"\r\n", b"#\n", b"# a comment\n"])
    return pick(rng, ["text", "scores"]), ".gz", _packed(piece, 10 * times)


def one_line(rng: np.random.Generator, times: int) -> Content:
    head = pick(rng, [b"", b"1 qid:1 1:1 #", b"1 qid:1 1:", b"1 qid:", b"1", b"#rankinite "])
    piece = pick(rng, [b"1", b"a", b" ", b" 1:1", b"[", b"0", b"\0"])
    content = _packed(piece, 40 * times, head)
    return pick(rng, ["text", "scores"]), ".gz", content


def rows(rng: np.random.Generator, times: int) -> Content:
    head = pick(rng, [b"", b"1 qid:1 5000:1\n", b"1 qid:1 100:1 #a\n"])
    piece = pick(rng, [b"1 qid:1\n", b"1 qid:1 1:1\n", b"1 qid:1 1:1 #docid = a\n", b"1\n"])
    return "text", ".gz", _packed(piece, 30 * times, head)


def many_scores(rng: np.random.Generator, times: int) -> Content:
    piece = pick(rng, [b"1\n", b"1e5\n", b"x Q0 a 1 1 t\n", b"1 2\n"])
    return "scores", ".gz", _packed(piece, 5 * times)


def long_score(rng: np.random.Generator, times: int) -> Content:
    token = pick(rng, [b"1", b"1.", b"-", b"1e", b"_"])[:1] * (1000 * times**3)
    tail = pick(rng, [b"", b"x", b"e5"])
    return "scores", ".txt", b"1\n" * 100_000 + token + tail + b"\n" + b"1\n" * 100_000


def header(rng: np.random.Generator, times: int) -> Content:
    piece = pick(rng, ["[],", '"",', "1,", "{},", "[[],[]],", "null,"])
    name = pick(rng, ["qids", "feature_names", "documents", "categories", "more"])
    text = f'#rankinite {{"{name}": [' + piece * (300_000 * times) + "0]}\n1 qid:1 1:1\n"
    return "text", ".gz", gzip.compress(text.encode(), 1)


def odd_line(rng: np.random.Generator, times: int) -> Content:
    order = rng.permutation(20_000 * times) + 1
    value = pick(rng, ["1", "+1", "1e-300", "nan", "x", "0.1234567890123456789"])
    line = " ".join(f"{number}:{value}" for number in order)
    return "text", ".txt", f"1 qid:1 {line}\n".encode() * 2


def digits(rng: np.random.Generator, times: int) -> Content:
    token = b"1" * (200_000 * times) + pick(rng, [b"", b"x", b".", b"e"])
    line = pick(rng, [b"%s qid:1 1:1", b"1 qid:%s 1:1", b"1 qid:1 %s:1", b"1 qid:1 1:%s"])
    return "text", ".txt", line.replace(b"%s", token) + b"\n"


def constant_rows(rng: np.random.Generator, times: int) -> Content:
    n = 1_000_000 * times
    width = int(rng.integers(1, 4))

    def write(path: str) -> None:
        block = pa.table({"qid": np.ones(n, np.int64), "label": np.ones(n), "a": np.ones(n)})
        for k in range(width):
            block = block.append_column(f"f{k}", block["a"])
        pq.write_table(block, path, row_group_size=n)

    return "table", ".parquet", write


def long_texts(rng: np.random.Generator, times: int) -> Content:
    n = 20_000 * times
    column = pick(rng, ["qid", "label", "a", "docid", "b"])

    def write(path: str) -> None:
        plain = {"qid": np.arange(n) // 5, "label": np.ones(n), "a": np.ones(n), "docid": ["d"] * n}
        one_text = ["x" * (100_000 * times), "y"]
        texts = pa.DictionaryArray.from_arrays(np.arange(n, dtype=np.int32) // (n // 2), one_text)
        schema = pa.schema(
            [
                (name, pa.string() if name == column else pa.array(v).type)
                for name, v in (plain | {column: texts.dictionary}).items()
            ]
        )
        said = SAVED["rankinite"] | {"doc_id": "docid"}
        if column == "b":
            said = said | {"categorical_features": ["b"], "features": ["a", "b"]}
        with pq.ParquetWriter(path, schema.with_metadata({"rankinite": json.dumps(said)})) as file:
            # Some rows at a time: Arrow makes plain texts of the column.
            for start in range(0, n, 100):
                part = {name: v[start : start + 100] for name, v in plain.items()}
                part[column] = texts.slice(start, 100).cast(pa.string())
                file.write_table(pa.table(part, schema=file.schema))

    return "table", ".parquet", write


SMALL_FILES: tuple[Callable[[np.random.Generator, int], Content], ...] = (
    *(feature, newlines, one_line, rows, many_scores, long_score, header, odd_line, digits),
    *(constant_rows, long_texts),
)
