"""``rankinite predict``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankinite.cli.files import in_file_order, load_ranker, refuse_narrow_text, write_scores
from rankinite.cli.options import Loading
from rankinite.cli.outputs import Outputs, refuse_missing_folders
from rankinite.cli.pipes import STANDARD
from rankinite.cli.terminal import Terminal, no_notes_on
from rankinite.core.errors import UsageError
from rankinite.rankers.parameters import ALL

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankinite.ensembles.ensemble import Ensemble
    from rankinite.models import TrainedRanker


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")],
    source: Annotated[
        Path, typer.Argument(metavar="DATA", help="The data set to score; - is standard input.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="The file for the scores: a TREC run if its name ends in .run or .trec, else one "
            "number per line in the order of the documents; .gz is compressed, - is the standard "
            "output. (Default: print the numbers.)",
        ),
    ] = None,
    n_trees: Annotated[
        int | None,
        typer.Option(help="Use only the first N trees of a tree model. (Default: all.)"),
    ] = None,
    *,
    outputs: Outputs,
    loading: Loading,
    terminal: Terminal,
) -> None:
    """Score the documents of a data set with a model; higher scores rank first.

    Labels are ignored.
    """
    from rankinite.data.checks import ABOUT_TOP_GRADE

    targets = [] if out is None else [out]
    refuse_missing_folders(targets)
    outputs.check("predict", [model, source, loading.query_file], scores=targets)
    # The model first: it loads fast, and says which options are wrong for it.
    ranker = load_ranker(model)
    first = _first_trees(ranker, model, n_trees)
    with no_notes_on(ABOUT_TOP_GRADE):
        data = loading.load(source, terminal, ranker.feature_names_, ALL)
    refuse_narrow_text(source, data, ranker.feature_names_)
    scores = ranker.predict(data, **first)
    if out is None:
        _print(terminal, in_file_order(scores, data))
        return
    write_scores(scores, data, out, model.stem)
    if out != STANDARD:
        terminal.show_data_file(out, data)


def _first_trees(
    ranker: TrainedRanker | Ensemble, model: Path, n_trees: int | None
) -> dict[str, int]:
    """Return the option of predict for the first trees; refuse it for other rankers."""
    if n_trees is None:
        return {}
    if ranker.rounds != "trees":
        raise UsageError(
            f"predict: {model} is a {type(ranker).__name__}, which has no trees; leave out "
            "--n-trees"
        )
    return {"n_trees": n_trees}


def _print(terminal: Terminal, scores: NDArray[np.float64]) -> None:
    if terminal.json:
        terminal.show_json({"scores": scores.tolist()})
    else:
        # repr gives the shortest text that reads back as the same double.
        sys.stdout.writelines(f"{score!r}\n" for score in scores.tolist())
