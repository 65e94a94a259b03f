"""The workers do not matter: one process, two, or a Dask cluster."""

import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import rankinite as rk
from rankinite.core.errors import MissingExtraError, UsageError
from rankinite.runs import workers
from rankinite.runs.workers import InProcess, Processes, new_workers
from tests import processes
from tests.runs.cases import MICRO, bytes_of, micro_data


def test_the_same_bytes_on_any_workers(tmp_path):
    for name, data in (("train", micro_data(60)), ("test", micro_data(20, 2))):
        rk.save(data, tmp_path / f"{name}.parquet")
    Path("micro.toml").write_text(MICRO)
    options_of = {
        "one": ["--jobs", "1"],
        "two": ["--jobs", "2"],
        "cluster": ["--cluster", "local:2"],
    }
    contents = {}
    for name, options in options_of.items():
        command = ["recipe", "run", "micro.toml", "--train", "train.parquet", "--quiet"]
        done = subprocess.run(
            [sys.executable, "-m", "rankinite", *command, "--test", "test.parquet",
             "--out", name, *options],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=processes.LIMIT,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        contents[name] = bytes_of(tmp_path / name)
    assert contents["one"] == contents["two"] == contents["cluster"]


WAITING = """
import os, time
from rankinite.runs.workers import Processes

if __name__ == "__main__":
    workers = Processes(2, 1)
    print(workers.submit(os.getpid).result(), flush=True)
    workers.submit(time.sleep, 10**6)
    pause("working")
"""


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc")
def test_workers_end_when_their_run_is_killed():
    # A file, as worker processes import it.
    Path("waiting.py").write_text(processes.PAUSE + WAITING)
    with processes.start("import runpy; runpy.run_path('waiting.py', run_name='__main__')") as run:
        worker = int(run.stdout.readline())
        processes.wait_for("working", run)
        processes.signal_and_end(run, signal.SIGKILL)
    processes.wait_until(lambda: not processes.is_alive(worker))


def test_threads_and_jobs_share_the_cores(monkeypatch):
    made = []
    monkeypatch.setattr(Processes, "_new", lambda self: made.append((self.slots, self.threads)))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert isinstance(new_workers(1, None), InProcess)
    new_workers(None, None)
    new_workers(2, None)
    new_workers(3, None)
    new_workers(16, None)
    assert made == [(8, 1), (2, 4), (3, 2), (16, 1)]


def test_a_cluster_and_jobs_are_one_too_many():
    with pytest.raises(UsageError, match="say one"):
        new_workers(2, "local:2")


@pytest.mark.parametrize("address", ["local:", "local:0", "local:two"])
def test_a_local_cluster_has_a_number_of_workers(address):
    with pytest.raises(UsageError, match="expected a number of workers, as in local:4"):
        new_workers(None, address)


def test_an_address_where_nobody_answers(monkeypatch):
    monkeypatch.setattr(workers, "SECONDS_TO_ANSWER", 0.5)
    with pytest.raises(UsageError, match="no scheduler answers there"):
        new_workers(None, "tcp://127.0.0.1:1")


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"rankinite\[cluster\]"):
        new_workers(None, "local:2")


def test_a_scheduler_without_workers_is_told(monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(workers, "SECONDS_TO_ANSWER", 1.0)
    with (
        distributed.LocalCluster(
            n_workers=0, dashboard_address=None, silence_logs=logging.ERROR
        ) as cluster,
        pytest.raises(UsageError, match="has no workers; start some with: dask worker"),
    ):
        new_workers(None, cluster.scheduler_address)
