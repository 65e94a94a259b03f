"""Reader of SVMlight/LETOR files: compiled for plain lines, strict and slow for others.

A file comes in blocks of whole lines. The kernel parses each block on several threads into rows of
one matrix, which grows with the file; lines that it leaves, and errors, are those of `parse_line`.
Only lines with documents have rows: a file may consist of blank lines.
"""

from __future__ import annotations

import logging
import re
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core import memory
from rankinite.core.errors import DataError, FileFormatError
from rankinite.core.format import refuse_text
from rankinite.core.memory import refusing_to_run_out, shortage
from rankinite.core.params import SourceName, Whole, check, or_none
from rankinite.core.progress import Progress, Silent
from rankinite.core.threads import parallel_for
from rankinite.core.types import Floats32, Integers, Mask
from rankinite.data import checks
from rankinite.data.budget import LEAVE_OUT, bytes_of_data, require_memory
from rankinite.data.categories import checked_tables
from rankinite.data.names import numbered_names
from rankinite.data.ranking_data import RankingData
from rankinite.data.stream import Block, read_blocks_of_lines
from rankinite.data.svmlight import kernels
from rankinite.data.svmlight.parse import (
    LARGEST_FEATURE,
    CommentColumn,
    Header,
    LineError,
    group_sizes_beside,
    interpret,
    parse_label,
    parse_line,
    read_group_sizes,
)

log = logging.getLogger("rankinite")

BLOCKS_A_CALL = 16  # for the threads of one call; more than threads, to balance the load
SMALLEST_BLOCK = 4096
SPARE_ROWS = 1.02  # of the estimate, so that the matrix seldom grows twice
DOCS_A_CALL = 1 << 19  # what the parser says of each line takes more than a short line


def read_svmlight(
    path: str | Path,
    *,
    query_file: str | Path | None = None,
    n_features: int | None = None,
    labels: Sequence[str] = (),
    comments: bool = True,
    group: bool = False,
    top_grade: float | None = None,
    progress: Progress | None = None,
) -> RankingData:
    """Read an SVMlight/LETOR file, plain or gzip, completely or not at all.

    Parameters
    ----------
    path
        The file. Features are numbered from 1 (or from 0, if 0 occurs); features that a line
        lacks are 0. Lines that begin with ``qid:``, or with a feature, have no label: either all
        of them or none.
    query_file
        File of group sizes, one per line, for a file without ``qid:``; by default ``path`` with
        ``.query`` or ``.group`` appended.
    n_features
        Number of features, for files that may lack the last ones.
    labels
        Further label sources, read from ``name = value`` in the comments.
    comments
        Keep the comments. If not, they may contain any bytes.
    group
        Bring the documents of each query together if they are not contiguous, instead of
        refusing them.
    top_grade
        Largest label that a document can have; the largest label in the file by default.
    progress
        Progress reporter.
    """
    check("load", "n_features", n_features, or_none(Whole(1)))
    refuse_text("load", "labels", labels)
    for name in labels:
        check("load", "a label source", name, SourceName())
    with refusing_to_run_out(path):
        reader = _Reader(Path(path), n_features, comments=comments or bool(labels))
        for block in read_blocks_of_lines(Path(path), progress or Silent()):
            reader.take(block)
        return reader.finish(query_file, labels, keep_comments=comments, group=group, top=top_grade)


