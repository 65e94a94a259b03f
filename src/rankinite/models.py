"""The registry of rankers, and how model files are loaded: no class but these, no code.

A ranker may contain others: its base, members of an ensemble, a ranker on top. Their manifests are
parts of its manifest, and their arrays have the name of the part as a prefix.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rankinite.core.container import Content, read_container
from rankinite.core.errors import ModelFileError
from rankinite.ensembles.average import Average, Interpolation
from rankinite.ensembles.best_mix import BestMix
from rankinite.ensembles.ensemble import INNER, MEMBERS, Ensemble
from rankinite.ensembles.score_features import WithScoreFeatures
from rankinite.ensembles.stacked import Stacked
from rankinite.rankers.checkpoint import KIND as CHECKPOINT
from rankinite.rankers.lambdamart import LambdaMART
from rankinite.rankers.lambdarank import LambdaRank
from rankinite.rankers.mart import MART
from rankinite.rankers.mcrank import McRank
from rankinite.rankers.ranker import Ranker
from rankinite.rankers.tree_ranker import TreeRanker

ENSEMBLES: Mapping[str, type[Ensemble]] = {
    ensemble.__name__: ensemble for ensemble in (Average, BestMix, Interpolation, Stacked)
}
# Rankers that contain other rankers, which are in the same model file.
COMPOSED: Mapping[str, type[Ensemble] | type[WithScoreFeatures]] = {
    **ENSEMBLES,
    WithScoreFeatures.__name__: WithScoreFeatures,
}


# Rankers that a Trainer fits in rounds.
TrainedRanker = TreeRanker | LambdaRank

RANKERS: Mapping[str, type[TrainedRanker]] = {
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
        # Errors of the container name the file already; those of rankers do not know it.
        if str(problem).startswith(str(path)):
            raise
        raise ModelFileError(f"{path}: {problem}") from None


def _ranker_of(content: Content, depth: int) -> Ranker:
    kind = str(content.manifest.get("class"))
    if kind == CHECKPOINT:
        raise ModelFileError(
            "is a checkpoint, no model; the same training with the same checkpoint resumes from it"
        )
    if depth > DEEPEST:
        raise ModelFileError(f"holds rankers inside rankers, more than {DEEPEST} deep")
    if kind not in {**RANKERS, **COMPOSED}:
        from rankinite.data.normalise import OWNER as NORMALISER

        # A file of the same format, but no ranker: say what it is for.
        if kind == NORMALISER:
            raise ModelFileError(f"holds cut points, no model; {NORMALISER}.load reads them")
        raise ModelFileError(
            f"holds a {kind!r}, which this version of rankinite does not know; it knows "
            + ", ".join([*RANKERS, *COMPOSED])
        )
    base = None
    if BASE in content.manifest:
        base = _ranker_of(_inner(content, BASE, content.manifest[BASE]), depth + 1)
    if kind in COMPOSED:
        outer = _without(content, (f"{MEMBERS}.", f"{INNER}."))
        return COMPOSED[kind].from_content(outer, base, _members(content, depth))
    return RANKERS[kind].from_content(_without(content, (f"{BASE}.",)), base)


def _members(content: Content, depth: int) -> dict[str, Ranker]:
    """Return the rankers inside another, by the prefix of their arrays."""
    members = content.manifest.get(MEMBERS)
    if not isinstance(members, list):
        raise ModelFileError("the manifest of the file is not understood: it lists no members")
    manifests = {f"{MEMBERS}.{k}": member for k, member in enumerate(members)}
    if INNER in content.manifest:
        manifests[INNER] = content.manifest[INNER]
    return {
        prefix: _ranker_of(_inner(content, prefix, manifest), depth + 1)
        for prefix, manifest in manifests.items()
    }


def _inner(content: Content, part: str, manifest: Any) -> Content:
    """Return the content of a ranker within another, whose arrays have a prefix."""
    if not isinstance(manifest, dict):
        raise ModelFileError(f"the manifest of the file is not understood: its {part} is no ranker")
    prefix = f"{part}."
    arrays = {
        name.removeprefix(prefix): array
        for name, array in content.arrays.items()
        if name.startswith(prefix)
    }
    return Content(manifest, arrays)


def _without(content: Content, prefixes: tuple[str, ...]) -> Content:
    """Return the content without the arrays of rankers inside."""
    arrays = {name: a for name, a in content.arrays.items() if not name.startswith(prefixes)}
    return Content(content.manifest, arrays)
