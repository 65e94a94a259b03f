"""``rankinite export``."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Annotated, Literal

import typer

from rankinite.cli.files import load_ranker
from rankinite.cli.outputs import Outputs, refuse_missing_folders
from rankinite.cli.terminal import Terminal
from rankinite.core.errors import FileFormatError
from rankinite.core.files import atomic_write

log = logging.getLogger("rankinite")

# As in interop/export.py, which takes long to import.
ExportFormat = Literal[
    "lightgbm", "xgboost", "xgboost-dump", "onnx", "opensearch", "elasticsearch", "ranklib",
    "solr", "vespa", "treelite", "c", "python",
]  # fmt: skip


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")],
    to: Annotated[ExportFormat, typer.Option("--to", help="The format to write.")],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            help="The file for the model. Some formats have a second file, which gets the same "
            "name with another ending.",
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            help="The name of the model in the other tool: letters, digits and underscores. "
            "(Default: that of the model file.)"
        ),
    ] = None,
    names: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help='JSON with other names of features in the other tool: {"bm25": "bm25(title)"}.',
        ),
    ] = None,
    allow: Annotated[
        bool,
        typer.Option(
            "--allow",
            help="Write the model although the other tool scores some documents differently.",
        ),
    ] = False,
    *,
    outputs: Outputs,
    terminal: Terminal,
) -> None:
    """Write a model in the format of another tool: a library, a search engine, C or Python.

    Thresholds are rewritten such that every document takes the same path as here. What the other
    tool cannot do is refused, with the number of splits that it concerns.
    """
    from rankinite.interop.export import FORMATS, contents_of, files_of

    targets = files_of(out, to)
    refuse_missing_folders(targets)
    outputs.check("export", [model, names], files=targets)
    ranker = load_ranker(model)
    contents, order = contents_of(
        ranker,
        to,
        name=_usual_name(model) if name is None else name,
        names=None if names is None else _read_names(names),
        allow=allow,
    )
    for target, content in zip(targets, contents, strict=True):
        with atomic_write(target) as file:
            file.write(content)
    if terminal.json:
        terminal.show_json(
            {
                "wrote": [str(target) for target in targets],
                "precision": FORMATS[to].precision,
                "notes": order.notes,
            }
        )
        return
    for note in order.notes:
        log.info("%s", note)
    terminal.say_written(targets)


def _usual_name(model: Path) -> str:
    """Return the name of a model file as one that functions may have."""
    plain = "".join(c if c.isascii() and c.isalnum() else "_" for c in model.stem)
    return plain if plain[:1].isalpha() else f"model_{plain}".rstrip("_")


def _read_names(path: Path) -> dict[str, str]:
    try:
        names = json.loads(path.read_text("utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as problem:
        raise FileFormatError(path, f"is no JSON: {problem}") from None
    is_sound = isinstance(names, dict) and all(isinstance(name, str) for name in names.values())
    if not is_sound:
        raise FileFormatError(
            path, 'expected an object of names by feature, such as {"bm25": "bm25(title)"}'
        )
    read: dict[str, str] = names
    return read
