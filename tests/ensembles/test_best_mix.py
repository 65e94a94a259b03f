"""BestMix: proportions, weights and names of members (Ensemble, Sec. 4.3)."""

from __future__ import annotations

import numpy as np
import pytest

import rankinite as rk
from rankinite.ensembles.mix_tree import neighbours, parse_mix_tree
from tests.ensembles.cases import members, scores_of
from tests.rankers.cases import TEST, VALID


def test_a_tree_is_a_text():
    with pytest.raises(rk.UsageError, match="BestMix: tree must be a text such as"):
        rk.BestMix(members(), tree=((1, 2), 3)).fit(VALID)


def value_of(scores, data, measure="NDCG@10"):
    return rk.evaluate(scores, data, measure).mean[measure]


@pytest.mark.parametrize("measure", ["NDCG@10", "ERR", "MAP"])
@pytest.mark.parametrize("tree", [None, "((1 2)3)", "((3 2)1)", "(2(1 3))"])
def test_every_node_is_as_good_as_any_grid(tree, measure):
    """By hand: the scaled scores of the two parts of a node, mixed in many proportions."""
    model = rk.BestMix(members(), tree=tree, measure=measure).fit(VALID)
    parsed = parse_mix_tree(tree or "((1 2)3)", ["1", "2", "3"])
    parts = [(s - s.mean()) / s.std() for s in scores_of(VALID).values()]
    assert [node.text for node in model.nodes_] == parsed.texts[3:]
    for (left, right), node in zip(parsed.pairs, model.nodes_, strict=True):
        a, b = parts[left], parts[right]
        for alpha in np.linspace(0, 1, 101):
            mixed = value_of((1 - alpha) * a + alpha * b, VALID, measure)
            assert node.value >= mixed - 1e-9
        parts.append((1 - node.alpha) * a + node.alpha * b)
        assert value_of(parts[-1], VALID, measure) == pytest.approx(node.value, abs=1e-9)
    np.testing.assert_allclose(model.predict(VALID), parts[-1], rtol=1e-9, atol=1e-9)
    singles = [value_of(s, VALID, measure) for s in scores_of(VALID).values()]
    assert model.nodes_[-1].value >= max(singles) - 1e-9


def test_weights_are_the_shares_down_the_tree():
    model = rk.BestMix(members(), tree="((1 3)2)").fit(VALID)
    inner, whole = (node.alpha for node in model.nodes_)
    expected = [(1 - whole) * (1 - inner), whole, (1 - whole) * inner]
    np.testing.assert_allclose(model.weights_, expected, rtol=1e-15)
    assert model.weights_.sum() == pytest.approx(1.0)


def test_members_by_name():
    named = dict(zip(("err", "mart", "net"), members(), strict=True))
    by_name = rk.BestMix(named, tree="((err net)mart)").fit(VALID)
    by_number = rk.BestMix(members(), tree="((1 3)2)").fit(VALID)
    np.testing.assert_array_equal(by_name.predict(TEST), by_number.predict(TEST))
    assert by_name.nodes_[0].text == "(err net)"


def test_names_that_cannot_be_written_are_numbers():
    assert str(neighbours(["a b", "c", "(d)"])) == "((1 2)3)"
    assert str(parse_mix_tree("((1 2)3)", ["a b", "c", "(d)"])) == "((1 2)3)"
