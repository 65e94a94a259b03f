"""Tiered objectives as values with texts, in `lambda_gradients`, and with bad data."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import rankinite as rk
from rankinite.core.errors import DataError, UsageError
from rankinite.measures import parse_measure
from rankinite.objectives.parse import parse_objective
from rankinite.objectives.tiers import Tiered
from tests.objectives.cases import assert_equal, computed


class TestLambdaGradients:
    labels = (np.array([3.0, 0.0, 3.0]), np.array([0.25, 0.75, 0.5]))

    def test_of_several_sources(self):
        y = {"clicks": self.labels[1], None: self.labels[0]}
        text = "Tiered(NDCG@3 > CNDCG@3[clicks], weights=0.3)"
        lam, weight = rk.lambda_gradients(text, [2, 1, 0], y, [0, 3], top_grade=4)
        graded = computed(Tiered("NDCG > CNDCG[clicks]", weights=0.3), y, [2, 1, 0], [3])
        assert (lam == graded[0]).all()
        assert (weight == graded[1]).all()
        without = rk.lambda_gradients(text, [2, 1, 0], y, [0, 3])[0]
        assert not np.allclose(without, lam)  # the top grade is 3 then, and CNDCG knows it

    def test_of_an_iteration(self):
        changing = "Transition(NDCG, ERR, linear(start=0, eta=0.5))"
        by_round = [
            rk.lambda_gradients(changing, [2, 1, 0], self.labels[0], [0, 3], iteration=k)[0]
            for k in (0, 1)
        ]
        parts = [
            rk.lambda_gradients(text, [2, 1, 0], self.labels[0], [0, 3])[0]
            for text in ("NDCG", "ERR")
        ]
        assert_equal(by_round[0], (parts[0] + parts[1]) / 2)
        assert (by_round[1] == parts[1]).all()

    def test_what_is_refused(self):
        with pytest.raises(UsageError, match="no label source 'clicks'"):
            rk.lambda_gradients("NDCG > CNDCG[clicks]", [2, 1, 0], self.labels[0], [0, 3])
        y = {None: self.labels[0], "clicks": [0.0, 1.0]}
        with pytest.raises(DataError, match=r"y\['clicks'\]: there are 2; expected 3"):
            rk.lambda_gradients("NDCG", [2, 1, 0], y, [0, 3])
        with pytest.raises(DataError, match="there are no labels"):
            rk.lambda_gradients("NDCG", [2, 1, 0], {}, [0, 3])


class TestTexts:
    @pytest.mark.parametrize(
        "text",
        [
            "Tiered(NDCG@3 > CNDCG@3[clicks])",
            "Tiered(NDCG@3 > CNDCG@3[clicks], weights=0.25)",
            "Tiered(NDCG@3 > NDCG@3[fresh] > CNDCG@3[clicks], weights=(0.1, 0.25))",
            "Tiered(MAP(relevant=2) > CNDCG[clicks], train_depth=5, pairs_of=all)",
            "Tiered(NDCG@3 > CNDCG(empty=0, top_grade=4)[clicks], weights=0)",
        ],
    )
    def test_are_read_back(self, text):
        chosen = parse_objective(text, truncation=30, normalise="deviation")
        assert str(chosen) == text
        assert (chosen.truncation, chosen.normalise) == (30, "deviation")

    def test_tiers_alone_are_enough(self):
        options = {"truncation": 30, "normalise": "none"}
        chosen = parse_objective("ndcg@3 > cndcg@3[clicks]", **options)
        assert chosen == Tiered("NDCG@3 > CNDCG@3[clicks]").with_options(**options)
        assert parse_objective(parse_measure("NDCG@3 > CNDCG@3[clicks]"), **options) == chosen
        assert parse_objective(Tiered("NDCG@3 > CNDCG@3[clicks]"), **options) == chosen

    def test_arrays_of_weights(self):
        assert Tiered("NDCG > ERR[a]", weights=np.array([0.25])).weights == (0.25,)
        assert repr(Tiered("NDCG > ERR[a]", weights=np.float64(0.25))) == (
            "Tiered(NDCG > ERR[a], weights=0.25)"
        )

    def test_one_weight_is_shared_out(self):
        assert Tiered("NDCG > ERR[a] > ERR[b]", weights=0.5).weights == (0.25, 0.25)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                "Tiered(NDCG@3)",
                "Tiered: NDCG@3 is no measure with tiers; give two measures",
            ),
            ("Tiered()", r"Tiered needs a measure; write Tiered\(NDCG@3 > CNDCG@3\[clicks\]\)"),
            ("Tiered(NDCG > CNDCG[c], weights=1.5)", "weights must be .*at most 1; got 1.5"),
            ("Tiered(NDCG > CNDCG[c], weights=-1)", "weights must be .*at least 0.* got -1"),
            ("Tiered(NDCG > CNDCG[c], weights=much)", "weights must be .* got 'much'"),
            ("Tiered(NDCG > CNDCG[c], weights=(0.1, 0.2))", "2 weights, .* and 1 tiers below the"),
            (
                "Tiered(NDCG > ERR[a] > ERR[b], weights=(0.6, 0.6))",
                "sum to 1.2; expected 1",
            ),
            ("Tiered(P > CNDCG[c])", "P of a whole list is the same in any order; give it a depth"),
            (
                "Tiered(NDCG > Recall)",
                "Recall of a whole list .* give it a depth, such as Recall@10",
            ),
            ("Tiered(NDCG > CNDCG[c], pairs_of=some)", "pairs_of must be one of 'positive'"),
            ("Tiered(NDCG > CNDCG[c], train_depth=0)", "train_depth must be a whole number"),
            ("Tiered(NDCG > CNDCG[c], depth=3)", "'depth=3' is not an option of Tiered; expected"),
            ("LocalCost(NDCG > CNDCG[c])", r"several tiers; give one measure.*use Tiered\(NDCG"),
        ],
    )
    def test_what_is_refused(self, text, message):
        with pytest.raises(UsageError, match=message):
            parse_objective(text, truncation=None, normalise="none")


CLICKED = {None: np.array([1.0, 1.0]), "clicks": np.array([0.5, 1.0])}


class TestBadData:
    def test_a_source_that_is_not_there(self):
        with pytest.raises(UsageError, match=r"no label source 'click'; it has 'clicks'"):
            computed(Tiered("NDCG > CNDCG[click]"), CLICKED, [1.0, 0.0], [2])

    def test_rates_above_1(self):
        labels = {**CLICKED, "clicks": np.array([0.5, 3.0])}
        with pytest.raises(DataError, match="document 1 has the label 3, and click rates lie in"):
            computed(Tiered("NDCG > CNDCG[clicks]"), labels, [1.0, 0.0], [2])

    def test_a_tier_without_pairs_is_told(self, caplog):
        with caplog.at_level(logging.WARNING, "rankinite"):
            lam, _ = computed(Tiered("NDCG@3 > ERR@5"), CLICKED, [1.0, 0.0], [2])
        assert "ERR@5 has nothing to teach: no two positive documents" in caplog.text
        assert "see pairs_of=labelled" in caplog.text
        assert not lam.any()

    def test_a_precision_keeps_its_depth(self):
        labels = {None: np.array([0.0, 1.0, 0.0]), "clicks": np.ones(3)}
        alone = rk.lambda_gradients("P@1", [3.0, 2.0, 1.0], labels[None], [0, 3])[0]
        lam, _ = computed(Tiered("P@1 > CNDCG[clicks]", weights=0.0), labels, [3.0, 2.0, 1.0], [3])
        assert lam[1] > 0.0
        assert (lam == alone).all()