class _Reader:
    """Collects the blocks of a file; the matrix grows in place with its rows and columns."""

    def __init__(self, path: Path, n_features: int | None, *, comments: bool) -> None:
        self.path = path
        self.fixed_width = n_features
        self.first_feature = 1
        self.width = n_features or 0
        # The rows, one after the other, with room at the end. Flat, so that it can grow in place.
        self.flat = np.empty(0, np.float32)
        self.top_feature = -1
        self.n_docs = 0
        self.n_lines = 0
        self.consumed = 0  # bytes of the file, of which gzip has fewer than of its text
        self.columns: list[tuple[NDArray[Any], ...]] = []
        self.comments = CommentColumn(path) if comments else None
        self.header = Header()

    def take(self, block: Block) -> None:
        """Parse all lines of a block."""
        if self.n_lines == 0:
            self.header = Header.parse(self.path, _first_line(block))
        begins, first_lines, first_docs = _cut(block)
        n_docs = int(first_docs[-1])
        if n_docs > DOCS_A_CALL:
            for half in block.halves(self.consumed):
                self.take(half)
            return
        if n_docs > 0:
            self._read(block, _ParsedLines(n_docs), (begins, first_lines, first_docs))
        self.n_lines += int(first_lines[-1])
        self.consumed = block.consumed

    def _read(self, block: Block, parsed: _ParsedLines, pieces: tuple[Integers, ...]) -> None:
        # The number of features is known at the end of the file only. If lines have features for
        # which there are no columns, the matrix gets wider, and they are parsed again.
        while True:
            self._make_room(parsed.n_docs, block)
            rows = self._matrix()[self.n_docs : self.n_docs + parsed.n_docs]
            parallel_for(
                kernels.read_blocks,
                len(pieces[0]) - 1,
                block.text,
                *pieces,
                self.first_feature,
                rows,
                rows.view(np.int32),
                *parsed.arrays,
            )
            # The kernel reads ids of up to 18 digits, so this one is never an id.
            parsed.has_qid = parsed.qids != kernels.NO_QID
            refused = self._read_unusual_lines(block, parsed, rows)
            if not self._widen(block, parsed):
                break
        self._keep(block, parsed)
        # Not before: a line further up may have a bad comment, which is the first error then.
        if refused is not None:
            raise refused

    def _keep(self, block: Block, parsed: _ParsedLines) -> None:
        good = slice(parsed.n_good)
        lines = self.n_lines + 1 + parsed.lines[good]
        self.columns.append((parsed.labels[good], parsed.qids[good], parsed.has_qid[good], lines))
        self._take_comments(block, parsed, parsed.n_good)
        self.n_docs += parsed.n_good

    def _take_comments(self, block: Block, parsed: _ParsedLines, n_docs: int) -> None:
        """Take the comments of the first documents of a block."""
        if self.comments is not None:
            docs = slice(n_docs)
            lines = self.n_lines + 1 + parsed.lines[docs]
            self.comments.take(block.text, parsed.comments[docs], parsed.ends[docs], lines)

    def _matrix(self) -> Floats32:
        n_rows = self.flat.size // self.width
        return self.flat[: n_rows * self.width].reshape(n_rows, self.width)

    def _make_room(self, n_docs: int, block: Block) -> None:
        """Reserve memory for the rows that the whole file is expected to have."""
        expected = self._expected_rows(n_docs, block)
        if self.width == 0:
            guess = _guess_width(block)
            # If the guess is too large for the memory, `_widen` refuses it with its line.
            self.width = guess if bytes_of_data(expected, guess) <= memory.available_memory() else 1
        if (self.n_docs + n_docs) * self.width > self.flat.size:
            # Refused here, because an allocation beyond the memory may succeed and kill us later.
            rest = "the rest of " if self.flat.size > 0 else ""
            needed = bytes_of_data(expected, self.width) - self.flat.nbytes
            require_memory(self.path, rest + _matrix_of(expected, self.width), needed, LEAVE_OUT)
            self._resize(expected)

    def _expected_rows(self, n_docs: int, block: Block) -> int:
        # By the share of the file's bytes that these rows took; gzip counts compressed bytes.
        share = min(max(block.consumed, 1) / block.size, 1.0)
        return int((self.n_docs + n_docs) / share * SPARE_ROWS) + 1

    def _resize(self, n_rows: int) -> None:
        if self.flat.size == 0:
            self.flat = np.empty(n_rows * self.width, np.float32)
        else:
            # In place: large arrays move by their page tables, not by copying.
            self.flat.resize(n_rows * self.width, refcheck=False)

    def _read_unusual_lines(
        self, block: Block, parsed: _ParsedLines, rows: Floats32
    ) -> FileFormatError | None:
        """Parse unusual lines; return the error of the first bad one, which ends the block."""
        parsed.n_good = parsed.n_docs
        unusual = (parsed.states > kernels.DOCUMENT) | (parsed.largest > LARGEST_FEATURE)
        for i in np.flatnonzero(unusual).tolist():
            text = parsed.text(block, i)
            try:
                if parsed.states[i] == kernels.LONG_LABEL and parsed.largest[i] <= LARGEST_FEATURE:
                    parsed.labels[i] = parse_label(text)
                else:
                    self._read_odd_line(parsed, rows, i, text)
            except LineError as error:
                # The lines above are kept, as if lines were read one by one.
                parsed.n_good = i
                line = self.n_lines + 1 + int(parsed.lines[i])
                return FileFormatError(self.path, error.problem, line, error.column)
        return None

    def _read_odd_line(self, parsed: _ParsedLines, rows: Floats32, i: int, text: bytes) -> None:
        line = parse_line(text)
        parsed.states[i] = kernels.DOCUMENT
        parsed.labels[i] = line.label
        parsed.has_qid[i] = line.qid is not None
        parsed.qids[i] = kernels.NO_QID if line.qid is None else line.qid
        parsed.largest[i] = line.numbers.max(initial=-1)
        if (line.numbers == 0).any() and parsed.zero_doc < 0:
            parsed.zero_doc = i
        mark = text.find(b"#")
        parsed.comments[i] = -1 if mark < 0 else parsed.starts[i] + mark + 1
        rows[i] = 0
        columns = line.numbers - self.first_feature
        present = (columns >= 0) & (columns < self.width)
        rows[i, columns[present]] = line.values[present]

    def _widen(self, block: Block, parsed: _ParsedLines) -> bool:
        """Add columns for new features; return whether the block must be parsed again."""
        first = 0 if parsed.zero_doc >= 0 else self.first_feature
        largest = parsed.largest[: parsed.n_good]
        top = max(self.top_feature, int(largest.max(initial=-1)))
        width = max(top - first + 1, self.width if first == self.first_feature else 1)
        if self.fixed_width is not None:
            if width > self.fixed_width:
                problem = f"n_features is {self.fixed_width}; give a larger one"
                self._refuse_feature(block, parsed, first + self.fixed_width, problem)
            width = self.fixed_width
        if width == self.width and first == self.first_feature:
            self.top_feature = top
            return False
        n_rows = self._expected_rows(parsed.n_docs, block)
        too_large = shortage(_matrix_of(n_rows, width), bytes_of_data(n_rows, width), LEAVE_OUT)
        if too_large is not None:
            # The first width that is too large, and the feature that needs it.
            free = memory.available_memory()
            least = bisect_right(range(width), free, key=lambda w: bytes_of_data(n_rows, w))
            self._refuse_feature(block, parsed, max(first, first + least - 1), too_large)
        self._restride(first, width, n_rows)
        return True

    def _restride(self, first: int, width: int, n_rows: int) -> None:
        """Move the rows to a wider matrix."""
        shift = self.first_feature - first
        old = self._matrix()[: self.n_docs]
        self.flat = np.zeros(n_rows * width, np.float32)
        if shift:
            log.info("%s: features are numbered from 0", self.path)
        self.first_feature, self.width = first, width
        self._matrix()[: self.n_docs, shift : shift + old.shape[1]] = old[:, : width - shift]

    def _refuse_feature(self, block: Block, parsed: _ParsedLines, least: int, problem: str) -> None:
        """Raise an error for the first line with a feature from ``least`` on, or for feature 0."""
        too_large = parsed.largest[: parsed.n_good] >= least
        i = int(too_large.argmax()) if too_large.any() else parsed.zero_doc
        line = self.n_lines + 1 + int(parsed.lines[i])
        # A bad comment further up is reported first, as if lines were read one by one.
        self._take_comments(block, parsed, i)
        if not too_large.any():
            problem = f"with feature 0 here and feature {self.top_feature} before, {problem}"
            raise FileFormatError(self.path, problem, line)
        feature = int(parsed.largest[i])
        place = re.search(rb"(?<!\S)0*%d:" % feature, parsed.text(block, i))
        raise FileFormatError(
            self.path,
            f"feature number {feature} is too large: {problem}",
            line,
            place.start() + 1 if place else None,
        )

    def finish(
        self,
        query_file: str | Path | None,
        sources: Sequence[str],
        *,
        keep_comments: bool,
        group: bool,
        top: float | None,
    ) -> RankingData:
        """Return the data set."""
        if self.n_docs == 0:
            raise FileFormatError(self.path, "there are no documents in this file")
        y, ids, has_qid, lines = (np.concatenate(part) for part in zip(*self.columns, strict=True))
        self.columns.clear()
        absent = np.isnan(y)
        if absent.any() and not absent.all():
            problem = "this line has no label, and others have one; expected it in every line"
            raise FileFormatError(self.path, problem, int(lines[absent.argmax()]))
        if self.top_feature < 0 and self.fixed_width is None:
            raise FileFormatError(self.path, "no line has a feature; expected number:value")
        self._resize(self.n_docs)
        matrix = self._matrix()
        texts, labels = interpret(self.path, self.comments, self.header, sources, lines)
        order, offsets, qids = find_queries(
            self.path, ids, has_qid, lines, query_file=query_file, group=group
        )
        try:
            if self.header.feature_names is None:
                names = numbered_names(self.width, self.first_feature)
            else:
                names = checks.feature_names(self.header.feature_names, self.width)
            top = checks.top_grade(self.header.top_grade if top is None else top, y)
            categories = checked_tables(self.header.categories, names, matrix)
        except DataError as problem:
            raise FileFormatError(self.path, str(problem)) from None
        if not keep_comments:
            texts["comment_column"] = None
        if order is not None:
            y = y[order]
            labels = {name: values[order] for name, values in labels.items()}
            texts = {name: t if t is None else t.take(order) for name, t in texts.items()}
        return RankingData.unchecked(
            matrix=matrix,
            rows=order,
            y=y,
            offsets=offsets,
            qids=self.header.qids_for(self.path, qids),
            labels=labels,
            query_weight=self.header.weights_for(self.path, len(qids)),
            feature_names=names,
            top_grade=top,
            categories=categories,
            **texts,
        )


