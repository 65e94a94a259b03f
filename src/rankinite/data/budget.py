"""What reading a data set may take, which readers ask for before they take it.

The budget of a file is the data set that it holds, about three times: the matrix once, what is kept
of each document several times while it is brought into order. A small file may claim much more, by
the number of a feature, by compression or by lengths in its metadata. So a reader knows how large
the data set will be before it makes an array of that size, and refuses what does not fit.
"""

from __future__ import annotations

from pathlib import Path

from rankinite.core.errors import FileFormatError
from rankinite.core.memory import shortage

# Label, query id and place of a document, as they are read, concatenated, sorted and compared.
BYTES_PER_DOCUMENT = 150
# What so many features take in a ranker of trees besides their values: names and cut points.
MANY_FEATURES = 1_000_000
BYTES_PER_FEATURE = 1100
# Python objects of JSON, per byte of its text: those of "[],[],[]" are the largest.
BYTES_OF_JSON = 30
SHORT_JSON = 1 << 20  # bytes, for which nobody need look
# Copies of texts: as they are read, and concatenated.
COPIES_OF_TEXTS = 2
LEAVE_OUT = "leave out or renumber rare features, or give scipy.sparse matrices from Python"
TAKE_LESS = "take fewer documents or columns, or a machine with more memory"


def bytes_of_data(n_docs: int, n_features: int) -> int:
    """Return the memory that reading a data set with a dense matrix takes."""
    features = BYTES_PER_FEATURE * int(n_features) if n_features > MANY_FEATURES else 0
    return n_docs * (4 * int(n_features) + BYTES_PER_DOCUMENT) + features


def require_memory(path: str | Path, what: str, n_bytes: int, advice: str = TAKE_LESS) -> None:
    """Refuse a file that takes more memory than is available.

    Parameters
    ----------
    path
        The file.
    what
        What in it needs memory.
    n_bytes
        How much.
    advice
        What to do instead.
    """
    problem = shortage(what, n_bytes, advice)
    if problem is not None:
        raise FileFormatError(path, problem)


def require_memory_of_json(path: str | Path, what: str, length: int) -> None:
    """Refuse JSON of this length if its objects do not fit into memory."""
    if length > SHORT_JSON:
        require_memory(path, what, BYTES_OF_JSON * length)
