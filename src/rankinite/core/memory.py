"""How much memory is free, and a sentence instead of a process that is killed.

Large arrays are checked before they are made: Linux grants more memory than there is, and kills a
process once it writes to it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from rankinite.core.errors import DataError
from rankinite.core.format import readable_size

MEMINFO = Path("/proc/meminfo")
OWN_GROUPS = Path("/proc/self/cgroup")
GROUPS = Path("/sys/fs/cgroup")
UNKNOWN = 1 << 62


def available_memory() -> int:
    """Return the memory that this process can still use, in bytes.

    That is what the system has left, or the limit of a container if that is nearer; a guess if
    the system does not report it.
    """
    return min([_system_memory(), *_left_in_groups()])


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
    free = available_memory()
    if n_bytes > free:
        raise DataError(
            f"{owner}: {what} takes {readable_size(n_bytes)}, and {readable_size(free)} are free; "
            f"{advice}"
        )


def _system_memory() -> int:
    if MEMINFO.exists():
        for line in MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return UNKNOWN


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
