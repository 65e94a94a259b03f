"""What the writers of all formats have in common: what they get, what they return, and names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rankinite.core.errors import UsageError
from rankinite.core.format import some_of
from rankinite.interop.nets import PlainNet
from rankinite.interop.sum_of_trees import Nodes, SumOfTrees

DOUBLE, SINGLE = "64 bits", "32 bits"
# A name of a model is part of names of functions and addresses.
MODEL_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
WITHOUT_CATEGORIES = (
    "train without categorical_features, or choose a format that has them: lightgbm, xgboost, c, "
    "python"
)


@dataclass(frozen=True)
class Exported:
    """What an export wrote.

    Attributes
    ----------
    files
        The files; the first is the model.
    precision
        In how many bits the engine adds up scores.
    notes
        What is different in the other tool, a sentence each.
    """

    files: tuple[Path, ...]
    precision: str
    notes: tuple[str, ...] = ()


@dataclass
class Order:
    """What a format writes.

    Attributes
    ----------
    model
        The ranker as a sum of trees; without any for a net.
    names
        Names of the features in the other tool.
    name
        Name of the model in the other tool.
    to
        Name of the format.
    allow
        Whether documents may be scored differently by an engine that cannot do what is needed.
    net
        The ranker as a net; None if it consists of trees.
    notes
        Sentences for whoever asked.
    """

    model: SumOfTrees
    names: Sequence[str]
    name: str
    to: str
    allow: bool = False
    net: PlainNet | None = None
    notes: list[str] = field(default_factory=list)

    def refuse_categories(self) -> None:
        """Refuse categorical splits, which the format does not have."""
        if n := self.model.n_categorical:
            raise UsageError(
                f"export: the model has {n:,} categorical splits, which {self.to} cannot hold; "
                f"{WITHOUT_CATEGORIES}"
            )

    def differs(self, n_splits: int, what: str, advice: str) -> None:
        """Refuse splits by which the engine sends documents another way, unless that is allowed."""
        if not n_splits:
            return
        n_all = sum(len(tree.feature) for tree in self.model.trees)
        self.changes(f"{n_splits:,} of {n_all:,} splits {what}", advice)

    def changes(self, text: str, advice: str) -> None:
        """Refuse what the engine cannot do, unless that is allowed."""
        if not self.allow:
            raise UsageError(
                f"export: {text}; {advice}, or add --allow (allow=True) if such documents may be "
                "scored differently"
            )
        self.notes.append(f"{text}: such documents are scored differently")

    def differs_by_missing(self, n_surely: int, engine: str, advice: str) -> None:
        """Refuse splits that send missing values where the engine does not.

        What training has not seen matters to nobody: such splits send missing values where more
        documents go.
        """
        what = f"send documents without a value left, and {engine}"
        self.differs(n_surely, what, advice)
        if n_other := self.model.n_missing_left - n_surely:
            self.notes.append(
                f"{n_other:,} splits {what}; training has probably seen no missing values of their "
                "features, so write a number where a document has none"
            )

    def check_names(self, is_possible: Callable[[str], bool], expected: str) -> None:
        """Refuse names of features that the format cannot hold."""
        wrong = [name for name in self.names if not is_possible(name)]
        if wrong:
            raise UsageError(
                f"export: {self.to} cannot hold the feature names {some_of(wrong)}; expected "
                f"{expected}; map them with --names (names=)"
            )


def mapped_names(feature_names: Sequence[str], names: Mapping[str, str] | None) -> tuple[str, ...]:
    """Return the names of features in the other tool.

    Parameters
    ----------
    feature_names
        Names in the model.
    names
        Other names of some features.
    """
    if names is None:
        return tuple(feature_names)
    if unknown := [name for name in names if name not in feature_names]:
        raise UsageError(f"export: names has {some_of(unknown)}, which the model does not have")
    new = tuple(names.get(name, name) for name in feature_names)
    if len(set(new)) < len(new):
        twice = next(name for name in new if new.count(name) > 1)
        raise UsageError(f"export: names gives two features the name {twice!r}")
    return new


def check_model_name(name: str) -> None:
    """Refuse a name that cannot be part of names of functions and addresses."""
    if not MODEL_NAME.fullmatch(name):
        raise UsageError(
            f"export: the model's name is {name!r}; expected a letter, then letters, digits and _, "
            "64 at most (--name)"
        )


def nested(
    nodes: Nodes,
    leaf: Callable[[int], str],
    split: Callable[[int, str, str], str],
) -> str:
    """Return the text of a tree whose splits enclose the texts of their children.

    From the last split to the first, which needs no recursion: trees may be very deep.
    """
    if not len(nodes.left):
        return leaf(0)
    texts = [""] * len(nodes.left)

    def child(number: int) -> str:
        if number < 0:
            return leaf(~number)
        # Only its parent needs a text: in deep trees all of them would take much memory.
        text, texts[number] = texts[number], ""
        return text

    for k in reversed(range(len(texts))):
        texts[k] = split(k, child(int(nodes.left[k])), child(int(nodes.right[k])))
    return texts[0]


def float32_sum_note(order: Order) -> None:
    """Say that scores are added up in 32 bits."""
    largest = sum(float(np.abs(tree.value).max()) for tree in order.model.trees)
    order.notes.append(
        f"{order.to} adds up scores in 32 bits: documents whose scores differ by less than about "
        f"{max(largest, abs(order.model.start)) * 2.0**-22:.1g} may tie or change places"
    )
