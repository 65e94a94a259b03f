"""The flags of ``rankinite train`` for the rankers' parameters, one for each.

They stand here, and are not made from the rankers, because ``--help`` cannot wait for numba. A test
compares the two. What is not given is None, and the ranker's default counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

RANKER = "Parameters of the ranker (--print-config shows their defaults)"


def _option(*names: str, **settings: Any) -> Any:
    return typer.Option(*names, rich_help_panel=RANKER, **settings)


def _whole(text: str) -> int | str:
    """Return a whole number if it is one; what else it may be, the ranker knows."""
    try:
        return int(text)
    except ValueError:
        return text


def _whole_or_none(**settings: Any) -> Any:
    return _option(parser=_whole, metavar="<int|none>", **settings)


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Every parameter of every ranker; None where nothing was said."""

    measure: Annotated[
        str | None, _option("--measure", "-m", help="LambdaMART: what to improve, or RankNet.")
    ] = None
    loss: Annotated[str | None, _option(help="MART: squared, centred or logistic.")] = None
    per_query: Annotated[
        bool | None,
        _option(help="MART, logistic loss: scores relative to the best document of the query."),
    ] = None
    n_trees: Annotated[int | None, _option(help="How many trees to grow at most.")] = None
    n_leaves: Annotated[int | None, _option(help="How many leaves a tree has at most.")] = None
    learning_rate: Annotated[
        float | None, _option(help="What the values of leaves are multiplied by.")
    ] = None
    max_depth: Annotated[Any, _whole_or_none(help="How deep a tree may be.")] = None
    min_docs_in_leaf: Annotated[
        int | None, _option(help="How many documents a leaf has at least.")
    ] = None
    min_gain: Annotated[float | None, _option(help="What a split gains at least.")] = None
    docs_per_tree: Annotated[
        float | None, _option(help="The share of the documents that a tree sees.")
    ] = None
    queries_per_tree: Annotated[
        float | None, _option(help="The share of the queries that a tree sees.")
    ] = None
    features_per_tree: Annotated[
        float | None, _option(help="The share of the features that a tree sees.")
    ] = None
    criterion: Annotated[str | None, _option(help="How splits are chosen: mse or newton.")] = None
    step: Annotated[
        str | None, _option(help="What the value of a leaf is: newton or gradient.")
    ] = None
    truncation: Annotated[
        Any,
        _whole_or_none(help="LambdaMART: only pairs with a document in so many first ranks count."),
    ] = None
    normalise: Annotated[
        str | None,
        _option(help="LambdaMART: how lambdas are scaled: none, deviation or distance."),
    ] = None
    most_bins: Annotated[int | None, _option(help="How many bins a feature has at most.")] = None
    valid_measure: Annotated[
        str | None,
        _option(help="What validation sets are measured by, separated by commas; first decides."),
    ] = None
    patience: Annotated[
        Any, _whole_or_none(help="Stop after so many trees without an improvement.")
    ] = None
    min_improvement: Annotated[float | None, _option(help="What counts as an improvement.")] = None
    random_state: Annotated[
        int | None, _option("--random-state", "--seed", help="Another seed gives another model.")
    ] = None
