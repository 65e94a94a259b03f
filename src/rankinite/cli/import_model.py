"""``rankinite import``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from rankinite.cli.files import refuse_missing
from rankinite.cli.options import Loading
from rankinite.cli.outputs import Outputs, refuse_missing_folders
from rankinite.cli.pipes import readable
from rankinite.cli.terminal import Terminal
from rankinite.core.errors import FileFormatError
from rankinite.rankers.parameters import ALL

if TYPE_CHECKING:
    from rankinite.rankers.imported import ImportedForest


def import_model(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="LightGBM's text, XGBoost's JSON or UBJSON, CatBoost's JSON, or RankLib's XML.",
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The model file to write.", show_default=False)
    ],
    names_of: Annotated[
        Path | None,
        typer.Option(
            metavar="DATA",
            help="Name the features as those of this data set, in its order, for a model that has "
            "numbers only, or other names. (Default: the names in the file.)",
        ),
    ] = None,
    scale: Annotated[
        float,
        typer.Option(
            help="Multiply scores by this number. The order of documents stays; a base with "
            "smaller scores is corrected by fewer queries."
        ),
    ] = 1.0,
    *,
    outputs: Outputs,
    loading: Loading,
    terminal: Terminal,
) -> None:
    """Write the model of another tool as a model file of rankinite.

    Every command takes these files as they are; this one checks once, gives features the names that
    your data has, and writes a file that loads faster. Features that the tool has only numbered, as
    in Column_0, are called 1, 2, and so on. Nothing in the file is executed.
    """
    from rankinite.interop.importing import import_model as import_file
    from rankinite.interop.importing import is_foreign

    refuse_missing_folders([out])
    outputs.check("import", [model, names_of, loading.query_file], models=[out])
    refuse_missing(model, "a model file of another tool")
    names = None if names_of is None else loading.load(names_of, terminal, None, ALL).feature_names
    with readable(model) as file:
        if not is_foreign(file):
            raise FileFormatError(
                model, "this is no model of LightGBM, XGBoost, CatBoost or RankLib that is known"
            )
        ranker = cast("ImportedForest", import_file(file, names))
    if scale != 1.0:
        ranker = ranker.scaled(scale)
    ranker.save(out)
    if terminal.json:
        terminal.show_json(
            {
                "wrote": str(out),
                "tool": ranker.tool_,
                "objective": ranker.objective_,
                "trees": ranker.n_trees_,
                "features": list(ranker.feature_names_),
            }
        )
        return
    terminal.say(
        f"{ranker.tool_}: {ranker.n_trees_:,} trees, {ranker.n_features_in_:,} features"
        + (f", trained for {ranker.objective_}" if ranker.objective_ else "")
    )
    terminal.say_written([out])


# Python has another use for the word.
import_model.__name__ = "import"
