"""``rankinite mix``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rankinite.cli.files import load_members, write_scores
from rankinite.cli.options import LabelledData, Loading
from rankinite.cli.outputs import Outputs, refuse_file_as_folder, refuse_missing_folders
from rankinite.cli.pipes import STANDARD
from rankinite.cli.terminal import Terminal
from rankinite.core.errors import UsageError
from rankinite.core.format import plain_number
from rankinite.core.params import Bounds, check

if TYPE_CHECKING:
    from rankinite.ensembles.best_mix import MixComparison

MOST_DIGITS = 17  # tell any two doubles apart
FIGURE = "mix.png"


def mix(
    a: Annotated[
        Path,
        typer.Argument(
            metavar="A", help="Model file, or scores: one number per line, or a TREC run."
        ),
    ],
    b: Annotated[Path, typer.Argument(metavar="B", help="The other ranker.")],
    measure: Annotated[
        str, typer.Option("--measure", "--measures", "-m", help="Measure to maximise.")
    ] = "NDCG@10",
    form: Annotated[
        Literal["convex", "additive"],
        typer.Option(help="(1 - alpha) A + alpha B with alpha from 0 to 1, or A + alpha B."),
    ] = "convex",
    bounds: Annotated[
        tuple[float, float] | None,
        typer.Option(
            metavar="LOW HIGH",
            help="Smallest and largest alpha of the additive form. (Default: 0 100.)",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Write the mixed scores to this file: a TREC run if its name ends in .run or "
            ".trec, else one number per line; - prints the scores and no table.",
        ),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(help=f"Draw the measure against alpha as {FIGURE} in this folder."),
    ] = None,
    *,
    labelled: LabelledData,
    outputs: Outputs,
    loading: Loading,
    terminal: Terminal,
) -> None:
    """Find the exact best mix of two rankers for a measure (LambdaSMART, Sec. 4).

    No other alpha gives a larger mean over these queries. Scores are mixed as they are; to bring
    them to one scale first, and for more than two rankers, see rankinite combine.
    """
    from rankinite.ensembles.best_mix import mix_scores
    from rankinite.measures.text import one_measure

    chosen = one_measure("mix", measure)
    _check_bounds(form, bounds)
    source, missing = labelled.source, labelled.missing
    targets, drawn = ([] if path is None else [path] for path in (out, figures))
    refuse_missing_folders(targets)
    for folder in drawn:
        refuse_file_as_folder(folder)
    pictures = [folder / FIGURE for folder in drawn]
    inputs = [a, b, source, loading.query_file]
    outputs.check("mix", inputs, scores=targets, files=pictures)
    members = load_members("mix", [a, b])
    data = labelled.load("mix", loading, terminal)
    rows = {member.name: member.scores(data, source, missing) for member in members}
    result = mix_scores(rows, data, chosen, form, bounds)
    written = []
    if out is not None:
        write_scores(result.scores, data, out, "mix")
        written.append(out)
    if figures is not None:
        figures.mkdir(parents=True, exist_ok=True)
        result.mix.draw(figures / FIGURE, result.names)
        outputs.record(pictures)
        written += pictures
    # Scores on the standard output are read by another program.
    if out != STANDARD:
        _show(terminal, source, result, written)


def _check_bounds(form: str, bounds: tuple[float, float] | None) -> None:
    if bounds is None:
        return
    if form != "additive":
        raise UsageError(
            "mix: --bounds is for --form additive; in the convex form alpha lies between 0 and 1"
        )
    check("mix", "--bounds", bounds, Bounds())


def _show(terminal: Terminal, source: Path, result: MixComparison, written: list[Path]) -> None:
    if terminal.json:
        wrote = [str(path) for path in written]
        terminal.show_json({"data": str(source), **result.as_json(), "wrote": wrote})
        return
    best = result.mix
    # Alpha lies in the interval, which may be too short for four digits to tell its ends apart.
    low, alpha, high = distinct_texts(best.interval[0], best.alpha, best.interval[1])
    rows = [
        *([text, end, f"{value:.4f}"] for text, end, value in _ends(result)),
        ["best mix", alpha, f"{best.value:.4f}"],
    ]
    title = f"{result.names[0]} and {result.names[1]} on {result.n_queries:,} queries"
    terminal.show_table(title, ["", "alpha", best.measure], rows)
    for sentence in _sentences(result, low, high):
        terminal.say(sentence)
    terminal.say_written(written)


def _ends(result: MixComparison) -> list[tuple[str, str, float]]:
    """Return the text of each end of alpha, alpha, and the measure there."""
    a, b = result.names
    ends = [plain_number(end) for end in result.bounds]
    convex = result.mix.form == "convex"
    texts = [a, b] if convex else [a if end == "0" else f"{a} + {end} {b}" for end in ends]
    return list(zip(texts, ends, result.mix.at_ends, strict=True))


def _sentences(result: MixComparison, low: str, high: str) -> list[str]:
    best = result.mix
    sentences = []
    if best.interval[0] < best.interval[1]:
        sentences.append(f"All alphas between {low} and {high} give the same value.")
    better = _ends(result)[result.better][0]
    if result.gain > 0:
        sentences.append(
            f"The best mix gains {result.gain:+.4f} over {better} (paired t-test: p = "
            f"{result.p_value:.3g}), on the queries that alpha was chosen by; "
            "on others expect less."
        )
    else:
        sentences.append(f"No mix is better than {better} on these queries.")
    if best.peak is not None:
        sentences.append(
            f"At the single point alpha = {best.peak.alpha:.6g}, where documents tie, the measure "
            f"is {best.peak.value:.4f} in expectation; no interval reaches it, so it is not taken."
        )
    return sentences


def distinct_texts(*numbers: float) -> list[str]:
    """Format numbers with as many digits as make different numbers look different.

    Examples
    --------
    >>> distinct_texts(0.3, 0.300012, 0.300014)
    ['0.3', '0.300012', '0.300014']
    """
    texts: list[str] = []
    for digits in range(4, MOST_DIGITS + 1):
        texts = [f"{number:.{digits}g}" for number in numbers]
        if len(set(texts)) == len(set(numbers)):
            break
    return texts
