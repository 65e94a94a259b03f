"""Properties that are computed once: their value, and threads and forks that ask at once."""

from __future__ import annotations

import os
import threading

import pytest

from rankinite.core.cached import cached_property
from tests.processes import LIMIT


class Squares:
    """Counts how often the property is computed, each time with another result."""

    def __init__(self) -> None:
        self.n = 0

    @cached_property
    def value(self) -> list[int]:
        """The number of calls."""
        self.n += 1
        return [self.n]


def test_it_is_computed_once():
    squares = Squares()
    assert squares.value is squares.value
    assert squares.n == 1
    assert Squares.value.__doc__ == "The number of calls."
    assert Squares().value is not squares.value


class Waits:
    """Its property waits until a second thread computes it, too, or one of another instance."""

    both = threading.Barrier(2)

    @cached_property
    def value(self) -> object:
        """Something new."""
        self.both.wait(LIMIT)
        return object()


@pytest.mark.parametrize("is_same", [False, True])
def test_threads_do_not_wait_for_each_other(is_same):
    first = Waits()
    instances = [first, first if is_same else Waits()]
    values: list[object] = []
    workers = [
        threading.Thread(target=lambda instance=instance: values.append(instance.value))
        for instance in instances
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(LIMIT)
    assert (values[0] is values[1]) == is_same


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_child_does_not_wait_for_a_thread_of_its_parent():
    begun, may_end = threading.Event(), threading.Event()

    class Held:
        first = True

        @cached_property
        def value(self) -> int:
            if Held.first:
                Held.first = False
                begun.set()
                may_end.wait(LIMIT)
            return 7

    holder = threading.Thread(target=lambda: Held().value)
    holder.start()
    begun.wait(LIMIT)
    child = os.fork()
    if child == 0:
        try:
            os._exit(Held().value)
        finally:
            os._exit(2)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    may_end.set()
    holder.join(LIMIT)
    assert ended == 7
