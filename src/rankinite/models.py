"""Model files of all rankers: a closed table of class names, no code from the file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rankinite.core.container import Content, read_container
from rankinite.core.errors import ModelFileError
from rankinite.data.normalise import OWNER as NORMALISER
from rankinite.rankers.checkpoint import KIND as CHECKPOINT
from rankinite.rankers.lambdamart import LambdaMART
from rankinite.rankers.lambdarank import LambdaRank
from rankinite.rankers.learner import Learner
from rankinite.rankers.mart import MART
from rankinite.rankers.mcrank import McRank
from rankinite.rankers.ranker import Ranker

RANKERS: Mapping[str, type[Learner]] = {
    ranker.__name__: ranker for ranker in (LambdaMART, MART, McRank, LambdaRank)
}
BASE = "base"
# A base may have a base, but a file that nests deeper than anyone trains is no model.
DEEPEST = 100


def load_model(path: str | Path) -> Ranker:
    """Read a fitted ranker from a model file.

    Parameters
    ----------
    path
        A file that a ranker's ``save`` wrote.
    """
    try:
        return _ranker_of(read_container(path), 0)
    except ModelFileError as problem:
        if str(problem).startswith(str(path)):
            raise
        raise ModelFileError(f"{path}: {problem}") from None


def _ranker_of(content: Content, depth: int) -> Ranker:
    kind = str(content.manifest.get("class"))
    if kind == CHECKPOINT:
        raise ModelFileError(
            "is a checkpoint, no model; the same training with the same checkpoint goes on from it"
        )
    if kind == NORMALISER:
        raise ModelFileError(f"holds cut points, no model; {NORMALISER}.load reads them")
    if kind not in RANKERS or depth > DEEPEST:
        raise ModelFileError(
            f"holds a {kind!r}, which this version of rankinite does not know; it knows "
            + ", ".join(RANKERS)
        )
    base = None
    if BASE in content.manifest:
        base = _ranker_of(_inner(content), depth + 1)
    own = {name: a for name, a in content.arrays.items() if not name.startswith(f"{BASE}.")}
    return RANKERS[kind]._from_content(Content(content.manifest, own), base)


def _inner(content: Content) -> Content:
    manifest: Any = content.manifest[BASE]
    if not isinstance(manifest, dict):
        raise ModelFileError("the manifest of the file is not understood: its base is no ranker")
    prefix = f"{BASE}."
    arrays = {
        name.removeprefix(prefix): array
        for name, array in content.arrays.items()
        if name.startswith(prefix)
    }
    return Content(manifest, arrays)
