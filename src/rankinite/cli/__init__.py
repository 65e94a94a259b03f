"""The ``rankinite`` command: the only place that prints, catches errors and draws progress bars."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from rankinite.cli.signals import Signals


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and leave with its exit code; Ctrl-C counts from the first import."""
    signals = Signals()
    try:
        with signals:
            # Inside: imports take long enough for somebody to press Ctrl-C.
            from rankinite.cli.invoke import run

            code = run(arguments)
    except KeyboardInterrupt:
        code = signals.code
        with contextlib.suppress(OSError):
            print(signals.sentence, file=sys.stderr)
    if arguments is None:
        # The process ends with the command. What is left to do needs no traceback if it is stopped.
        with contextlib.suppress(ValueError):
            signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(code)
