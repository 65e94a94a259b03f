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


def _wholes(text: str) -> int | list[int] | str:
    """Return a whole number, or several that commas separate."""
    found = [_whole(part) for part in text.split(",")]
    wholes = [part for part in found if isinstance(part, int)]
    if len(wholes) < len(found):
        return text
    return wholes[0] if len(wholes) == 1 else wholes


def _numbers(text: str) -> list[float] | str:
    """Return numbers that commas separate; what else it may be, the ranker knows."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        return text


def _whole_or_none(**settings: Any) -> Any:
    return _option(parser=_whole, metavar="<int|none>", **settings)


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Every parameter of every ranker; None where nothing was said."""

    measure: Annotated[
        str | None,
        _option(
            "--measure",
            "-m",
            help="LambdaMART, LambdaRank: what to improve, such as NDCG, "
            "NDCG@3 > CNDCG@3\\[clicks] or RankNet.",
        ),
    ] = None
    loss: Annotated[str | None, _option(help="MART: squared, centred or logistic.")] = None
    per_query: Annotated[
        bool | None,
        _option(help="MART, logistic loss: scores relative to the best document of the query."),
    ] = None
    n_trees: Annotated[int | None, _option(help="Trees: how many to grow at most.")] = None
    n_leaves: Annotated[int | None, _option(help="Trees: how many leaves one has at most.")] = None
    learning_rate: Annotated[
        float | None,
        _option(help="Trees: what values of leaves are multiplied by; LambdaRank: first steps."),
    ] = None
    max_depth: Annotated[Any, _whole_or_none(help="Trees: how deep one may be.")] = None
    symmetric: Annotated[
        bool | None, _option(help="Trees: whether all leaves of a level are split alike.")
    ] = None
    min_docs_in_leaf: Annotated[
        int | None, _option(help="Trees: how many documents a leaf has at least.")
    ] = None
    min_gain: Annotated[float | None, _option(help="Trees: what a split gains at least.")] = None
    docs_per_tree: Annotated[
        float | None, _option(help="Trees: the share of the documents that one sees.")
    ] = None
    queries_per_tree: Annotated[
        float | None, _option(help="Trees: the share of the queries that one sees.")
    ] = None
    features_per_tree: Annotated[
        float | None, _option(help="Trees: the share of the features that one sees.")
    ] = None
    criterion: Annotated[
        str | None, _option(help="Trees: how splits are chosen, mse or newton.")
    ] = None
    step: Annotated[
        str | None,
        _option(
            help="Trees: what the value of a leaf is, newton or gradient; LambdaMART: line-search."
        ),
    ] = None
    alpha_bounds: Annotated[
        Any,
        _option(
            parser=_numbers,
            metavar="<float,float>",
            help="LambdaMART, line-search: the least and the largest weight of a tree.",
        ),
    ] = None
    line_search_on: Annotated[
        str | None,
        _option(help="LambdaMART, line-search: where weights are best, train or valid."),
    ] = None
    most_bins: Annotated[
        int | None, _option(help="Trees: how many bins a feature has at most.")
    ] = None
    hidden: Annotated[
        Any,
        _option(
            parser=_wholes,
            metavar="<int[,int]>",
            help="LambdaRank: units of the hidden layer, or of several as 20,10; 0 is linear.",
        ),
    ] = None
    optimiser: Annotated[
        str | None, _option(help="LambdaRank: adam, or sgd with new weights where it stops.")
    ] = None
    n_epochs: Annotated[
        Any,
        _whole_or_none(help="LambdaRank: how often to go through the queries at most."),
    ] = None
    queries_per_step: Annotated[
        Any,
        _option(
            parser=_whole,
            metavar="<int|all>",
            help="LambdaRank: how many queries a step is for, or all.",
        ),
    ] = None
    weight_decay: Annotated[
        float | None, _option(help="LambdaRank, adam: how much weights are drawn to 0 every step.")
    ] = None
    most_restarts: Annotated[
        Any,
        _whole_or_none(help="LambdaRank, sgd: how often weights are drawn anew at most."),
    ] = None
    truncation: Annotated[
        Any,
        _whole_or_none(
            help="LambdaMART, LambdaRank: only pairs with a document in so many first ranks count."
        ),
    ] = None
    normalise: Annotated[
        str | None,
        _option(
            help="LambdaMART, LambdaRank: how lambdas are scaled, none, deviation or distance."
        ),
    ] = None
    valid_measure: Annotated[
        str | None,
        _option(
            help="What validation sets are measured by, separated by commas; the first, tier after "
            "tier, decides."
        ),
    ] = None
    patience: Annotated[
        Any,
        _whole_or_none(
            help="Stop after so many trees or epochs without an improvement; with sgd: begin anew."
        ),
    ] = None
    min_improvement: Annotated[float | None, _option(help="What counts as an improvement.")] = None
    random_state: Annotated[
        int | None, _option("--random-state", "--seed", help="Another seed gives another model.")
    ] = None
