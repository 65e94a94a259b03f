"""The models of a service, by name and version, and what happens when a file of one is replaced."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankinite.core.errors import RankiniteError, UsageError
from rankinite.core.format import some_of
from rankinite.models import load_model, warm_up
from rankinite.rankers.ranker import Ranker
from rankinite.serve.batches import Columns, RequestError, shortened
from rankinite.serve.logs import event

FIRST_VERSION = "1"
# They stand in addresses and in labels of metrics.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
# Time, inode and size of a file; None if there is none.
Signature = tuple[int, int, int] | None


@dataclass(frozen=True)
class ModelFile:
    """A model to serve: its file, and what it is called."""

    path: Path
    name: str
    version: str = FIRST_VERSION

    @classmethod
    def parse(cls, text: str) -> ModelFile:
        """Read ``PATH``, ``NAME=PATH`` or ``NAME:VERSION=PATH``."""
        label, equals, path = text.partition("=")
        if not equals:
            path, label = text, Path(text).stem
        name, colon, version = label.partition(":")
        version = version if colon else FIRST_VERSION
        if not path or not NAME.fullmatch(name) or not NAME.fullmatch(version):
            raise UsageError(
                f"serve: {text!r} names no model; expected FILE, NAME=FILE or NAME:VERSION=FILE, "
                "with letters, digits, '.', '_' and '-' in names and versions"
            )
        return cls(Path(path), name, version)


@dataclass(frozen=True)
class Served:
    """A model that answers requests; a request keeps the one that it began with.

    Attributes
    ----------
    name, version
        What it is called.
    ranker
        The model.
    columns
        Its features.
    loaded
        When it was loaded, in seconds since 1970.
    """

    name: str
    version: str
    ranker: Ranker
    columns: Columns
    loaded: float


@dataclass
class Slot:
    """A place for one version of a model.

    Attributes
    ----------
    file
        Where the model is read from.
    served
        What answers requests.
    signature
        The file that was read last, whatever came of it.
    seen
        The file at the last look: one that changed since is still being written.
    problem
        Why the file is not served; None if it is.
    """

    file: ModelFile
    served: Served
    signature: Signature
    seen: Signature
    problem: str | None = None


class Repository:
    """The models of a service.

    Parameters
    ----------
    files
        The models; of several versions of one name the last is served if none is asked for.
    """

    def __init__(self, files: Sequence[ModelFile]) -> None:
        if not files:
            raise UsageError("serve: there is no model; name at least one model file")
        self.slots: dict[str, dict[str, Slot]] = {}
        for file in files:
            versions = self.slots.setdefault(file.name, {})
            if file.version in versions:
                raise UsageError(
                    f"serve: there are two models {file.name!r} of version {file.version!r}; give "
                    "another name or version, as in NAME:VERSION=FILE"
                )
            signature = _signature(file.path)
            served = _load(file)
            versions[file.version] = Slot(file, served, signature, signature)

    def all(self) -> Iterable[Slot]:
        """Iterate over all models."""
        for versions in self.slots.values():
            yield from versions.values()

    def find(self, name: str | None, version: str | None = None) -> Slot:
        """Return a model; without a name the only one, without a version the last."""
        if name is None:
            if len(self.slots) > 1:
                raise RequestError(
                    404,
                    "this service has several models; expected the name of one in the address, as "
                    f"in /models/NAME/rank; it has {some_of(list(self.slots))}",
                )
            name = next(iter(self.slots))
        if name not in self.slots:
            raise RequestError(
                404, f"there is no model {shortened(name)}; there are {some_of(list(self.slots))}"
            )
        versions = self.slots[name]
        if version is None:
            return versions[next(reversed(versions))]
        if version not in versions:
            raise RequestError(
                404,
                f"the model {name!r} has no version {shortened(version)}; it has "
                f"{some_of(list(versions))}",
            )
        return versions[version]


@dataclass
class Watcher:
    """Loads model files anew when they are replaced.

    A file is read when it is the same at two looks, in the thread of the watcher: the old model
    answers until the new one is loaded and has scored once, and stays if that fails.

    Attributes
    ----------
    repository
        The models.
    seconds
        Between two looks.
    reloaded
        Called after each try, with the model and whether it succeeded.
    """

    repository: Repository
    seconds: float = 1.0
    reloaded: Callable[[Slot, bool], None] = lambda slot, succeeded: None
    _stopped: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to watch."""
        self._thread = threading.Thread(target=self._run, name="rankinite watcher", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End watching."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(self.seconds):
            self.look()

    def look(self) -> None:
        """Look at every file once."""
        for slot in self.repository.all():
            signature = _signature(slot.file.path)
            is_stable, slot.seen = signature == slot.seen, signature
            if is_stable and signature != slot.signature:
                slot.signature = signature
                self._reload(slot)

    def _reload(self, slot: Slot) -> None:
        label: dict[str, Any] = {"model": slot.file.name, "version": slot.file.version}
        try:
            served = _load(slot.file)
        # Whatever is wrong with the new file, the old model must go on answering.
        except Exception as problem:
            slot.problem = without_path(problem, slot.file)
            if not isinstance(problem, RankiniteError):
                label["error"] = problem
            event(
                logging.ERROR, "reload failed, the old model stays", **label, problem=slot.problem
            )
            self.reloaded(slot, False)
            return
        changed = served.columns.names != slot.served.columns.names
        slot.served, slot.problem = served, None
        event(logging.INFO, "reloaded", **label, features_changed=changed)
        self.reloaded(slot, True)


def _load(file: ModelFile) -> Served:
    """Load a model and let it score once."""
    ranker = load_model(file.path)
    try:
        warm_up(ranker)
    except UsageError as problem:
        # Such as an ensemble of scores, which has no rankers to score with.
        raise UsageError(f"{file.path}: cannot be served: {problem}") from None
    return Served(file.name, file.version, ranker, Columns(ranker), time.time())


def without_path(problem: Exception, file: ModelFile) -> str:
    """Return what is wrong with a file, for clients, who need not know where it is."""
    if not isinstance(problem, RankiniteError):
        return "the file cannot be loaded; the log says why"
    return str(problem).replace(str(file.path), f"the file of {file.name}")


def _signature(path: Path) -> Signature:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size


def description(slot: Slot) -> Mapping[str, object]:
    """Return what clients may know of a model."""
    served = slot.served
    return {
        "name": served.name,
        "version": served.version,
        "ranker": type(served.ranker).__name__,
        "features": list(served.columns.names),
        "categorical": [served.columns.names[j] for j in served.columns.codes],
        "loaded": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(served.loaded)),
        "problem": slot.problem,
    }
