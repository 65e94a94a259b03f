"""Samples of queries, and the queries that they were drawn from.

A sample tells by its id where it comes from: ``12~3`` is the third sample of query 12. Ids go
wherever the data go, into files, frames and copies, and so does this.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

SAMPLE = re.compile(r"(.+)~\d+", re.DOTALL)


def origins(qids: NDArray[Any]) -> NDArray[np.int64]:
    """Return one number a query, the same for a query and all samples of it.

    >>> origins(np.array(["12", "7", "12~1", "7~1", "12~2"])).tolist()
    [0, 1, 0, 1, 0]
    """
    if qids.dtype.kind in "iu":
        return np.arange(len(qids))
    numbers: dict[str, int] = {}
    found = ((SAMPLE.fullmatch(qid), qid) for qid in map(str, qids))
    names = (sample[1] if sample else qid for sample, qid in found)
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)
