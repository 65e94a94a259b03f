"""Members of an ensemble, named by files: models, or scores of one data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rankinite.cli.options import load_ranker, refuse_narrow_text
from rankinite.core.errors import FileFormatError, UsageError


def short_names(paths: Sequence[Path]) -> list[str]:
    """Return short, distinct names of files: stems, preceded by folders where stems are equal.

    Names keep their suffixes where only these differ. Undecodable bytes are escaped.

    Examples
    --------
    >>> short_names([Path("runs/bm25.scores.gz"), Path("runs/tree.scores")])
    ['bm25', 'tree']
    >>> short_names([Path("runs/bm25.txt"), Path("runs/bm25.run")])
    ['bm25.txt', 'bm25.run']
    """
    names: list[str] = []
    for shown in ([_without_ending(path) for path in paths], paths):
        for length in range(1, max([1, *(len(path.parts) for path in shown)]) + 1):
            names = [_as_text(Path(*path.parts[-length:])) for path in shown]
            if len(set(names)) == len(names):
                return names
    return names


def _without_ending(path: Path) -> Path:
    """Return a path without the end of its name; the current folder and the root have no name."""
    name = path.name.removesuffix(".gz") or path.name
    return path.with_name(Path(name).stem) if name else path


def _as_text(path: Path) -> str:
    return str(path).encode("utf-8", "backslashreplace").decode("utf-8")


if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankinite.data.ranking_data import RankingData
    from rankinite.ensembles.ensemble import Ensemble
    from rankinite.models import TrainedRanker

MODEL_ENDING = ".rk"
MODEL_BEGIN = b"PK\x03\x04"


@dataclass(frozen=True)
class Member:
    """A member that is read from a file.

    Attributes
    ----------
    name
        Its name: that of the file without suffix.
    path
        The file.
    ranker
        The fitted ranker; None if the file holds scores.
    """

    name: str
    path: Path
    ranker: TrainedRanker | Ensemble | None

    def scores(self, data: RankingData, source: Path, missing: str) -> NDArray[np.float64]:
        """Return its scores of a data set that was loaded from ``source``."""
        if self.ranker is not None:
            refuse_narrow_text(source, data, self.ranker.feature_names_)
            return self.ranker.predict(data)
        from rankinite.data.scores import load_scores

        return load_scores(self.path, data, missing=missing, order=data.rows)


def load_members(command: str, files: Sequence[Path]) -> list[Member]:
    """Load models, and check that files of scores exist; each file may be named once."""
    for k, path in enumerate(files):
        if path.resolve() in [other.resolve() for other in files[:k]]:
            raise UsageError(f"{command}: {path} was given twice; give each member once")
    return [
        Member(name, path, load_ranker(path) if _is_model(path) else None)
        for name, path in zip(short_names(files), files, strict=True)
    ]


def _is_model(path: Path) -> bool:
    if not path.exists():
        raise FileFormatError(path, "there is no such file")
    if path.is_dir():
        raise FileFormatError(path, "this is a directory; expected a model file or scores")
    if path.suffix == MODEL_ENDING or not path.is_file():  # what is read of a pipe is gone
        return path.suffix == MODEL_ENDING
    with path.open("rb") as file:
        return file.read(len(MODEL_BEGIN)) == MODEL_BEGIN
