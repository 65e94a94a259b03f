"""``rankinite mix``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rankinite.cli.members import load_members, refuse_samples
from rankinite.cli.options import Loading, Missing
from rankinite.cli.outputs import (
    refuse_file_as_folder,
    refuse_missing_folders,
    refuse_overwriting,
)
from rankinite.cli.predict import write_scores
from rankinite.cli.terminal import Terminal
from rankinite.core.errors import UsageError
from rankinite.core.format import plain_number
from rankinite.core.params import Bounds, check

if TYPE_CHECKING:
    from rankinite.ensembles.mix import Mixing

MOST_DIGITS = 17
FIGURE = "mix.png"


def mix(
    a: Annotated[
        Path,
        typer.Argument(
            metavar="A", help="A model file, or scores: one number a line, or a TREC run."
        ),
    ],
    b: Annotated[Path, typer.Argument(metavar="B", help="The other ranker, in the same way.")],
    source: Annotated[
        Path,
        typer.Option(
            "--data",
            "-d",
            help="A data set with labels that neither ranker was trained on.",
            show_default=False,
        ),
    ],
    measure: Annotated[
        str, typer.Option("--measure", "--measures", "-m", help="What the mix is best for.")
    ] = "NDCG@10",
    form: Annotated[
        Literal["convex", "additive"],
        typer.Option(help="(1 - alpha) A + alpha B with alpha from 0 to 1, or A + alpha B."),
    ] = "convex",
    bounds: Annotated[
        tuple[float, float] | None,
        typer.Option(
            metavar="LOW HIGH",
            help="The least and the largest alpha of the additive form. (Default: 0 100.)",
            show_default=False,
        ),
    ] = None,
    missing: Missing = "refuse",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Write the mixed scores to this file: a TREC run if its name ends in .run or "
            ".trec, else one number a line.",
        ),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(help=f"Draw the measure against alpha as {FIGURE} in this folder."),
    ] = None,
    *,
    loading: Loading,
    terminal: Terminal,
) -> None:
    """Find the exact best mix of two rankers for a measure (LambdaSMART, Sec. 4).

    No other alpha gives a larger mean over these queries. Scores are mixed as they are; to bring
    them to one scale first, and for more than two rankers, see rankinite combine.
    """
    from rankinite.ensembles.mix import mix_scores
    from rankinite.measures.text import one_measure

    chosen = one_measure("mix", measure)
    _check_bounds(form, bounds)
    _check_targets(out, figures, [a, b, source])
    members = load_members("mix", [a, b])
    terminal.expect_compiling()
    data = loading.load(source, terminal)
    refuse_samples("mix", data)
    rows = {one.name: one.scores(data, source, missing) for one in members}
    found = mix_scores(rows, data, chosen, form, bounds)
    written = []
    if out is not None:
        write_scores(found.scores, data, out, "mix")
        written.append(out)
    if figures is not None:
        figures.mkdir(parents=True, exist_ok=True)
        found.mix.draw(figures / FIGURE, found.names)
        written.append(figures / FIGURE)
    _show(terminal, source, found, written)


def _check_bounds(form: str, bounds: tuple[float, float] | None) -> None:
    if bounds is None:
        return
    if form != "additive":
        raise UsageError(
            "mix: --bounds is for --form additive; in the convex form alpha lies between 0 and 1"
        )
    check("mix", "--bounds", bounds, Bounds())


def _check_targets(out: Path | None, figures: Path | None, sources: list[Path]) -> None:
    """Refuse files that could not be written, before the work."""
    targets = [] if out is None else [out]
    refuse_missing_folders(targets)
    if figures is not None:
        refuse_file_as_folder(figures)
        targets.append(figures / FIGURE)
    refuse_overwriting("mix", targets, sources)


def _show(terminal: Terminal, source: Path, found: Mixing, written: list[Path]) -> None:
    if terminal.json:
        wrote = [str(path) for path in written]
        terminal.show_json({"data": str(source), **found.as_json(), "wrote": wrote})
        return
    best = found.mix
    low, alpha, high = told_apart(best.interval[0], best.alpha, best.interval[1])
    rows = [
        *([text, end, f"{value:.4f}"] for text, end, value in _ends(found)),
        ["best mix", alpha, f"{best.value:.4f}"],
    ]
    title = f"{found.names[0]} and {found.names[1]} on {found.n_queries:,} queries"
    terminal.show_table(title, ["", "alpha", best.measure], rows)
    for sentence in _sentences(found, low, high):
        terminal.say(sentence)
    for path in written:
        terminal.say(f"wrote {path}")


def _ends(found: Mixing) -> list[tuple[str, str, float]]:
    """Return what stands at either end of alpha, alpha, and the measure there."""
    a, b = found.names
    ends = [plain_number(end) for end in found.bounds]
    convex = found.mix.form == "convex"
    texts = [a, b] if convex else [a if end == "0" else f"{a} + {end} {b}" for end in ends]
    return list(zip(texts, ends, found.mix.at_ends, strict=True))


def _sentences(found: Mixing, low: str, high: str) -> list[str]:
    best = found.mix
    sentences = []
    if best.interval[0] < best.interval[1]:
        sentences.append(f"All alphas between {low} and {high} are worth the same.")
    better = _ends(found)[found.better][0]
    if found.gain > 0:
        sentences.append(
            f"The best mix gains {found.gain:+.4f} over {better} (paired t-test: p = "
            f"{found.p_value:.3g}), on the queries that alpha was chosen by; on others expect less."
        )
    else:
        sentences.append(f"No mix is better than {better} on these queries.")
    if best.peak is not None:
        sentences.append(
            f"At the single point alpha = {best.peak.alpha:.6g}, where documents tie, the measure "
            f"is {best.peak.value:.4f} in expectation; no interval reaches it, so it is not taken."
        )
    return sentences


def told_apart(*numbers: float) -> list[str]:
    """Write numbers with as many digits as tell them apart.

    Examples
    --------
    >>> told_apart(0.3, 0.300012, 0.300014)
    ['0.3', '0.300012', '0.300014']
    """
    texts: list[str] = []
    for digits in range(4, MOST_DIGITS + 1):
        texts = [f"{number:.{digits}g}" for number in numbers]
        if len(set(texts)) == len(set(numbers)):
            break
    return texts
