"""Commands in pipes: ``-``, named pipes, and readers that go away."""

from __future__ import annotations

import gzip
import io
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

import rankinite as rk
from tests.processes import LIMIT


@pytest.fixture
def files():
    data = rk.polynomials(6, n_features=3, n_docs=5)
    rk.save(data, "test.txt")
    rk.save(data, "test.parquet")
    model = rk.LambdaMART(n_trees=2, n_leaves=3, min_docs_in_leaf=1).fit(data)
    model.save("m.rk")
    rk.save_scores(model.predict(data), data, "scores.txt")
    return data


@pytest.fixture
def stdin(monkeypatch):
    def put(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))

    return put


@pytest.fixture
def pipe():
    """Fill a named pipe, as a shell does for <(...)."""
    with ThreadPoolExecutor(4) as writers:

        def put(name: str, content: bytes) -> str:
            os.mkfifo(name)
            writers.submit(Path(name).write_bytes, content)
            return name

        yield put


@pytest.mark.parametrize("name", ["test.txt", "test.parquet"])
def test_data_from_the_standard_input(call, files, stdin, name):
    content = Path(name).read_bytes()
    expected = call("evaluate", name, "scores.txt")
    for sent in (content, gzip.compress(content) if name == "test.txt" else content):
        stdin(sent)
        assert call("evaluate", "-", "scores.txt") == expected
        stdin(sent)
        printed = call("predict", "m.rk", "-", "--out", "-")
        assert printed == call("predict", "m.rk", name) == Path("scores.txt").read_text()


def test_scores_and_models_from_pipes(call, files, stdin, pipe):
    expected = call("evaluate", "test.txt", "scores.txt")
    stdin(Path("scores.txt").read_bytes())
    assert call("evaluate", "test.txt", "-") == expected
    model = pipe("model", Path("m.rk").read_bytes())
    assert call("evaluate", pipe("data", Path("test.txt").read_bytes()), model) == expected
    stdin(Path("m.rk").read_bytes())
    assert call("predict", "-", "test.txt") == Path("scores.txt").read_text()


def test_messages_name_the_pipe(call, files, stdin, pipe):
    stdin(b"1 qid:1 1:1\n1 qid:1 1:x\n")
    assert "Error: stdin:2:11: 'x' is not a value" in call("data", "describe", "-", code=1)
    stdin(b"1\n2\nthree\n")
    assert "stdin:3: 'three' is not a score" in call("evaluate", "test.txt", "-", code=1)
    cut = pipe("cut.rk", Path("m.rk").read_bytes()[:-9])
    assert "Error: cut.rk: is not a model file" in call("predict", cut, "test.txt", code=1)
    assert "- was given twice" in call("evaluate", "-", "-", code=2)


def test_data_to_the_standard_output_and_to_a_pipe(call, files):
    assert call("data", "convert", "test.parquet", "-") == Path("test.txt").read_text()
    os.mkfifo("out")
    with ThreadPoolExecutor(1) as reader:
        read = reader.submit(Path("out").read_text)
        call("predict", "m.rk", "test.txt", "--out", "out")
        assert read.result() == Path("scores.txt").read_text()
    mixed = call("mix", "m.rk", "scores.txt", "--data", "test.txt", "--out", "-")
    assert mixed == Path("scores.txt").read_text()


def test_no_copy_of_a_pipe_is_left(call, files, stdin, monkeypatch, tmp_path):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    stdin(Path("test.txt").read_bytes())
    call("evaluate", "-", "m.rk")
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_reader_that_has_read_enough_is_no_error(files):
    rk.save(rk.polynomials(2000, n_features=3, n_docs=5), "large.txt")  # more than a pipe holds
    command = f"{sys.executable} -m rankinite predict m.rk large.txt | head -n 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, timeout=LIMIT
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 1


def test_models_are_evaluated_and_compared(call, files):
    by_scores = call("evaluate", "test.txt", "scores.txt", "-m", "NDCG@3", "-q")
    assert call("evaluate", "test.txt", "m.rk", "-m", "NDCG@3", "-q") == by_scores
    other = rk.LambdaMART(n_trees=1, n_leaves=2, min_docs_in_leaf=1).fit(files)
    other.save("other.rk")
    rk.save_scores(other.predict(files), files, "other.txt")
    compare = ["compare", "--data", "test.txt", "-m", "NDCG@3"]
    expected = call(*compare, "scores.txt", "other.txt").replace("scores", "m     ")
    assert call(*compare, "m.rk", "other.rk").split() == expected.split()


def test_a_pipe_that_nobody_writes_to_is_waited_for_and_says_so(files):
    os.mkfifo("late")
    command = [sys.executable, "-m", "rankinite", "data", "describe", "late"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        said = process.stderr.readline()
        assert b"late: this is a pipe; waiting for a program that writes to it" in said
        Path("late").write_bytes(Path("test.txt").read_bytes())
        output, _ = process.communicate(timeout=LIMIT)
        assert process.returncode == 0
        assert b"6" in output
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        process.stderr.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LIMIT)
        assert process.returncode == 130


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom"])
def test_devices_without_an_end_are_refused(call, device):
    said = call("data", "describe", device, code=1)
    assert f"{device}: this is a device without an end; expected a file or a pipe" in said
