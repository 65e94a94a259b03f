"""A fit on its way, in a file: what is needed to go on to the same model, byte for byte."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rankinite.core.container import Content, read_container, write_container
from rankinite.core.errors import ModelFileError, UsageError
from rankinite.data.ranking_data import RankingData
from rankinite.rankers.rounds import Fit, Stopping

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
        What the fit depends on; a checkpoint of other parameters is refused.
    data
        A digest of what it is fitted to.
    n_rounds
        How many rounds the file holds.
    """

    path: Path
    parameters: Mapping[str, Any]
    data: str
    n_rounds: int = 0
    written: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        if not self.path.parent.is_dir() or self.path.is_dir():
            raise UsageError(
                f"checkpoint: {self.path} cannot be written; name a file in a folder that exists"
            )

    def resume(self, fit: Fit, stopping: Stopping) -> None:
        """Let the fit go on from the file, if it is there."""
        if not self.path.exists():
            return
        content = read_container(self.path)
        self._check(content.manifest)
        try:
            self.n_rounds = fit.go_on_from(content, stopping)
        except ModelFileError as problem:
            raise ModelFileError(
                f"{self.path}: {problem}; delete it, or name another file"
            ) from None
        log.info("goes on from %s, which has %d rounds", self.path, self.n_rounds)

    def _check(self, manifest: Mapping[str, Any]) -> None:
        found = manifest.get("parameters")
        if manifest.get("class") != KIND or not isinstance(found, dict):
            raise ModelFileError(f"{self.path}: is a model, no checkpoint; name another file")
        wanted = json.loads(json.dumps(dict(self.parameters)))
        differing = sorted(
            name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name)
        )
        if differing:
            raise UsageError(
                f"{self.path}: is the checkpoint of a fit with another {', '.join(differing)}; "
                "delete it, or name another file"
            )
        if manifest.get("data") != self.data:
            raise UsageError(
                f"{self.path}: is the checkpoint of a fit to other data or validation sets; "
                "delete it, or name another file"
            )

    def write_sometimes(self, fit: Fit) -> None:
        """Write the file, if the last time is some seconds ago."""
        if time.monotonic() - self.written >= SECONDS_BETWEEN:
            self.write(fit)

    def write(self, fit: Fit) -> None:
        """Write the file, unless it holds as many rounds already."""
        n_rounds = fit.n_rounds
        if n_rounds <= self.n_rounds:
            return
        own = fit.to_content()
        manifest = {
            "class": KIND,
            "parameters": dict(self.parameters),
            "data": self.data,
            **own.manifest,
        }
        write_container(self.path, Content(manifest, own.arrays))
        self.n_rounds = n_rounds
        self.written = time.monotonic()


def digest_of(sets: Mapping[str, RankingData], arrays: Sequence[Any]) -> str:
    """Return a digest of all that a fit learns from and is measured by."""
    digest = hashlib.sha256()
    for name, data in sets.items():
        digest.update(f"{name}|{data.top_grade!r}|".encode())
        _add(digest, data.matrix, data.rows, data.y, data.offsets, data.origins, data.query_weight)
        for source in sorted(data.labels):
            digest.update(source.encode())
            _add(digest, data.labels[source])
        digest.update("\n".join(data.feature_names).encode())
    _add(digest, *arrays)
    return digest.hexdigest()


def _add(digest: Any, *arrays: Any) -> None:
    for array in arrays:
        if array is not None:
            digest.update(f"{array.shape}{array.dtype}".encode())
            if array.size:
                digest.update(np.ascontiguousarray(array).data)
        digest.update(b"|")
