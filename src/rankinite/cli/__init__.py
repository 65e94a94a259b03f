"""The ``rankinite`` command: the only place that prints, catches errors and draws progress bars."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and leave with its exit code; Ctrl-C counts from the first import."""
    try:
        # Inside: imports take long enough for somebody to press Ctrl-C.
        from rankinite.cli.invoke import run

        code = run(arguments)
    except KeyboardInterrupt:
        code = INTERRUPTED
    sys.exit(code)
