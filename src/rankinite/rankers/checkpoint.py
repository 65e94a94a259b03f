"""A fit on its way, in a file: what is needed to go on to the same model, byte for byte."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rankinite.core.container import Content, read_container, write_container
from rankinite.core.errors import ModelFileError, UsageError
from rankinite.data.ranking_data import RankingData
from rankinite.rankers.boosting import Boosting, History
from rankinite.trees.forest import Forest

log = logging.getLogger("rankinite")

SECONDS_BETWEEN = 10.0
KIND = "checkpoint"


@dataclass
class Checkpoint:
    """A file that keeps a fit; written every few seconds, and when the fit is interrupted.

    Attributes
    ----------
    path
        The file.
    parameters
        What the trees depend on; a checkpoint of other parameters is refused.
    data
        A digest of what the trees were fitted to.
    """

    path: Path
    parameters: Mapping[str, Any]
    data: str
    written: float = field(default_factory=time.monotonic)

    def resume(self, boosting: Boosting) -> None:
        """Go on from the file, if it is there."""
        if not self.path.exists():
            return
        content = read_container(self.path)
        self._check(content.manifest)
        forest = Forest.from_arrays(content.arrays, len(boosting.grower.binned.feature_names))
        history = content.manifest["history"]
        boosting.replay(forest.trees, History(history))
        log.info("goes on from %s, which has %d rounds", self.path, boosting.n_rounds)

    def _check(self, manifest: Mapping[str, Any]) -> None:
        if manifest.get("class") != KIND:
            raise ModelFileError(f"{self.path}: is a model, no checkpoint; name another file")
        found = manifest["parameters"]
        wanted = json.loads(json.dumps(dict(self.parameters)))
        differing = sorted(
            name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name)
        )
        if differing:
            raise UsageError(
                f"{self.path}: is the checkpoint of a fit with another {', '.join(differing)}; "
                "delete it, or name another file"
            )
        if manifest["data"] != self.data:
            raise UsageError(
                f"{self.path}: is the checkpoint of a fit to other data; delete it, or name "
                "another file"
            )

    def write_sometimes(self, boosting: Boosting) -> None:
        """Write the file, if the last time is some seconds ago."""
        if time.monotonic() - self.written >= SECONDS_BETWEEN:
            self.write(boosting)

    def write(self, boosting: Boosting) -> None:
        """Write the file."""
        grown = len(boosting.grower.binned.feature_names)
        forest = Forest(tuple(boosting.trees), np.zeros(len(boosting.scores)), grown)
        manifest = {
            "class": KIND,
            "parameters": dict(self.parameters),
            "data": self.data,
            "history": boosting.history.values,
        }
        write_container(self.path, Content(manifest, forest.to_arrays()))
        self.written = time.monotonic()


def digest_of(data: RankingData, *others: Any) -> str:
    """Return a digest of all that a fit learns from."""
    digest = hashlib.sha256()
    for array in (data.base, data.rows, data.y, data.offsets, data.query_weight, *others):
        if array is not None:
            digest.update(np.ascontiguousarray(array).data)
        digest.update(b"|")
    for name in sorted(data.labels):
        digest.update(name.encode() + np.ascontiguousarray(data.labels[name]).tobytes())
    digest.update("\n".join(data.feature_names).encode())
    return digest.hexdigest()
