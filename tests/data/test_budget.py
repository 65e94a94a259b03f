"""Files that claim more memory than there is, and the memory that reading takes."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankinite as rk
from rankinite.core import memory
from rankinite.core.errors import FileFormatError
from rankinite.data.scores import load_scores
from tests.processes import LIMIT

# Reads files; prints, for each, the bytes that it took, and those that the data set holds.
READER = """
import sys
import rankinite as rk, pyarrow.parquet
with open("warm.txt", "w") as file: file.write("1 qid:1 1:1\\n")
rk.save(rk.load("warm.txt"), "warm.parquet"); rk.load("warm.parquet")
def size(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))
for name in sys.argv[1:]:
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the largest size, from now on
    before = size("VmRSS")
    data = rk.load(name)
    print(size("VmHWM") - before, data.X.nbytes + data.y.nbytes + data.offsets.nbytes)
    del data
"""
WIDTH = 25
N = 100_000


def texts(path: Path) -> None:
    line = "1 qid:%d " + " ".join(f"{j}:0.5" for j in range(1, WIDTH + 1)) + "\n"
    content = "".join(line % (k // 10) for k in range(N)).encode()
    path.write_bytes(gzip.compress(content, 1) if path.suffix == ".gz" else content)


def constant_rows(path: Path) -> None:
    ones = np.ones(N, np.float32)
    columns = {f"f{j}": ones for j in range(WIDTH)}
    qid = np.arange(N) // 10
    pq.write_table(pa.table({"qid": qid, "label": ones, **columns}), path, row_group_size=N)


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux tells the memory")
def test_reading_takes_about_three_times_the_data_set(tmp_path):
    files = {"a.txt": texts, "a.txt.gz": texts, "a.parquet": constant_rows}
    for name, make in files.items():
        make(tmp_path / name)
    process = subprocess.run(
        [sys.executable, "-c", READER, *files],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert process.returncode == 0, process.stderr
    for name, line in zip(files, process.stdout.splitlines(), strict=True):
        taken, held = map(int, line.split())
        assert held > 4 * N * WIDTH
        # Blocks of text and of rows have the same size for all files.
        assert taken < 3 * held + (30 << 20), name


def refused(path: Path, **options) -> str:
    with pytest.raises(FileFormatError) as caught:
        rk.load(path, **options)
    assert str(caught.value).startswith(f"{path}:")
    return str(caught.value)


@pytest.fixture
def little(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(memory, "available_memory", lambda: 20_000_000)


def test_many_documents_are_refused_before_they_are_read(little):
    path = Path("rows.txt.gz")
    path.write_bytes(gzip.compress(b"1 qid:1 1:1\n" * 2_000_000))
    assert "documents x 1 features takes" in refused(path)
    constant_rows(Path("rows.parquet"))
    expected = "reading 100,000 documents x 25 features takes 25.0 MB, and 20.0 MB are free"
    assert expected in refused(Path("rows.parquet"))


@pytest.mark.parametrize(
    "piece", [b"\n", b" \t\n", b"# comment\n", b"\r\n"], ids=["empty", "blanks", "comments", "CR"]
)
def test_lines_without_documents_take_no_memory(little, piece):
    path = Path("blank.txt")
    path.write_bytes(b"1 qid:1 1000:1\n" + piece * 1_000_000 + b"2 qid:1 1:1\nx qid:1 1:1\n")
    assert refused(path).startswith("blank.txt:1000003:1: 'x' is not a label")
    path.write_bytes(piece * 1_000_000 + b"1 qid:1 1000:1\n" + piece * 1_000_000)
    assert rk.load(path).X.shape == (1, 1000)
    path.write_bytes(piece * 1_000_000)
    assert "there are no documents in this file" in refused(path)


def test_a_long_line_is_refused_by_the_memory(little):
    path = Path("long.txt.gz")
    path.write_bytes(gzip.compress(b"1 qid:1 1:1 #" + b"a" * (40 << 20)))
    assert "a line of more than 16.8 MB takes 33.6 MB" in refused(path)
    path.write_bytes(gzip.compress(b"1 qid:1 1:1 #" + b"a" * (12 << 20) + b"\n" + b"1 qid:1 1:1\n"))
    assert rk.load(path, comments=False).n_docs == 2


def test_json_takes_more_than_its_text(little):
    path = Path("header.txt")
    path.write_text('#rankinite {"qids": [' + "[]," * 500_000 + "[]]}\n1 qid:1 1:1\n")
    assert "the header takes 45.0 MB" in refused(path)
    table = pa.table({"qid": [1], "label": [1], "a": [0.5]})
    for name in ("rankinite", "pandas"):
        said = {name: '{"label": [' + "[]," * 500_000 + "[]]}"}
        pq.write_table(table.replace_schema_metadata(said), "header.parquet")
        assert "takes 45.0 MB" in refused(Path("header.parquet"))


def test_one_long_text_in_many_rows(little):
    n = 2000
    texts = pa.array(["x" * 50_000, "y"]).take(pa.array(np.arange(n) // (n // 2)))
    numbers = {"qid": np.arange(n), "label": np.ones(n), "a": np.ones(n)}
    pq.write_table(pa.table({**numbers, "id": texts}), "ids.parquet")
    assert Path("ids.parquet").stat().st_size < 100_000
    assert "the text of column 'id' takes 100.0 MB" in refused(Path("ids.parquet"), doc_id="id")
    assert "column 'id' holds string; expected numbers" in refused(Path("ids.parquet"))
    # As an array of texts, each of the ids would have the room of the longest.
    ids = pa.array(["x" * 50_000, *map(str, range(1, n))])
    pq.write_table(pa.table({**numbers, "qid": ids}), "qids.parquet")
    sentence = "an array of 2,000 query ids, of which the longest has 50,000 characters, takes"
    assert sentence in refused(Path("qids.parquet"))
    with pytest.raises(rk.DataError, match="qid: an array of 2,000 query ids"):
        rk.RankingData(np.ones((n, 1)), np.ones(n), ids.to_pylist())


def test_more_scores_than_documents_are_counted_only(little):
    path = Path("scores.gz")
    path.write_bytes(gzip.compress(b"1\n" * 2_000_000))
    data = rk.RankingData([[1.0]], [1], [1])
    with pytest.raises(FileFormatError, match="2000000 scores for 1 documents"):
        load_scores(path, data)
    Path("a.txt").write_text("1 1:1\n")
    Path("a.txt.query").write_bytes(gzip.compress(b"1\n" * 1_000_000))
    with pytest.raises(FileFormatError, match="the group sizes add up to 1000000"):
        rk.load("a.txt")


def test_memory_that_does_not_suffice_after_all_is_no_memory_error(little, monkeypatch):
    path = Path("a.txt")
    path.write_text("1 qid:1 1:1\n")

    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr("rankinite.data.svmlight.read.read_blocks_of_lines", fail)
    assert "there is too little memory to read this file" in refused(path)


@pytest.mark.parametrize("metadata", [{"index_columns": 5}, [1], {"columns": 5}, {"columns": [{}]}])
def test_damaged_metadata_of_pandas(metadata, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = pa.table({"qid": [1], "label": [1], "a": [0.5]})
    table = table.replace_schema_metadata({"pandas": json.dumps(metadata)})
    pq.write_table(table, "a.parquet")
    assert "the metadata that pandas wrote into the table" in refused(Path("a.parquet"))
    with pytest.raises(rk.DataError, match="pandas wrote into the table are damaged"):
        rk.from_frame(table)


@pytest.mark.parametrize("place", ["%s qid:1 1:1", "1 qid:%s 1:1", "1 qid:1 %s:1", "1 qid:1 1:%s"])
def test_digits_without_end_take_no_time(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = Path("digits.txt")
    # A grammar that can match digits in two ways would take an hour.
    path.write_text(place % ("1" * 1_000_000 + "x"))
    assert f"'{'1' * 30}...' is not a" in refused(path)
