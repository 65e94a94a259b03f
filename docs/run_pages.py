"""Run the code of documentation pages, and compare what it prints with what they show.

``python docs/run_pages.py --write docs/tutorials/first-ranker.md`` runs a page in an empty folder,
writes its output into it, and keeps the pictures that it shows. The blocks of a page run in order,
in one folder and one namespace:

- ``python`` is executed; what it prints stands in an ``output`` block below.
- ``console`` is a transcript: lines after ``$`` are commands, the rest is their output.
- ``{code-block}`` with a ``:caption:`` is written to the file of that name.

A line of three dots in an output stands for any lines. An image ``images/PAGE/NAME.png`` is the
file ``NAME.png`` that the page's code made, in whatever folder.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
# Code of other tools in pages for their users; what is not installed is not run.
OPTIONAL = {"catboost", "xgboost"}
# Not run: formats, and commands that install.
SHOWN_ONLY = {"bash", "c", "docker", "ini", "json", "output", "text", "toml", "xml", "yaml"}
FENCE = re.compile(
    r"^(?P<fence>`{3,})(?P<language>[^\n`]*)\n(?P<body>.*?)^(?P=fence)$", re.M | re.S
)
NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e-?\d+)?")
# Measures and shares of trained rankers may differ between kinds of processors by this much.
TOLERANCE = 0.03
WIDTH = "100"


@dataclass
class Block:
    """A fenced block: its language, its text, and where the text stands in the page."""

    language: str
    text: str
    start: int
    end: int
    caption: str = ""


@dataclass
class Mismatch:
    """Output that is not the one shown."""

    code: str
    shown: str
    printed: str

    def __str__(self) -> str:
        return f"{self.code.strip()}\n--- shown\n{self.shown}--- printed\n{self.printed}"


@dataclass
class Outcome:
    """What a page printed: the page with its output renewed, and where it differs."""

    text: str
    mismatches: list[Mismatch] = field(default_factory=list)

    def compare(self, code: str, shown: str, printed: str) -> str:
        """Note a difference; return what the page should show, with the dots that it has."""
        if is_alike(printed, shown):
            return shown if "..." in shown.splitlines() else printed
        self.mismatches.append(Mismatch(code, shown, printed))
        return printed


def blocks_of(text: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page, those inside of directives too."""
    for match in FENCE.finditer(text):
        language, body, start = match["language"].strip(), match["body"], match.start("body")
        directive = re.fullmatch(r"\{(?:code-block|code)\}\s*(\w+)", language)
        if directive:
            options = re.match(r"(?::[^\n]*\n)*\n?", body)
            head = options[0] if options else ""
            caption = re.search(r":caption: *(\S+)", head)
            yield Block(
                directive[1], body[len(head) :], start + len(head), match.end("body"),
                caption[1] if caption else "",
            )  # fmt: skip
        elif language.startswith("{"):
            for inner in blocks_of(body):
                inner.start += start
                inner.end += start
                yield inner
        else:
            yield Block(language, body, start, match.end("body"))


def is_alike(printed: str, shown: str) -> bool:
    """Whether two outputs have the same words, and about the same numbers."""
    lines, wanted = printed.splitlines(), shown.splitlines()
    if "..." in wanted:
        gap = wanted.index("...")
        head, tail = wanted[:gap], wanted[gap + 1 :]
        if not is_alike("\n".join(lines[:gap]), "\n".join(head)):
            return False
        return any(
            is_alike("\n".join(lines[start:]), "\n".join(tail))
            for start in range(gap, len(lines) + 1)
        )
    numbers, expected = NUMBER.findall(printed), NUMBER.findall(shown)
    return re.sub(r"[ ─-]+", " ", NUMBER.sub("0", printed)) == re.sub(
        r"[ ─-]+", " ", NUMBER.sub("0", shown)
    ) and all(
        abs(number_of(actual) - number_of(wished)) < TOLERANCE
        for actual, wished in zip(numbers, expected, strict=True)
        if "0." in actual and "e" not in actual
    )


def number_of(text: str) -> float:
    """Return the value of a number as we print it."""
    return float(text.replace(",", ""))


