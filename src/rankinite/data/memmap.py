"""Data sets in shared memory: a folder of arrays that processes map into memory."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import DataError
from rankinite.core.files import atomic_folder, save_array
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
    with atomic_folder(folder) as unfinished:
        for name, array in _arrays(data).items():
            save_array(unfinished / f"{name}.npy", array)
        (unfinished / MANIFEST).write_text(json.dumps(_manifest(data)), "utf-8")


def open_shared(folder: str | Path, features: Path | None = None) -> RankingData:
    """Map a data set of `save_shared` into memory.

    Parameters
    ----------
    folder
        The folder.
    features
        File of another feature matrix for the same documents; the names of its additional columns
        are in the file of that name with ``.json`` appended.
    """
    source = Path(folder)
    try:
        manifest = json.loads((source / MANIFEST).read_text("utf-8"))
        if manifest["format"] != FORMAT:
            raise ValueError(f"its format is {manifest['format']!r}, expected {FORMAT!r}")
        names = manifest["feature_names"]
        if features is not None:
            names = names + json.loads(names_file(features).read_text("utf-8"))
        # Files are numbered, because the name of a label source need not be one of a file.
        sources = {
            name: _mapped(source / f"label-{k}.npy") for k, name in enumerate(manifest["sources"])
        }
        # Checks would read the whole matrix, which is to be read where it is used.
        return RankingData.unchecked(
            matrix=_mapped(source / f"{FEATURES}.npy" if features is None else features),
            rows=None,
            y=_mapped(source / "y.npy"),
            offsets=_mapped(source / "offsets.npy"),
            qids=_mapped(source / "qids.npy"),
            labels=sources,
            query_weight=_mapped(source / "query_weight.npy") if manifest["weighted"] else None,
            feature_names=tuple(names),
            top_grade=float(manifest["top_grade"]),
            categories={
                str(name): tuple(map(str, texts))
                for name, texts in manifest.get("categories", {}).items()
            },
            doc_id_column=None,
            comment_column=None,
        )
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise DataError(f"{source}: cannot be opened as shared data: {problem}") from None


def names_file(features: Path) -> Path:
    """Return the file with the names of a matrix's additional features."""
    return features.with_name(features.name + ".json")


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


def _mapped(path: Path) -> NDArray[Any]:
    return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
