"""``rankinite serve``."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from rankinite.cli.terminal import Terminal
from rankinite.core.errors import MissingExtraError, UsageError

TOKEN = "RANKINITE_TOKEN"
MEGABYTE = 1_000_000


def serve(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL...",
            help="Model files: FILE, NAME=FILE or NAME:VERSION=FILE. Of several versions, the one "
            "named last answers requests that ask for none.",
            show_default=False,
        ),
    ],
    host: Annotated[
        str, typer.Option(help="The address to listen on; 0.0.0.0 is every one of the machine.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 for a free one.", min=0, max=65535)] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="A file with the token that clients must send as Authorization: Bearer. (Default: "
            f"the environment variable {TOKEN}; without it, no token.)",
        ),
    ] = None,
    max_body: Annotated[
        float, typer.Option(help="The longest body of a request, in MB.", min=0.001)
    ] = 8.0,
    max_documents: Annotated[
        int, typer.Option(help="The most documents of a request.", min=1)
    ] = 10_000,
    timeout: Annotated[
        float,
        typer.Option(
            help="Seconds until a body has arrived, and again until it is answered.", min=0.001
        ),
    ] = 10.0,
    concurrency: Annotated[
        int | None,
        typer.Option(help="Requests that are scored at once. (Default: one per core.)", min=1),
    ] = None,
    queue: Annotated[int, typer.Option(help="Requests that wait, at most.", min=0)] = 100,
    per_client: Annotated[
        int | None,
        typer.Option(help="Requests of one address under way. (Default: any number.)", min=1),
    ] = None,
    *,
    terminal: Terminal,
) -> None:
    """Rank documents over HTTP, with one model or several, until it is told to end.

    A model file that is replaced is loaded anew; the old model answers until the new one is
    verified. /docs lists the addresses, /metrics is for Prometheus. The log goes to the error
    stream: text on a terminal, otherwise (or with --json) one JSON object per line.
    """
    try:
        from rankinite.serve.server import address_of, is_loopback, listen, run
        from rankinite.serve.service import Service
    except ModuleNotFoundError as problem:
        raise MissingExtraError(str(problem.name), "serve") from None
    from rankinite.serve.limits import Limits
    from rankinite.serve.logs import event, log_to
    from rankinite.serve.repository import ModelFile, Repository

    limits = Limits(
        body=int(max_body * MEGABYTE),
        documents=max_documents,
        body_seconds=timeout,
        seconds=timeout,
        concurrency=concurrency,
        queue=queue,
        per_client=per_client,
    )
    token = _token(token_file)
    files = [ModelFile.parse(text) for text in models]
    # Before models are loaded, which takes longer than to learn that the port is taken.
    listener = listen(host, port)
    log_to(sys.stderr, as_json=terminal.json or not sys.stderr.isatty())
    service = Service(Repository(files), limits, token)
    url = address_of(listener)

    def ready() -> None:
        if terminal.json:
            names = [{"model": file.name, "version": file.version} for file in files]
            terminal.show_json({"url": url, "models": names})
        else:
            called = ", ".join(f"{file.name} (version {file.version})" for file in files)
            terminal.say(f"serving {called} on {url}; {url}/docs says how to ask")
        sys.stdout.flush()

    if token is None and not is_loopback(listener):
        event(
            logging.WARNING,
            f"other machines can connect, and no token is asked for; --token-file or {TOKEN} sets "
            "one",
        )
    run(service, listener, ready, end_seconds=max(1, round(timeout)))
    event(logging.INFO, "ended")


def _token(path: Path | None) -> str | None:
    """Return the token of a file or of the environment; refuse one that nobody could send."""
    token = os.environ.get(TOKEN) if path is None else path.read_text("latin-1").strip()
    if token is None:
        return None
    source = TOKEN if path is None else str(path)
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError(
            f"serve: the token of {source} is empty or has characters that a header cannot have; "
            "expected letters and digits"
        )
    return token
