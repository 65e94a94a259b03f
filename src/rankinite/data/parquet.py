"""Parquet files that nobody vouches for: what they say of themselves, and their errors.

Everything in such a file may be damaged or forged: the schema, what pandas and Rankinite wrote into
it as JSON, lengths, and the bytes that Arrow decodes. Texts that are the same in many rows are one
text in the file, and stay one while they are read.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rankinite.core.errors import DataError, FileFormatError, RankiniteError
from rankinite.core.memory import refusing_to_run_out
from rankinite.core.progress import Progress
from rankinite.data.budget import require_memory_of_json
from rankinite.data.tables import ROWS_A_BATCH

METADATA = b"rankinite"
MOST_SHOWN = 300  # characters of Arrow's sentences, which may quote the file
VALUES_A_BATCH = 4 << 20
# What Arrow, and Python on its behalf, raise for damaged bytes, lengths, types and texts.
DAMAGE = (
    *(pa.ArrowException, OSError, ValueError, TypeError, OverflowError),
    *(RecursionError, NotImplementedError),
)


@contextlib.contextmanager
def refusing_damage(path: Path, problem: str = "cannot be read as Parquet") -> Iterator[None]:
    """Turn whatever Arrow raises for a damaged file into an error that names the file."""
    with refusing_to_run_out(path):
        try:
            yield
        except FileNotFoundError:
            raise FileFormatError(path, "there is no such file") from None
        except DataError as wrong:
            raise wrong if isinstance(wrong, FileFormatError) else _named(path, wrong) from None
        except (RankiniteError, MemoryError):
            raise
        except DAMAGE as damage:
            raise FileFormatError(path, f"{problem}: {_sentence(damage)}") from None


def _named(path: Path, wrong: DataError) -> FileFormatError:
    return FileFormatError(path, str(wrong))


def _sentence(damage: BaseException) -> str:
    """Return what an exception says in one line; it may quote any bytes of the file."""
    said = " ".join(str(damage).split()) or type(damage).__name__
    shown = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in said)
    return shown if len(shown) <= MOST_SHOWN else shown[:MOST_SHOWN] + "..."


@contextlib.contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """Open a Parquet file."""
    if path.is_dir():
        raise FileFormatError(path, "this is a directory; expected a file")
    # Before it is opened, which waits until somebody writes to a pipe.
    if path.exists() and not path.is_file():
        raise FileFormatError(path, "this is a pipe or a device; expected a file")
    with refusing_damage(path):
        file = pq.ParquetFile(_source(path), page_checksum_verification=True)
    with file:
        yield file


def _source(path: Path) -> Any:
    """Open a file; Arrow takes only names that are UTF-8 as texts."""
    return pa.OSFile(os.fsencode(path))


def saved_fields(path: Path, schema: Any) -> Mapping[str, Any] | None:
    """Return the JSON that Rankinite wrote into a schema; None in a foreign file."""
    text = (schema.metadata or {}).get(METADATA)
    if text is None:
        return None
    require_memory_of_json(path, "the metadata", len(text))
    fields = json.loads(text)
    if not isinstance(fields, dict):
        raise TypeError(f"they are a {type(fields).__name__}")
    return fields


def batches(
    path: Path, file: Any, columns: Sequence[str], texts: Sequence[str], progress: Progress
) -> Iterator[Any]:
    """Iterate over batches of some columns; those of texts come as dictionaries of them."""
    # A batch of many columns has few rows.
    n_rows = max(64, min(ROWS_A_BATCH, VALUES_A_BATCH // max(1, len(columns))))
    with (
        refusing_damage(path),
        pq.ParquetFile(
            _source(path),
            metadata=file.metadata,
            read_dictionary=list(texts),
            page_checksum_verification=True,
        ) as reader,
        progress.start(f"Reading {path.name}", file.metadata.num_rows, "documents") as bar,
    ):
        for batch in reader.iter_batches(n_rows, columns=list(columns), use_threads=True):
            yield batch
            bar.advance(batch.num_rows)
