"""The pool of threads: ranges, errors, nesting, forks, concurrent callers, and how many threads."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

import rankinite as rk
from rankinite.core import threads
from rankinite.core.threads import n_threads, parallel_for, set_threads
from tests.processes import LIMIT


class Ranges:
    """Notes the ranges that it is called for, and by which threads."""

    def __init__(self) -> None:
        self.ranges: list[tuple[int, int]] = []
        self.threads: set[int] = set()

    def __call__(self, first: int, last: int) -> None:
        self.ranges.append((first, last))
        self.threads.add(threading.get_ident())


@pytest.mark.parametrize("n", [0, 1, 2, 7, 1000])
@pytest.mark.parametrize("grain", [1, 3, 2000])
@pytest.mark.parametrize("n_workers", [1, 2, 5])
def test_ranges_are_everything_once(n, grain, n_workers):
    compute = Ranges()
    with rk.threads(n_workers):
        parallel_for(compute, n, grain=grain)
    ranges = sorted(compute.ranges)
    assert all(first < last for first, last in ranges)
    assert all(last == first for (_, last), (first, _) in pairwise(ranges))
    assert ([ranges[0][0], ranges[-1][1]] if n else ranges) == ([0, n] if n else [])
    if n_workers == 1 or n < 2 * grain:
        assert len(ranges) <= 1
        assert compute.threads <= {threading.get_ident()}


def test_arguments_are_passed_on():
    sums = []
    parallel_for(lambda first, last, a, b: sums.append((last - first) * a + b), 5, 2.0, 1.0)
    assert sums == [11.0]


def test_another_thread_takes_part():
    """One range waits until another one was begun, which only another thread can do."""
    others = threading.Barrier(2)
    with rk.threads(2):
        parallel_for(lambda first, last: others.wait(LIMIT), 2)
    assert not others.broken


def test_work_inside_work_stays_on_its_thread():
    inner: list[tuple[int, int, int]] = []
    both = threading.Barrier(2)

    def outer(first: int, last: int) -> None:
        both.wait(LIMIT)
        outside = threading.get_ident()
        parallel_for(lambda a, b: inner.append((outside, threading.get_ident(), n_threads())), 100)

    caller = threading.get_ident()
    with rk.threads(2):
        parallel_for(outer, 2)
    helped = [entry for entry in inner if entry[0] != caller]
    assert {(inside == outside, n) for outside, inside, n in helped} == {(True, 1)}


@pytest.mark.parametrize("bad", [0, 3, 7])
def test_an_error_reaches_the_caller_and_the_pool_survives(bad):
    def compute(first: int, last: int) -> None:
        if first <= bad < last:
            raise ValueError(f"range with {bad}")

    with rk.threads(3):
        with pytest.raises(ValueError, match=f"range with {bad}"):
            parallel_for(compute, 8)
        after = Ranges()
        parallel_for(after, 8)
    assert sum(last - first for first, last in after.ranges) == 8


@pytest.mark.parametrize("raises_on_caller", [False, True])
def test_an_index_error_is_not_taken_for_the_end_of_the_work(raises_on_caller):
    both = threading.Barrier(2)
    caller = threading.get_ident()

    def compute(first: int, last: int) -> None:
        if first < 2:  # one for each of the two threads
            both.wait(LIMIT)
        if (threading.get_ident() == caller) == raises_on_caller:
            raise IndexError("out of range")

    with rk.threads(2), pytest.raises(IndexError, match="out of range"):
        parallel_for(compute, 8)


def test_an_interrupt_waits_for_what_others_have_begun():
    begun, may_end, ended = threading.Event(), threading.Event(), []
    caller = threading.get_ident()

    def compute(first: int, last: int) -> None:
        if threading.get_ident() == caller:
            begun.wait(LIMIT)
            may_end.set()
            raise KeyboardInterrupt
        begun.set()
        may_end.wait(LIMIT)
        ended.append(first)

    with rk.threads(2), pytest.raises(KeyboardInterrupt):
        parallel_for(compute, 2)
    assert len(ended) == 1


def test_callers_may_be_concurrent():
    def caller(k: int) -> int:
        total = [0] * 64

        def compute(first: int, last: int) -> None:
            for i in range(first, last):
                total[i] = i * k

        with rk.threads(3):
            for _ in range(20):
                parallel_for(compute, 64)
        return sum(total)

    with ThreadPoolExecutor(8) as callers:
        assert list(callers.map(caller, range(8))) == [2016 * k for k in range(8)]


def _sum_in_child(queue: multiprocessing.Queue[int]) -> None:
    compute = Ranges()
    with rk.threads(2):
        parallel_for(compute, 10)
    queue.put(sum(last - first for first, last in compute.ranges))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_child_of_a_fork_works():
    with rk.threads(2):
        parallel_for(Ranges(), 10)  # so that the parent has threads, which the child will not
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_sum_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=LIMIT) == 10
    child.join(LIMIT)
    assert child.exitcode == 0


def test_who_says_how_many(monkeypatch):
    monkeypatch.setattr(threads, "_usual_threads", lambda: 7)
    set_threads(None)
    assert rk.n_threads() == 7
    rk.set_threads(3)
    assert rk.n_threads() == 3
    with rk.threads(2):
        assert rk.n_threads() == 2
        with rk.threads(5):
            assert rk.n_threads() == 5
        assert rk.n_threads() == 2
    assert rk.n_threads() == 3


@pytest.mark.parametrize("n", [0, -1, 1.5, "2", True])
def test_a_bad_number(n):
    for call in (rk.set_threads, lambda n: rk.threads(n).__enter__()):
        with pytest.raises(rk.UsageError, match=f"the number of threads is {n!r}; expected"):
            call(n)


@pytest.mark.parametrize(("text", "shown"), [("3", "3"), ("0", "True"), ("two", "True")])
def test_the_environment_variable(text, shown):
    code = (
        "import rankinite as rk\n"
        "try: print(rk.n_threads())\n"
        "except rk.UsageError as problem: print('RANKINITE_THREADS' in str(problem))"
    )
    environment = os.environ | {"RANKINITE_THREADS": text}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == (f"{shown}\n", "")


@pytest.mark.parametrize(
    ("groups", "files", "quota"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5),
        ("0::/\n", {"cpu.max": "max 100000\n"}, float("inf")),
        ("0::/a/b\n", {"a/cpu.max": "200000 100000", "a/b/cpu.max": "max 100000"}, 2.0),
        (
            "3:cpu,cpuacct:/box\n1:memory:/box\n",
            {"cpu/box/cpu.cfs_quota_us": "50000\n", "cpu/box/cpu.cfs_period_us": "100000\n"},
            0.5,
        ),
        (
            "3:cpu,cpuacct:/\n",
            {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"},
            float("inf"),
        ),
        ("0::/\n", {"cpu.max": "nonsense"}, float("inf")),
        (None, {}, float("inf")),
    ],
)
def test_limits_of_control_groups(tmp_path, groups, files, quota):
    if groups is not None:
        (tmp_path / "proc/self").mkdir(parents=True)
        (tmp_path / "proc/self/cgroup").write_text(groups)
    for name, text in files.items():
        path = tmp_path / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert threads._cpu_quota(tmp_path) == quota


def test_cores_are_counted_within_the_limits(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: range(8), raising=False)
    for quota, cores in ((float("inf"), 8), (2.5, 3), (0.1, 1)):
        monkeypatch.setattr(threads, "_cpu_quota", lambda _root, quota=quota: quota)
        assert threads.available_cores() == cores
