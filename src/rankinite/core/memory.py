"""How much memory is free, and a sentence instead of a process that is killed.

Large arrays are checked before they are made: Linux grants more memory than there is, and kills a
process once it writes to it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from rankinite.core.errors import DataError, FileFormatError
from rankinite.core.format import readable_size

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

MEMINFO = Path("/proc/meminfo")
IN_USE = Path("/proc/self/statm")
OWN_GROUPS = Path("/proc/self/cgroup")
GROUPS = Path("/sys/fs/cgroup")
UNKNOWN = 1 << 62


def available_memory() -> int:
    """Return the memory that this process can still use, in bytes.

    That is what the system has left, or the limit of a container or of the process (``ulimit``) if
    that is nearer; a guess if the system does not report it.
    """
    return min([_system_memory(), *_left_in_groups(), *_left_in_limits()])


def shortage(what: str, n_bytes: int, advice: str) -> str | None:
    """Return a sentence if something is larger than the memory that is available, or else None.

    Parameters
    ----------
    what
        What needs memory.
    n_bytes
        How much.
    advice
        What to do instead.
    """
    free = available_memory()
    if n_bytes <= free:
        return None
    return f"{what} takes {readable_size(n_bytes)}, and {readable_size(free)} are free; {advice}"


def require_memory(owner: str, what: str, n_bytes: int, advice: str) -> None:
    """Refuse to make arrays that are larger than the memory that is available.

    Parameters
    ----------
    owner, what
        Start of the sentence: who needs memory, and for what.
    n_bytes
        How much.
    advice
        What to do instead.
    """
    problem = shortage(what, n_bytes, advice)
    if problem is not None:
        raise DataError(f"{owner}: {problem}")


@contextlib.contextmanager
def refusing_to_run_out(path: str | Path) -> Iterator[None]:
    """Refuse a file for which memory did not suffice, although what it says of itself would fit.

    Other processes may take what was free when it was looked at.
    """
    try:
        yield
    except MemoryError:
        problem = "there is too little memory to read this file; free some, or read a part of it"
        raise FileFormatError(path, problem) from None


def _system_memory() -> int:
    if MEMINFO.exists():
        for line in MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return UNKNOWN


def _left_in_limits() -> Iterator[int]:
    """Iterate over what the limits of the process leave."""
    if resource is None:
        return
    limits = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    if all(limit == resource.RLIM_INFINITY for limit in limits):
        return
    try:
        pages = IN_USE.read_text().split()
    except OSError:
        return
    # Of the address space, and of data and stack.
    for limit, in_use in zip(limits, (pages[0], pages[5]), strict=True):
        if limit != resource.RLIM_INFINITY:
            yield max(0, limit - int(in_use) * resource.getpagesize())


def _left_in_groups() -> Iterator[int]:
    """Iterate over what each control group around this process has left."""
    try:
        lines = OWN_GROUPS.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        # Version 2 has one tree of groups, without a name; version 1 one for each controller.
        if controllers == "":
            root, limit, used = GROUPS, "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            root, limit, used = GROUPS / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        group = root / path.lstrip("/")
        # The limit of a group holds for all groups in it. Inside a container the path may be that
        # of the host, of which only the root is there.
        for folder in {group, *group.parents}:
            if folder == root or root in folder.parents:
                yield _left_in(folder, limit, used)


def _left_in(folder: Path, limit: str, used: str) -> int:
    try:
        text = (folder / limit).read_text().strip()
        if text == "max":
            return UNKNOWN
        # Pages of files that nobody uses at the moment are given up first.
        cached = sum(
            int(line.split()[1])
            for line in (folder / "memory.stat").read_text().splitlines()
            if line.startswith("inactive_file ")
        )
        return max(0, int(text) - int((folder / used).read_text()) + cached)
    except (OSError, ValueError, IndexError):
        return UNKNOWN
