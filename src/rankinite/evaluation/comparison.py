"""Comparison of systems: means, intervals and p-values, as tables, files and figures.

`compare` makes a `Comparison`. It holds the values of every query, the p-values and the intervals;
means, differences and significance derive from them. Below it stand its file formats and the figure
of sorted differences to a baseline.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from rankinite.core.cached import cached_property
from rankinite.core.errors import UsageError
from rankinite.core.figures import HEIGHT, save_figure, subplots
from rankinite.core.files import atomic_write
from rankinite.core.format import counted, number_text, some_of
from rankinite.core.types import Floats
from rankinite.evaluation.tables import Cell, Table, csv_text, json_text, letters_for
from rankinite.measures.scorer import mean_of_counted
from rankinite.stats.bootstrap import Intervals
from rankinite.stats.paired_tests import Differences, mean_differences

TESTS = {"t": "Paired t-test", "randomisation": "Fisher's randomisation test"}


@dataclass(frozen=True)
class Settings:
    """How systems were compared; see the parameters of `compare`.

    `drop_single_label` is None for evaluations made before: what they dropped is not known.
    """

    test: str
    correction: str
    level: float
    permutations: int
    resamples: int
    seed: int
    drop_single_label: bool | None = None


@dataclass(frozen=True)
class Pair:
    """Two systems by one measure: how much larger the mean of the first is.

    Attributes
    ----------
    difference, low, high
        Difference of the means, and the ends of its bootstrap interval.
    p, corrected_p
        p-value of this pair alone, and corrected for all pairs; the latter is None without a
        correction.
    better
        The system that is significantly better, if one of them is.
    """

    measure: str
    system: str
    other: str
    difference: float
    low: float
    high: float
    p: float
    corrected_p: float | None
    better: str | None


@dataclass(frozen=True, eq=False)
class Comparison:
    """Several systems on the same queries; what `compare` returns.

    Attributes
    ----------
    systems, measures
        Their names; arrays have them in this order.
    qids
        The queries.
    per_query
        For every measure, systems x queries; NaN where the query is left out.
    p_values
        For every measure, systems x systems: what decides about significance. Corrected for all
        pairs, unless ``settings.correction`` is ``"none"``.
    uncorrected
        The same, of each pair alone (Challenge, Table 8).
    intervals
        For every measure, bootstrap intervals of means and of their differences; they hold a share
        of 1 - ``settings.level``.
    tau
        Kendall's tau between measures over systems (Challenge, Sec. 5.3), measures x measures;
        None for a single measure.
    settings
        How they were compared.
    """

    systems: tuple[str, ...]
    measures: tuple[str, ...]
    qids: NDArray[Any]
    per_query: Mapping[str, Floats]
    p_values: Mapping[str, Floats]
    uncorrected: Mapping[str, Floats]
    intervals: Mapping[str, Intervals]
    tau: Floats | None
    settings: Settings

    @cached_property
    def means(self) -> dict[str, dict[str, float]]:
        """The mean of every measure, by system."""
        return {
            measure: dict(zip(self.systems, map(mean_of_counted, values), strict=True))
            for measure, values in self.per_query.items()
        }

    @cached_property
    def differences(self) -> dict[str, Floats]:
        """How much larger the mean of one system is than another's: systems x systems."""
        return {
            measure: mean_differences(values[:, ~np.isnan(values[0])])
            for measure, values in self.per_query.items()
        }

    @cached_property
    def n_queries(self) -> dict[str, int]:
        """How many queries count for every measure."""
        return {name: int((~np.isnan(v[0])).sum()) for name, v in self.per_query.items()}

    @cached_property
    def oracle(self) -> dict[str, float]:
        """The mean if the best system were picked for every query (Challenge, Sec. 6.1)."""
        return {name: mean_of_counted(v.max(axis=0)) for name, v in self.per_query.items()}

    @cached_property
    def letters(self) -> tuple[str, ...]:
        """The letter of every system in tables."""
        return letters_for(len(self.systems))

    def significantly_better(self, measure: str, system: str, other: str) -> bool:
        """Return whether a system has a significantly larger mean than another."""
        self._place("measure", self.measures, measure)
        i = self._place("system", self.systems, system)
        j = self._place("system", self.systems, other)
        significant = self.p_values[measure][i, j] <= self.settings.level
        return bool(significant and self.differences[measure][i, j] > 0)

    def better_than(self, measure: str, system: str) -> list[str]:
        """Return the systems that a system is significantly better than."""
        return [s for s in self.systems if self.significantly_better(measure, system, s)]

    def pairs(self, measure: str) -> list[Pair]:
        """Return every two systems, the first named first."""
        self._place("measure", self.measures, measure)
        return [
            self._pair(measure, i, j)
            for i in range(len(self.systems))
            for j in range(i + 1, len(self.systems))
        ]

    def table(self) -> Table:
        """Return the table of means; a letter stands for "significantly better than"."""
        rows: list[list[str | Cell]] = [
            [letter, system, *(self._cell(measure, system) for measure in self.measures)]
            for letter, system in zip(self.letters, self.systems, strict=True)
        ]
        rows.append(["", "oracle", *(Cell(number_text(self.oracle[m])) for m in self.measures)])
        return Table(
            f"Means over {self._queries_phrase()}",
            ("", "System", *self.measures),
            rows,
            self._test_sentence(),
            n_labels=2,
            last_apart=True,  # the oracle is no system
        )

    def __str__(self) -> str:
        return self.table().to_text()

    def to_markdown(self) -> str:
        """Return the table of means in Markdown."""
        return self.table().to_markdown()

    def to_latex(self) -> str:
        """Return the table of means in LaTeX, for the package booktabs."""
        return self.table().to_latex()

    def to_csv(self) -> str:
        """Return CSV with a line for every system and measure.

        The last column has the systems that it is significantly better than, joined by semicolons;
        a name that holds a semicolon is quoted.
        """
        names = ["system", "measure", "queries", "mean", "low", "high", "significantly_better_than"]
        numbers = range(len(self.systems))
        return csv_text(names, (self._csv_row(m, k) for m in self.measures for k in numbers))

    def pairs_to_csv(self) -> str:
        """Return CSV with a line for every measure and pair of systems; see `Pair`."""
        lines = (vars(pair).values() for measure in self.measures for pair in self.pairs(measure))
        return csv_text([field.name for field in fields(Pair)], lines)

    def as_json(self) -> dict[str, Any]:
        """Return all values as JSON can hold them, with None for NaN."""
        return {
            "systems": list(self.systems),
            "measures": list(self.measures),
            **vars(self.settings),
            "queries": self.n_queries,
            "means": self.means,
            "intervals": {
                measure: dict(zip(self.systems, intervals.means.tolist(), strict=True))
                for measure, intervals in self.intervals.items()
            },
            "oracle": self.oracle,
            "pairs": [vars(pair) for measure in self.measures for pair in self.pairs(measure)],
            "kendall_tau": None if self.tau is None else _without_nan(self.tau),
            "qids": self.qids.tolist(),
            "per_query": {
                measure: dict(zip(self.systems, _without_nan(values), strict=True))
                for measure, values in self.per_query.items()
            },
        }

    def to_json(self) -> str:
        """Return all values as JSON, with null for NaN."""
        return json_text(self.as_json())

    def save(self, path: str | Path) -> None:
        """Write to a file: ``.md``, ``.tex``, ``.csv`` or ``.json``, by the end of its name."""
        text = writer_for(path)(self)
        with atomic_write(path) as file:
            file.write(text.encode())

    def draw_differences(self, folder: str | Path, *, baseline: str | None = None) -> list[Path]:
        """Draw each query's difference to a baseline, from the largest loss to the largest win.

        Parameters
        ----------
        folder
            Folder of the PNG files, one per measure; created if it does not exist.
        baseline
            The system to compare with; the first by default.
        """
        first = self.systems[0] if baseline is None else baseline
        return draw_differences(
            folder,
            self.per_query,
            dict(zip(self.systems, self.letters, strict=True)),
            self._place("system", self.systems, first),
        )

    def _place(self, what: str, names: tuple[str, ...], name: str) -> int:
        if name not in names:
            raise UsageError(f"there is no {what} {name!r}; the {what}s are {some_of(names)}")
        return names.index(name)

    def _pair(self, measure: str, i: int, j: int) -> Pair:
        system, other = self.systems[i], self.systems[j]
        difference = float(self.differences[measure][i, j])
        low, high = self.intervals[measure].differences[i, j].tolist()
        winner, loser = (system, other) if difference > 0 else (other, system)
        better = self.significantly_better(measure, winner, loser)
        # Without a correction, ``p_values`` are the uncorrected ones.
        corrected = None if self.settings.correction == "none" else self.p_values
        return Pair(
            measure=measure,
            system=system,
            other=other,
            difference=difference,
            low=low,
            high=high,
            p=float(self.uncorrected[measure][i, j]),
            corrected_p=None if corrected is None else float(corrected[measure][i, j]),
            better=winner if better else None,
        )

    def _cell(self, measure: str, system: str) -> Cell:
        means = self.means[measure]
        letter = dict(zip(self.systems, self.letters, strict=True))
        beaten = [letter[other] for other in self.better_than(measure, system)]
        # Names of several letters run together without a comma: "aaab".
        joined = ("" if len(self.letters[0]) == 1 else ",").join(beaten)
        return Cell(number_text(means[system]), joined, means[system] == max(means.values()))

    def _csv_row(self, measure: str, k: int) -> list[Any]:
        system = self.systems[k]
        ends = self.intervals[measure].means[k].tolist()
        beaten = _joined(self.better_than(measure, system))
        count = self.n_queries[measure]
        return [system, measure, count, self.means[measure][system], *ends, beaten]

    def _queries_phrase(self) -> str:
        counts = self.n_queries
        if len(set(counts.values())) == 1:
            return counted(counts[self.measures[0]], "query", "queries")
        return ", ".join(f"{count:,} ({name})" for name, count in counts.items()) + " queries"

    def _test_sentence(self) -> str:
        n_pairs = len(self.systems) * (len(self.systems) - 1) // 2
        corrected = f", Holm's correction for {n_pairs:,} pairs" if n_pairs > 1 else ""
        correction = corrected if self.settings.correction == "holm" else ", no correction"
        return f"{TESTS[self.settings.test]}{correction}, level {self.settings.level:g}."


