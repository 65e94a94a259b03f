"""Contributions of features to the scores of any ranker, which add up to the score exactly.

Trees: path-dependent TreeSHAP (``trees/contributions.py``). Nets: ``nets/contributions.py``. A base
and what was learned on top of it are added, and the members of an ensemble, by their weights. What
is not a sum has a stated definition:

- `MART` with the logistic loss is explained on the scale of log odds, which order documents as its
  chances do. As a base or a member it counts by its chances: contributions to the log odds are
  multiplied by the quotient of both changes.
- `McRank`: the expected grade is a function of the outputs of all grades. Each output counts by its
  mean slope along the straight line from the expected outputs to those of the document.
- `Stacked` is explained by the scores of its members, which are the features of its ranker on top,
  and `WithScoreFeatures` by its features and those that it makes of scores.
- A part that none of this applies to, such as a base of another library, is a term of its own: its
  score, in comparison with its mean over the documents that are explained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rankinite.core.elementary import exp
from rankinite.core.errors import UsageError
from rankinite.core.threads import parallel_for
from rankinite.core.types import Floats
from rankinite.data.ranking_data import RankingData
from rankinite.ensembles.ensemble import LinearEnsemble
from rankinite.ensembles.score_features import WithScoreFeatures
from rankinite.ensembles.stacked import Stacked
from rankinite.explanation.kernels import fit_sums
from rankinite.rankers.base import is_model, model_scores
from rankinite.rankers.features import match_features
from rankinite.rankers.lambdarank import LambdaRank
from rankinite.rankers.mart import MART
from rankinite.rankers.mcrank import McRank
from rankinite.rankers.ranker import Ranker
from rankinite.rankers.tree_contents import TreeContents
from rankinite.trees.contributions import gauss_legendre

OWNER = "explain"
SCORE, LOG_ODDS = "score", "log odds"
SCORE_OF = "score of {}"
# Slopes of the expected grade are smooth along a line: more nodes change nothing.
LINE_NODES = 64


@dataclass(frozen=True, eq=False)
class Attribution:
    """What each feature adds to the score of each document.

    Attributes
    ----------
    names
        The features; or other terms, such as the members of a stacked ensemble.
    values
        Documents x names.
    expected
        By document, what its contributions are added to.
    scores
        By document, what they add up to.
    explained
        What that is: ``"score"`` or ``"log odds"``.
    notes
        Sentences about parts that are explained in a particular way.
    """

    names: tuple[str, ...]
    values: Floats
    expected: Floats
    scores: Floats
    explained: str = SCORE
    notes: tuple[str, ...] = ()


def attribute(ranker: Ranker, data: RankingData) -> Attribution:
    """Return the contributions to the scores of all documents.

    The exact sum of a document's contributions and its expected value, rounded once as `math.fsum`
    does, is its score: what rounding has left is added to the largest contribution. A score so near
    0 that it has finer digits than any contribution is met within half a unit in the last place of
    the smallest.

    Parameters
    ----------
    ranker
        A fitted ranker.
    data
        The documents.
    """
    raw = _attribution(ranker, data)
    scores = explained_scores(ranker, data)
    values = np.ascontiguousarray(raw.values).copy()
    arguments = np.ascontiguousarray(scores), np.ascontiguousarray(raw.expected), values
    parallel_for(fit_sums, len(scores), *arguments, grain=256)
    return replace(raw, values=values, scores=scores)


def explained_scores(ranker: Ranker, data: RankingData) -> Floats:
    """Return the scores that contributions add up to: those of predict, or log odds."""
    if isinstance(ranker, MART) and has_log_odds(ranker):
        first: Floats = ranker.raw_scores(data)[0]
        return first
    return ranker.predict(data)


def has_log_odds(ranker: Ranker) -> bool:
    """Tell whether a ranker predicts chances, and is explained by their log odds."""
    return isinstance(ranker, MART) and ranker.loss == "logistic"


def depends_on_query(ranker: Ranker) -> bool:
    """Tell whether what a ranker says of a document depends on the others of its query.

    Not by the factor of `MART` with ``per_query``: its log odds are those of the document.
    """
    inside = [*ranker.inner_rankers.values(), getattr(ranker, "base", None)]
    rankers = [part for part in inside if isinstance(part, Ranker)]
    scaled = any(getattr(part, "per_query", False) for part in rankers)
    return (
        scaled
        or isinstance(ranker, WithScoreFeatures)
        or any(depends_on_query(part) for part in rankers)
    )


def _attribution(ranker: Ranker, data: RankingData) -> Attribution:
    """Return contributions that add up to the explained scores but for rounding."""
    data = match_features(type(ranker).__name__, data, ranker.feature_names_)
    if isinstance(ranker, Stacked):
        inner = _attribution(ranker.ranker_, ranker.with_member_features(data))
        note = "The features of a Stacked ensemble are the scores of its members."
        # Members may be called as features are.
        names = tuple(SCORE_OF.format(name) for name in inner.names)
        return replace(inner, names=names, notes=(*inner.notes, note))
    if isinstance(ranker, WithScoreFeatures):
        return _attribution(ranker.ranker_, ranker.with_scores(data))
    if isinstance(ranker, LinearEnsemble):
        return _of_members(ranker, data)
    if isinstance(ranker, (TreeContents, LambdaRank)):
        return _of_rounds(ranker, data)
    raise UsageError(
        f"{OWNER}: a {type(ranker).__name__} has no contributions; expected a ranker of trees or "
        "nets, or an ensemble of these"
    )


def _of_rounds(ranker: TreeContents | LambdaRank, data: RankingData) -> Attribution:
    """Return the contributions to the score of trees or a net, with those of their base."""
    outputs, starts = ranker.output_contributions(data)
    names = ranker.feature_names_
    explained = LOG_ODDS if has_log_odds(ranker) else SCORE
    if isinstance(ranker, McRank):
        return _of_expected_grade(ranker, data, outputs, starts)
    expected = np.full(data.n_docs, starts[0])
    learned = Attribution(names, outputs[0], expected, _no_scores(data), explained)
    base = getattr(ranker, "base", None)
    if base is None:
        return learned
    if not is_model(base):
        raise UsageError(
            f"{OWNER}: this {type(ranker).__name__} was fitted on top of scores, which are not "
            "part of it; fit it on top of a ranker to explain both"
        )
    return _sum([learned, _as_part(base, data, "the base")], explained)


def _of_expected_grade(
    ranker: McRank, data: RankingData, outputs: Floats, starts: Floats
) -> Attribution:
    """Return the contributions to an expected grade: outputs count by their mean slopes."""
    changes = outputs.sum(axis=2)
    slopes = np.zeros(changes.shape)
    grades = np.arange(len(starts), dtype=np.float64)[:, np.newaxis]

    def chances(logarithms: Floats) -> Floats:
        shares: Floats = exp(logarithms - logarithms.max(axis=0))
        total: Floats = shares.sum(axis=0)
        return shares / total

    for node, weight in zip(*gauss_legendre(LINE_NODES), strict=True):
        of_grades = chances(starts[:, np.newaxis] + node * changes)
        slopes += weight * of_grades * (grades - (grades * of_grades).sum(axis=0))
    values = (slopes[:, :, np.newaxis] * outputs).sum(axis=0)
    expected = float((grades * chances(starts[:, np.newaxis])).sum())
    note = "Contributions to an expected grade: each grade's trees count by their mean slope."
    filled = np.full(data.n_docs, expected)
    return Attribution(ranker.feature_names_, values, filled, _no_scores(data), SCORE, (note,))


def _of_members(ranker: LinearEnsemble, data: RankingData) -> Attribution:
    """Return the contributions to a weighted sum of members' standardised scores."""
    if not ranker.members_:
        raise UsageError(
            f"{OWNER}: this {type(ranker).__name__} was fitted to scores, which are not part of "
            "it; fit it to rankers to explain them"
        )
    parts = []
    scales = zip(ranker.weights_, ranker.means_, ranker.scales_, strict=True)
    for (name, member), (weight, mean, scale) in zip(ranker.members_.items(), scales, strict=True):
        factor = float(weight) / float(scale)
        if factor == 0.0:
            continue
        part = _as_part(member, data, name)
        moved = (part.expected - mean) * factor
        parts.append(replace(part, values=part.values * factor, expected=moved))
    return _sum(parts, SCORE) if parts else _nothing(ranker, data)


