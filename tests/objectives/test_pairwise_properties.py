"""What holds for every lambda gradient; larger queries; another tool; threads; what is refused."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import lightgbm
import numpy as np
import pytest

from rankinite.core.errors import DataError, UsageError
from rankinite.measures import ERR, MAP, NDCG, parse_measure
from rankinite.objectives.functional import lambda_gradients
from rankinite.objectives.objective import Targets
from rankinite.objectives.pairwise import Lambdas, RankNet
from rankinite.objectives.parse import parse_objective

TEXTS = ("NDCG", "NDCG@3", "DCG", "ERR", "ERR@5", "pFound", "MAP", "MAP@10", "MRR", "P@4", "CNDCG")
OPTIONS = (
    {},
    {"truncation": 2},
    {"normalise": "deviation"},
    {"normalise": "distance"},
    {"normalise": "distance", "truncation": 10},
)
SEVERAL = (
    "SigmoidCost(NDCG, mu=0.5)",
    "SigmoidCost(ERR@3)",
    "Tiered(MAP(relevant=3) > NDCG, weights=0.4)",
    "Tiered(P(relevant=4)@2 > MAP(relevant=2) > ERR, pairs_of=labelled)",
    "Transition(NDCG, SigmoidCost(NDCG@3), 0.5)",
)
OBJECTIVES = [
    *(Lambdas(text, **options) for text in TEXTS for options in OPTIONS),
    *(RankNet(**options) for options in OPTIONS),
    Lambdas("MRR", gain_only=True),
    *(
        parse_objective(text, **{"truncation": None, "normalise": "none"} | options)
        for text in SEVERAL
        for options in OPTIONS
    ),
]


class Queries:
    """Some queries with 5 grades and different scores; the same every time."""

    def __init__(self, sizes, seed=1) -> None:
        rng = np.random.default_rng(seed)
        self.offsets = np.concatenate([[0], np.cumsum(sizes)])
        n = int(self.offsets[-1])
        self.y = rng.choice(5, size=n, p=[0.5, 0.2, 0.15, 0.1, 0.05]).astype(float)
        self.scores = rng.permutation(n) / n * 5.0

    def computed(self, objective, **targets):
        name = getattr(getattr(objective, "measure", None), "name", "")
        labels = self.y / 4.0 if name == "CNDCG" else self.y
        out = np.full((2, 1, len(labels)), np.nan)
        prepared = objective.prepare(Targets({None: labels}, self.offsets, 4.0, **targets))
        prepared.gradients(self.scores[np.newaxis], 0, out[0], out[1])
        assert prepared.start.tolist() == [0.0]
        return out[:, 0]


@pytest.fixture(scope="module")
def queries() -> Queries:
    rng = np.random.default_rng(2)
    return Queries(rng.integers(1, 150, size=60))


def assert_equal(ours, expected) -> None:
    np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
class TestEveryObjective:
    def test_lambdas_sum_to_zero_and_weights_are_not_negative(self, objective, queries):
        lam, weight = queries.computed(objective)
        assert np.isfinite(lam).all()
        sums = np.add.reduceat(lam, queries.offsets[:-1])
        sizes = np.add.reduceat(np.abs(lam), queries.offsets[:-1])
        assert np.abs(sums / (sizes + 1e-300)).max() < 1e-10
        assert weight.min() >= 0.0
        assert np.abs(lam).max() > 0.0

    def test_the_order_of_documents_does_not_matter(self, objective, queries):
        rng = np.random.default_rng(3)
        docs = np.concatenate([rng.permutation(range(*ends)) for ends in pairwise(queries.offsets)])
        shuffled = Queries(np.diff(queries.offsets))
        shuffled.y, shuffled.scores = queries.y[docs], queries.scores[docs]
        assert_equal(shuffled.computed(objective), queries.computed(objective)[:, docs])

    def test_queries_do_not_touch_each_other(self, objective, queries):
        whole = queries.computed(objective)
        for q in (0, 17, 59):
            docs = slice(*queries.offsets[q : q + 2])
            alone = Queries([docs.stop - docs.start])
            alone.y, alone.scores = queries.y[docs], queries.scores[docs]
            assert alone.computed(objective).tobytes() == whole[:, docs].tobytes()

    def test_a_query_weight_multiplies(self, objective, queries):
        weight = np.random.default_rng(4).random(60)
        weight[5] = 0.0
        ours = queries.computed(objective, query_weight=weight)
        each = np.repeat(weight, np.diff(queries.offsets))
        assert_equal(ours, queries.computed(objective) * each)

    def test_a_constant_added_to_scores_does_not_matter(self, objective, queries):
        moved = Queries(np.diff(queries.offsets))
        moved.y, moved.scores = queries.y, queries.scores - 64.0
        np.testing.assert_allclose(
            moved.computed(objective), queries.computed(objective), rtol=1e-9, atol=1e-10
        )

    def test_ties_are_the_same_for_the_same_seed(self, objective):
        tied = Queries([40] * 30)
        tied.scores[:] = 0.0
        first = tied.computed(objective, seed=1)
        assert tied.computed(objective, seed=1).tobytes() == first.tobytes()

    def test_document_weights_of_1_change_no_bit(self, objective, queries):
        weighted = queries.computed(objective, doc_weight=np.ones(len(queries.y)))
        assert weighted.tobytes() == queries.computed(objective).tobytes()

    def test_lambdas_of_weighted_documents_sum_to_zero(self, objective, queries):
        weight = np.random.default_rng(5).choice([0.0, 0.5, 1.0, 3.0], len(queries.y))
        lam, hessian = queries.computed(objective, doc_weight=weight)
        sums = np.add.reduceat(lam, queries.offsets[:-1])
        sizes = np.add.reduceat(np.abs(lam), queries.offsets[:-1])
        assert np.abs(sums / (sizes + 1e-300)).max() < 1e-10
        assert hessian.min() >= 0.0
        assert not lam[weight == 0.0].any()
        assert np.abs(lam - queries.computed(objective)[0]).max() > 0.0

    def test_document_weights_alike_multiply_pairs_by_their_square(self, objective, queries):
        if getattr(objective, "normalise", "none") != "none":
            pytest.skip("normalised gradients do not grow with the weights of all documents")
        doubled = queries.computed(objective, doc_weight=np.full(len(queries.y), 2.0))
        assert_equal(doubled, 4.0 * queries.computed(objective))


@pytest.mark.parametrize("text", TEXTS)
def test_ties_depend_on_the_seed(text):
    """All scores are equal, as when training starts."""
    tied = Queries([40] * 30)
    tied.scores[:] = 0.0
    first, second = (tied.computed(Lambdas(text), seed=seed) for seed in (1, 2))
    assert np.abs(first - second).max() > 0.0


def test_ties_are_not_in_file_order():
    """Three documents, the first being relevant: it is ranked first in a third of the queries."""
    n = 400
    tied = Queries([3] * n)
    tied.scores[:] = 0.0
    tied.y[:] = np.tile([1.0, 0.0, 0.0], n)
    lam, _ = tied.computed(Lambdas("MRR"))
    # The relevant document at rank 1 falls by 1/2 or 2/3; at rank 2 it rises by 1/2 or falls by
    # 1/6; at rank 3 it rises by 2/3 or 1/6. Half of each sum is its lambda.
    at_rank = [(1 / 2 + 2 / 3) / 2, (1 / 2 + 1 / 6) / 2, (2 / 3 + 1 / 6) / 2]
    distance = np.abs(lam[::3, np.newaxis] - at_rank)
    assert distance.min(axis=1).max() < 1e-12
    counts = np.bincount(distance.argmin(axis=1), minlength=3)
    assert counts.min() > n / 3 - 4 * np.sqrt(n * 2 / 9)


def dcg_of(ranked):
    gains = 2.0**ranked - 1.0
    return gains @ (1.0 / np.log2(np.arange(2, ranked.shape[-1] + 2)))


def ndcg_of(ranked):
    return dcg_of(ranked) / dcg_of(-np.sort(-ranked))


def err_of(ranked):
    chance = (2.0**ranked - 1.0) / 16.0
    survive = np.cumprod(1.0 - chance, axis=-1)
    above = np.concatenate([np.ones_like(survive[..., :1]), survive[..., :-1]], axis=-1)
    return (chance * above) @ (1.0 / np.arange(1, ranked.shape[-1] + 1))


def ap_of(ranked):
    relevant = (ranked >= 1).astype(float)
    precision = np.cumsum(relevant, axis=-1) / np.arange(1, ranked.shape[-1] + 1)
    return (precision * relevant).sum(axis=-1) / relevant.sum(axis=-1)


@pytest.mark.parametrize(
    ("measure", "value"),
    [(NDCG(), ndcg_of), (ERR(), err_of), (MAP(), ap_of)],
    ids=lambda item: str(item) if not callable(item) else "",
)
def test_a_query_of_5000_documents(measure, value):
    """Three documents' lambdas from real swaps with all others."""
    query = Queries([5000])
    lam, weight = query.computed(Lambdas(measure))
    order = np.argsort(-query.scores)
    ranked, scores = query.y[order], query.scores[order]
    seen = np.minimum(ranked, 1.0) if measure == MAP() else ranked
    base = value(ranked)
    for u in (0, 37, 4321):
        partners = np.flatnonzero(seen != seen[u])
        changes = np.empty(len(partners))
        for start in range(0, len(partners), 500):
            block = partners[start : start + 500]
            swapped = np.tile(ranked, (len(block), 1))
            swapped[:, u], swapped[np.arange(len(block)), block] = ranked[block], ranked[u]
            changes[start : start + 500] = np.abs(value(swapped) - base)
        sign = np.sign(seen[u] - seen[partners])
        rho = 1.0 / (1.0 + np.exp(sign * (scores[u] - scores[partners])))
        np.testing.assert_allclose(lam[order[u]], (sign * changes * rho).sum(), atol=1e-10)
        np.testing.assert_allclose(weight[order[u]], (changes * rho * (1 - rho)).sum(), atol=1e-10)


