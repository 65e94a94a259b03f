"""``rankinite data simulate``: polynomials, challenge, clicks and sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankinite.cli.files import save_all
from rankinite.cli.options import LoadingToWrite, Out, SameFormat, Seed
from rankinite.cli.outputs import Outputs, folder_targets, refuse_file_as_folder
from rankinite.cli.terminal import Terminal
from rankinite.core.params import Real, check
from rankinite.data.formats import FormatName

if TYPE_CHECKING:
    from rankinite.core.types import Floats
    from rankinite.data.ranking_data import RankingData

LARGEST = 1000.0  # times the papers' size; more than fits into memory
Suffix = Annotated[FormatName, typer.Option("--format", help="File format.")]
Clicked = Annotated[
    list[Path],
    typer.Argument(metavar="DATA", help="Data sets; users click according to their grades."),
]
EngineFeature = Annotated[
    str | None,
    typer.Option(help="Feature that the search engine ranks by. (Default: noisy grades.)"),
]


def polynomials(
    out: Out,
    size: Annotated[
        float,
        typer.Option(help="Factor for the 10,000 / 5,000 / 10,000 queries of the papers."),
    ] = 1.0,
    features: Annotated[
        int,
        typer.Option(min=1, help="Number of features: 50 as in LambdaSMART, 300 as in Optimality."),
    ] = 50,
    seed: Seed = 0,
    suffix: Suffix = "parquet",
    *,
    outputs: Outputs,
    terminal: Terminal,
) -> None:
    """Simulate the artificial data of LambdaSMART and Optimality: train, valid and test.

    50 documents per query and five grades, which are a cubic polynomial without noise.
    """
    from rankinite.data.simulate.polynomials import FULL_SIZE
    from rankinite.data.simulate.polynomials import polynomials as simulated

    check("data simulate", "--size", size, Real(0, LARGEST, low_open=True))
    make = partial(simulated, n_features=features, seed=seed, progress=terminal.progress())
    # A generator, so that one part is in memory at a time.
    parts = (make(max(1, round(full * size)), part=part) for part, full in FULL_SIZE.items())
    _save(out, [f"{part}.{suffix}" for part in FULL_SIZE], parts, outputs, terminal)


def challenge(
    out: Out,
    size: Annotated[
        float, typer.Option(help="Share of the challenge's queries to simulate, at most 1.")
    ] = 1.0,
    market: Annotated[
        int | None,
        typer.Option(min=1, max=2, help="1 is Set 1, 2 is Set 2. (Default: both.)"),
    ] = None,
    seed: Seed = 0,
    suffix: Suffix = "parquet",
    *,
    outputs: Outputs,
    terminal: Terminal,
) -> None:
    """Simulate the two sets of the Yahoo! Learning to Rank Challenge: train, valid and test.

    With the challenge's numbers of queries, documents and features, its shares of grades, and
    similar differences between rankers. Set 2 is a related market with few labels.
    """
    from rankinite.data.simulate.challenge import challenge as simulated
    from rankinite.data.simulate.markets import MARKETS

    check("data simulate", "--size", size, Real(0, 1, low_open=True))
    make = partial(simulated, seed=seed, progress=terminal.progress())
    parts = [
        (number, part, full)
        for number, simulated_market in MARKETS.items()
        if market in (None, number)
        for part, full in simulated_market.queries.items()
    ]
    sets = (make(max(1, round(full * size)), part=p, market=number) for number, p, full in parts)
    _save(out, [f"set{number}.{p}.{suffix}" for number, p, _ in parts], sets, outputs, terminal)


def _save(
    out: Path,
    names: Sequence[str],
    sets: Iterable[RankingData],
    outputs: Outputs,
    terminal: Terminal,
) -> None:
    """Save simulated sets, which an iterator makes one by one, into a folder."""
    targets = [out / name for name in names]
    refuse_file_as_folder(out)
    outputs.check("data simulate", [], files=targets)
    save_all(zip(targets, sets, strict=True), outputs, terminal)


def clicks(
    sources: Clicked,
    out: Out,
    users: Annotated[float, typer.Option(help="Mean number of users per query.")] = 100.0,
    feature: EngineFeature = None,
    seed: Seed = 0,
    suffix: SameFormat = None,
    *,
    outputs: Outputs,
    loading: LoadingToWrite,
    terminal: Terminal,
) -> None:
    """Add click rates of simulated users as the label sources clicks and similar_clicks.

    Users examine ten documents from the top, and click the first that satisfies. The second source
    is of users with a similar query: more users with a slightly different intent. Documents that
    no user examined have no rate. Use the same seed for the parts of one data set.
    """
    from rankinite.data.simulate.clicks import USERS
    from rankinite.data.simulate.clicks import clicks as simulated

    check("data simulate", "--users", users, USERS)

    def clicked(data: RankingData, scores: Floats | None) -> RankingData:
        return simulated(data, scores=scores, users=users, seed=seed, progress=terminal.progress())

    _save_clicked(clicked, sources, out, suffix, feature, outputs, loading, terminal)


def sessions(
    sources: Clicked,
    out: Out,
    number: Annotated[
        int, typer.Option("--sessions", min=1, help="Number of sessions of each query.")
    ] = 1,
    exponent: Annotated[
        float, typer.Option(help="A document at position k is examined with chance k^-exponent.")
    ] = 1.0,
    feature: EngineFeature = None,
    seed: Seed = 0,
    suffix: SameFormat = None,
    *,
    loading: LoadingToWrite,
    outputs: Outputs,
    terminal: Terminal,
) -> None:
    """Simulate pages of ten documents and single users: labels are clicks, 1 or 0.

    Whether a document is examined depends on its position alone, so that corrections for positions
    can be judged. The label sources position, propensity and grade have its position from 1, the
    chance that it was examined, and its label in the data set.
    """
    from rankinite.data.simulate.clicks import click_sessions

    check("data simulate", "--exponent", exponent, Real(0))

    def clicked(data: RankingData, scores: Floats | None) -> RankingData:
        return click_sessions(data, scores=scores, sessions=number, exponent=exponent, seed=seed)

    _save_clicked(clicked, sources, out, suffix, feature, outputs, loading, terminal)


def _save_clicked(
    clicked: Callable[[RankingData, Floats | None], RankingData],
    sources: Sequence[Path],
    out: Path,
    suffix: FormatName | None,
    feature: str | None,
    outputs: Outputs,
    loading: LoadingToWrite,
    terminal: Terminal,
) -> None:
    """Save data sets with the clicks of users who were shown them in the order of a feature."""
    from rankinite.data.scores import feature_scores

    targets = folder_targets(sources, out, suffix)
    refuse_file_as_folder(out)
    outputs.check("data simulate", [*sources, loading.query_file], files=targets)

    def loaded(source: Path) -> RankingData:
        data = loading.load(source, terminal)
        return clicked(data, None if feature is None else feature_scores(data, feature))

    save_all(zip(targets, map(loaded, sources), strict=True), outputs, terminal)
