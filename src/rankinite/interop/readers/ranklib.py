"""RankLib's XML: MART, LambdaMART and random forests.

A document goes left if its feature, numbered from 1 on, is at most the threshold, in 32 bits; a
missing value is 0. A file of several ensembles is a random forest, whose score is their mean.
"""

from __future__ import annotations

import re
from xml.parsers import expat

import numpy as np

from rankinite.core.errors import ModelFileError
from rankinite.interop.readers.fields import MOST_FEATURES, ForeignForest, real, whole
from rankinite.interop.readers.nodes import LEAF, MOST_LEVELS, Nodes, at_most, build_forest

TOOL = "RankLib"
HEADER = re.compile(r"\s*##\s*(.*?)\s*")
RANKERS = {"MART": "MART", "LambdaMART": "LambdaMART", "Random Forests": "Random Forests"}
# Below an ensemble, a tree, and as many splits as a tree may have levels.
MOST_NESTED = MOST_LEVELS + 10
# Of the numbers of RankLib; text that is longer is none.
MOST_CHARACTERS = 100


def read(content: bytes) -> ForeignForest:
    """Read a file that ``-save`` wrote.

    Parameters
    ----------
    content
        The bytes of the file.
    """
    ranker, documents = _parts(content)
    ensembles = [_Ensemble(document).trees for document in documents]
    # Means of sums, as RankLib's random forests have them.
    share = len(ensembles)
    trees = [tree.nodes(share) for trees in ensembles for tree in trees]
    n_features = max((int(tree.feature.max()) + 1 for tree in trees), default=1)
    return ForeignForest(
        tool=TOOL,
        forest=build_forest(trees, n_features, 0.0),
        names=None,
        objective=ranker,
        has_all_features=False,
    )


def _parts(content: bytes) -> tuple[str, list[bytes]]:
    """Return the kind of the ranker, and each of its ensembles."""
    begin = content.find(b"<ensemble")
    header = content[: max(begin, 0)] if begin >= 0 else content[:1000]
    match = HEADER.fullmatch(header.decode("latin-1").partition("\n")[0])
    ranker = match[1] if match else ""
    if begin < 0 or (ranker and ranker not in RANKERS):
        raise ModelFileError(
            f"is a {ranker or 'model'} of RankLib, which has no trees; rankinite imports "
            f"{', '.join(RANKERS)}"
        )
    parts = re.split(rb"(?=<ensemble[\s>])", content[begin:])
    return ranker, [part for part in parts if part.strip()]


class _Tree:
    """A tree as it is read: lists with an entry for each node."""

    def __init__(self, weight: float) -> None:
        self.weight = weight
        self.children: list[list[int]] = []
        self.features: list[int] = []
        self.thresholds: list[float] = []
        self.values: list[float] = []

    def add_node(self, parent: int, side: str | None) -> int:
        """Add a node below another, on its left or right side; return its number."""
        number = len(self.children)
        if (parent < 0) != (side is None) or (number == 0) != (parent < 0):
            raise ModelFileError("has a tree whose splits are not inside each other")
        if side is not None:
            if side not in ("left", "right"):
                raise ModelFileError("has a split that is neither left nor right of another")
            place = ("left", "right").index(side)
            if self.children[parent][place] != LEAF:
                raise ModelFileError("has a split with two children on the same side")
            self.children[parent][place] = number
        self.children.append([LEAF, LEAF])
        self.features.append(0)
        self.thresholds.append(np.nan)
        self.values.append(np.nan)
        return number

    def nodes(self, share: int) -> Nodes:
        """Return the nodes, whose values are divided by the number of ensembles."""
        if not self.children:
            raise ModelFileError("has a tree without a root")
        left, right = np.array(self.children, np.int64).T
        is_split = left != LEAF
        missing = np.isnan(np.where(is_split, self.thresholds, self.values))
        if missing.any() or (np.array(self.features)[is_split] < 1).any():
            raise ModelFileError(
                "has a split without feature or threshold, or a leaf without output"
            )
        with np.errstate(over="ignore"):
            # As RankLib holds them.
            threshold = np.array(self.thresholds).astype(np.float32)
            value = np.array(self.values).astype(np.float32).astype(np.float64)
        return Nodes(
            left=left,
            right=right,
            feature=np.maximum(np.array(self.features), 1) - 1,
            threshold=at_most(threshold),
            missing_left=threshold >= 0,
            gain=np.zeros(len(left)),
            value=np.where(is_split, 0.0, value * float(np.float32(self.weight)) / share),
            docs=np.zeros(len(left)),
        )


class _Ensemble:
    """Trees from XML, as it is parsed: nothing is kept but numbers, and nothing is expanded."""

    def __init__(self, document: bytes) -> None:
        self.trees: list[_Tree] = []
        # The open elements, and the numbers of the open splits.
        self.open: list[str] = []
        self.splits: list[int] = []
        self.text = ""
        parser = expat.ParserCreate()
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = self.characters
        parser.StartDoctypeDeclHandler = self.refuse
        parser.ProcessingInstructionHandler = self.refuse
        try:
            parser.Parse(document, True)
        except expat.ExpatError as problem:
            raise ModelFileError(f"is damaged XML: {problem}") from None
        except RecursionError:
            raise ModelFileError("is nested deeper than any model") from None

    def refuse(self, *_declaration: object) -> None:
        """Refuse declarations, which RankLib does not write, and which may expand to anything."""
        raise ModelFileError("is no model of RankLib: it has declarations of XML")

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Begin an element."""
        outer = self.open[-1] if self.open else ""
        if len(self.open) >= MOST_NESTED:
            raise ModelFileError("is nested deeper than any model")
        self.open.append(name)
        self.text = ""
        if name == "tree" and outer == "ensemble":
            self.trees.append(_Tree(real(attributes.get("weight", "1"), "weight")))
        elif name == "split" and outer in ("tree", "split"):
            parent = self.splits[-1] if self.splits else -1
            self.splits.append(self.trees[-1].add_node(parent, attributes.get("pos")))
        elif (name, outer) != ("ensemble", "") and (
            outer != "split" or name not in ("feature", "threshold", "output")
        ):
            raise ModelFileError(f"is no model of RankLib: it has <{name[:20]}> in <{outer[:20]}>")

    def characters(self, text: str) -> None:
        """Add to the text of an element."""
        # Elements are indented by any number of blanks.
        self.text = (self.text + text).lstrip()
        if len(self.text) > MOST_CHARACTERS:
            raise ModelFileError("is no model of RankLib: it has text where a number is expected")

    def end(self, name: str) -> None:
        """End an element."""
        self.open.pop()
        text, self.text = self.text.strip(), ""
        if name == "split":
            self.splits.pop()
        elif name in ("feature", "threshold", "output"):
            tree, node = self.trees[-1], self.splits[-1]
            if name == "feature":
                tree.features[node] = whole(text, name, 1, MOST_FEATURES)
            elif name == "threshold":
                tree.thresholds[node] = real(text, name)
            else:
                tree.values[node] = real(text, name)
