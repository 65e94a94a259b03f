"""The trees of a fitted ranker one by one: leaves of documents, a table of nodes, a drawing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import UsageError
from rankinite.core.params import Whole, check
from rankinite.core.types import Floats
from rankinite.rankers.ranker import Ranker
from rankinite.trees.forest import Forest, Tree

if TYPE_CHECKING:
    from rankinite.trees.drawing import TreeDrawing
    from rankinite.trees.nodes import Node


class TreeContents(Ranker):
    """What rankers of trees can tell about their trees, besides scores."""

    forest_: Forest

    def predict_leaf(self, X: Any, *, n_trees: int | None = None) -> NDArray[np.int32]:
        """Return the leaf that each document reaches in each tree: documents x trees.

        Leaves are numbered from 0 in each tree; leaf 3 of tree 7 is the node ``7-L3`` of `trees`.
        A round of `McRank` has several trees, one per grade, in consecutive columns.

        Parameters
        ----------
        X
            As in `predict`.
        n_trees
            Use only this many rounds of trees, the first ones.

        Examples
        --------
        >>> import rankinite as rk
        >>> data = rk.polynomials(20, n_features=3)
        >>> rk.LambdaMART(n_trees=4, n_leaves=8).fit(data).predict_leaf(data.X).shape[1]
        4
        """
        matrix, rows = self._features_of(X)
        forest = self.forest_
        if n_trees is not None:
            most = len(forest) // len(forest.start)
            check(self._name, "n_trees", n_trees, Whole(0, most))
            forest = forest.first(int(n_trees))
        return forest.leaves(matrix, rows)

    def output_contributions(self, X: Any) -> tuple[Floats, Floats]:
        """Return what each feature adds to the trees' raw scores: TreeSHAP, see `explain`."""
        from rankinite.trees.contributions import forest_contributions

        return forest_contributions(self.forest_, *self._features_of(X))

    def trees(self, numbers: Sequence[int] | int | None = None) -> Any:
        """Return the nodes of the trees as a pandas frame, one row per split or leaf.

        Columns are those of LightGBM's ``trees_to_dataframe``: ``tree_index``, ``node_depth``,
        ``node_index``, ``left_child``, ``right_child``, ``parent_index``, ``split_feature``,
        ``split_gain``, ``threshold``, ``decision_type``, ``missing_direction``, ``value`` and
        ``count``. A document goes left if its feature is at most the threshold; or, where the
        decision type is ``==``, one of the categories in it, with ``||`` between them. The value of
        a leaf is what it adds to the score, that of a split the mean over its training documents.

        Parameters
        ----------
        numbers
            The trees, from 0 on; all if None.
        """
        try:
            import pandas as pd
        except ImportError:
            raise UsageError(
                f"{self._name}.trees: returns a frame of pandas, which is not installed; "
                "pip install pandas, or use rankinite inspect MODEL --trees all"
            ) from None
        from rankinite.trees.nodes import COLUMNS

        chosen = (
            range(len(self._fitted_forest)) if numbers is None else np.atleast_1d(numbers).tolist()
        )
        rows = [node.as_row(tree) for tree in chosen for node in self.tree_nodes(tree)]
        return pd.DataFrame(rows, columns=list(COLUMNS))

    def tree_nodes(self, tree: int) -> list[Node]:
        """Return the nodes of a tree: a split, its left subtree, its right subtree.

        Parameters
        ----------
        tree
            The number of the tree, from 0 on.
        """
        from rankinite.trees.nodes import tree_nodes

        n_trees = len(self._fitted_forest)
        if n_trees == 0:
            raise UsageError(f"{self._name}: has no trees; training kept none")
        check(self._name, "tree", tree, Whole(0, n_trees - 1))
        chosen = self.forest_.trees[tree]
        splits = np.flatnonzero(chosen.categorical).tolist()
        left = {k: self._left_texts(chosen, k) for k in splits}
        return list(tree_nodes(chosen, self.feature_names_, left))

    def _left_texts(self, tree: Tree, split: int) -> tuple[str, ...]:
        """Return the categories that a split sends left; their codes, if there are no texts."""
        feature = int(tree.feature[split])
        codes = tree.left_categories(split, self.forest_.categories[feature])
        texts = {k: text for text, k in self.categories_[self.feature_names_[feature]].items()}
        return tuple(texts.get(int(code), str(int(code))) for code in codes)

    def plot_tree(self, tree: int = 0) -> TreeDrawing:
        """Draw a tree; notebooks show the drawing, and ``save("tree.svg")`` writes it.

        Parameters
        ----------
        tree
            The number of the tree, from 0 on.
        """
        from rankinite.trees.drawing import draw_tree

        nodes = self.tree_nodes(tree)
        n_leaves = sum(node.is_leaf for node in nodes)
        return draw_tree(nodes, f"Tree {tree} of a {self._name}: {n_leaves} leaves")

    @property
    def _fitted_forest(self) -> Forest:
        self._check_fitted()
        return self.forest_
