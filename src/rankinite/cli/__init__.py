"""The ``rankinite`` command: the only place that prints, catches errors and draws progress bars."""

from rankinite.cli.run import main

__all__ = ["main"]
