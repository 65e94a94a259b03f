"""Write docs/commands.md from the ``--help`` of every command: ``make docs``."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from rankinite.cli.app import app

TARGET = Path(__file__).with_name("commands.md")
WIDTH = "100"


def commands(tree: Any, name: str = "") -> Iterator[str]:
    """Go through all commands below a group, the group itself first."""
    yield name
    for child, command in getattr(tree, "commands", {}).items():
        yield from commands(command, f"{name} {child}".strip())


def help_text(command: str) -> str:
    """Return what ``rankinite COMMAND --help`` prints on a plain terminal."""
    done = subprocess.run(
        [sys.executable, "-m", "rankinite", *command.split(), "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": WIDTH, "TERMINAL_WIDTH": WIDTH, "NO_COLOR": "1"},
    )
    return "\n".join(line.rstrip() for line in done.stdout.strip("\n").splitlines())


def reference() -> str:
    """Return the whole page."""
    parts = ["# Commands\n\nThis page is made from `--help` by `make docs`.\n"]
    for command in commands(typer.main.get_command(app)):
        name = f"rankinite {command}".strip()
        parts.append(f"## {name}\n\n```\n{help_text(command)}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    TARGET.write_text(reference())
