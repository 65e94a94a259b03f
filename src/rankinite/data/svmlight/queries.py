"""Which documents belong together: ``qid:`` in every line, or group sizes in a file beside.

LightGBM calls that file ``.query``, XGBoost ``.group``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import FileFormatError
from rankinite.core.progress import Silent
from rankinite.data import checks
from rankinite.data.stream import read_blocks_of_lines

SUFFIXES = (".query", ".group")


def find_queries(
    path: Path,
    ids: NDArray[np.int64],
    has_qid: NDArray[np.bool_],
    lines: NDArray[np.int64],
    *,
    query_file: str | Path | None,
    group: bool,
) -> tuple[NDArray[np.int64] | None, NDArray[np.int64], NDArray[Any]]:
    """Return the order of documents (None if they stand right), query offsets and query ids.

    Each document has an id, says whether its line has one, and knows its line.
    """
    if not has_qid.any():
        offsets = _offsets_of_file(path, query_file, len(ids))
        return None, offsets, np.arange(1, len(offsets))
    if query_file is not None:
        problem = f"the lines have a qid, and {query_file} has group sizes; expected one of both"
        raise FileFormatError(path, problem)
    if not has_qid.all():
        problem = "this line has no qid, and others have one; expected it in every line"
        raise FileFormatError(path, problem, int(lines[has_qid.argmin()]))
    apart = None if group else checks.first_apart(ids)
    if apart is not None:
        again, began = apart
        raise FileFormatError(
            path,
            f"query {ids[again]} comes again after others (it began in line {lines[began]}); "
            "put its documents together, or group them (group=True, --group)",
            int(lines[again]),
        )
    return checks.grouped(ids, group=group)


def _offsets_of_file(path: Path, query_file: str | Path | None, n_docs: int) -> NDArray[np.int64]:
    source = group_sizes_beside(path) if query_file is None else Path(query_file)
    if source is None:
        raise FileFormatError(
            path,
            "no line has a qid, and there are no group sizes; expected qid:<number> behind "
            f"the labels, or the sizes, one a line, in {path.name}.query",
        )
    sizes = read_group_sizes(source)
    if sizes.sum() != n_docs:
        raise FileFormatError(
            source, f"the group sizes add up to {sizes.sum()}, and {path} has {n_docs} documents"
        )
    return np.concatenate([[0], np.cumsum(sizes)])


def group_sizes_beside(path: Path) -> Path | None:
    """Return the file of group sizes that belongs to a file of documents, if there is one."""
    names = [path.name, path.name.removesuffix(".gz")]
    for name in dict.fromkeys(names):
        for suffix in SUFFIXES:
            if path.with_name(name + suffix).is_file():
                return path.with_name(name + suffix)
    return None


def read_group_sizes(path: Path) -> NDArray[np.int64]:
    """Read one whole number above 0 a line."""
    sizes: list[int] = []
    number = 0
    for block in read_blocks_of_lines(path, Silent()):
        for line in block.text[: block.n_bytes].tobytes().splitlines():
            number += 1
            text = line.strip()
            if not text:
                continue
            digits = text.lstrip(b"0")
            if not digits.isdigit() or len(digits) > 15:
                shown = text[:30].decode("utf-8", "backslashreplace")
                problem = f"{shown!r} is not a group size; expected a whole number above 0"
                raise FileFormatError(path, problem, number, 1)
            sizes.append(int(digits))
    if not sizes:
        raise FileFormatError(path, "there are no group sizes in this file")
    return np.array(sizes, np.int64)
