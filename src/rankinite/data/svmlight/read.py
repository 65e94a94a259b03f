"""Reading SVMlight/LETOR files: blocks of lines, compiled where plain, explained where not."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import DataError, FileFormatError
from rankinite.core.format import readable_size, refuse_text
from rankinite.core.params import Either, OneOf, SourceName, Whole, check
from rankinite.core.progress import Progress, Silent
from rankinite.data import checks
from rankinite.data.ranking_data import RankingData
from rankinite.data.stream import Block, read_blocks_of_lines
from rankinite.data.svmlight import kernels
from rankinite.data.svmlight.comments import CommentColumn, Header, interpret
from rankinite.data.svmlight.parse import LARGEST_FEATURE, LineError, parse_label, parse_line

MEMINFO = Path("/proc/meminfo")


def available_memory() -> int:
    """Return how many bytes a new array may take; a guess where the system does not tell."""
    if MEMINFO.exists():
        for line in MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 1 << 62


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


log = logging.getLogger("rankinite")

BLOCKS_A_CALL = 16
SMALLEST_BLOCK = 4096
SPARE_ROWS = 1.02


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
        The file. Features are numbered from 1 (or from 0, if 0 occurs); those that a line does
        not name are 0.
    query_file
        For files without ``qid:``, the group sizes, one a line. Not given, ``path`` with
        ``.query`` or ``.group`` behind it is looked for.
    n_features
        How many features there are, for files that may lack the last ones.
    labels
        Further label sources to take from ``name = value`` in the comments.
    comments
        Keep the comments; without them, any bytes may stand there.
    group
        Bring documents of one query together instead of refusing them when they stand apart.
    top_grade
        The largest label there can be; the largest label seen if not given.
    progress
        Who wants to know how far it is.
    """
    check("load", "n_features", n_features, Either(Whole(1), OneOf([None])))
    refuse_text("load", "labels", labels)
    for name in labels:
        check("load", "a label source", name, SourceName())
    reader = _Reader(Path(path), n_features, comments=comments or bool(labels))
    for block in read_blocks_of_lines(Path(path), progress or Silent()):
        reader.take(block)
    return reader.finish(query_file, labels, keep_comments=comments, group=group, top=top_grade)


