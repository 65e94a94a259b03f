"""What all sections are run with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from peers import Task
from shapes import Arrays, Shape, simulate

LEARNING_RATE = 0.1


@dataclass(frozen=True)
class Settings:
    """The options of the command line.

    Attributes
    ----------
    data
        The folder of mq2007, if there is one.
    movies
        That of msrd-movies, if there is one.
    turns
        How often rivals take their turn.
    threads
        How many threads each of them has.
    n_warm, n_timed
        How many iterations of a turn are skipped, and how many are timed.
    smaller
        What numbers of queries are divided by.
    shapes, leaves, peers
        What the sections with simulated data go through.
    """

    data: Path | None
    movies: Path | None
    turns: int
    threads: int
    n_warm: int
    n_timed: int
    smaller: int
    shapes: tuple[Shape, ...]
    leaves: tuple[int, ...]
    peers: tuple[str, ...]

    def fitted(self, shape: Shape) -> Shape:
        """Return the shape, or a smaller one for a quick run."""
        return shape if self.smaller == 1 else shape.smaller(self.smaller)

    def simulate(self, shape: Shape) -> tuple[Arrays, Arrays]:
        """Return a training and a validation set."""
        return simulate(self.fitted(shape))

    def task(self, n_leaves: int, truncation: int | None, times: int = 1) -> Task:
        """Return what rivals train, with so many times the usual timed iterations."""
        return Task(
            n_leaves, LEARNING_RATE, truncation, self.threads, self.n_warm, times * self.n_timed
        )
