"""The registry of rankers, and how model files are loaded: no class but these, no code.

A ranker may contain others: its base, members of an ensemble, a ranker on top. Their manifests are
parts of its manifest, and their arrays have the name of the part as a prefix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankinite.core.container import ZIP_MAGIC, Content, read_container
from rankinite.core.errors import ModelFileError
from rankinite.rankers.model_file import INNER, MEMBERS
from rankinite.rankers.ranker import Ranker

if TYPE_CHECKING:
    from rankinite.ensembles.ensemble import Ensemble
    from rankinite.ensembles.score_features import WithScoreFeatures
    from rankinite.rankers.imported import ImportedForest
    from rankinite.rankers.lambdarank import LambdaRank
    from rankinite.rankers.tree_ranker import TreeRanker

    # Rankers that a Trainer fits in rounds.
    TrainedRanker = TreeRanker | LambdaRank

Kind = TypeVar("Kind")


class Classes(Mapping[str, type[Kind]]):
    """Classes by name, each of which is imported when it is asked for.

    Parameters
    ----------
    modules
        By name of a class, the module that it is in.
    """

    def __init__(self, **modules: str) -> None:
        self.modules = modules

    def __getitem__(self, name: str) -> type[Kind]:
        chosen: type[Kind] = getattr(import_module(self.modules[name]), name)
        return chosen

    def __iter__(self) -> Iterator[str]:
        return iter(self.modules)

    def __len__(self) -> int:
        return len(self.modules)

    def __contains__(self, name: object) -> bool:
        return name in self.modules


ENSEMBLES: Classes[Ensemble] = Classes(
    Average="rankinite.ensembles.average",
    BestMix="rankinite.ensembles.best_mix",
    Interpolation="rankinite.ensembles.average",
    Stacked="rankinite.ensembles.stacked",
)
# Rankers that contain other rankers, which are in the same model file.
COMPOSED: Classes[Ensemble | WithScoreFeatures] = Classes(
    **ENSEMBLES.modules, WithScoreFeatures="rankinite.ensembles.score_features"
)
RANKERS: Classes[TrainedRanker] = Classes(
    LambdaMART="rankinite.rankers.lambdamart",
    MART="rankinite.rankers.mart",
    McRank="rankinite.rankers.mcrank",
    LambdaRank="rankinite.rankers.lambdarank",
)
# Models of other tools, which are not trained here.
IMPORTED: Classes[ImportedForest] = Classes(ImportedForest="rankinite.rankers.imported")
# Reads the files of other tools. Above this layer, as it makes rankers; so it is named here only.
IMPORTING = "rankinite.interop.importing"
BASE = "base"
# The prefixes of the arrays of rankers inside another.
PART = re.compile(rf"{BASE}\.|{INNER}\.|{MEMBERS}\.[0-9]+\.")
# A base may have a base, but a file that nests deeper than anyone trains is no model.
DEEPEST = 100
# Characters of a message.
MOST_SAID = 600


def load_model(path: str | Path) -> Ranker:
    """Read a fitted ranker from a model file.

    Parameters
    ----------
    path
        A file that a ranker's ``save`` wrote; or one of another tool, as in `import_model`.
    """
    if _is_foreign(path):
        imported: Ranker = import_module(IMPORTING).import_model(path)
        return imported
    try:
        return _ranker_of(read_container(path), 0)
    except ModelFileError as problem:
        # Errors of the container name the file already; those of rankers do not know it.
        if str(problem).startswith(str(path)):
            raise
        # A value of a forged file, which the message names, may be of any length.
        said = str(problem)
        shown = said if len(said) <= MOST_SAID else f"{said[:MOST_SAID]}..."
        raise ModelFileError(f"{path}: {shown}") from None


def _is_foreign(path: str | Path) -> bool:
    """Tell whether a file is a model of another tool."""
    try:
        with Path(path).open("rb") as file:
            begins_as_ours = file.read(len(ZIP_MAGIC)) == ZIP_MAGIC
    except OSError:
        return False
    # Only for others the readers are imported.
    return not begins_as_ours and bool(import_module(IMPORTING).is_foreign(path))


def warm_up(model: Ranker) -> None:
    """Load the compiled code that a model scores with, so that the first request does not wait.

    Trees score the first documents of a process without it, because loading takes about a second;
    the fourth call does so, or one with many documents. A server calls this once instead, before it
    answers requests. In the build of a container ``rankinite warm-up`` compiles ahead of time.

    Parameters
    ----------
    model
        A fitted ranker.

    Examples
    --------
    >>> import rankinite as rk
    >>> model = rk.LambdaMART(n_trees=2).fit(rk.polynomials(20, n_features=3))
    >>> rk.warm_up(model)
    """
    from rankinite.rankers.base import Base
    from rankinite.trees.scoring import load_compiled_code

    load_compiled_code()
    # One that is not fitted has no features, and says so when it is asked to predict.
    X = np.zeros((1, getattr(model, "n_features_in_", 1)), np.float32)
    scored: Any = model
    if Base("warm_up", getattr(model, "base", None)).is_scores:
        scored.predict(X, [0], base_scores=0)
    else:
        scored.predict(X, [0])


def _ranker_of(content: Content, depth: int) -> Ranker:
    kind = str(content.manifest.get("class"))[:60]
    if depth > DEEPEST:
        raise ModelFileError(f"holds rankers inside rankers, more than {DEEPEST} deep")
    if kind not in [*RANKERS, *COMPOSED, *IMPORTED]:
        _refuse_other_files(kind)
        raise ModelFileError(
            f"holds a {kind!r}, which this version of rankinite does not know; it knows "
            + ", ".join([*RANKERS, *COMPOSED, *IMPORTED])
        )
    parts = _parts(content.arrays)
    outer = Content(content.manifest, parts.pop("", {}))
    base = None
    if BASE in content.manifest:
        base = _ranker_of(_inner(parts, BASE, content.manifest[BASE]), depth + 1)
    if kind in COMPOSED:
        members = _members(content.manifest, parts, depth)
        return COMPOSED[kind].from_content(outer, base, members)
    if kind in IMPORTED:
        return IMPORTED[kind].from_content(outer, base)
    return RANKERS[kind].from_content(outer, base)


def _refuse_other_files(kind: str) -> None:
    """Refuse files of the same format that hold no ranker, and say what they are for."""
    from rankinite.data.normalise import OWNER as NORMALISER
    from rankinite.rankers.checkpoint import KIND as CHECKPOINT

    if kind == CHECKPOINT:
        raise ModelFileError(
            "is a checkpoint, no model; the same training with the same checkpoint resumes from it"
        )
    if kind == NORMALISER:
        raise ModelFileError(f"holds cut points, no model; {NORMALISER}.load reads them")


def _parts(arrays: Mapping[str, NDArray[Any]]) -> dict[str, dict[str, NDArray[Any]]]:
    """Return the arrays of every ranker inside another by the prefix of their names, without it.

    Those of the ranker itself have the prefix ``""``. It takes one pass, however many there are.
    """
    parts: dict[str, dict[str, NDArray[Any]]] = {}
    for name, array in arrays.items():
        match = PART.match(name)
        prefix = "" if match is None else match[0]
        parts.setdefault(prefix[:-1], {})[name[len(prefix) :]] = array
    return parts


def _members(
    manifest: Mapping[str, Any], parts: dict[str, dict[str, NDArray[Any]]], depth: int
) -> dict[str, Ranker]:
    """Return the rankers inside another, by the prefix of their arrays."""
    members = manifest.get(MEMBERS)
    if not isinstance(members, list):
        raise ModelFileError("the manifest of the file is not understood: it lists no members")
    manifests = {f"{MEMBERS}.{k}": member for k, member in enumerate(members)}
    if INNER in manifest:
        manifests[INNER] = manifest[INNER]
    return {
        prefix: _ranker_of(_inner(parts, prefix, inner), depth + 1)
        for prefix, inner in manifests.items()
    }


def _inner(parts: dict[str, dict[str, NDArray[Any]]], prefix: str, manifest: Any) -> Content:
    """Take the content of a ranker within another."""
    if not isinstance(manifest, dict):
        raise ModelFileError(
            f"the manifest of the file is not understood: its {prefix} is no ranker"
        )
    return Content(manifest, parts.pop(prefix, {}))
