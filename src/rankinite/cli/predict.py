"""``rankinite predict``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankinite.cli.options import Loading, load_ranker, refuse_narrow_text
from rankinite.cli.terminal import Terminal
from rankinite.core.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankinite.data.ranking_data import RankingData
    from rankinite.ensembles.ensemble import Ensemble
    from rankinite.models import TrainedRanker

RUN_ENDINGS = (".run", ".trec")


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")],
    source: Annotated[Path, typer.Argument(metavar="DATA", help="The data set to score.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="The file for the scores: a TREC run if its name ends in .run or .trec, else one "
            "number a line in the order of the documents; .gz is compressed. "
            "(Default: print the numbers.)",
        ),
    ] = None,
    n_trees: Annotated[
        int | None,
        typer.Option(help="Use only so many first trees of a model that has some. (Default: all.)"),
    ] = None,
    *,
    loading: Loading,
    terminal: Terminal,
) -> None:
    """Score the documents of a data set with a model; larger is better. Labels do not matter."""
    terminal.expect_compiling()
    ranker = load_ranker(model)
    first = _first_trees(ranker, model, n_trees)
    found = loading.load(source, terminal)
    refuse_narrow_text(source, found, ranker.feature_names_)
    scores = ranker.predict(found, **first)
    if out is None:
        _print(terminal, _in_file_order(scores, found))
        return
    write_scores(scores, found, out, model.stem)
    if terminal.json:
        terminal.show_json(
            {"wrote": str(out), "queries": found.n_queries, "documents": found.n_docs}
        )
    else:
        terminal.say(f"wrote {out} ({found.n_queries:,} queries, {found.n_docs:,} documents)")


def write_scores(scores: NDArray[np.float64], found: RankingData, out: Path, run_name: str) -> None:
    """Write scores to a file: a TREC run if its name says so, else in the order of the data."""
    from rankinite.data.scores import save_scores

    if out.name.removesuffix(".gz").endswith(RUN_ENDINGS):
        save_scores(scores, found, out, run=_one_word(run_name))
    else:
        save_scores(_in_file_order(scores, found), found, out)


def _first_trees(
    ranker: TrainedRanker | Ensemble, model: Path, n_trees: int | None
) -> dict[str, int]:
    """Return what predict is to be told about trees, or refuse to tell it to other rankers."""
    if n_trees is None:
        return {}
    if ranker.rounds != "trees":
        raise UsageError(
            f"predict: {model} is a {type(ranker).__name__}, which has no trees; leave out "
            "--n-trees"
        )
    return {"n_trees": n_trees}


def _in_file_order(scores: NDArray[np.float64], found: RankingData) -> NDArray[np.float64]:
    """Undo what --group did to the order of documents."""
    if found.rows is None:
        return scores
    ordered = scores.copy()
    ordered[found.rows] = scores
    return ordered


def _one_word(name: str) -> str:
    """Return the name of a run, without what a TREC file cannot hold."""
    return "-".join(name.split()) or "rankinite"


def _print(terminal: Terminal, scores: NDArray[np.float64]) -> None:
    if terminal.json:
        terminal.show_json({"scores": scores.tolist()})
    else:
        sys.stdout.writelines(f"{score!r}\n" for score in scores.tolist())
