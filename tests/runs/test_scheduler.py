import errno
import logging
import os
import signal
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import pytest

from rankinite.core.errors import DataError, RunError
from rankinite.core.progress import Silent
from rankinite.runs.scheduler import execute, logged_to
from rankinite.runs.store import LOG, Store
from rankinite.runs.tasks import Task, TaskSummary, execute_task
from rankinite.runs.workers import InProcess, Processes
from tests.processes import is_alive, wait_until


@dataclass(frozen=True)
class Misbehaving:
    """Fails a number of times, which files beside the tasks count, and then succeeds."""

    name: str
    how: str
    times: int

    def __call__(self, inputs, key, folder):
        """Count the attempt, and fail if it is one of the first."""
        counts = Path(inputs.store.path) / "counts"
        counts.mkdir(exist_ok=True)
        attempt = len(list(counts.glob(f"{self.name}-*"))) + 1
        (counts / f"{self.name}-{attempt}").touch()
        with (inputs.store.path / "order.txt").open("a") as order:
            order.write(f"{self.name}\n")
        (folder / "half.txt").write_text("half")
        if attempt <= self.times:
            self._fail()
        (folder / "whole.txt").write_text(self.name)
        return TaskSummary("well", 0.5)

    def _fail(self):
        if self.how == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.how == "disk":
            raise OSError(errno.ENOSPC, "no space", "some/file")
        if self.how == "data":
            raise DataError("the data are wrong")
        raise RuntimeError("bad luck")


def task(name, how="right", times=0, dependencies=(), cost=1.0):
    return Task(f"task {name}", Misbehaving(name, how, times), tuple(dependencies), cost)


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path)
    store.make()
    return store


def attempts(store, name):
    return len(list((store.path / "counts").glob(f"{name}-*")))


def order_of(store):
    return (store.path / "order.txt").read_text().split()


def go(tasks, store, workers=None):
    execute(tasks, store, workers or InProcess(), Silent(), "work")


@pytest.fixture
def processes():
    workers = Processes(2, 1)
    yield workers
    workers.close(kill=True)


def test_dependencies_come_first_and_are_executed_once(store):
    first = task("first")
    go(
        [task("second", dependencies=[first], cost=9), task("third", dependencies=[first], cost=9)],
        store,
    )
    assert store.is_finished(first.key)
    assert attempts(store, "first") == 1
    assert order_of(store)[0] == "first"


def test_finished_tasks_are_not_executed_again(store):
    first, second = task("one"), task("two")
    go([first], store)
    go([first, second], store)
    assert attempts(store, "one") == 1
    assert store.is_finished(second.key)


def test_long_tasks_begin_first(store):
    go([task("short", cost=1), task("long", cost=5)], store)
    assert order_of(store) == ["long", "short"]


@pytest.mark.parametrize("how", ["error", "die"])
def test_bad_luck_is_tried_again(store, how, processes):
    unlucky = task("unlucky", how, 2)
    others = [task(str(k)) for k in range(4)]
    go([unlucky, *others], store, processes)
    assert attempts(store, "unlucky") == 3
    for finished in (unlucky, *others):
        assert store.is_finished(finished.key)
        assert sorted(p.name for p in store.task(finished.key).iterdir()) == [
            "SHA256SUMS", "half.txt", "task.json", "whole.txt"]  # fmt: skip


def test_three_failures_end_the_run_and_the_rest_is_kept(store):
    bad, good = task("bad", "error", 9), task("good")
    with pytest.raises(RunError, match=r"task bad: failed 3 times: RuntimeError: bad luck; all"):
        go([good, bad], store)
    assert attempts(store, "bad") == 3
    assert store.is_finished(good.key)
    assert not store.is_finished(bad.key)
    assert not list((store.path / "tasks").glob(".*"))


def test_a_task_that_kills_its_worker_ends_the_run(store, processes):
    bad = task("bad", "die", 9)
    others = [task(str(k)) for k in range(3)]
    with pytest.raises(RunError, match="task bad: failed 3 times: the worker process died"):
        go([bad, *others], store, processes)
    assert attempts(store, "bad") == 3
    go(others, store)
    assert all(store.is_finished(other.key) for other in others)


