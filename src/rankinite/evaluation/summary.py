"""Results of an experiment as tables, notes and figures, and the files that keep them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankinite.core.figures import Panel, draw_panels
from rankinite.core.files import atomic_write
from rankinite.evaluation.tables import Table, json_text


@dataclass(frozen=True)
class Summary:
    """Results of an experiment.

    Attributes
    ----------
    name
        Name of its files, without their suffixes.
    tables
        The tables.
    notes
        Sentences on what the tables show.
    figures
        Panels of every figure, by the name of its file.
    values
        All numbers, as JSON can hold them.
    """

    name: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    figures: Mapping[str, tuple[Panel, ...]] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)

    def to_markdown(self) -> str:
        """Return tables and notes in Markdown."""
        notes = "\n".join(f"- {note}" for note in self.notes)
        return "\n".join([*(table.to_markdown() for table in self.tables), notes + "\n"])

    def save(self, folder: str | Path) -> list[Path]:
        """Write NAME.md, NAME.json and a PNG file for every figure; return their paths.

        Parameters
        ----------
        folder
            Folder of the files; created if it does not exist.
        """
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        texts = {".md": self.to_markdown(), ".json": json_text(dict(self.values))}
        written = []
        for suffix, text in texts.items():
            written.append(target / f"{self.name}{suffix}")
            with atomic_write(written[-1]) as file:
                file.write(text.encode())
        for name, panels in self.figures.items():
            written.append(target / f"{name}.png")
            draw_panels(panels, written[-1])
        return written
