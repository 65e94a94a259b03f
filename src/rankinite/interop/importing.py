"""Models of other tools as rankers: recognised by their first bytes, read, and given names."""

from __future__ import annotations

import logging
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rankinite.core.errors import ModelFileError, UsageError
from rankinite.core.format import some_of
from rankinite.core.memory import require_memory
from rankinite.data.names import numbered_names
from rankinite.interop.readers import catboost, lightgbm, ranklib, xgboost
from rankinite.interop.readers.fields import MOST_FEATURES, ForeignForest
from rankinite.interop.readers.objects import parse_json, parse_ubjson
from rankinite.models import load_model
from rankinite.rankers.imported import ImportedForest, WrappedModel
from rankinite.rankers.ranker import Ranker

log = logging.getLogger("rankinite")

# Of a file, as many bytes as tell its format.
HEAD = 200
UTF8_MARK = b"\xef\xbb\xbf"
# Bytes that a reader takes for each of the file, besides the objects of JSON.
COPIES = 4
# Numbers of features that a message lists.
MOST_SHOWN = 12


@dataclass(frozen=True)
class FileKind:
    """A kind of model file.

    Attributes
    ----------
    name
        What it is called in messages.
    begins
        How it begins.
    read
        Its reader; or, for files that are not read, what to do instead.
    """

    name: str
    begins: re.Pattern[bytes]
    read: Callable[[bytes], ForeignForest] | str


def _read_object(document: Any) -> ForeignForest:
    """Read a model from an object, which LightGBM, XGBoost and CatBoost have in files."""
    entries = document if isinstance(document, Mapping) else {}
    if "learner" in entries:
        return xgboost.read(entries)
    if "oblivious_trees" in entries or "features_info" in entries:
        return catboost.read(entries)
    if "tree_info" in entries:
        raise ModelFileError(
            "is what LightGBM's dump_model returns; rankinite reads the text that save_model writes"
        )
    raise ModelFileError("is JSON, and no model of XGBoost or CatBoost")


KINDS = (
    FileKind("LightGBM text", re.compile(rb"tree\r?\n"), lightgbm.read),
    FileKind("JSON", re.compile(rb'\{\s*["}]'), lambda content: _read_object(parse_json(content))),
    FileKind(
        "UBJSON", re.compile(rb"\{[iUIlL#$]"), lambda content: _read_object(parse_ubjson(content))
    ),
    FileKind(
        "RankLib",
        re.compile(
            rb"(?s)##\s*(?:LambdaMART|MART|Random Forests|RankNet|RankBoost|AdaRank|ListNet|"
            rb"LambdaRank|Coordinate Ascent|Linear Regression)\b|.{0,100}<ensemble[\s>]"
        ),
        ranklib.read,
    ),
    FileKind(
        "CatBoost's own format",
        re.compile(b"CBM1"),
        'save it as JSON: model.save_model("model.json", format="json")',
    ),
    FileKind(
        "XGBoost's old binary format",
        re.compile(rb"binf|bs64"),
        'load it by XGBoost before version 3.1, and save it as JSON: save_model("model.json")',
    ),
    FileKind(
        "a pickle, which could run any program",
        re.compile(rb"\x80[\x02-\x05]"),
        "load it in Python if you trust it, and give the model to import_model",
    ),
)


def kind_of(head: bytes) -> FileKind | None:
    """Return the kind of a file of another tool by its first bytes; None if it is none.

    Parameters
    ----------
    head
        The first `HEAD` bytes of the file, or all.
    """
    text = head.removeprefix(UTF8_MARK).lstrip()
    return next((kind for kind in KINDS if kind.begins.match(text)), None)


def is_foreign(path: str | Path) -> bool:
    """Tell whether a file is a model of another tool, by its first bytes.

    Parameters
    ----------
    path
        The file.
    """
    try:
        with Path(path).open("rb") as file:
            return kind_of(file.read(HEAD)) is not None
    except OSError:
        return False


def import_model(model: Any, feature_names: Sequence[str | None] | None = None) -> Ranker:
    """Return a model of another tool as a ranker.

    Models of LightGBM, XGBoost, CatBoost and RankLib become an `ImportedForest`, which scores by
    rankinite's kernels, and can be saved, combined, and be the base of a training. Any other object
    with a ``predict`` becomes a `WrappedModel`, which calls it. Of a file nothing is executed.

    Parameters
    ----------
    model
        A file: LightGBM's text, XGBoost's JSON or UBJSON, CatBoost's JSON, or RankLib's XML. Or a
        fitted model of these libraries, or any fitted object with ``predict``.
    feature_names
        Names of the features instead of the model's, in its order; None in the place of a feature
        that no tree asks for, and that data sets lack. Features that the tool has only numbered,
        as in ``Column_0``, are called 1, 2, and so on by default, as those of arrays and text files
        are.

    Examples
    --------
    >>> import rankinite as rk
    >>> from sklearn.linear_model import Ridge
    >>> data = rk.polynomials(20, n_features=3)
    >>> rk.import_model(Ridge().fit(data.X, data.y))
    <WrappedModel: Ridge, 3 features>
    """
    if feature_names is not None and isinstance(feature_names, str):
        raise UsageError("import_model: feature_names is a text; expected a list of names")
    if isinstance(model, (str, Path)):
        return _from_file(Path(model), feature_names)
    if isinstance(model, Ranker):
        raise UsageError(f"import_model: a {type(model).__name__} is a ranker of rankinite already")
    content = _own_format(model)
    if content is not None:
        return _ranker(_read(content), feature_names)
    if not hasattr(model, "predict") or isinstance(model, type):
        raise UsageError(
            f"import_model: a {type(model).__name__} has no predict; expected a model file, or a "
            "fitted model"
        )
    names = None if feature_names is None else [str(name) for name in feature_names]
    return WrappedModel.of(model, names)


