"""The geometry of charts: numbers to places in a box of 100 x 100, which a page stretches.

Lines keep their width and letters their size when it does: letters stand beside the box.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankinite.core.types import Floats

# More points than this no line of a small chart can show.
MOST_POINTS = 100
MOST_STEPS = 400


@dataclass(frozen=True)
class Scale:
    """A range of numbers along 100 units."""

    low: float
    high: float

    @classmethod
    def around(cls, values: Sequence[float], margin: float = 0.0) -> Scale:
        """Return the scale that holds all finite values; of some width in any case.

        >>> Scale.around([1.0, float("nan"), 3.0])
        Scale(low=1.0, high=3.0)
        """
        known = [value for value in values if math.isfinite(value)] or [0.0]
        low, high = min(known), max(known)
        if high - low <= 1e-12 * max(abs(low), abs(high)):
            spare = 0.5 * abs(low) or 0.5
            return cls(low - spare, high + spare)
        spare = margin * (high - low)
        return cls(low - spare, high + spare)

    def place(self, value: float) -> float:
        """Return where a value is, from 0 to 100; the nearer end if it is outside.

        >>> Scale(1.0, 3.0).place(1.5), Scale(1.0, 3.0).place(float("inf"))
        (25.0, 100.0)
        """
        share = (value - self.low) / (self.high - self.low)
        return round(100 * min(max(share, 0.0), 1.0), 2)

    def ticks(self, most: int = 5) -> list[float]:
        """Return round numbers within the scale, as many as asked for at most.

        >>> Scale(-0.013, 0.021).ticks()
        [-0.01, 0.0, 0.01, 0.02]
        """
        exponent = math.floor(math.log10((self.high - self.low) / most))
        steps = (factor * 10.0**k for k in range(exponent, exponent + 3) for factor in (1, 2, 5))
        for step in steps:
            first, last = math.ceil(self.low / step), math.floor(self.high / step)
            if last - first < most:
                return [round(k * step, 12) for k in range(first, last + 1)]
        return []


def line_path(values: Sequence[float], scale: Scale, n_rounds: int) -> str:
    """Return the path of a learning curve, with at most `MOST_POINTS` of its points.

    Points below the scale are left out.

    >>> line_path([0.0, 1.0, 0.5], Scale(0.0, 1.0), 3)
    'M0 100L50 0L100 50'
    """
    n = len(values)
    shown = np.unique(np.linspace(0, n - 1, min(n, MOST_POINTS)).round().astype(int)).tolist()
    points = [
        f"{number(along(k, n_rounds))} {number(100 - scale.place(values[k]))}"
        for k in shown
        if math.isfinite(values[k]) and values[k] >= scale.low
    ]
    return "M" + "L".join(points) if points else ""


def dots_path(points: Sequence[tuple[int, float]], scale: Scale, n_rounds: int) -> str:
    """Return the path of dots: lines without a length, of which round ends are seen.

    >>> dots_path([(1, 0.25)], Scale(0.0, 1.0), 3)
    'M50 75h0'
    """
    return "".join(
        f"M{number(along(k, n_rounds))} {number(100 - scale.place(value))}h0" for k, value in points
    )


def steps_path(heights: Sequence[float], scale: Scale) -> str:
    """Return the outline of bars side by side, from the line of 0.

    >>> steps_path([1.0, 0.5], Scale(0.0, 1.0))
    'M0 100V0H50V50H100V100Z'
    """
    width, base = 100 / max(len(heights), 1), number(100 - scale.place(0.0))
    bars = "".join(
        f"V{number(100 - scale.place(height))}H{number((k + 1) * width)}"
        for k, height in enumerate(heights)
    )
    return f"M0 {base}{bars}V{base}Z"


def thinned(ordered: Floats, most: int = MOST_STEPS) -> Floats:
    """Return some of many sorted values: evenly spaced, the first and the last among them."""
    if len(ordered) <= most:
        return ordered
    picked: Floats = ordered[np.linspace(0, len(ordered) - 1, most).round().astype(int)]
    return picked


def number(value: float) -> str:
    """Return a coordinate, as short as it can be.

    >>> number(50.0), number(33.3333)
    ('50', '33.33')
    """
    return f"{value:.2f}".rstrip("0").rstrip(".")


def along(k: int, n: int) -> float:
    """Return where the k-th of n things is, from 0 to 100; one alone is in the middle.

    >>> along(1, 5), along(0, 1)
    (25.0, 50.0)
    """
    return 100 * k / (n - 1) if n > 1 else 50.0
