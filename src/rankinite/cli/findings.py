"""Showing what an experiment found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rankinite.cli.terminal import Terminal

if TYPE_CHECKING:
    from rankinite.experiments.findings import Findings


def show_findings(terminal: Terminal, findings: Findings, out: Path) -> None:
    """Print tables and sentences, and write them and the figures into a folder."""
    show_written_findings(terminal, findings, findings.save(out))


def show_written_findings(terminal: Terminal, findings: Findings, written: Sequence[Path]) -> None:
    """Print tables and sentences, and which files were written."""
    if terminal.json:
        terminal.show_json({**findings.values, "wrote": [str(path) for path in written]})
        return
    for sheet in findings.sheets:
        terminal.show_table(sheet.title, list(sheet.columns), [list(row) for row in sheet.rows])
        terminal.say("")
    for note in findings.notes:
        terminal.say(note)
    for path in written:
        terminal.say(f"wrote {path}")
