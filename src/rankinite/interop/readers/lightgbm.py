"""LightGBM's text files.

A document goes left if its value is at most the threshold, compared in 64 bits. By the bits of
``decision_type`` a split is categorical (1), sends missing values left (2), and has a kind of
missing values (4 and 8): none, and NaN is taken for 0; zeros and NaN; or NaN. LightGBM reads values
of at most 1e-35 in size as 0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import ModelFileError
from rankinite.interop.readers.fields import (
    MOST_FEATURES,
    SHOWN,
    ForeignForest,
    category_codes,
    distinct,
    integers,
    numbers,
    shown,
    whole,
)
from rankinite.interop.readers.nodes import LEAF, Nodes, at_most, build_forest
from rankinite.trees.forest import MAX_LEAVES

TOOL = "LightGBM"
CATEGORICAL, DEFAULT_LEFT = 1, 2
NO_MISSING, ZERO, NAN = 0, 1, 2
# The largest size of a zero, in 32 bits as LightGBM has it.
LARGEST_ZERO = np.float32(1e-35)
DEFAULT_NAME = re.compile(r"Column_(0|[1-9]\d*)")
CATEGORIES = "pandas_categorical:"
# Whose scores are not what trees add up to; the order of documents is the same.
TRANSFORMED = ("binary", "cross_entropy", "cross_entropy_lambda", "poisson", "gamma", "tweedie",
               "multiclassova")  # fmt: skip


def read(content: bytes) -> ForeignForest:
    """Read a file that ``save_model`` wrote.

    Parameters
    ----------
    content
        The bytes of the file.
    """
    try:
        lines = content.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise ModelFileError("is not the text that LightGBM writes: not in UTF-8") from None
    header, blocks, rest = _sections(lines)
    n_features = whole(header.get("max_feature_idx"), "max_feature_idx", 0, MOST_FEATURES - 1) + 1
    for name in ("num_class", "num_tree_per_iteration"):
        if whole(header.get(name, "1"), name, 1, 1 << 30) > 1:
            raise ModelFileError(
                f"has {name}={header[name][:SHOWN]}: several scores for a document; a ranker has a "
                "single one"
            )
    names = header.get("feature_names", "").split()
    if len(names) != n_features:
        raise ModelFileError(f"has {len(names):,} names for {n_features:,} features")
    trees = [_Tree(block, number) for number, block in enumerate(blocks)]
    zeros = _zeros_are_missing(trees)
    # Random forests: the score is the mean of the trees.
    share = max(1, len(trees)) if "average_output" in header else 1
    infos = header.get("feature_infos", "").split()[:n_features]
    categorical = [j for j, info in enumerate(infos) if info[0] != "[" and info != "none"]
    texts, values = _categories(rest, infos, categorical)
    nodes = [tree.nodes(zeros, share, values) for tree in trees]
    objective = header.get("objective", "")
    return ForeignForest(
        tool=TOOL,
        forest=build_forest(nodes, n_features, 0.0, categorical_features=[*categorical, *values]),
        names=None if _are_default(names) else distinct(names),
        objective=objective,
        categories=texts,
        zero_as_missing=sorted(zeros),
        notes=_notes(objective),
    )


def _notes(objective: str) -> Sequence[str]:
    words = objective.split()
    if not words or (words[0] not in TRANSFORMED and "sqrt" not in words):
        return ()
    return (
        f"scores are those of predict(raw_score=True), before the objective {words[0]!r} "
        "transforms them, which keeps their order",
    )


def _are_default(names: Sequence[str]) -> bool:
    matches = (DEFAULT_NAME.fullmatch(name) for name in names)
    return all(match and match[1] == str(k) for k, match in enumerate(matches))


def _sections(lines: Sequence[str]) -> tuple[dict[str, str], list[dict[str, str]], Sequence[str]]:
    """Return the header, the trees, and the lines behind them."""
    header: dict[str, str] = {}
    blocks: list[dict[str, str]] = []
    block = header
    for number, line in enumerate(lines):
        if line.startswith("Tree="):
            block = {}
            blocks.append(block)
        elif line == "end of trees":
            return header, blocks, lines[number + 1 :]
        elif line:
            name, _, value = line.partition("=")
            block[name] = value
    raise ModelFileError("is cut off: it has no line 'end of trees'")


class _Tree:
    """A tree of the file: its arrays, checked for their lengths."""

    def __init__(self, block: Mapping[str, str], number: int) -> None:
        self.number = number
        self.block = block
        n_leaves = self.n_leaves = whole(block.get("num_leaves"), "num_leaves", 1, MAX_LEAVES)
        if block.get("is_linear", "0").strip() != "0":
            raise ModelFileError(
                f"tree {number} has linear models in its leaves, which rankinite has not; train "
                "with linear_tree=false"
            )
        self.value = numbers(block.get("leaf_value", "").split(), "leaf_value", n_leaves)
        n_splits = n_leaves - 1
        self.feature = self._integers("split_feature", n_splits)
        self.left = self._integers("left_child", n_splits)
        self.right = self._integers("right_child", n_splits)
        self.kind = self._integers("decision_type", n_splits)
        self.threshold = numbers(self._words("threshold", n_splits), "threshold", n_splits)
        self.categorical = (self.kind & CATEGORICAL) > 0
        self.missing = np.where(self.categorical, NAN, (self.kind >> 2) & 3)
        if (self.missing > NAN).any():
            raise ModelFileError(f"tree {number} has an unknown kind of missing values")

    def _words(self, name: str, length: int) -> list[str]:
        # A tree of a single leaf has none of these lines.
        return self.block.get(name, "").split() if length else []

    def _integers(self, name: str, length: int) -> NDArray[np.int64]:
        return integers(self._words(name, length), name, length)

    def _optional(self, name: str, length: int) -> NDArray[np.float64]:
        words = self._words(name, length)
        return numbers(words, name, length) if words else np.zeros(length)

    @property
    def zero_goes_left(self) -> NDArray[np.bool_]:
        """Whether each split sends zeros left if they are numbers."""
        return self.threshold >= 0.0

    def nodes(self, zeros: set[int], share: int, values: Mapping[int, NDArray[np.int64]]) -> Nodes:
        """Return the nodes: splits, and behind them leaves.

        Parameters
        ----------
        zeros
            Features whose zeros are missing.
        share
            What the values of leaves are divided by.
        values
            By categorical feature, the codes that stand for LightGBM's.
        """
        n_splits, n_leaves = self.n_leaves - 1, self.n_leaves
        threshold = self.threshold
        # Whatever is not larger than this in size was read as zero.
        tiny = np.abs(threshold) <= float(LARGEST_ZERO)
        bound = np.where(threshold < 0, -float(LARGEST_ZERO), float(LARGEST_ZERO))
        exact = at_most(np.where(tiny, bound, threshold))
        below = np.nextafter(-LARGEST_ZERO, np.float32(-np.inf))
        exact = np.where(tiny & (threshold < 0), below, exact)
        as_default = (self.kind & DEFAULT_LEFT) > 0
        # Missing values that are taken for zeros, of features whose zeros are numbers.
        missing_left = np.where(self.missing == NO_MISSING, self.zero_goes_left, as_default)
        missing_left &= ~self.categorical
        leaf_docs = self._optional("leaf_count", n_leaves)
        no_leaf = np.zeros(n_leaves, np.int64)
        return Nodes(
            left=self._children(self.left),
            right=self._children(self.right),
            feature=np.concatenate([self.feature, no_leaf]),
            threshold=np.concatenate([exact, no_leaf]).astype(np.float32),
            missing_left=np.concatenate([missing_left, no_leaf]).astype(np.bool_),
            gain=np.concatenate([self._optional("split_gain", n_splits), no_leaf]),
            value=np.concatenate([np.zeros(n_splits), self.value / share]),
            docs=np.concatenate([np.zeros(n_splits), leaf_docs]),
            left_codes=dict(self._left_codes(values)),
        )

    def _children(self, children: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return children as numbers of nodes; LightGBM has the complement for a leaf."""
        n_splits = self.n_leaves - 1
        fits = (children < n_splits) & (children >= -self.n_leaves)
        if not fits.all():
            raise ModelFileError(f"tree {self.number} has a split whose child is no node of it")
        nodes = np.where(children < 0, n_splits + ~children, children)
        return np.concatenate([nodes, np.full(self.n_leaves, LEAF)])

    def _left_codes(
        self, values: Mapping[int, NDArray[np.int64]]
    ) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Go through the categorical splits, and the categories that go left."""
        splits = np.flatnonzero(self.categorical)
        if len(splits) == 0:
            return
        bounds = integers(self.block.get("cat_boundaries", "").split(), "cat_boundaries")
        words = integers(self.block.get("cat_threshold", "").split(), "cat_threshold")
        is_sound = len(bounds) > 1 and bounds[0] == 0 and bounds[-1] == len(words)
        if not is_sound or (np.diff(bounds) < 0).any() or ((words < 0) | (words >> 32 > 0)).any():
            raise ModelFileError(f"tree {self.number} has no sound sets of categories")
        for split in splits.tolist():
            number = self.threshold[split]
            if not (0 <= number < len(bounds) - 1 and number == int(number)):
                raise ModelFileError(f"tree {self.number} has a split without categories")
            chosen = words[bounds[int(number)] : bounds[int(number) + 1]]
            bits = np.unpackbits(chosen.astype("<u4").view(np.uint8), bitorder="little")
            codes = np.flatnonzero(bits)
            known = values.get(int(self.feature[split]))
            if known is not None:
                if len(codes) and codes[-1] >= len(known):
                    raise ModelFileError(f"tree {self.number} names categories without a value")
                codes = known[codes]
            yield split, codes


def _zeros_are_missing(trees: Sequence[_Tree]) -> set[int]:
    """Return the features whose zeros go another way than numbers of their size."""
    zeros: set[int] = set()
    others: set[int] = set()
    for tree in trees:
        as_default = (tree.kind & DEFAULT_LEFT) > 0
        differ = (tree.missing == ZERO) & (tree.zero_goes_left != as_default)
        zeros |= set(tree.feature[differ].tolist())
        others |= set(tree.feature[tree.missing != ZERO].tolist())
    if zeros & others:
        raise ModelFileError(
            f"takes zeros of feature {min(zeros & others)} (from 0 on) for missing values in some "
            "splits only; rankinite does so in all or none: train with one value of zero_as_missing"
        )
    return zeros


def _categories(
    lines: Sequence[str], infos: Sequence[str], categorical: Sequence[int]
) -> tuple[dict[int, dict[str, int]], dict[int, NDArray[np.int64]]]:
    """Return texts of categories, and other codes of those that are numbers, by feature.

    Pandas' categories are numbered in LightGBM's sets. Texts keep these codes; whole numbers are
    codes themselves, as in data sets.
    """
    line = next((line for line in reversed(lines) if line.startswith(CATEGORIES)), "")
    try:
        listed = json.loads(line.removeprefix(CATEGORIES) or "null")
    except (ValueError, RecursionError):
        raise ModelFileError(f"has {shown(line)} where categories are expected") from None
    if not isinstance(listed, list):
        return {}, {}
    # Those of which training used nothing are "none", as other features are.
    unused = [j for j, info in enumerate(infos) if info == "none"]
    features = categorical
    if len(listed) != len(categorical):
        features = sorted([*categorical, *unused])
    if len(listed) != len(features):
        raise ModelFileError(
            f"lists the categories of {len(listed)} features of pandas, and does not tell which "
            "they are; train without features that have a single value"
        )
    texts: dict[int, dict[str, int]] = {}
    values: dict[int, NDArray[np.int64]] = {}
    for j, of_feature in zip(features, listed, strict=True):
        if not isinstance(of_feature, list):
            raise ModelFileError(f"has {shown(of_feature)} where categories are expected")
        words = [str(category) for category in of_feature]
        texts[j], values[j] = category_codes(words, j)
    return texts, values
