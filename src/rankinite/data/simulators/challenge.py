"""Data with the shape of the two sets of the Yahoo! Learning to Rank Challenge.

What the paper (Challenge, Sec. 4) says: queries and documents of every part (Table 2) and shares
of grades (Table 3); 24 documents a query, over 100 for some, which are the difficult ones; 700
features, 519 in Set 1 and 596 in Set 2, 415 of them in both, and 0 where undefined; 48 binary ones,
the others counts and continuous; nine categories, of which text match is the largest; a perfect
grade is for the destination of a navigational query only; feature 637 is BM25F-SD, a strong match
of the text; values are ranks in [0, 1] over all sets. How far BM25F-SD, a linear RankSVM and
boosted trees are apart (Table 5) was the aim when weights and noise were chosen.

What is chosen here: everything else. Latent quantities and the weights that make documents
relevant (`markets`); how many features each category has, and which quantities they show
(`layout`); documents a query, log-normal; how the second market differs. Ranks are those among
infinitely many documents, where the challenge has them among its own.
"""

from __future__ import annotations

from rankinite.core.params import OneOf, Whole, check
from rankinite.core.progress import Progress
from rankinite.data.ranking_data import RankingData
from rankinite.data.simulators.drawing import first_qid, simulate
from rankinite.data.simulators.markets import MARKETS, PARTS


def challenge(
    n_queries: int | None = None,
    *,
    part: str = "train",
    market: int = 1,
    seed: int = 0,
    progress: Progress | None = None,
) -> RankingData:
    """Simulate a set of the Yahoo! Learning to Rank Challenge.

    Parameters
    ----------
    n_queries
        How many queries, at most as many as the challenge had; as many if not given. A smaller
        set is the beginning of a larger one.
    part
        ``"train"``, ``"valid"`` or ``"test"``.
    market
        1 for Set 1, a large market; 2 for Set 2, a related one with few labels.
    seed
        Another seed gives other queries and documents of the same two markets.
    progress
        Who wants to know how far it is.

    Examples
    --------
    >>> data = challenge(10, part="test", market=2)
    >>> data.n_features, data.feature_names[636]
    (700, '637')
    """
    check("challenge", "market", market, Whole(1, len(MARKETS)))
    check("challenge", "part", part, OneOf(PARTS))
    here = MARKETS[int(market)]
    first = first_qid(here, part, MARKETS.values())
    return simulate("challenge", here, n_queries, part, seed, first, progress)