class _ParsedLines:
    """Results of the compiled parser for each line of a block that has a document."""

    def __init__(self, n_docs: int) -> None:
        self.n_docs = n_docs
        self.n_good = n_docs  # documents before the first error
        self.labels = np.zeros(n_docs, np.float64)
        self.qids = np.empty(n_docs, np.int64)
        self.comments = np.empty(n_docs, np.int64)
        self.largest = np.empty(n_docs, np.int64)
        self.lines = np.empty(n_docs, np.int64)
        self.starts = np.empty(n_docs, np.int64)
        self.ends = np.empty(n_docs, np.int64)
        self.states = np.empty(n_docs, np.uint8)
        self.has_qid = np.empty(n_docs, np.bool_)
        self.zero_doc = -1  # the first document with a feature 0

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        return (
            self.labels,
            self.qids,
            self.comments,
            self.largest,
            self.lines,
            self.starts,
            self.ends,
            self.states,
        )

    def text(self, block: Block, i: int) -> bytes:
        return block.text[self.starts[i] : self.ends[i]].tobytes()


def _first_line(block: Block) -> bytes:
    size = 1 << 12
    while True:
        head = block.text[: min(size, block.n_bytes)].tobytes()
        line, newline, _ = head.partition(b"\n")
        if newline:
            return line
        size *= 4


