"""``rankinite optimality``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankinite.cli.files import load_ranker, refuse_narrow_text
from rankinite.cli.options import Loading, Out, Seed, numbers_of
from rankinite.cli.outputs import Outputs, refuse_file_as_folder
from rankinite.cli.terminal import Terminal
from rankinite.core.errors import UsageError
from rankinite.rankers.parameters import ALL


def optimality(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The model file of a net.")],
    source: Annotated[
        Path, typer.Argument(metavar="DATA", help="The data set that it was trained on.")
    ],
    measures: Annotated[
        str | None,
        typer.Option(
            "--measures",
            "--measure",
            "-m",
            help="The measures to test, separated by commas. (Default: the model's first.)",
        ),
    ] = None,
    delta: Annotated[float, typer.Option(help="Largest probability of a wrong result.")] = 0.01,
    epsilon: Annotated[
        float, typer.Option(help="Share of rising directions that may go unnoticed.")
    ] = 0.01,
    steps: Annotated[
        str, typer.Option(help="Step lengths, separated by commas.")
    ] = "0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1.0",
    weights: Annotated[
        str, typer.Option(help="Number of weights to move one by one as well, or all.")
    ] = "0",
    out: Out = Path("optimality"),
    seed: Seed = 0,
    *,
    outputs: Outputs,
    loading: Loading,
    terminal: Terminal,
) -> None:
    """Test whether a net's weights are a local optimum (Optimality, Sec. 5).

    Weights are moved in random directions, 459 at the default delta and epsilon, without
    retraining. A direction rises if the measure is at or above its start at any step.
    """
    from rankinite.explanation.optimality import NAME, Testing, check_optimality, summary_of
    from rankinite.measures.text import parse_measures
    from rankinite.rankers.lambdarank import LambdaRank

    refuse_file_as_folder(out)
    targets = [out / f"{NAME}.{suffix}" for suffix in ("md", "json", "png")]
    outputs.check("optimality", [model, source, loading.query_file], files=targets)
    out.mkdir(parents=True, exist_ok=True)
    lengths = tuple(numbers_of("optimality", "--steps", steps, "0.1,0.5,1"))
    testing = Testing(delta, epsilon, lengths, _n_weights(weights), seed)
    ranker = load_ranker(model)
    if not isinstance(ranker, LambdaRank):
        raise UsageError(
            f"optimality: {model} holds a {type(ranker).__name__}, which has no weights to move; "
            "give the model of a LambdaRank"
        )
    # One measure by default: each takes thousands of passes over the data.
    chosen = ranker.validation_measures()[:1] if measures is None else parse_measures(measures)
    data = loading.load(source, terminal, categorical=ALL)
    refuse_narrow_text(source, data, ranker.feature_names_)
    progress = terminal.progress()
    tested = [check_optimality(ranker, data, str(m), testing, progress) for m in chosen]
    summary = summary_of(tested, model.name)
    with outputs.recording(targets):
        written = summary.save(out)
    terminal.show_summary(summary, written)


def _n_weights(text: str) -> int | None:
    if text.strip().lower() == "all":
        return None
    if not text.strip().isdecimal():
        raise UsageError(
            f"optimality: --weights {text!r} is not a number of weights; give a number, or all"
        )
    return int(text)