class TestLightGBM:
    """Its Newton steps, from leaves of one document: lambda / (weight + lambda_l2)."""

    @staticmethod
    def steps(queries, lambda_l2, **params):
        n = len(queries.y)
        X = np.arange(n)[:, np.newaxis].astype(float)
        tree = {
            "objective": "regression",
            "num_leaves": n,
            "min_data_in_leaf": 1,
            "min_data_in_bin": 1,
            "max_bin": 10 * n,
            "learning_rate": 1.0,
            "boost_from_average": False,
            "verbose": -1,
        }
        data = lightgbm.Dataset(X, np.arange(n) ** 1.5 + 1.0, params=tree)
        model = lightgbm.train(tree, data, num_boost_round=1)
        model.params |= {"objective": "lambdarank", "sigmoid": 1.0, "lambda_l2": lambda_l2}
        model.params |= params
        sizes = np.diff(queries.offsets)
        refitted = model.refit(X, queries.y, decay_rate=0.0, group=sizes, init_score=queries.scores)
        return refitted.predict(X, raw_score=True)

    @pytest.mark.parametrize("norm", [False, True])
    @pytest.mark.parametrize("spread", [0.3, 3.0])
    def test_all_pairs(self, norm, spread):
        queries = Queries([9, 12, 7, 20], seed=3)
        queries.scores *= spread
        lam, weight = queries.computed(Lambdas("NDCG", normalise="distance" if norm else "none"))
        assert np.abs(lam).min() > 0.0
        for l2 in (0.0, 0.5):
            theirs = self.steps(queries, l2, lambdarank_norm=norm, lambdarank_truncation_level=100)
            # Its sigmoid comes from a table, its gradients are 32 bits wide.
            np.testing.assert_allclose(lam / (weight + l2), theirs, rtol=1e-3)

    @pytest.mark.parametrize("truncation", [2, 5])
    def test_truncated(self, truncation):
        """Its best DCG is truncated with the pairs, and ours is not; in lambda / weight
        this cancels."""
        queries = Queries([20], seed=4)
        lam, weight = queries.computed(Lambdas("NDCG", truncation=truncation, normalise="distance"))
        theirs = self.steps(queries, 0.0, lambdarank_truncation_level=truncation)
        pushed = weight > 0.0
        assert pushed.sum() > 10
        np.testing.assert_allclose(lam[pushed] / weight[pushed], theirs[pushed], rtol=1e-3)


