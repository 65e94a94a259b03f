"""A ranker as a single sum of trees, which is what the formats of other tools hold.

Trees that continue the score of a base are added to the trees of the base. A weighted sum of
standardised scores is a sum of trees, too: every tree is multiplied by the weight of its member
over the scale of its scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rankinite.core.cached import cached_property
from rankinite.core.errors import UsageError
from rankinite.core.format import some_of
from rankinite.core.types import Floats, Integers
from rankinite.ensembles.ensemble import LinearEnsemble
from rankinite.rankers.base import Base
from rankinite.rankers.imported import ImportedForest
from rankinite.rankers.mart import MART
from rankinite.rankers.mcrank import McRank
from rankinite.rankers.ranker import Ranker
from rankinite.rankers.tree_ranker import TreeRanker
from rankinite.trees.forest import Categories, Forest, Tree
from rankinite.trees.scoring import find_levels

DISTIL = (
    "distil it: MART(loss='centred').fit(X, scores - scores.min(), qid=...) learns its scores, and "
    "can be exported"
)


@dataclass(frozen=True)
class Nodes:
    """A tree as other tools hold it: splits with two children each.

    Attributes
    ----------
    tree
        The tree; node k is its split k.
    left, right
        Children of each split: at least 0 is a split, others are the complement of a leaf. The
        number of a child is larger than that of its parent.
    depth
        Depth of each split; 0 is that of the root.
    """

    tree: Tree
    left: Integers
    right: Integers
    depth: Integers

    @classmethod
    def of(cls, tree: Tree) -> Nodes:
        """Find the children of all splits."""
        levels = find_levels(tree.first, tree.right, np.array([tree.n_leaves]))
        depth = np.zeros(len(tree.feature), np.int64)
        # A parent comes before its children.
        for split, children in enumerate(
            zip(levels.left.tolist(), levels.right.tolist(), strict=True)
        ):
            for child in children:
                if child >= 0:
                    depth[child] = depth[split] + 1
        return cls(tree, levels.left, levels.right, depth)


@dataclass(frozen=True)
class SumOfTrees:
    """Trees that add up to a score, and the names of their features.

    Attributes
    ----------
    feature_names
        Names of the features, in the order of the trees' numbers.
    forest
        The trees, which have a single output, and what their sum starts from.
    note
        What the score is, if it is not the one that predict returns.
    """

    feature_names: tuple[str, ...]
    forest: Forest
    note: str = ""

    @property
    def start(self) -> float:
        """What the sum starts from."""
        return float(self.forest.start[0])

    @cached_property
    def trees(self) -> tuple[Tree, ...]:
        """The trees."""
        return tuple(self.forest.trees)

    @property
    def categories(self) -> Categories:
        """By categorical feature, the codes of the categories that have bins."""
        return self.forest.categories

    @cached_property
    def nodes(self) -> tuple[Nodes, ...]:
        """The trees with the children of their splits."""
        return tuple(Nodes.of(tree) for tree in self.trees)

    @property
    def n_categorical(self) -> int:
        """Number of categorical splits."""
        return sum(int(tree.categorical.sum()) for tree in self.trees)

    @property
    def n_missing_left(self) -> int:
        """Number of splits that send documents without a value to the left."""
        return sum(int(tree.missing_left.sum()) for tree in self.trees)

    @cached_property
    def n_learned_missing_left(self) -> int:
        """Number of the same splits, of features of which training has surely seen missing values.

        A split that has seen none sends them where more documents go. A feature of which some
        split does otherwise, or separates missing values from all others, had missing values.
        """
        had_missing = set()
        for nodes in self.nodes:
            tree = nodes.tree
            left_docs = np.where(
                nodes.left >= 0,
                tree.docs[np.maximum(nodes.left, 0)],
                tree.leaf_docs[np.maximum(~nodes.left, 0)],
            )
            usual = 2 * left_docs >= tree.docs
            surely = (tree.missing_left != usual) | np.isposinf(tree.threshold)
            had_missing |= set(tree.feature[surely].tolist())
        features = list(had_missing)
        return sum(
            int((tree.missing_left & np.isin(tree.feature, features)).sum()) for tree in self.trees
        )

    def scores(self, X: Floats) -> Floats:
        """Return the scores of a matrix, as the exported model has to give them."""
        scores: Floats = self.forest.scores(np.ascontiguousarray(X, np.float32))[0]
        return scores


def sum_of_trees(model: Ranker) -> SumOfTrees:
    """Return a ranker as one sum of trees; refuse one that is none, with the reason.

    Parameters
    ----------
    model
        A fitted ranker.
    """
    forest = _forest_of(model, "")
    note = ""
    if isinstance(model, MART) and model.loss == "logistic":
        note = "the scores are log odds, of which predict makes chances: the order is the same"
    return SumOfTrees(tuple(model.feature_names_), forest, note)


def _forest_of(model: Ranker, inside: str) -> Forest:
    """Return the trees of a ranker, or of one inside another."""
    kind = f"{inside}{type(model).__name__}"
    if isinstance(model, LinearEnsemble):
        return _forest_of_ensemble(model, kind)
    if isinstance(model, McRank):
        raise _no_sum(kind, "its score is the expected grade of a softmax, no sum of trees")
    if isinstance(model, ImportedForest):
        if model.zero_as_missing_:
            raise UsageError(
                f"export: the {kind} takes zeros of {some_of(list(model.zero_as_missing_))} for "
                "missing values (zero_as_missing of LightGBM), which other tools do not; use the "
                "file that it came from"
            )
        return model.forest_
    if not isinstance(model, TreeRanker):
        raise _no_sum(kind, "it does not consist of trees")
    if inside and isinstance(model, MART) and model.loss == "logistic":
        raise _no_sum(kind, "its scores are chances, which are no sum of trees")
    forest = model.forest_
    base = Base(type(model).__name__, model.base)
    if base.is_scores:
        raise UsageError(
            f"export: the {kind} continues scores that were given as its base, which no model "
            "file holds; train it with the ranker itself as base"
        )
    return (
        forest if model.base is None else _added(_forest_of(model.base, f"{kind}'s base "), forest)
    )


def _forest_of_ensemble(ensemble: LinearEnsemble, kind: str) -> Forest:
    if not ensemble.members_:
        raise UsageError(
            f"export: the {kind} was fitted to scores, not to rankers; make one whose members are "
            "rankers"
        )
    total: Forest | None = None
    members = ensemble.members_.items()
    for k, (name, member) in enumerate(members):
        weight = float(ensemble.weights_[k] / ensemble.scales_[k])
        # A member without weight may be of any kind.
        if weight == 0.0:
            continue
        forest = _forest_of(member, f"{kind}'s member {name!r}, a ")
        part = _scaled(forest, weight, weight * (forest.start[0] - ensemble.means_[k]))
        total = part if total is None else _added(total, part)
    if total is None:
        return Forest((), np.zeros(1), len(ensemble.feature_names_))
    return total


def _scaled(forest: Forest, weight: float, start: float) -> Forest:
    trees = tuple(replace(tree, value=tree.value * weight) for tree in forest.trees)
    return replace(forest, trees=trees, start=np.array([start]))


def _added(first: Forest, second: Forest) -> Forest:
    """Return the sum of two forests of the same features."""
    for feature in first.categories.keys() & second.categories.keys():
        if not np.array_equal(first.categories[feature], second.categories[feature]):
            raise UsageError(
                "export: rankers inside this one know different categories of the same feature; "
                "export them one by one, or train them on the same data"
            )
    return Forest(
        (*first.trees, *second.trees),
        first.start + second.start,
        first.n_features,
        {**first.categories, **second.categories},
    )


def _no_sum(kind: str, why: str) -> UsageError:
    return UsageError(f"export: the {kind} cannot be exported: {why}; {DISTIL}")