class _Reader:
    """Collects the blocks of one file; the matrix grows in place as rows and columns come."""

    def __init__(self, path: Path, n_features: int | None, *, comments: bool) -> None:
        self.path = path
        self.fixed_width = n_features
        self.first_feature = 1
        self.width = n_features or 0
        self.flat = np.empty(0, np.float32)
        self.top_feature = -1
        self.n_docs = 0
        self.n_lines = 0
        self.columns: list[tuple[NDArray[Any], ...]] = []
        self.comments = CommentColumn(path) if comments else None
        self.header = Header()

    def take(self, block: Block) -> None:
        """Read all lines of a block."""
        begins, first_lines = _cut(block)
        n_lines = int(first_lines[-1])
        found = _Lines(n_lines)
        while True:
            self._make_room(n_lines, block)
            rows = self._matrix()[self.n_docs : self.n_docs + n_lines]
            kernels.read_blocks(
                block.text,
                begins,
                first_lines,
                self.first_feature,
                rows,
                rows.view(np.int32),
                *found.arrays,
            )
            found.starts[n_lines] = block.n_bytes
            found.has_qid = found.qids != kernels.NO_QID
            if self.n_lines == 0:
                self.header = Header.parse(self.path, found.line(block, 0))
            refused = self._read_unusual_lines(block, found, rows)
            if not self._widen(block, found):
                break
        self._keep(block, found, rows)
        if refused is not None:
            raise refused

    def _keep(self, block: Block, found: _Lines, rows: NDArray[np.float32]) -> None:
        docs = np.flatnonzero(found.states != kernels.NO_DOCUMENT)
        if len(docs) < len(rows):
            rows[: len(docs)] = rows[docs]
        lines = self.n_lines + 1 + docs
        self.columns.append((found.labels[docs], found.qids[docs], found.has_qid[docs], lines))
        self._take_comments(block, found, docs)
        self.n_docs += len(docs)
        self.n_lines += len(found.states)

    def _take_comments(self, block: Block, found: _Lines, docs: NDArray[np.int64]) -> None:
        if self.comments is not None:
            begins, ends = found.comments[docs], found.starts[docs + 1] - 1
            self.comments.take(block.text, begins, ends, self.n_lines + 1 + docs)

    def _matrix(self) -> NDArray[np.float32]:
        n_rows = self.flat.size // self.width
        return self.flat[: n_rows * self.width].reshape(n_rows, self.width)

    def _make_room(self, n_lines: int, block: Block) -> None:
        """Let the matrix have room for all rows that the rest of the file may bring."""
        expected = self._expected_rows(n_lines, block)
        if self.width == 0:
            guess = _guess_width(block)
            self.width = guess if 4 * guess * expected <= available_memory() else 1
        if (self.n_docs + n_lines) * self.width > self.flat.size:
            free = available_memory() + self.flat.nbytes
            if 4 * self.width * expected > free:
                raise FileFormatError(self.path, _too_large(expected, self.width, free))
            self._resize(expected)

    def _expected_rows(self, n_lines: int, block: Block) -> int:
        share = min(max(block.consumed, 1) / block.size, 1.0)
        return int((self.n_docs + n_lines) / share * SPARE_ROWS) + 1

    def _resize(self, n_rows: int) -> None:
        if self.flat.size == 0:
            self.flat = np.empty(n_rows * self.width, np.float32)
        else:
            # In place: large arrays move by their page tables, not by copying.
            self.flat.resize(n_rows * self.width, refcheck=False)

    def _read_unusual_lines(
        self, block: Block, found: _Lines, rows: NDArray[np.float32]
    ) -> FileFormatError | None:
        """Return why a line is refused; it and all behind it then count as empty."""
        unusual = (found.states > kernels.DOCUMENT) | (found.largest > LARGEST_FEATURE)
        for i in np.flatnonzero(unusual).tolist():
            text = found.line(block, i)
            try:
                if found.states[i] == kernels.LONG_LABEL and found.largest[i] <= LARGEST_FEATURE:
                    found.labels[i] = parse_label(text)
                else:
                    self._read_odd_line(found, rows, i, text)
            except LineError as error:
                found.states[i:] = kernels.NO_DOCUMENT
                found.largest[i:] = -1
                line = self.n_lines + i + 1
                return FileFormatError(self.path, error.problem, line, error.column)
        return None

    def _read_odd_line(self, found: _Lines, rows: NDArray[np.float32], i: int, text: bytes) -> None:
        line = parse_line(text)
        found.states[i] = kernels.DOCUMENT
        found.labels[i] = line.label
        found.has_qid[i] = line.qid is not None
        found.qids[i] = kernels.NO_QID if line.qid is None else line.qid
        found.largest[i] = max(line.features, default=-1)
        if 0 in line.features and found.zero_line < 0:
            found.zero_line = i
        mark = text.find(b"#")
        found.comments[i] = -1 if mark < 0 else found.starts[i] + mark + 1
        rows[i] = 0
        for feature, value in line.features.items():
            column = feature - self.first_feature
            if 0 <= column < self.width:
                rows[i, column] = value

    def _widen(self, block: Block, found: _Lines) -> bool:
        """Make room for features without a column; tell whether the block must be read again."""
        first = 0 if found.zero_line >= 0 else self.first_feature
        top = max(self.top_feature, int(found.largest.max(initial=-1)))
        width = max(top - first + 1, self.width if first == self.first_feature else 1)
        if self.fixed_width is not None:
            if width > self.fixed_width:
                problem = f"n_features is {self.fixed_width}; give a larger one"
                self._refuse_feature(
                    block, found, found.largest - first >= self.fixed_width, problem
                )
            width = self.fixed_width
        if width == self.width and first == self.first_feature:
            self.top_feature = top
            return False
        n_rows = self._expected_rows(len(found.states), block)
        free = available_memory()
        if 4 * width * n_rows > free:
            too_large = 4 * n_rows * (found.largest - first + 1) > free
            self._refuse_feature(block, found, too_large, _too_large(n_rows, width, free))
        self._restride(first, width, n_rows)
        return True

    def _restride(self, first: int, width: int, n_rows: int) -> None:
        """Give the rows that are there more columns."""
        shift = self.first_feature - first
        old = self._matrix()[: self.n_docs]
        self.flat = np.zeros(n_rows * width, np.float32)
        if shift:
            log.info("%s: features are numbered from 0", self.path)
        self.first_feature, self.width = first, width
        self._matrix()[: self.n_docs, shift : shift + old.shape[1]] = old[:, : width - shift]

    def _refuse_feature(
        self, block: Block, found: _Lines, too_large: NDArray[np.bool_], problem: str
    ) -> None:
        """Blame the first line with a feature that is too large, or else the feature 0."""
        i = int(too_large.argmax()) if too_large.any() else found.zero_line
        # Before that, blame a line further up whose comment cannot be read.
        self._take_comments(block, found, np.flatnonzero(found.states[:i] != kernels.NO_DOCUMENT))
        if not too_large.any():
            problem = f"with feature 0 here and feature {self.top_feature} before, {problem}"
            raise FileFormatError(self.path, problem, self.n_lines + i + 1)
        feature = int(found.largest[i])
        place = re.search(rb"(?<!\S)0*%d:" % feature, found.line(block, i))
        raise FileFormatError(
            self.path,
            f"feature number {feature} is too large: {problem}",
            self.n_lines + i + 1,
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
        """Make the data set of all that was read."""
        if self.n_docs == 0:
            raise FileFormatError(self.path, "there are no documents in this file")
        y, ids, has_qid, lines = (np.concatenate(part) for part in zip(*self.columns, strict=True))
        if self.top_feature < 0 and self.fixed_width is None:
            raise FileFormatError(self.path, "no line has a feature; expected number:value")
        self._resize(self.n_docs)
        base = self._matrix()
        texts, labels = interpret(self.path, self.comments, self.header, sources, lines)
        order, offsets, qids = find_queries(
            self.path, ids, has_qid, lines, query_file=query_file, group=group
        )
        names = self.header.feature_names
        if names is None:
            names = [str(self.first_feature + column) for column in range(self.width)]
        try:
            names = checks.names_of_features(names, self.width)
            top = checks.grade(self.header.top_grade if top is None else top, y)
        except DataError as problem:
            raise FileFormatError(self.path, str(problem)) from None
        if not keep_comments:
            texts["_comments"] = None
        if order is not None:
            y = y[order]
            labels = {name: values[order] for name, values in labels.items()}
            texts = {name: t if t is None else t.take(order) for name, t in texts.items()}
        return RankingData._trusted(
            base=base,
            rows=order,
            y=y,
            offsets=offsets,
            qids=self.header.qids_for(self.path, qids),
            labels=labels,
            query_weight=self.header.weights_for(self.path, len(qids)),
            feature_names=names,
            top_grade=top,
            **texts,
        )


class _Lines:
    """What the kernel finds in each line of a block."""

    def __init__(self, n_lines: int) -> None:
        self.labels = np.zeros(n_lines, np.float64)
        self.qids = np.empty(n_lines, np.int64)
        self.comments = np.empty(n_lines, np.int64)
        self.largest = np.empty(n_lines, np.int64)
        self.starts = np.empty(n_lines + 1, np.int64)
        self.states = np.empty(n_lines, np.uint8)
        self.has_qid = np.empty(n_lines, np.bool_)
        self.zero_line = -1  # the first that names feature 0

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        return self.labels, self.qids, self.comments, self.largest, self.starts, self.states

    def line(self, block: Block, i: int) -> bytes:
        return block.text[self.starts[i] : self.starts[i + 1] - 1].tobytes()


def _cut(block: Block) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Cut a block into pieces for the threads; return where each begins, and its first line."""
    n_pieces = max(1, min(BLOCKS_A_CALL, block.n_bytes // SMALLEST_BLOCK))
    begins = np.linspace(0, block.n_bytes, n_pieces + 1).astype(np.int64)
    counts = np.empty(n_pieces, np.int64)
    kernels.count_lines(block.text, begins, counts)
    return begins, np.concatenate([[0], np.cumsum(counts)])


def _too_large(n_rows: int, width: int, free: int) -> str:
    return (
        f"a matrix of about {n_rows:,} documents x {width:,} features takes "
        f"{readable_size(4 * width * n_rows)}, and {readable_size(free)} are free"
    )


def _guess_width(block: Block) -> int:
    """Take the first line for typical, so that the first block need not be read twice."""
    line = block.text[: min(block.n_bytes, 1 << 16)].tobytes().partition(b"\n")[0]
    numbers = re.findall(rb"\s(\d{1,6}):", line.partition(b"#")[0])
    return int(numbers[-1]) if numbers and int(numbers[-1]) > 0 else 1
