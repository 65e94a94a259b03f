"""Who does the tasks does not matter: one process, two, or a Dask cluster."""

import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rankinite as rk
from rankinite.core.errors import MissingExtraError, UsageError
from rankinite.runs import workers
from rankinite.runs.workers import InProcess, Processes, new_workers
from tests.runs.cases import MICRO, bytes_of, micro_data


def test_the_same_bytes_whoever_does_it(tmp_path):
    for name, data in (("train", micro_data(60)), ("test", micro_data(20, 2))):
        rk.save(data, tmp_path / f"{name}.parquet")
    Path("micro.toml").write_text(MICRO)
    ways = {
        "one": ["--jobs", "1"],
        "two": ["--jobs", "2"],
        "cluster": ["--cluster", "local:2"],
    }
    found = {}
    for name, options in ways.items():
        command = ["recipe", "run", "micro.toml", "--train", "train.parquet", "--quiet"]
        done = subprocess.run(
            [sys.executable, "-m", "rankinite", *command, "--test", "test.parquet",
             "--out", name, *options],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        found[name] = bytes_of(tmp_path / name)
    assert found["one"] == found["two"] == found["cluster"]


SLEEPING = """\
import os, sys, time
from rankinite.runs.workers import Processes

if __name__ == "__main__":
    workers = Processes(2, 1)
    found = {workers.submit(os.getpid).result()}
    print(*found, flush=True)
    workers.submit(time.sleep, 60)
    time.sleep(60)
"""


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc")
def test_workers_end_when_their_run_is_killed(tmp_path):
    Path("sleeping.py").write_text(SLEEPING)
    running = subprocess.Popen([sys.executable, "sleeping.py"], stdout=subprocess.PIPE, text=True)
    with running:
        worker = int(running.stdout.readline())
        running.kill()
    deadline = time.monotonic() + 30
    while is_alive(worker) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_alive(worker)


def is_alive(pid):
    """Whether a process is there; one that has ended may wait for somebody who asks how."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


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
