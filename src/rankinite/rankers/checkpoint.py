"""Checkpoints: a fit under way, in a file from which it resumes to the same bytes."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rankinite.core.container import Content, read_container, write_container
from rankinite.core.errors import ModelFileError, UsageError
from rankinite.data.ranking_data import RankingData
from rankinite.data.sparse import stored_arrays

log = logging.getLogger("rankinite")

# Long enough that writing costs nothing, short enough that little is lost when a process is killed.
SECONDS_BETWEEN = 10.0
# Stands where a model file names its class, so that neither is taken for the other.
KIND = "checkpoint"
# Names of parameters in a message, and characters of each.
MOST_SHOWN = 30


@dataclass
class Checkpoint:
    """A file that keeps a fit; written every few seconds, and when the fit ends or is interrupted.

    Attributes
    ----------
    path
        The file.
    parameters
        The parameters that the fit depends on; a checkpoint of others is refused.
    data
        A digest of the data that it is fitted to.
    n_rounds
        Number of rounds that the file holds.
    written
        When the file was last written, by the monotonic clock.
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

    def resume(self, restore: Callable[[Content], int]) -> None:
        """Resume a fit from the file, if there is one.

        Parameters
        ----------
        restore
            Resumes from the content of the file, and returns its number of rounds.
        """
        if not self.path.exists():
            return
        content = read_container(self.path)
        self._check(content.manifest)
        try:
            self.n_rounds = restore(content)
        except ModelFileError as problem:
            raise ModelFileError(
                f"{self.path}: {problem}; delete it, or name another file"
            ) from None
        log.info("resumes from %s, which has %d rounds", self.path, self.n_rounds)

    def _check(self, manifest: Mapping[str, Any]) -> None:
        kept = manifest.get("parameters")
        if manifest.get("class") != KIND or not isinstance(kept, dict):
            raise ModelFileError(f"{self.path}: is a model, no checkpoint; name another file")
        # As JSON reads them: tuples have become lists.
        wanted = json.loads(json.dumps(dict(self.parameters)))
        # Names in a forged file may be of any number and length.
        differing = sorted(
            name[:MOST_SHOWN]
            for name in wanted.keys() | kept.keys()
            if wanted.get(name) != kept.get(name)
        )[:MOST_SHOWN]
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

    @property
    def is_due(self) -> bool:
        """Whether the file was written some seconds ago, and should be written again."""
        return time.monotonic() - self.written >= SECONDS_BETWEEN

    def write(self, n_rounds: int, content: Callable[[], Content]) -> None:
        """Write the file, unless it holds as many rounds already.

        Parameters
        ----------
        n_rounds
            Number of rounds that are done.
        content
            Returns what is needed to resume; it is called only if the file is written.
        """
        # A fit that stops earlier than the one that wrote the file must not shorten it.
        if n_rounds <= self.n_rounds:
            return
        state = content()
        manifest = {
            "class": KIND,
            "parameters": dict(self.parameters),
            "data": self.data,
            **state.manifest,
        }
        write_container(self.path, Content(manifest, state.arrays))
        self.n_rounds = n_rounds
        self.written = time.monotonic()


def digest_of(sets: Mapping[str, RankingData], arrays: Sequence[Any]) -> str:
    """Return a digest of the data sets and arrays that a fit depends on."""
    digest = hashlib.sha256()
    for name, data in sets.items():
        digest.update(f"{name}|{data.top_grade!r}|".encode())
        _add(
            digest,
            *stored_arrays(data.matrix),
            data.rows,
            data.y,
            data.offsets,
            data.origins,
            data.query_weight,
        )
        for source in sorted(data.labels):
            digest.update(source.encode())
            _add(digest, data.labels[source])
        digest.update("\n".join(data.feature_names).encode())
        if data.categories:
            digest.update(repr(sorted(data.categories.items())).encode())
    _add(digest, *arrays)
    return digest.hexdigest()


def _add(digest: Any, *arrays: Any) -> None:
    for array in arrays:
        # Shapes and separators count, so that the same bytes cut in another way differ.
        if array is not None:
            digest.update(f"{array.shape}{array.dtype}".encode())
            if array.size:
                digest.update(np.ascontiguousarray(array).data)
        digest.update(b"|")
