"""Damage to the bytes of a file, as broken disks, copies and editors do it."""

from __future__ import annotations

import numpy as np


def damaged(rng: np.random.Generator, content: bytes) -> tuple[str, bytes]:
    """Return what was done to some bytes, and the bytes, which differ from those before."""
    at = int(rng.integers(len(content)))
    end = at + int(rng.integers(1, 200))
    random = rng.bytes(end - at)
    changes = {
        f"bit of byte {at} flipped": (
            content[:at] + bytes([content[at] ^ 1 << int(rng.integers(8))]) + content[at + 1 :]
        ),
        f"cut at {at}": content[:at],
        f"bytes {at} to {end} missing": content[:at] + content[end:],
        f"bytes {at} to {end} zero": content[:at] + bytes(len(content[at:end])) + content[end:],
        f"bytes {at} to {end} random": content[:at] + random[: len(content) - at] + content[end:],
        f"{end - at} bytes inserted at {at}": content[:at] + random + content[at:],
        f"{end - at} bytes appended": content + random,
        f"{at} bytes missing at the start": content[at:],
        "twice": content * 2,
        "empty": b"",
        "other bytes": random,
    }
    # Some of them may change nothing, such as zeros in the place of zeros.
    what = [name for name, changed in changes.items() if changed != content]
    chosen = what[int(rng.integers(len(what)))]
    return chosen, changes[chosen]
