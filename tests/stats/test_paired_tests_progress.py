"""Whoever wants to know how far the tests are is told."""

from __future__ import annotations

import numpy as np

from rankinite.core.progress import ProgressBar
from rankinite.stats.bootstrap import bootstrap
from rankinite.stats.paired_tests import randomisation_test

VALUES = np.random.default_rng(9).random((2, 40))


class Told(ProgressBar):
    """Progress that keeps what it is told."""

    def __init__(self):
        self.told = []

    def start(self, name, total, unit):
        self.told.append(total)
        return self

    def advance(self, amount):
        self.told.append(amount)

    def end(self):
        self.told.append("end")


def test_randomisation():
    progress = Told()
    randomisation_test(VALUES, permutations=10_000, progress=progress)
    assert progress.told == [10_000, 8192, 10_000 - 8192, "end"]


def test_bootstrap():
    progress = Told()
    bootstrap(VALUES, resamples=3, progress=progress)
    assert progress.told == [3, 1, 1, 1, "end"]
