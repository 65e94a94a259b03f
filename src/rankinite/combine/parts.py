"""Rankers within a ranker, and how a model file holds them."""

from __future__ import annotations

from collections.abc import Mapping

from rankinite.core.container import Content
from rankinite.rankers.ranker import Ranker

MEMBERS = "members"
INNER = "ranker"


def with_parts(own: Content, parts: Mapping[str, Ranker]) -> Content:
    """Return the content of a ranker's file together with that of the rankers in it.

    Parameters
    ----------
    own
        What it keeps besides them.
    parts
        The rankers by the prefix of their arrays: ``members.0``, ``members.1``, and so on, and
        ``ranker`` for one on top.
    """
    manifest, arrays = {**own.manifest, MEMBERS: []}, dict(own.arrays)
    for prefix, part in parts.items():
        inner = part.to_content()
        arrays |= {f"{prefix}.{name}": array for name, array in inner.arrays.items()}
        if prefix == INNER:
            manifest[INNER] = inner.manifest
        else:
            manifest[MEMBERS].append(inner.manifest)
    return Content(manifest, arrays)