def test_a_worker_that_dies_without_work_is_replaced(store, processes):
    worker = processes.submit(os.getpid).result()
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: not is_alive(worker))
    tasks = [task(str(k)) for k in range(3)]
    go(tasks, store, processes)
    assert all(store.is_finished(t.key) for t in tasks)


def test_wrong_data_are_not_tried_again(store):
    bad = task("bad", "data", 9)
    with pytest.raises(RunError, match="task bad: failed: the data are wrong"):
        go([bad], store)
    assert attempts(store, "bad") == 1


def test_a_full_disk_ends_the_run_at_once(store):
    with pytest.raises(OSError, match="no space is left") as caught:
        go([task("bad", "disk", 9)], store)
    assert caught.value.errno == errno.ENOSPC
    assert attempts(store, "bad") == 1
    assert list((store.path / "tasks").iterdir()) == []


def test_keys_depend_on_functions_and_not_on_names_or_costs():
    first = task("one")
    same = Task("another name", first.function, (), 7.0)
    assert first.key == same.key
    assert first.key != task("two").key


def test_tasks_of_other_code_are_others(monkeypatch):
    before = task("one").key
    monkeypatch.setattr("rankinite.runs.tasks.module_hash", lambda *_: "other")
    assert task("one").key != before


def test_workers_find_the_store_from_any_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = Store("run")
    store.make()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    class Elsewhere(InProcess):
        def submit(self, function, *arguments):
            monkeypatch.chdir(elsewhere)
            future = super().submit(function, *arguments)
            monkeypatch.chdir(tmp_path)
            return future

    first = task("one")
    go([first], store, Elsewhere())
    assert store.is_finished(first.key)
    assert list(elsewhere.iterdir()) == []


def test_a_scheduler_that_goes_away_is_a_sentence(store):
    class Gone(InProcess):
        def submit(self, function, *arguments):
            future = Future()
            future.cancel()
            future.set_running_or_notify_cancel()
            return future

    with pytest.raises(
        RunError, match="failed: the scheduler of the cluster is gone; all finished tasks"
    ):
        go([task("one")], store, Gone())


def test_the_checkpoint_of_a_finished_task_is_removed(store):
    first = task("one")
    go([first], store)
    store.checkpoint(first.key).write_bytes(b"left by a run that was killed right then")
    go([first], store)
    assert not store.checkpoint(first.key).exists()


def test_a_finished_task_is_not_executed_again_by_a_second_worker(store):
    only = task("one")
    first, second = (execute_task(store, only) for _ in range(2))
    assert second == first
    assert attempts(store, "one") == 1


def test_only_what_is_tried_again_is_said_to_be(store, caplog):
    with caplog.at_level("INFO", "rankinite"), pytest.raises(RunError):
        go([task("bad", "error", 9)], store)
    assert [record.message for record in caplog.records] == [
        "task bad failed (bad luck) and is tried again"
    ] * 2


def test_logs_of_runs_that_overlap(tmp_path):
    log = logging.getLogger("rankinite")
    before = log.level, log.propagate, list(log.handlers)
    first, second = (logged_to(Store(tmp_path / name)) for name in ("first", "second"))
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    first.__enter__()
    second.__enter__()
    log.debug("both")
    file = log.handlers[-2]
    first.__exit__(None, None, None)
    # As a thread does that has begun to pass a record on.
    file.handle(logging.LogRecord("rankinite", logging.INFO, "", 0, "late", (), None))
    log.debug("one")
    second.__exit__(None, None, None)
    log.debug("none")
    written = [(tmp_path / name / LOG).read_text() for name in ("first", "second")]
    assert [line.split()[2:] for text in written for line in text.splitlines()] == [
        ["both"],
        ["both"],
        ["one"],
    ]
    assert (log.level, log.propagate, log.handlers) == before
