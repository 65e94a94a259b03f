"""``rankinite compare``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankinite.cli.files import load_members, refuse_repeated, short_names
from rankinite.cli.options import LabelledData, Loading, Measures, Testing
from rankinite.cli.outputs import Outputs, refuse_file_as_folder, refuse_missing_folders
from rankinite.cli.terminal import Terminal, drawn_width
from rankinite.core.errors import UsageError
from rankinite.core.files import atomic_write
from rankinite.core.format import number_text, p_text, some_of
from rankinite.evaluation.tables import Table

if TYPE_CHECKING:
    from rankinite.core.types import Floats
    from rankinite.evaluation.comparison import Comparison

MOST_SYSTEMS_IN_MATRIX = 10
# With more systems, or where names would make a matrix wider than a usual terminal, its rows are
# called by letters, which the table of means explains.
MOST_NAMES_IN_MATRIX = 5
USUAL_WIDTH = 80
P_DIGITS = 4
LEAST_SYSTEMS = 2
LEAST_SYSTEMS_FOR_TAU = 3  # of two, tau could only be 1 or -1


@dataclass(frozen=True, kw_only=True)
class ComparisonFiles:
    """The files that a comparison is written to."""

    out: Annotated[
        list[Path] | None,
        typer.Option(
            "--out",
            "-o",
            help="Write to this file; may be repeated. The suffix decides: tables as .md or .tex, "
            "means with their intervals as .csv, everything as .json.",
        ),
    ] = None
    pairs: Annotated[
        Path | None,
        typer.Option(help="Write the difference, interval and p-value of every pair to this CSV."),
    ] = None
    figures: Annotated[
        Path | None,
        typer.Option(help="Draw each query's differences as PNG files into this folder."),
    ] = None
    baseline: Annotated[
        str | None,
        typer.Option(
            help="The system that the figures compare the others with. (Default: the first.)"
        ),
    ] = None

    @property
    def tables(self) -> list[Path]:
        """The files of --out and --pairs."""
        return [*(self.out or []), *([] if self.pairs is None else [self.pairs])]

    def drawn(self, measures: Iterable[object]) -> list[Path]:
        """Return the files of --figures."""
        from rankinite.evaluation.comparison import differences_file

        folder = self.figures
        return [] if folder is None else [folder / differences_file(str(m)) for m in measures]

    def check(self, names: Sequence[str]) -> None:
        """Refuse files that could not be written, before the work, and an unknown baseline."""
        from rankinite.evaluation.comparison import writer_for

        for path in self.out or []:
            writer_for(path)
        refuse_missing_folders(self.tables)
        if self.figures is not None:
            refuse_file_as_folder(self.figures)
        elif self.baseline is not None:
            raise UsageError("compare: --baseline is for the figures; add --figures FOLDER")
        if self.baseline is not None and self.baseline not in names:
            raise UsageError(
                f"compare: there is no system {self.baseline!r} for --baseline; the systems are "
                f"{some_of(names)}"
            )

    def write(self, comparison: Comparison, outputs: Outputs) -> list[Path]:
        """Write the files, and return them with those of the figures."""
        for path in self.out or []:
            comparison.save(path)
        if self.pairs is not None:
            with atomic_write(self.pairs) as file:
                file.write(comparison.pairs_to_csv().encode())
        if self.figures is None:
            return self.tables
        drawn = comparison.draw_differences(self.figures, baseline=self.baseline)
        outputs.record(drawn)
        return [*self.tables, *drawn]


def compare(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="SYSTEMS",
            help="Model files; or the scores of each system: one number per line in the order of "
            "the documents, or a TREC run.",
            show_default=False,
        ),
    ] = None,
    feature: Annotated[
        list[str] | None,
        typer.Option(help="Also compare a system that ranks by this feature; may be repeated."),
    ] = None,
    measures: Measures = "NDCG@10,ERR",
    *,
    labelled: LabelledData,
    targets: ComparisonFiles,
    outputs: Outputs,
    testing: Testing,
    loading: Loading,
    terminal: Terminal,
) -> None:
    """Compare systems query by query: means, and which differences could be chance.

    A system has the name of its file, without the suffix, or "feature NAME". Every two systems are
    tested; the oracle picks the best system for every query.
    """
    from rankinite.data.scores import feature_scores
    from rankinite.evaluation.compare import checked
    from rankinite.evaluation.compare import compare as compare_scores
    from rankinite.evaluation.comparison import Settings
    from rankinite.measures.text import parse_measures

    # All that can be wrong without the data is told before they are read.
    files, features = files or [], feature or []
    settings = checked(Settings(**vars(testing)))
    names = _checked_names(features, files)
    targets.check(names)
    chosen = parse_measures(measures)
    inputs = [labelled.source, *files, loading.query_file]
    outputs.check("compare", inputs, files=[*targets.tables, *targets.drawn(chosen)])
    members = load_members("compare", files)
    data = labelled.load("compare", loading, terminal)
    source, missing = labelled.source, labelled.missing
    rankings = [feature_scores(data, name) for name in features]
    rankings += [member.scores(data, source, missing) for member in members]
    comparison = compare_scores(
        dict(zip(names, rankings, strict=True)),
        data,
        chosen,
        **vars(settings),
        progress=terminal.progress(),
    )
    written = targets.write(comparison, outputs)
    if terminal.json:
        paths = [str(path) for path in written]
        terminal.show_json({"data": str(source), **comparison.as_json(), "wrote": paths})
        return
    show_comparison(terminal, comparison)
    terminal.say_written(written)


def _checked_names(features: Sequence[str], files: Sequence[Path]) -> list[str]:
    from rankinite.evaluation.compare import checked_names

    if len(features) + len(files) < LEAST_SYSTEMS:
        raise UsageError(
            "compare: there must be at least two models or files of scores, or one and a "
            "--feature; as in rankinite compare a.rk b.scores --data test.txt"
        )
    refuse_repeated("compare", files)
    names = [*(f"feature {name}" for name in features), *short_names(files)]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"compare: two systems would be called {name!r}; name each once")
    return checked_names(dict.fromkeys(names))


def show_comparison(terminal: Terminal, comparison: Comparison) -> None:
    """Print the means with their letters, the p-values, and how far measures agree."""
    terminal.show(comparison.table())
    _show_p_values(terminal, comparison)
    if comparison.tau is not None and len(comparison.systems) >= LEAST_SYSTEMS_FOR_TAU:
        terminal.say("")
        measures = comparison.measures
        terminal.show(_triangle("Kendall's tau", measures, measures, comparison.tau, number_text))


def _show_p_values(terminal: Terminal, comparison: Comparison) -> None:
    if len(comparison.systems) > MOST_SYSTEMS_IN_MATRIX:
        terminal.say("")
        terminal.say("There are too many p-values to print; --pairs FILE writes them.")
        return
    letters = comparison.letters
    rows = [f"{letter}  {name}" for letter, name in zip(letters, comparison.systems, strict=True)]
    tables = _p_tables(comparison, rows)
    too_wide = any(drawn_width(table) > USUAL_WIDTH for table in tables)
    if too_wide or len(rows) > MOST_NAMES_IN_MATRIX:
        tables = _p_tables(comparison, letters)
    for table in tables:
        terminal.say("")
        terminal.show(table)


def _p_tables(comparison: Comparison, rows: Sequence[str]) -> list[Table]:
    return [
        _triangle(
            f"p-values, {measure}",
            rows,
            comparison.letters,
            matrix,
            partial(p_text, digits=P_DIGITS),
        )
        for measure, matrix in comparison.p_values.items()
    ]


def _triangle(
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    matrix: Floats,
    text: Callable[[float], str],
) -> Table:
    """Return what is above the diagonal of a symmetric matrix (Challenge, Table 8)."""
    cells = [
        [name, *(text(value) if j > i else "" for j, value in enumerate(line[1:], 1))]
        for i, (name, line) in enumerate(zip(rows[:-1], matrix.tolist()[:-1], strict=True))
    ]
    return Table(title, ["", *columns[1:]], cells)
