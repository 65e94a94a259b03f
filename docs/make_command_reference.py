"""Write docs/reference/commands.md from the declarations behind ``--help``: ``make docs``."""

from __future__ import annotations

import enum
import re
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from rankinite.cli.app import app

TARGET = Path(__file__).parent / "reference" / "commands.md"
HEAD = """# Commands

This is what `--help` says. Every command leaves with one of the
[exit codes](environment.md); `rankinite --install-completion` sets up completion in your shell.
"""


def commands(tree: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Go through all commands below a group, the group itself first."""
    yield name, tree
    for child, command in getattr(tree, "commands", {}).items():
        yield from commands(command, f"{name} {child}".strip())


def kind_of(annotation: Any) -> str:
    """Return what stands for a value of a type."""
    arguments = typing.get_args(annotation)
    if typing.get_origin(annotation) is list:
        return kind_of(arguments[0])
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return " or ".join(str(choice.value) for choice in annotation)
    names = {Path: "PATH", int: "INTEGER", float: "NUMBER", str: "TEXT"}
    return names.get(annotation, "VALUE")


def plain(text: str | None) -> str:
    """Return a help text without the terminal's markup, on one line, safe in a table."""
    return " ".join((text or "").split()).replace("\\[", "[").replace("|", "\\|")


def name_of(parameter: Any) -> str:
    """Return an argument or option as it is typed."""
    if parameter.param_type_name == "argument":
        return f"`{(parameter.metavar or parameter.name).upper()}`"
    names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
    if parameter.is_flag:
        return names
    if not parameter.metavar:
        return f"{names} {kind_of(parameter.type_descriptor.annotation)}"
    kinds = {"int": "INTEGER", "float": "NUMBER", "name": "NAME"}
    pattern = re.sub(
        r"\w+", lambda word: kinds.get(word[0], word[0]), parameter.metavar.strip("<>")
    )
    return f"{names} {pattern.replace('|', ' or ')}"


def meaning_of(parameter: Any) -> str:
    """Return what a parameter is for, with its default unless the text has it."""
    text = plain(parameter.help)
    if parameter.required:
        text += " (Required.)"
    elif parameter.default not in (None, False, ()) and "Default" not in text:
        default = getattr(parameter.default, "value", parameter.default)
        text += f" (Default: {default}.)"
    return text


def table(title: str, parameters: list[Any]) -> str:
    """Return a table of parameters."""
    rows = [f"| {name_of(each)} | {meaning_of(each)} |" for each in parameters if not each.hidden]
    return "\n".join([f"| {title} | |", "|---|---|", *rows, ""])


def section(name: str, command: Any) -> str:
    """Return the section of one command."""
    called = f"rankinite {name}".strip()
    paragraphs = [plain(part) for part in command.help.split("\n\n")]
    children = getattr(command, "commands", {})
    parts = [f"## {called}\n", *(f"{paragraph}\n" for paragraph in paragraphs)]
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name != "argument"]
    words = [(each.metavar or each.name).upper() for each in arguments]
    words = [
        word if each.required else f"[{word}]" for word, each in zip(words, arguments, strict=True)
    ]
    usage = " ".join([called, "[OPTIONS]", *(["COMMAND"] if children else words)])
    parts.append(f"```text\n{usage}\n```\n")
    if children:
        anchor = called.replace(" ", "-")
        rows = [
            f"| [`{child}`](#{anchor}-{child}) | {plain(each.help.partition(chr(10))[0])} |"
            for child, each in children.items()
        ]
        parts.append("\n".join(["| Command | |", "|---|---|", *rows, ""]))
    if arguments:
        parts.append(table("Argument", arguments))
    panels: dict[str, list[Any]] = {}
    for option in options:
        panels.setdefault(option.rich_help_panel or "Option", []).append(option)
    parts.extend(table(title, members) for title, members in panels.items())
    example = command.epilog.removeprefix("Example: ")
    parts.append(f"Example:\n\n```text\n{example}\n```\n")
    return "\n".join(parts)


def reference() -> str:
    """Return the whole page."""
    tree = typer.main.get_command(app)
    return "\n".join([HEAD, *(section(name, command) for name, command in commands(tree))])


if __name__ == "__main__":
    TARGET.write_text(reference(), encoding="utf-8")
