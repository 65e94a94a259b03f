"""Geometry of charts: numbers to coordinates in a box of 100 x 100, which the page stretches.

The page stretches only the box, so that lines keep their width; texts stand beside the box.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# A small chart, and one as wide as the page, cannot show more points than this.
MOST_POINTS = 100
MOST_STEPS = 400


@dataclass(frozen=True)
class Chart:
    """A small chart: its caption, its paths, and the texts at the ends of its axes."""

    title: str
    top: str
    bottom: str
    left: str
    right: str
    detail: str = ""
    lines: tuple[str, ...] = ()
    area: str = ""
    dots: str = ""


@dataclass(frozen=True)
class Bar:
    """A bar of a chart; its width is in percent of the longest."""

    label: str
    width: float
    text: str


@dataclass(frozen=True)
class Scale:
    """A range of numbers along 100 units."""

    low: float
    high: float

    @classmethod
    def around(cls, values: Sequence[float], margin: float = 0.0) -> Scale:
        """Return the scale of all finite values; its width is never 0.

        >>> Scale.around([1.0, float("nan"), 3.0])
        Scale(low=1.0, high=3.0)
        """
        known = [value for value in values if math.isfinite(value)] or [0.0]
        low, high = min(known), max(known)
        # Equal values, but for rounding: without some room the scale would divide by 0.
        if high - low <= 1e-12 * max(abs(low), abs(high)):
            spare = 0.5 * abs(low) or 0.5
            return cls(low - spare, high + spare)
        spare = margin * (high - low)
        return cls(low - spare, high + spare)

    def place(self, value: float) -> float:
        """Return the coordinate of a value, from 0 to 100; the nearer end if it is outside.

        >>> Scale(1.0, 3.0).place(1.5), Scale(1.0, 3.0).place(float("inf"))
        (25.0, 100.0)
        """
        share = (value - self.low) / (self.high - self.low)
        # Two decimals are a tenth of a pixel on a page of 1,000; more would only make it larger.
        return round(100 * min(max(share, 0.0), 1.0), 2)

    def ticks(self, most: int = 5) -> list[float]:
        """Return round numbers within the scale, at most `most` of them.

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

    Values below the scale are left out.

    >>> line_path([0.0, 1.0, 0.5], Scale(0.0, 1.0), 3)
    'M0 100L50 0L100 50'
    """
    shown = thinned(np.arange(len(values)), MOST_POINTS).tolist()
    return path_of([(k, values[k]) for k in shown], scale, n_rounds)


def path_of(points: Iterable[tuple[int, float]], scale: Scale, n: int) -> str:
    """Return the path through values of some of n places, which are counted from 0.

    Values below the scale are left out: at its edge they would look like values.

    >>> path_of([(0, 0.0), (1, -1.0), (2, 0.5)], Scale(0.0, 1.0), 3)
    'M0 100L100 50'
    """
    shown = [
        point(along(k, n), scale.place(value))
        for k, value in points
        if math.isfinite(value) and value >= scale.low
    ]
    return "M" + "L".join(shown) if shown else ""


def point(x: float, height: float) -> str:
    """Return the text of a point; y of a path grows downwards.

    >>> point(50.0, 25.0)
    '50 75'
    """
    return f"{coordinate(x)} {coordinate(100 - height)}"


def dots_path(points: Sequence[tuple[int, float]], scale: Scale, n_rounds: int) -> str:
    """Return the path of dots: lines of length 0, of which only the round ends are seen.

    >>> dots_path([(1, 0.25)], Scale(0.0, 1.0), 3)
    'M50 75h0'
    """
    return "".join(f"M{point(along(k, n_rounds), scale.place(value))}h0" for k, value in points)


def steps_path(heights: Sequence[float], scale: Scale) -> str:
    """Return the outline of adjacent bars that start at 0.

    >>> steps_path([1.0, 0.5], Scale(0.0, 1.0))
    'M0 100V0H50V50H100V100Z'
    """
    width, base = 100 / max(len(heights), 1), coordinate(100 - scale.place(0.0))
    bars = "".join(
        f"V{coordinate(100 - scale.place(height))}H{coordinate((k + 1) * width)}"
        for k, height in enumerate(heights)
    )
    return f"M0 {base}{bars}V{base}Z"


def thinned(values: NDArray[Any], most: int = MOST_STEPS) -> NDArray[Any]:
    """Return at most `most` of the values, evenly spaced, with the first and the last."""
    if len(values) <= most:
        return values
    picked: NDArray[Any] = values[np.linspace(0, len(values) - 1, most).round().astype(int)]
    return picked


def coordinate(value: float) -> str:
    """Return the shortest text of a coordinate with two decimals.

    >>> coordinate(50.0), coordinate(33.3333)
    ('50', '33.33')
    """
    return f"{value:.2f}".rstrip("0").rstrip(".")


def along(k: int, n: int) -> float:
    """Return the coordinate of the k-th of n points, from 0 to 100; 50 if there is only one.

    >>> along(1, 5), along(0, 1)
    (25.0, 50.0)
    """
    return 100 * k / (n - 1) if n > 1 else 50.0


def bars_of(values: Mapping[str, float], text: Callable[[float], str]) -> tuple[Bar, ...]:
    """Return a bar for every value; `text` writes the values.

    >>> [(bar.label, bar.width, bar.text) for bar in bars_of({"a": 2.0, "b": 0.5}, "{:.1f}".format)]
    [('a', 100.0, '2.0'), ('b', 25.0, '0.5')]
    """
    longest = max([value for value in values.values() if value > 0], default=1.0)
    return tuple(
        Bar(label, round(100 * max(value, 0.0) / longest, 2), text(value))
        for label, value in values.items()
    )
