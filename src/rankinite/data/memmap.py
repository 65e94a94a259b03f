"""Data sets in shared memory: a folder of arrays that processes map into memory."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.checksums import Checksums, summed_folder
from rankinite.core.errors import DataError
from rankinite.core.files import save_array
from rankinite.core.npy import map_array
from rankinite.data import checks
from rankinite.data.ranking_data import RankingData

FORMAT = "rankinite shared data 1"
MANIFEST = "manifest.json"
FEATURES = "features"


def fingerprint(data: RankingData) -> str:
    """Return a digest of a data set without the ids and comments of documents.

    Examples
    --------
    >>> data = RankingData([[0.5], [0.1]], [0, 1], [7, 7])
    >>> fingerprint(data) == fingerprint(RankingData([[0.5], [0.1]], [0, 1], [7, 7]))
    True
    >>> fingerprint(data) == fingerprint(RankingData([[0.5], [0.1]], [0, 1], [8, 8]))
    False
    """
    digest = hashlib.sha256()
    for name, array in _arrays(data).items():
        # With its shape and type, without which other arrays could have the same bytes.
        digest.update(f"{name}|{array.shape}{array.dtype}|".encode())
        if array.size:
            # As bytes in C order, because hashlib does not accept arrays of texts.
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    digest.update(json.dumps(_manifest(data)).encode())
    return digest.hexdigest()


def save_shared(data: RankingData, folder: str | Path) -> None:
    """Write a data set, without ids and comments of documents, to a folder.

    The folder appears whole or not at all.
    """
    with summed_folder(folder) as unfinished:
        for name, array in _arrays(data).items():
            save_array(unfinished / f"{name}.npy", array)
        (unfinished / MANIFEST).write_text(json.dumps(_manifest(data)), "utf-8")


def open_shared(folder: str | Path) -> RankingData:
    """Map a data set of `save_shared` into memory, after its checksums were compared."""
    source = Path(folder)
    try:
        Checksums.of(source).check()
        manifest = json.loads((source / MANIFEST).read_text("utf-8"))
        if manifest["format"] != FORMAT:
            raise ValueError(f"its format is {manifest['format']!r}, expected {FORMAT!r}")
        data = RankingData.unchecked(
            matrix=map_array(source / f"{FEATURES}.npy"),
            rows=None,
            y=map_array(source / "y.npy"),
            offsets=map_array(source / "offsets.npy"),
            qids=map_array(source / "qids.npy"),
            # Files are numbered, because the name of a label source need not be one of a file.
            labels={
                str(name): map_array(source / f"label-{k}.npy")
                for k, name in enumerate(manifest["sources"])
            },
            query_weight=map_array(source / "query_weight.npy") if manifest["weighted"] else None,
            feature_names=tuple(map(str, manifest["feature_names"])),
            top_grade=float(manifest["top_grade"]),
            categories={
                str(name): tuple(map(str, texts))
                for name, texts in manifest.get("categories", {}).items()
            },
            doc_id_column=None,
            comment_column=None,
        )
        _check(data)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise DataError(f"{source}: cannot be opened as shared data: {problem}") from None
    return data


def with_features(data: RankingData, features: Path, names: Path) -> RankingData:
    """Return a data set with another matrix, which has more columns behind those of its own.

    Parameters
    ----------
    data
        The data set.
    features
        The file of the matrix, which is mapped into memory.
    names
        The file of the names of the additional columns.
    """
    try:
        more = json.loads(names.read_text("utf-8"))
        wide = data.replace(
            matrix=map_array(features), feature_names=(*data.feature_names, *map(str, more))
        )
        _check_matrix(wide)
    except (OSError, ValueError, TypeError) as problem:
        raise DataError(f"{features}: cannot be opened as features: {problem}") from None
    return wide


def _check(data: RankingData) -> None:
    """Refuse arrays that do not fit together, which kernels do not check."""
    offsets, qids = data.offsets, data.qids
    labels = {"y": data.y, **data.labels}
    weight = data.query_weight
    shapes = {
        "offsets": (offsets, "i8", (qids.size + 1,)),
        "qids": (qids, qids.dtype.str if qids.dtype.kind in "iU" else "i8", (qids.size,)),
        **{name: (values, "f8", (data.matrix.shape[0],)) for name, values in labels.items()},
        **({} if weight is None else {"query_weight": (weight, "f8", qids.shape)}),
    }
    for name, (array, kind, shape) in shapes.items():
        if array.shape != shape or array.dtype != np.dtype(kind):
            raise ValueError(f"{name} has the shape {array.shape} and the type {array.dtype}")
    _check_matrix(data)
    if offsets[0] != 0 or offsets[-1] != data.n_docs or (np.diff(offsets) <= 0).any():
        raise ValueError("the offsets of its queries do not increase from 0 to all documents")
    # Their values as those of a new data set; the matrix is read where it is used.
    checks.label_array("y", data.y, data.n_docs)
    for name, values in data.labels.items():
        checks.label_source_array(name, values, data.n_docs)
    checks.weight_array(weight, data.n_queries)
    checks.top_grade(data.top_grade, data.y)


def _check_matrix(data: RankingData) -> None:
    matrix = data.matrix
    if matrix.ndim != 2 or len(matrix) != data.n_docs or matrix.dtype != np.float32:
        raise ValueError(f"its features have the shape {matrix.shape} and the type {matrix.dtype}")
    checks.feature_names(data.feature_names, matrix.shape[1])
    if not data.categories.keys() <= {*data.feature_names}:
        raise ValueError("it has categories of features that are not there")


def _arrays(data: RankingData) -> dict[str, NDArray[Any]]:
    # Processes map arrays into memory, and share them; a sparse matrix becomes one.
    data = data.dense("a run")
    arrays: dict[str, NDArray[Any]] = {
        FEATURES: data.X,
        "y": data.y,
        "offsets": data.offsets,
        "qids": data.qids,
    }
    if data.query_weight is not None:
        arrays["query_weight"] = data.query_weight
    return arrays | {f"label-{k}": labels for k, labels in enumerate(data.labels.values())}


def _manifest(data: RankingData) -> dict[str, Any]:
    manifest = {
        "format": FORMAT,
        "feature_names": list(data.feature_names),
        "top_grade": data.top_grade,
        "sources": list(data.labels),
        "weighted": data.query_weight is not None,
    }
    # Without categories there is no entry: fingerprints of earlier versions stay the same.
    return manifest | ({"categories": dict(data.categories)} if data.categories else {})