WRITERS: dict[str, Callable[[Comparison], str]] = {
    ".md": Comparison.to_markdown,
    ".tex": Comparison.to_latex,
    ".csv": Comparison.to_csv,
    ".json": Comparison.to_json,
}


def writer_for(path: str | Path) -> Callable[[Comparison], str]:
    """Return the function that writes a comparison to a file with this suffix."""
    suffix = Path(path).suffix.lower()
    if suffix not in WRITERS:
        raise UsageError(
            f"{path}: a comparison is written to files that end in {', '.join(WRITERS)}"
        )
    return WRITERS[suffix]


def _joined(names: list[str]) -> str:
    """Join names by semicolons, as a line of CSV that has them for commas.

    >>> _joined(["bm25", "k=1;b=2"])
    'bm25;"k=1;b=2"'
    """
    text = io.StringIO()
    csv.writer(text, delimiter=";", lineterminator="").writerow(names)
    return text.getvalue()


def _without_nan(values: Floats) -> list[list[float | None]]:
    return [[None if math.isnan(x) else x for x in row] for row in values.tolist()]


# Figure of differences

FEW_QUERIES = 50  # up to which each query is a dot
MOST_COLOURS = 10  # of matplotlib's default cycle
LEGEND_LINE = 0.18  # inches
# Longest names that a line of the legend, and an axis, have room for.
SIGNS_IN_LEGEND = 48
SIGNS_AT_AXIS = 24