def test_any_number_of_threads_gives_the_same_bits(on_threads):
    rng = np.random.default_rng(8)
    sizes = rng.integers(1, 200, size=300)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    y = rng.integers(5, size=sizes.sum()).astype(float)
    scores = rng.integers(40, size=sizes.sum()) / 7.0

    def all_lambdas():
        return b"".join(
            part.tobytes()
            for measure in ("NDCG", "ERR@10", "MAP", "MRR")
            for normalise in ("none", "deviation", "distance")
            for part in lambda_gradients(measure, scores, y, offsets, normalise=normalise)
        )

    results = on_threads(all_lambdas)
    assert len(results[1]) > 12 * 16 * 300
    assert len(set(results.values())) == 1


class TestWhatIsRefused:
    def test_options(self):
        with pytest.raises(UsageError, match="truncation must be a whole number"):
            Lambdas("NDCG", truncation=0)
        with pytest.raises(UsageError, match="normalise must be one of 'none'"):
            RankNet(normalise="yes")
        with pytest.raises(UsageError, match="gain_only is for MRR"):
            Lambdas("ERR", gain_only=True)
        with pytest.raises(UsageError, match=r"several tiers.* such as NDCG@3"):
            Lambdas("NDCG@3 > CNDCG@3[clicks]")
        with pytest.raises(UsageError, match="3 is not a measure"):
            Lambdas(3)
        with pytest.raises(UsageError, match="without brackets"):
            RankNet(source="a[b]")

    def test_an_unknown_source(self):
        targets = Targets({None: np.ones(2), "dwell": np.ones(2)}, np.array([0, 2]), 1.0)
        with pytest.raises(UsageError, match=r"NDCG\[clicks\].*no label source 'clicks'.*'dwell'"):
            Lambdas("NDCG[clicks]").prepare(targets)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"scores": [1.0, 2.0]}, "scores: there are 2; expected 3"),
            ({"scores": [1.0, np.inf, 2.0]}, "scores: document 1 has inf; expected a finite"),
            ({"scores": [[1.0, 2.0, 3.0]]}, "scores: has 2 dimensions; expected 1"),
            ({"scores": ["a", "b", "c"]}, "scores: cannot be made an array of numbers"),
            ({"y": [0, 1]}, "y: there are 2; expected 3"),
            ({"y": [0, -1, 1]}, "y: the label of document 1 is -1"),
            ({"y": [np.inf, 0, 1]}, "y: the label of document 0 is inf"),
            ({"y": [np.nan] * 3}, "y: no document has a label"),
            ({"offsets": [0, 2]}, "scores: there are 3; expected 2|y: there are 3; expected 2"),
            ({"offsets": [1, 3]}, "offsets: expected whole numbers that start at 0"),
            ({"offsets": [0, 0, 3]}, "offsets: .* rise"),
            ({"offsets": [0, 1.5, 3]}, "offsets: expected whole numbers"),
            ({"offsets": [0, np.nan, 3]}, "offsets: expected whole numbers"),
            ({"offsets": [0]}, "offsets: expected whole numbers"),
            ({"query_weight": [1.0, 1.0]}, "query_weight: there are 2; expected 1"),
            ({"query_weight": [-1.0]}, "query_weight: query 0 has -1.0"),
            ({"measure": "ERR", "top_grade": 1}, "document 2 has the label 2, above the top grade"),
        ],
        ids=str,
    )
    def test_data(self, change, message):
        arguments = {
            "measure": "NDCG",
            "scores": [1.0, 2.0, 3.0],
            "y": [0, 1, 2],
            "offsets": [0, 3],
        }
        with pytest.raises(DataError, match=message):
            lambda_gradients(**arguments | change)

    def test_a_top_grade_that_is_none(self):
        with pytest.raises(UsageError, match="top_grade must be a finite number"):
            lambda_gradients("ERR", [1.0], [0], [0, 1], top_grade=-1)


def test_the_top_grade_is_the_largest_label():
    scores, y, offsets = [3.0, 2.0, 1.0], [0, 2, 1], [0, 3]
    with_top_grade = lambda_gradients("ERR", scores, y, offsets, top_grade=2)
    assert np.array_equal(lambda_gradients("ERR", scores, y, offsets), with_top_grade)
    assert (
        np.abs(
            lambda_gradients("ERR", scores, y, offsets, top_grade=4)[0] - with_top_grade[0]
        ).max()
        > 0
    )


def test_a_source_in_the_measure_means_y():
    scores, y, offsets = [3.0, 2.0, 1.0], [0.0, 0.5, 1.0], [0, 3]
    with_source = lambda_gradients("CNDCG[clicks]", scores, y, offsets, top_grade=4)
    assert np.array_equal(with_source, lambda_gradients("CNDCG", scores, y, offsets, top_grade=4))


def test_objectives_are_values():
    objective = Lambdas("ndcg@10", truncation=30)
    assert objective == Lambdas(parse_measure("NDCG@10"), truncation=30)
    assert hash(objective) == hash(replace(objective))
    assert replace(objective, truncation=None) == Lambdas("NDCG@10")
