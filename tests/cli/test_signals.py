"""Ctrl-C and requests to end, at any moment of a command."""

from __future__ import annotations

import signal
import sys

import pytest

from rankinite.cli import main
from rankinite.cli.signals import Signals
from tests import processes

# A package that takes whatever happens while it imports another for its absence, as some do.
CARELESS = """
import pathlib, signal, sys
pathlib.Path("slow.py").write_text("import __main__; __main__.pause('importing')")
sys.path.insert(0, ".")

import rankinite.cli.invoke

def run(arguments):
    try:
        import slow
    except BaseException:
        print("it is not installed")
    signal.pause()

rankinite.cli.invoke.run = run
rankinite.cli.main()
"""


@pytest.mark.parametrize(
    ("number", "code", "sentence"),
    [(signal.SIGINT, 130, "Interrupted"), (signal.SIGTERM, 143, "Terminated")],
)
def test_a_signal_waits_for_the_end_of_an_import(number, code, sentence):
    with processes.start(CARELESS) as worker:
        processes.wait_for("importing", worker)
        ended = processes.signal_and_end(worker, number)
    assert ended == (code, "", f"{sentence}\n")


def test_who_insists_does_not_wait(monkeypatch):
    with Signals() as signals:
        frame = type(sys)("frame")
        frame.f_code, frame.f_back = type(sys)("code"), None
        frame.f_code.co_filename = "<frozen importlib._bootstrap>"
        signals._on_signal(signal.SIGINT, frame)
        with pytest.raises(KeyboardInterrupt):
            signals._on_signal(signal.SIGINT, frame)
        assert (signals.code, signals.sentence) == (130, "Interrupted")


def test_what_signals_did_before_is_restored():
    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)]
    with pytest.raises(SystemExit):
        main(["--version"])
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)] == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_signal_for_others_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Signals():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_signal_in_a_finaliser_is_repeated():
    class Careful:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    def forget_and_wait():
        Careful()
        signal.pause()

    with pytest.raises(KeyboardInterrupt), Signals():
        forget_and_wait()
