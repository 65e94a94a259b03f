"""Weights and positions of documents: what is refused, and where they may come from."""

from __future__ import annotations

import numpy as np
import pytest

import rankinite as rk
from tests.rankers.cases import bytes_of

GRADED = rk.polynomials(40, part="train", n_features=5)
LOG = rk.click_sessions(GRADED, sessions=3)
POSITION = LOG.labels["position"]
SMALL = {"n_trees": 12, "n_leaves": 8}
METHODS = ("propensity", "additive")
every_method = pytest.mark.parametrize("method", METHODS)


def fitted(method, data=LOG, **options):
    return rk.LambdaMART(**SMALL, position_bias=method).fit(data, **options)


@every_method
def test_the_first_positions_matter_most(method):
    """Users examine the first document always, and the last one time in ten."""
    bias = fitted(method).position_bias_
    assert bias.method == method
    assert bias.positions.tolist() == list(range(1, 11))
    estimate = bias.estimates["clicked" if method == "propensity" else "effect"]
    assert estimate[0] == (1.0 if method == "propensity" else 0.0)
    assert estimate[:3].mean() > estimate[3:6].mean() > estimate[6:].mean()


@every_method
def test_positions_of_an_argument_are_those_of_a_source(method):
    of_source = fitted(method)
    of_argument = fitted(method, LOG.replace(labels={}), position=POSITION)
    from_0 = fitted(method, LOG.replace(labels={}), position=POSITION - 1)
    np.testing.assert_array_equal(of_source.predict(GRADED), of_argument.predict(GRADED))
    np.testing.assert_array_equal(of_source.predict(GRADED), from_0.predict(GRADED))
    renamed = LOG.replace(labels={"rank": POSITION})
    named = rk.LambdaMART(**SMALL, position_bias=method, position_source="rank").fit(renamed)
    np.testing.assert_array_equal(named.predict(GRADED), of_source.predict(GRADED))


@every_method
def test_positions_follow_documents_that_are_brought_together(method):
    apart = np.concatenate([np.arange(0, LOG.n_docs, 2), np.arange(1, LOG.n_docs, 2)])
    query = np.repeat(np.arange(LOG.n_queries), LOG.sizes)
    together = apart[np.argsort(query[apart], kind="stable")]
    models = [
        fitted(method, LOG.X[order], y=LOG.y[order], qid=query[order], position=POSITION[order])
        for order in (apart, together)
    ]
    np.testing.assert_array_equal(models[0].predict(GRADED.X), models[1].predict(GRADED.X))


def test_a_position_that_is_given_is_used():
    model = rk.LambdaMART(**SMALL).fit(LOG, position=POSITION)
    assert bytes_of(model) != bytes_of(rk.LambdaMART(**SMALL).fit(LOG))
    np.testing.assert_array_equal(model.predict(GRADED), fitted("propensity").predict(GRADED))


def test_none_ignores_positions():
    model = fitted("none", position=POSITION)
    assert model.position_bias_ is None
    plain = rk.LambdaMART(**SMALL).fit(LOG)
    np.testing.assert_array_equal(model.predict(GRADED), plain.predict(GRADED))


@every_method
def test_the_same_bytes_for_any_number_of_threads(method, on_threads):
    models = on_threads(lambda: bytes_of(fitted(method)))
    assert len(set(models.values())) == 1


@every_method
@pytest.mark.parametrize("changes", [{}, {"queries_per_tree": 0.5}])
def test_a_resumed_fit_ends_with_the_same_bytes(method, changes, tmp_path):
    def new(n_trees):
        parameters = SMALL | {"n_trees": n_trees} | changes
        return rk.LambdaMART(**parameters, position_bias=method)

    whole = new(12).fit(LOG)
    file = tmp_path / "fit.checkpoint"
    new(5).fit(LOG, checkpoint=file)
    assert bytes_of(new(12).fit(LOG, checkpoint=file)) == bytes_of(whole)
    # A shorter fit takes fewer rounds of the same checkpoint.
    assert bytes_of(new(3).fit(LOG, checkpoint=file)) == bytes_of(new(3).fit(LOG))


def test_a_checkpoint_of_other_positions_is_refused(tmp_path):
    file = tmp_path / "fit.checkpoint"
    fitted("additive", position=POSITION, checkpoint=file)
    with pytest.raises(rk.UsageError, match="other data"):
        fitted("additive", position=POSITION[::-1], checkpoint=file)


@every_method
def test_a_model_file_holds_the_estimates(method, tmp_path):
    model = fitted(method)
    model.save(tmp_path / "model.rk")
    read = rk.load_model(tmp_path / "model.rk")
    assert bytes_of(read) == bytes_of(model)
    for name, values in model.position_bias_.estimates.items():
        np.testing.assert_array_equal(read.position_bias_.estimates[name], values)


@every_method
def test_estimates_are_those_of_the_best_round(method):
    model = rk.LambdaMART(**SMALL, position_bias=method, average_rounds=False)
    model.fit(LOG, valid=GRADED)
    short = rk.LambdaMART(**SMALL | {"n_trees": model.best_round_}, position_bias=method).fit(LOG)
    for name, values in short.position_bias_.estimates.items():
        np.testing.assert_array_equal(model.position_bias_.estimates[name], values)


@pytest.mark.parametrize(
    ("position", "sentence"),
    [
        (np.ones(3), r"position has the shape \(3,\); expected one position for each of the 1200"),
        (np.full(1200, np.nan), "the position of document 0 is nan; expected a whole number"),
        (np.full(1200, -1.0), "the position of document 0 is -1; expected a whole number"),
        (np.full(1200, 1.5), "the position of document 0 is 1.5; expected a whole number"),
        (np.full(1200, 1e12), r"the position of document 0 is 1e\+12; expected a whole number"),
        (["top"] * 1200, "position cannot be made numbers"),
    ],
)
def test_positions_that_are_refused(position, sentence):
    with pytest.raises(rk.DataError, match=f"LambdaMART: {sentence}"):
        fitted("additive", position=position)


def test_a_source_of_positions_that_is_not_there():
    with pytest.raises(rk.UsageError, match="position_source is 'position', and the label sources"):
        fitted("additive", GRADED)


@pytest.mark.parametrize("kind", [rk.MART, rk.McRank, rk.LambdaRank])
@pytest.mark.parametrize(
    "parameter", ["position_bias", "position_bias_regularization", "position_source"]
)
def test_other_rankers_say_what_to_use_instead(kind, parameter):
    sentence = "'; LambdaMART corrects for positions; other rankers take sample_weight, 1 over the"
    with pytest.raises(rk.UsageError, match=parameter + sentence):
        kind(**{parameter: 1})
    with pytest.raises(rk.UsageError, match=f"{kind.__name__} has none; LambdaMART corrects"):
        kind(lambdarank_unbiased=True)


def test_other_rankers_refuse_positions():
    with pytest.raises(rk.UsageError, match="MART does not correct for positions; use LambdaMART"):
        rk.MART(**SMALL).fit(LOG, position=POSITION)
    with pytest.raises(rk.UsageError, match="'position'; LambdaMART corrects for positions"):
        rk.LambdaRank().fit(LOG, position=POSITION)
