"""What the kernels that follow a measure along a line are given, and what they work with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Queries are followed in so many blocks, whatever the number of threads.
N_BLOCKS = 64
# Crossings that are nearer than this, relative to t, are one point: rounding tears apart what
# crosses in one.
NEAR = 1e-12


class Worth(NamedTuple):
    """What documents and ranks are worth; the same for all scores.

    Attributes
    ----------
    offsets
        The queries.
    values
        What each document is worth.
    norms
        What each query's measure is divided by; 0 for a query whose measure does not change.
    weights, sums
        What each rank is worth, 0 beyond the depth, and the sums of these from the first rank on.
    depth
        How many ranks count.
    form
        How values and weights combine; see `kernels`.
    scale
        What a query's measure is multiplied by to make it a whole number: sums of whole numbers
        do not depend on their order.
    """

    offsets: Integers
    values: Floats
    norms: Floats
    weights: Floats
    sums: Floats
    depth: int
    form: int
    scale: float


class Lines(NamedTuple):
    """The scores of documents along t from 0 to the end: (1 - t) first + t second, or the sum.

    Attributes
    ----------
    first, second
        Scores, or with ``convex`` 0 a score and its slope.
    convex
        1.0 for (1 - t) first + t second, 0.0 for first + t second.
    end
        How far t goes.
    near
        How near crossings must be, besides `NEAR`, to be one point: what rounding of the scores
        does to the place of a crossing.
    """

    first: Floats
    second: Floats
    convex: float
    end: float
    near: float


class Tally(NamedTuple):
    """What happens in each bucket of t (columns), by block of queries (rows).

    Attributes
    ----------
    changes, rises
        The sum of all changes of the measure, and of the positive ones.
    peaks
        The sum of what points are worth beyond the mean of their two sides.
    counts
        How many changes there are.
    firsts, lasts
        Where the first and the last change are.
    """

    changes: Integers
    rises: Integers
    peaks: Integers
    counts: Integers
    firsts: Floats
    lasts: Floats


class Taken(NamedTuple):
    """Changes one by one: where, how large, and what the point itself is worth beyond the mean."""

    times: Floats
    changes: Integers
    peaks: Integers


class Room(NamedTuple):
    """Scratch arrays of one block of queries.

    Documents whose lines are the same are one line. Lines stand in their present order: position
    0 has the largest score.

    Attributes
    ----------
    first, second
        The line at each position.
    worth, size, begin, rank
        The sum of its documents' values, how many they are, where they begin in ``values``, and
        the rank that the first of them has.
    carry
        What the lines above leave: the chance that a user comes here, or relevant documents + 1.
    times
        A tree of minima over when each position changes places with the next; ``times[1]`` is the
        least.
    touched
        Which positions changed places with the next at the present point.
    values, survival
        The values of documents, line by line; the chances to go on past some of a line's
        documents, for every line that has several.
    ranked, chances, ends
        Documents that tie at a point, for the kernels of measures.
    order, inner, keys, spare, scores
        For putting documents in order.
    """

    first: Floats
    second: Floats
    worth: Floats
    size: Integers
    begin: Integers
    rank: Integers
    carry: Floats
    times: Floats
    touched: NDArray[np.bool_]
    values: Floats
    survival: Floats
    ranked: Floats
    chances: Floats
    ends: Integers
    order: Integers
    inner: Integers
    keys: Integers
    spare: Integers
    scores: Floats