def draw_differences(
    folder: str | Path, per_query: Mapping[str, Floats], letters: Mapping[str, str], baseline: int
) -> list[Path]:
    """Draw the sorted differences of every system to a baseline, one figure per measure.

    Parameters
    ----------
    folder
        Folder of the PNG files; created if it does not exist.
    per_query
        For every measure, systems x queries; NaN where the query is left out.
    letters
        The letter of every system, by its name.
    baseline
        Index of the system to compare with.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    paths = []
    for measure, values in per_query.items():
        paths.append(target / differences_file(measure))
        counted = values[:, ~np.isnan(values[0])]
        _draw(paths[-1], measure, counted, letters, baseline)
    return paths


def differences_file(measure: str) -> str:
    """Return the name of the figure of a measure."""
    # The name of a measure's label source may hold signs that file names cannot, such as /.
    return f"differences-{quote(measure, safe='@()[]=,')}.png"


def _draw(
    path: Path, measure: str, values: Floats, letters: Mapping[str, str], baseline: int
) -> None:
    n_lines = len(letters) - 1
    # The legend stands below the axes and brings its own height, so that the axes keep theirs.
    figure, (axes,) = subplots(height=HEIGHT + LEGEND_LINE * (n_lines + 1))
    axes.axhline(0, color="grey", linewidth=1)
    axes.set_prop_cycle(color=_colours(n_lines))
    differences = np.sort(Differences.between(values, values[baseline]).values, axis=1)
    ranks = np.arange(1, values.shape[1] + 1)
    marker = "." if len(ranks) <= FEW_QUERIES else ""
    for k, (name, letter) in enumerate(letters.items()):
        if k != baseline:
            label = _label(f"{letter}  {_short(name, SIGNS_IN_LEGEND)}", differences[k])
            axes.plot(ranks, differences[k], linewidth=1.5, marker=marker, label=label)
    label = f"{measure}, difference to {_short(list(letters)[baseline], SIGNS_AT_AXIS)}"
    axes.set(xlabel="Queries, by difference", ylabel=label)
    figure.legend(loc="outside lower center", fontsize="small", frameon=False)
    save_figure(figure, path)


def _colours(n_lines: int) -> list[Any]:
    """Return matplotlib's default colours, or colours of a rainbow if there are more lines."""
    from matplotlib import colormaps

    if n_lines <= MOST_COLOURS:
        return list(colormaps["tab10"](np.arange(MOST_COLOURS)))
    return list(colormaps["turbo"](np.linspace(0.0, 1.0, n_lines)))


def _short(name: str, most: int) -> str:
    """Cut the middle out of a long name: either end may distinguish it from others.

    Examples
    --------
    >>> _short("tree with 500 leaves", 10)
    'tree …aves'
    """
    half = most // 2
    return name if len(name) <= most else f"{name[:half]}…{name[1 - half :]}"


def _label(name: str, differences: Floats) -> str:
    wins, losses = int((differences > 0).sum()), int((differences < 0).sum())
    ties = len(differences) - wins - losses
    return f"{name}: wins {wins:,}, ties {ties:,}, losses {losses:,}"