def _cut(block: Block) -> tuple[Integers, Integers, Integers]:
    """Split a block for the threads; return where pieces start, their first lines and documents."""
    n_pieces = max(1, min(BLOCKS_A_CALL, block.n_bytes // SMALLEST_BLOCK))
    begins = np.linspace(0, block.n_bytes, n_pieces + 1).astype(np.int64)
    lines, docs = np.zeros((2, n_pieces + 1), np.int64)
    parallel_for(kernels.count_lines, n_pieces, block.text, begins, lines[1:], docs[1:])
    return begins, np.cumsum(lines), np.cumsum(docs)


def _matrix_of(n_rows: int, width: int) -> str:
    return f"a data set of about {n_rows:,} documents x {width:,} features"


def _guess_width(block: Block) -> int:
    """Guess the width from the first line, so that the first block need not be parsed twice."""
    line = block.text[: min(block.n_bytes, 1 << 16)].tobytes().lstrip().partition(b"\n")[0]
    numbers = re.findall(rb"\s(\d{1,6}):", line.partition(b"#")[0])
    return int(numbers[-1]) if numbers and int(numbers[-1]) > 0 else 1


def find_queries(
    path: Path,
    ids: Integers,
    has_qid: Mask,
    lines: Integers,
    *,
    query_file: str | Path | None,
    group: bool,
) -> tuple[Integers | None, Integers, NDArray[Any]]:
    """Return the order of documents (None if it need not change), query offsets and query ids.

    Parameters
    ----------
    path
        The file, for messages.
    ids, has_qid, lines
        For each document its query id, whether its line has one, and the number of the line.
    query_file, group
        As in `read_svmlight`.
    """
    if not has_qid.any():
        offsets = _offsets_of_file(path, query_file, len(ids))
        return None, offsets, np.arange(1, len(offsets))
    if query_file is not None:
        problem = f"the lines have a qid, and {query_file} has group sizes; expected one of the two"
        raise FileFormatError(path, problem)
    if not has_qid.all():
        problem = "this line has no qid, and others have one; expected it in every line"
        raise FileFormatError(path, problem, int(lines[has_qid.argmin()]))
    # Before `group_queries` finds them, whose message would count documents instead of lines.
    scattered = None if group else checks.first_scattered(ids)
    if scattered is not None:
        again, began = scattered
        raise FileFormatError(
            path,
            f"query {ids[again]} comes again after others (it began in line {lines[began]}); "
            "put its documents together, or group them (group=True, --group)",
            int(lines[again]),
        )
    return checks.group_queries(ids, group=group)


def _offsets_of_file(path: Path, query_file: str | Path | None, n_docs: int) -> Integers:
    source = group_sizes_beside(path) if query_file is None else Path(query_file)
    if source is None:
        raise FileFormatError(
            path,
            "no line has a qid, and there are no group sizes; expected qid:<number> behind "
            f"the labels, or the sizes, one per line, in {path.name}.query",
        )
    sizes, total = read_group_sizes(source, n_docs)
    if total != n_docs:
        raise FileFormatError(
            source, f"the group sizes add up to {total}, and {path} has {n_docs} documents"
        )
    return np.concatenate([[0], np.cumsum(sizes)])
