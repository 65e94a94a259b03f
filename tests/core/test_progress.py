"""What progress may be, and what True shows."""

from __future__ import annotations

import io
import sys

import pytest

import rankinite as rk
from rankinite.core import progress
from rankinite.core.progress import Bar, Lines, Reporter, Silent, as_progress


class Recorder:
    """A reporter as users write it: it inherits from nothing."""

    def __init__(self):
        self.started = []

    def start(self, name, total, unit):
        self.started.append((name, total, unit))
        return rk.ProgressBar()


def test_what_progress_may_be(monkeypatch):
    assert isinstance(as_progress("it", None), Silent)
    assert isinstance(as_progress("it", False), Silent)
    recorder = Recorder()
    assert as_progress("it", recorder) is recorder
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert as_progress("it", True) == Reporter(Lines)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert as_progress("it", True) == Reporter(Bar)


@pytest.mark.parametrize("value", [3, "bar", print])
def test_what_it_may_not_be(value):
    with pytest.raises(rk.UsageError, match=r"it: progress is .*; expected True, False or a progr"):
        as_progress("it", value)


def test_a_fit_with_progress(monkeypatch, capsys):
    data = rk.polynomials(4, n_features=2, n_docs=5)
    monkeypatch.setattr(progress, "SECONDS_BEFORE_BAR", -1.0)  # also of a fit that is quick
    rk.MART(n_trees=2).fit(data, valid=data, progress=True)
    # The line that the timer prints may come first.
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("training: 2 of 2 trees, valid NDCG@10 ")
    recorder = Recorder()
    rk.MART(n_trees=2).fit(data, progress=recorder)
    assert recorder.started == [("training", 2, "trees")]