def run_command(command: str) -> str:
    """Return what a command of a transcript prints; ours runs in this process."""
    words = shlex.split(command)
    if words[0] == "rankinite" and not {"|", "&&"} & set(words):
        if ">" not in words:
            return run_rankinite(words[1:])
        at = words.index(">")
        Path(words[at + 1]).write_text(run_rankinite(words[1:at]), encoding="utf-8")
        return ""
    done = subprocess.run(
        command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True
    )
    return done.stdout


def run_rankinite(arguments: list[str]) -> str:
    """Return what one of our commands prints, to both streams."""
    from rankinite.cli import main

    # As a terminal or a pipe is, so that the output has the characters that people see.
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with (
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        contextlib.suppress(SystemExit),
    ):
        main(arguments)
    printed.seek(0)
    return printed.read()


def run_python(code: str, namespace: dict[str, Any]) -> str:
    """Return what a block of Python prints."""
    missing = [
        name
        for name in re.findall(r"^\s*(?:import|from) (\w+)", code, re.M)
        if name in OPTIONAL and importlib.util.find_spec(name) is None
    ]
    compiled = compile(code, "<page>", "exec")
    printed = io.StringIO()
    if not missing:
        with contextlib.redirect_stdout(printed):
            exec(compiled, namespace)
    return printed.getvalue()


def transcript(text: str) -> Iterator[tuple[str, str]]:
    """Yield the commands of a transcript with their output."""
    for piece in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, _, shown = piece.partition("\n")
        while command.endswith("\\"):
            more, _, shown = shown.partition("\n")
            command += f"\n{more}"
        yield command, shown


def run_page(text: str) -> Outcome:
    """Run the blocks of a page in the current folder."""
    outcome = Outcome(text)
    blocks = list(blocks_of(text))
    namespace: dict[str, Any] = {"__name__": "__main__"}
    renewed: list[tuple[Block, str]] = []
    for block, following in zip(blocks, [*blocks[1:], None], strict=False):
        if block.caption:
            Path(block.caption).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            printed = run_python(block.text, namespace)
            shown = following if following and following.language == "output" else None
            if shown and text[block.end : shown.start].strip("`\n ") != "output":
                shown = None
            if shown is None:
                if printed:
                    outcome.mismatches.append(Mismatch(block.text, "", printed))
            else:
                renewed.append((shown, outcome.compare(block.text, shown.text, printed)))
        elif block.language == "console":
            parts = []
            for command, shown_text in transcript(block.text):
                printed = run_command(command.replace("\\\n", " "))
                new = outcome.compare(command, shown_text, printed)
                parts.append(f"$ {command}\n{new}")
            renewed.append((block, "".join(parts)))
        elif block.language not in SHOWN_ONLY and not block.language.startswith("{"):
            raise ValueError(
                f"a block in {block.language!r} is neither run nor known to be shown only"
            )
    for block, new in reversed(renewed):
        outcome.text = outcome.text[: block.start] + new + outcome.text[block.end :]
    return outcome


def images_of(page: Path, text: str) -> Iterator[Path]:
    """Yield the images of a page that its own code makes."""
    for name in re.findall(r"[(\s]((?:\.\./)*(?:docs/)?images/[^)\s]+)", text):
        path = (page.parent / name).resolve()
        if path.parent.name == page.stem:
            yield path


@contextlib.contextmanager
def in_folder(folder: str) -> Iterator[None]:
    """Run code in a folder, with a terminal of a fixed width."""
    before, environment = Path.cwd(), dict(os.environ)
    os.environ.update(COLUMNS=WIDTH, TERMINAL_WIDTH=WIDTH, NO_COLOR="1", MPLBACKEND="agg")
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ.update(environment)


def main() -> None:
    """Run the pages that are named, and report or write what they print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument(
        "--write", action="store_true", help="write output and images into the docs"
    )
    arguments = parser.parse_args()
    failed = False
    for page in [path.resolve() for path in arguments.pages]:
        text = page.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            with in_folder(folder):
                outcome = run_page(text)
            if arguments.write:
                page.write_text(outcome.text, encoding="utf-8")
                for image in images_of(page, text):
                    image.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(next(Path(folder).rglob(image.name)), image)
        for mismatch in outcome.mismatches:
            sys.stdout.write(f"{page.name}: {mismatch}\n")
        failed |= bool(outcome.mismatches) and not arguments.write
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
