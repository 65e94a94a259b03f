import errno
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from rankinite.core.errors import DataError, RunError
from rankinite.core.progress import Silent
from rankinite.experiments.runs.carry_out import carry_out
from rankinite.experiments.runs.folder import RunFolder
from rankinite.experiments.runs.units import Unit
from rankinite.experiments.runs.work import HowWell
from rankinite.experiments.runs.workers import InProcess, Processes


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
    order = sorted((folder.path / "counts").iterdir(), key=lambda p: p.stat().st_mtime_ns)
    assert order[0].name == "first-1"


def test_what_is_done_is_not_done_again(folder):
    one, two = unit("one"), unit("two")
    go([one], folder)
    go([one, two], folder)
    assert attempts(folder, "one") == 1
    assert folder.is_done(two.key)


def test_long_units_begin_first(folder):
    go([unit("short", cost=1), unit("long", cost=5)], folder)
    order = sorted((folder.path / "counts").iterdir(), key=lambda p: p.stat().st_mtime_ns)
    assert [path.name for path in order] == ["long-1", "short-1"]


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
