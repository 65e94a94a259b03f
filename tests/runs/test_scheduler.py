import errno
import os
import signal
import time
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import pytest

from rankinite.core.errors import DataError, RunError
from rankinite.core.progress import Silent
from rankinite.runs.scheduler import carry_out
from rankinite.runs.store import RunFolder
from rankinite.runs.tasks import HowWell, Unit, do_unit
from rankinite.runs.workers import InProcess, Processes


@dataclass(frozen=True)
class Misbehaving:
    """Goes wrong a number of times, as files beside the units tell, and then right."""

    name: str
    how: str
    times: int

    def do(self, bench, key, into):
        """Count the attempt, and go wrong if it is one of the first."""
        counts = Path(bench.folder.path) / "counts"
        counts.mkdir(exist_ok=True)
        attempt = len(list(counts.glob(f"{self.name}-*"))) + 1
        (counts / f"{self.name}-{attempt}").touch()
        with (bench.folder.path / "order.txt").open("a") as order:
            order.write(f"{self.name}\n")
        (into / "half.txt").write_text("half")
        if attempt <= self.times:
            self._go_wrong()
        (into / "whole.txt").write_text(self.name)
        return HowWell("well", 0.5)

    def _go_wrong(self):
        if self.how == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.how == "disk":
            raise OSError(errno.ENOSPC, "no space", "some/file")
        if self.how == "data":
            raise DataError("the data are wrong")
        raise RuntimeError("bad luck")


def unit(name, how="right", times=0, needs=(), cost=1.0):
    return Unit(f"unit {name}", Misbehaving(name, how, times), tuple(needs), cost)


@pytest.fixture
def folder(tmp_path):
    made = RunFolder(tmp_path)
    made.make()
    return made


def attempts(folder, name):
    return len(list((folder.path / "counts").glob(f"{name}-*")))


def order_of(folder):
    return (folder.path / "order.txt").read_text().split()


def go(units, folder, workers=None):
    carry_out(units, folder, workers or InProcess(), Silent(), "work")


@pytest.fixture
def processes():
    workers = Processes(2, 1)
    yield workers
    workers.close(kill=True)


def test_what_is_needed_comes_first_and_is_done_once(folder):
    first = unit("first")
    go([unit("second", needs=[first], cost=9), unit("third", needs=[first], cost=9)], folder)
    assert folder.is_done(first.key)
    assert attempts(folder, "first") == 1
    assert order_of(folder)[0] == "first"


def test_what_is_done_is_not_done_again(folder):
    one, two = unit("one"), unit("two")
    go([one], folder)
    go([one, two], folder)
    assert attempts(folder, "one") == 1
    assert folder.is_done(two.key)


def test_long_units_begin_first(folder):
    go([unit("short", cost=1), unit("long", cost=5)], folder)
    assert order_of(folder) == ["long", "short"]


@pytest.mark.parametrize("how", ["error", "die"])
def test_bad_luck_is_tried_again(folder, how, processes):
    unlucky = unit("unlucky", how, 2)
    others = [unit(str(k)) for k in range(4)]
    go([unlucky, *others], folder, processes)
    assert attempts(folder, "unlucky") == 3
    for one in (unlucky, *others):
        assert folder.is_done(one.key)
        assert sorted(p.name for p in folder.unit(one.key).iterdir()) == [
            "half.txt", "unit.json", "whole.txt"]  # fmt: skip


def test_three_failures_end_the_run_and_the_rest_is_kept(folder):
    bad, good = unit("bad", "error", 9), unit("good")
    with pytest.raises(RunError, match=r"unit bad: failed 3 times: RuntimeError: bad luck; all"):
        go([good, bad], folder)
    assert attempts(folder, "bad") == 3
    assert folder.is_done(good.key)
    assert not folder.is_done(bad.key)
    assert not list((folder.path / "units").glob(".*"))


def test_a_unit_that_kills_its_worker_ends_the_run(folder, processes):
    bad = unit("bad", "die", 9)
    others = [unit(str(k)) for k in range(3)]
    with pytest.raises(RunError, match="unit bad: failed 3 times: the worker process died"):
        go([bad, *others], folder, processes)
    assert attempts(folder, "bad") == 3
    go(others, folder)
    assert all(folder.is_done(one.key) for one in others)


def test_a_worker_that_dies_without_work_is_replaced(folder, processes):
    worker = processes.submit(os.getpid).result()
    os.kill(worker, signal.SIGKILL)
    time.sleep(0.5)
    units = [unit(str(k)) for k in range(3)]
    go(units, folder, processes)
    assert all(folder.is_done(one.key) for one in units)


def test_wrong_data_are_not_tried_again(folder):
    bad = unit("bad", "data", 9)
    with pytest.raises(RunError, match="unit bad: failed: the data are wrong"):
        go([bad], folder)
    assert attempts(folder, "bad") == 1


def test_a_full_disk_ends_the_run_at_once(folder):
    with pytest.raises(OSError, match="no space is left") as caught:
        go([unit("bad", "disk", 9)], folder)
    assert caught.value.errno == errno.ENOSPC
    assert attempts(folder, "bad") == 1
    assert list((folder.path / "units").iterdir()) == []


def test_keys_depend_on_what_is_done_and_not_on_names_or_costs():
    one = unit("one")
    same = Unit("another name", one.work, (), 7.0)
    assert one.key == same.key
    assert one.key != unit("two").key


def test_units_of_other_code_are_others(monkeypatch):
    before = unit("one").key
    monkeypatch.setattr("rankinite.runs.tasks.package_hash", lambda: "other")
    assert unit("one").key != before


def test_whoever_does_a_unit_finds_the_folder_from_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = RunFolder("run")
    folder.make()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    class Elsewhere(InProcess):
        def submit(self, function, *arguments):
            monkeypatch.chdir(elsewhere)
            future = super().submit(function, *arguments)
            monkeypatch.chdir(tmp_path)
            return future

    one = unit("one")
    go([one], folder, Elsewhere())
    assert folder.is_done(one.key)
    assert list(elsewhere.iterdir()) == []


def test_a_scheduler_that_goes_away_is_a_sentence(folder):
    class Gone(InProcess):
        def submit(self, function, *arguments):
            future = Future()
            future.cancel()
            future.set_running_or_notify_cancel()
            return future

    with pytest.raises(RunError, match="failed: the scheduler of the cluster is gone; all that is"):
        go([unit("one")], folder, Gone())


def test_the_checkpoint_of_a_unit_that_is_done_goes(folder):
    one = unit("one")
    go([one], folder)
    folder.checkpoint(one.key).write_bytes(b"left by a run that was killed right then")
    go([one], folder)
    assert not folder.checkpoint(one.key).exists()


def test_a_unit_that_is_done_is_not_done_again_by_a_second_worker(folder):
    one = unit("one")
    first, second = (do_unit(folder, one) for _ in range(2))
    assert second == first
    assert attempts(folder, "one") == 1


def test_only_what_is_tried_again_is_said_to_be(folder, caplog):
    with caplog.at_level("INFO", "rankinite"), pytest.raises(RunError):
        go([unit("bad", "error", 9)], folder)
    assert [record.message for record in caplog.records] == [
        "unit bad failed (bad luck) and is tried again"
    ] * 2