def _as_part(part: object, data: RankingData, name: str) -> Attribution:
    """Return the contributions to what a base or a member predicts."""
    attributed = isinstance(part, Ranker) and not isinstance(part, Stacked)
    if not isinstance(part, Ranker) or not attributed or getattr(part, "per_query", False):
        scores = model_scores(OWNER, part, data, None, data.n_docs, name)
        mean = np.full(data.n_docs, scores.mean() if len(scores) else 0.0)
        term = SCORE_OF.format(name)
        note = f"The {term} is a term of its own, in comparison with its mean in this data."
        values = (scores - mean)[:, np.newaxis]
        return Attribution((term,), values, mean, _no_scores(data), SCORE, (note,))
    inside = _attribution(part, data)
    if not has_log_odds(part):
        return inside
    # From log odds to chances, by the quotient of both changes.
    change = inside.values.sum(axis=1)
    start, end = (1.0 / (1.0 + exp(-odds)) for odds in (inside.expected, inside.expected + change))
    is_small = np.abs(change) < 1e-9
    quotient = np.where(
        is_small, start * (1 - start), (end - start) / np.where(is_small, 1, change)
    )
    return replace(
        inside, values=inside.values * quotient[:, np.newaxis], expected=start, explained=SCORE
    )


def _sum(parts: Sequence[Attribution], explained: str) -> Attribution:
    """Return the sum of the contributions of parts, name by name."""
    names = tuple(dict.fromkeys(name for part in parts for name in part.names))
    place = {name: j for j, name in enumerate(names)}
    values = np.zeros((len(parts[0].expected), len(names)))
    expected = np.zeros(len(values))
    for part in parts:
        values[:, [place[name] for name in part.names]] += part.values
        expected = expected + part.expected
    notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
    return Attribution(names, values, expected, parts[0].scores, explained, notes)


def _nothing(ranker: Ranker, data: RankingData) -> Attribution:
    names = ranker.feature_names_
    zeros = np.zeros((data.n_docs, len(names)))
    return Attribution(names, zeros, zeros.sum(axis=1), _no_scores(data))


def _no_scores(data: RankingData) -> Floats:
    return np.zeros(data.n_docs)
