"""``rankinite data``: describe, convert, split, augment and normalise data sets.

``rankinite data simulate`` is in ``cli/simulate.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankinite.cli.files import refuse_narrow_text, save_all
from rankinite.cli.options import Loading, LoadingToWrite, Out, SameFormat, Seed, numbers_of
from rankinite.cli.outputs import (
    Outputs,
    folder_targets,
    refuse_file_as_folder,
    refuse_missing_folders,
    refuse_twice,
)
from rankinite.cli.pipes import STANDARD, writable
from rankinite.cli.terminal import Terminal
from rankinite.core.errors import UsageError
from rankinite.core.format import plain_number
from rankinite.core.params import check
from rankinite.data.formats import format_of
from rankinite.rankers.parameters import ALL

if TYPE_CHECKING:
    from rankinite.data.describe import Description
    from rankinite.data.ranking_data import RankingData

QRELS = ".qrels"
# What the challenge's judges called the grades; shown if a data set has the same five.
GRADE_NAMES = {0: "Bad", 1: "Fair", 2: "Good", 3: "Excellent", 4: "Perfect"}
# Names of the parts of a split by proportions.
PART_NAMES = {2: ["train", "test"], 3: ["train", "valid", "test"]}
# Measures of samples would count the documents of a query more than once.
NEVER_AUGMENTED = {"valid", "test"}


def describe(
    files: Annotated[
        list[Path], typer.Argument(metavar="DATA", help="Data sets: SVMlight/LETOR or Parquet.")
    ],
    figures: Annotated[
        Path | None, typer.Option(help="Draw two figures as PNG files into this folder.")
    ] = None,
    *,
    outputs: Outputs,
    loading: Loading,
    terminal: Terminal,
) -> None:
    """Show the numbers of queries, documents, features and grades (Challenge, Tables 2 and 3).

    The figures show documents per query and distinct values per feature.
    """
    from rankinite.data.describe import FIGURES, draw_figures
    from rankinite.data.describe import describe as describe_data

    if figures is not None:
        refuse_file_as_folder(figures)
        outputs.check("data describe", files, files=[figures / name for name in FIGURES])
    # As `predict` does: what is only looked at need not be named.
    sets = [describe_data(loading.load(path, terminal, categorical=ALL)) for path in files]
    names = _short_names(files)
    drawn = []
    if figures is not None:
        drawn = draw_figures(dict(zip(names, sets, strict=True)), figures)
        outputs.record(drawn)
    if terminal.json:
        rows = [{"file": str(f), **data.as_json()} for f, data in zip(files, sets, strict=True)]
        terminal.show_json({"sets": rows, "figures": [str(path) for path in drawn]})
        return
    _show_statistics(terminal, names, sets)
    terminal.say("")
    _show_grades(terminal, names, sets)
    terminal.say_written(drawn)


def _short_names(files: list[Path]) -> list[str]:
    """Return the names of the files; with folders if two have the same name."""
    names = [path.name for path in files]
    return names if len(set(names)) == len(names) else [str(path) for path in files]


def _show_statistics(terminal: Terminal, names: list[str], sets: list[Description]) -> None:
    rows = [
        ["Queries", *(f"{data.n_queries:,}" for data in sets)],
        ["Documents", *(f"{data.n_docs:,}" for data in sets)],
        ["Features", *(f"{data.n_features:,}" for data in sets)],
        ["  with more than one value", *(f"{data.features_in_use:,}" for data in sets)],
        *_of_categories(sets),
        ["  missing values", *(f"{data.missing:.2%}" for data in sets)],
        ["Documents per query, mean", *(f"{data.sizes.mean():.1f}" for data in sets)],
        ["  least", *(f"{data.sizes.min():,}" for data in sets)],
        ["  most", *(f"{data.sizes.max():,}" for data in sets)],
        ["Queries without a relevant document", *(f"{data.without_relevant:,}" for data in sets)],
        ["Queries with one label only", *(f"{data.single_label:,}" for data in sets)],
    ]
    if any(data.n_unlabelled for data in sets):
        rows.append(["Documents without a label", *(f"{data.n_unlabelled:,}" for data in sets)])
    for source in dict.fromkeys(name for data in sets for name in data.sources):
        rows.append([f"Documents with {source}", *(f"{s.sources.get(source, 0):,}" for s in sets)])
    terminal.show_table("Statistics", ["", *names], rows)


def _of_categories(sets: list[Description]) -> list[list[str]]:
    if not any(data.categories for data in sets):
        return []
    return [["  categorical", *(f"{len(data.categories):,}" for data in sets)]]


def _show_grades(terminal: Terminal, names: list[str], sets: list[Description]) -> None:
    grades = sorted({grade for data in sets for grade in data.grades}, reverse=True)
    if not grades and all(data.n_unlabelled == data.n_docs for data in sets):
        return
    if not grades:
        terminal.say("There are too many different labels for a table of grades.")
        return
    tops = {data.top_grade for data in sets}
    # The names belong to five grades: a 2 of three grades is not "Good".
    named = tops == {max(GRADE_NAMES)} and set(grades) <= set(GRADE_NAMES)
    rows = [
        [
            f"{GRADE_NAMES[int(grade)]} {plain_number(grade)}" if named else plain_number(grade),
            *(_share(data, grade) for data in sets),
        ]
        for grade in grades
    ]
    terminal.show_table("Distribution of grades", ["Grade", *names], rows)


def _share(data: Description, grade: float) -> str:
    """Return the share of a grade among labelled documents; empty without a table of grades."""
    if not data.grades:
        return ""
    return f"{data.grades.get(grade, 0) / (data.n_docs - data.n_unlabelled):.2%}"


def convert(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="Data set to read.")],
    target: Annotated[
        Path,
        typer.Argument(
            metavar="TARGET",
            help="File to write: .parquet, .gz (compressed text), .qrels (TREC labels), "
            "or any other name for plain text; - is the standard output.",
        ),
    ],
    originals: Annotated[
        bool,
        typer.Option(
            "--originals", help="Leave out the samples that rankinite data augment added."
        ),
    ] = False,
    *,
    outputs: Outputs,
    loading: LoadingToWrite,
    terminal: Terminal,
) -> None:
    """Convert losslessly between SVMlight/LETOR text and Parquet, or write TREC qrels."""
    from rankinite.data.formats import save
    from rankinite.data.scores import save_qrels

    refuse_missing_folders([target])
    outputs.check("data convert", [source, loading.query_file], files=[target])
    as_qrels = target.name.removesuffix(".gz").endswith(QRELS)
    # Labels alone: whatever columns of texts are, they are not written.
    data = loading.load(source, terminal, categorical=ALL if as_qrels else ())
    if originals:
        data = data.originals
    with writable(target) as file:
        if as_qrels:
            save_qrels(data, file)
        else:
            save(data, file, progress=terminal.progress())
    if target != STANDARD:
        terminal.show_data_file(target, data, features=data.n_features)


def split(
    source: Annotated[Path, typer.Argument(metavar="DATA", help="Data set to split.")],
    out: Out,
    parts: Annotated[int | None, typer.Option(min=2, help="Number of parts of equal size.")] = None,
    proportions: Annotated[
        str | None,
        typer.Option(help="Proportions of the parts: 0.8,0.2 or 0.6,0.2,0.2."),
    ] = None,
    folds: Annotated[
        int | None, typer.Option(min=2, help="Number of folds, each with train and valid.")
    ] = None,
    seed: Seed = 0,
    suffix: SameFormat = None,
    *,
    outputs: Outputs,
    loading: LoadingToWrite,
    terminal: Terminal,
) -> None:
    """Shuffle the queries and split them; documents and samples of a query stay with it.

    The samples of a query, 12~1 and so on from data augment, are in the same part as the query;
    parts called valid and test omit them.
    """
    if sum(choice is not None for choice in (parts, proportions, folds)) != 1:
        raise UsageError("data split: give one of --parts, --proportions and --folds")
    ending = suffix or format_of(source).name
    division: int | list[float] | None = parts
    if proportions is not None:
        division = numbers_of("data split", "--proportions", proportions, "0.6,0.2,0.2")
    refuse_file_as_folder(out)
    names = _part_names(division, folds)
    targets = [out / f"{name}.{ending}" for name in names]
    outputs.check("data split", [source, loading.query_file], files=targets)
    data = loading.load(source, terminal)
    pieces = _parts(data, division, folds, seed)
    originals = (
        piece.originals if name in NEVER_AUGMENTED else piece
        for name, piece in zip(names, pieces, strict=True)
    )
    save_all(zip(targets, originals, strict=True), outputs, terminal)


def _part_names(division: int | list[float] | None, folds: int | None) -> list[str]:
    if division is None:
        return [
            f"fold{k}/{part}" for k in range(1, (folds or 0) + 1) for part in ("train", "valid")
        ]
    n_parts = division if isinstance(division, int) else len(division)
    if isinstance(division, list) and n_parts in PART_NAMES:
        return PART_NAMES[n_parts]
    # Padded with zeros, so that files are listed in the order of the parts.
    width = max(2, len(str(n_parts)))
    return [f"part{k:0{width}}" for k in range(1, n_parts + 1)]


def _parts(
    data: RankingData, division: int | list[float] | None, folds: int | None, seed: int
) -> list[RankingData]:
    if division is None:
        return [part for fold in data.folds(folds or 0, seed=seed) for part in fold]
    return data.split(division, seed=seed)


def augment(
    source: Annotated[Path, typer.Argument(metavar="DATA", help="Training data without samples.")],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="File to write: .parquet, .gz (compressed text), or any other name for "
            "plain text.",
        ),
    ],
    fraction: Annotated[
        float, typer.Option(help="Share of a query's documents in a sample.")
    ] = 0.7,
    times: Annotated[int, typer.Option(min=1, help="Number of samples per query.")] = 5,
    seed: Seed = 0,
    *,
    outputs: Outputs,
    loading: LoadingToWrite,
    terminal: Terminal,
) -> None:
    """Add samples of each query's documents to training data (Ensemble, Sec. 2).

    Query 12 is followed by its samples 12~1, 12~2 and so on. Samples with fewer than two documents
    or a single label are left out. Split first: validation data is never augmented.
    """
    from rankinite.data.augment import FRACTION
    from rankinite.data.augment import augment as augment_data
    from rankinite.data.formats import save

    check("data augment", "--fraction", fraction, FRACTION)
    refuse_missing_folders([out])
    outputs.check("data augment", [source, loading.query_file], files=[out])
    data = loading.load(source, terminal)
    augmented = augment_data(data, fraction, times, seed=seed)
    with writable(out) as file:
        save(augmented, file, progress=terminal.progress())
    n_samples = augmented.n_queries - data.n_queries
    left_out = data.n_queries * times - n_samples
    if out != STANDARD:
        terminal.show_data_file(out, augmented, samples=n_samples, left_out=left_out)


def normalise(
    sources: Annotated[
        list[Path], typer.Argument(metavar="DATA", help="Data sets that are normalised together.")
    ],
    out: Out,
    cut_points: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Save the cut points, for --apply.")
    ] = None,
    apply: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Use the cut points of this file instead of computing them."
        ),
    ] = None,
    most_cut_points: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Values of a feature to keep at most; others are interpolated. (Default: all.)",
        ),
    ] = None,
    suffix: SameFormat = None,
    *,
    outputs: Outputs,
    loading: LoadingToWrite,
    terminal: Terminal,
) -> None:
    """Replace each value by the share of documents with a smaller value (Challenge, Sec. 4.3).

    Shares are over the documents of all data sets together; each is written under its name into
    the folder. Augment afterwards: samples would count their documents more than once.
    """
    from rankinite.data.normalise import RankNormaliser

    if apply is not None and (cut_points is not None or most_cut_points is not None):
        raise UsageError(
            "data normalise: --apply uses saved cut points; leave out --cut-points and "
            "--most-cut-points"
        )
    loading.refuse_query_file("data normalise", len(sources))
    targets = folder_targets(sources, out, suffix)
    refuse_file_as_folder(out)
    if cut_points is not None:
        refuse_twice("data normalise", [out, cut_points])
    others = [] if cut_points is None else [cut_points]
    outputs.check("data normalise", [*sources, apply], files=[*targets, *others])
    # Cut points need all sets at once; with known ones a single set is in memory at a time.
    sets: Iterable[RankingData]
    if apply is None:
        sets = loaded = _load_alike(sources, loading, terminal)
        normaliser = RankNormaliser(most_cut_points).fit(loaded, progress=terminal.progress())
    else:
        normaliser = RankNormaliser.load(apply)
        sets = _load_each(sources, normaliser.feature_names_, loading, terminal)
    if cut_points is not None:
        cut_points.parent.mkdir(parents=True, exist_ok=True)
        normaliser.save(cut_points)
    normalised = (normaliser.transform(data, progress=terminal.progress()) for data in sets)
    save_all(zip(targets, normalised, strict=True), outputs, terminal, others)


def _load_alike(
    sources: Sequence[Path], loading: LoadingToWrite, terminal: Terminal
) -> list[RankingData]:
    """Load all data sets; they must have the features of the one with the most features."""
    sets = [loading.load(path, terminal) for path in sources]
    expected = max(sets, key=lambda data: data.n_features).feature_names
    for path, data in zip(sources, sets, strict=True):
        _refuse_other_features(path, data, expected)
    return sets


def _load_each(
    sources: Sequence[Path], expected: Sequence[str], loading: LoadingToWrite, terminal: Terminal
) -> Iterator[RankingData]:
    """Load one data set after the other."""
    for path in sources:
        data = loading.load(path, terminal)
        _refuse_other_features(path, data, expected)
        yield data


def _refuse_other_features(path: Path, data: RankingData, expected: Sequence[str]) -> None:
    from rankinite.data.concat import refuse_other_features

    refuse_narrow_text(path, data, expected)
    refuse_other_features(str(path), expected, data.feature_names)