# Files


def _from_file(path: Path, feature_names: Sequence[str | None] | None) -> Ranker:
    if not is_foreign(path):
        ranker = load_model(path)
        if feature_names is not None:
            raise UsageError(
                f"import_model: {path} is a model of rankinite, whose features have names"
            )
        return ranker
    try:
        size = path.stat().st_size
        require_memory("import_model", str(path), COPIES * size, "import it on a larger machine")
        foreign = _read(path.read_bytes())
    except OSError as problem:
        what = problem.strerror or str(problem)
        raise ModelFileError(f"{path}: cannot be read as a model file: {what}") from None
    except ModelFileError as problem:
        raise ModelFileError(f"{path}: {problem}") from None
    return _ranker(foreign, feature_names)


def _read(content: bytes) -> ForeignForest:
    content = content.removeprefix(UTF8_MARK).lstrip()
    kind = kind_of(content[:HEAD])
    if kind is None:
        raise ModelFileError("is not a model file that rankinite knows")
    if isinstance(kind.read, str):
        raise ModelFileError(f"is in {kind.name}; {kind.read}")
    return kind.read(content)


# Objects of other libraries


def _own_format(model: Any) -> bytes | None:
    """Return what a model of another library writes itself; None for other libraries."""
    libraries = [kind.__module__.partition(".")[0] for kind in type(model).__mro__]
    if "lightgbm" in libraries:
        # Up to the best iteration of early stopping, as its predict.
        booster = model.booster_ if hasattr(model, "get_params") else model
        return str(booster.model_to_string()).encode()
    if "xgboost" in libraries:
        return _written_by_xgboost(model)
    if "catboost" in libraries:
        with tempfile.TemporaryDirectory(prefix="rankinite-") as folder:
            path = Path(folder) / "model.json"
            model.save_model(str(path), format="json")
            return path.read_bytes()
    return None


def _written_by_xgboost(model: Any) -> bytes:
    if not hasattr(model, "get_booster"):
        return bytes(model.save_raw("ubj"))
    booster = model.get_booster()
    try:
        best = model.best_iteration
    except AttributeError:  # without early stopping there is none
        return bytes(booster.save_raw("ubj"))
    # As the predict of its estimators; that of its boosters uses all trees.
    return bytes(booster[: best + 1].save_raw("ubj"))


# Names


def _ranker(foreign: ForeignForest, feature_names: Sequence[str | None] | None) -> ImportedForest:
    """Return the ranker of a forest, with names of features."""
    for note in foreign.notes:
        log.info("import_model: %s: %s", foreign.tool, note)
    names: Sequence[str]
    if feature_names is not None:
        foreign, names = _renamed(foreign, list(feature_names))
    else:
        n = foreign.forest.n_features
        names = foreign.names if foreign.names is not None else numbered_names(n)
    return ImportedForest.of(
        foreign.forest,
        names,
        tool=foreign.tool,
        objective=foreign.objective,
        categories=foreign.categories,
        zero_as_missing=foreign.zero_as_missing,
        has_all_features=foreign.has_all_features,
    )


def _renamed(
    foreign: ForeignForest, names: list[str | None]
) -> tuple[ForeignForest, Sequence[str]]:
    """Return a forest of the named features alone."""
    forest = foreign.forest
    n = forest.n_features
    fits = len(names) == n or (len(names) > n and not foreign.has_all_features)
    if not fits or len(names) > MOST_FEATURES:
        least = "" if foreign.has_all_features else "at least "
        raise UsageError(
            f"import_model: feature_names has {len(names):,} names; the model has {least}{n:,} "
            f"features{_shown_names(foreign)}"
        )
    kept = [j for j, name in enumerate(names) if name is not None]
    chosen = [str(names[j]) for j in kept]
    if len(set(chosen)) < len(chosen) or not chosen:
        raise UsageError("import_model: feature_names has the same name twice, or none")
    used = {int(j) for tree in forest.trees for j in np.unique(tree.feature)}
    unnamed = sorted(used - set(kept))
    if unnamed:
        raise UsageError(
            f"import_model: feature_names has None for features that trees ask for: "
            f"{', '.join(map(str, unnamed[:MOST_SHOWN]))}, counted from 0"
        )
    place = {j: k for k, j in enumerate(kept)}
    places = np.full(len(names), -1, np.int32)
    places[kept] = np.arange(len(kept))
    trees = tuple(replace(tree, feature=places[tree.feature]) for tree in forest.trees)
    categories = {place[j]: codes for j, codes in forest.categories.items()}
    moved = replace(
        foreign,
        forest=replace(forest, trees=trees, n_features=len(kept), categories=categories),
        categories={place[j]: texts for j, texts in foreign.categories.items() if j in place},
        zero_as_missing=[place[j] for j in foreign.zero_as_missing],
        has_all_features=True,
    )
    return moved, chosen


def _shown_names(foreign: ForeignForest) -> str:
    return "" if foreign.names is None else f": {some_of(list(foreign.names))}"
