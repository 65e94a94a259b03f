"""The page of a query: whole, escaped, in the order of the model, and no wider than a screen."""

from __future__ import annotations

import re

import pytest

import rankinite as rk
from rankinite.report.explanation_page import explanation_html, waterfall_of
from tests.report.pages import HOSTILE, Page, assert_fits_screens, assert_needs_nothing_else

DATA = rk.polynomials(12, n_features=14)


def named(**fields) -> rk.RankingData:
    """Return a query whose names would break a page that does not escape them."""
    query = DATA[2]
    values = {
        "doc_ids": [f"{HOSTILE}{k}" for k in range(query.n_docs)],
        "feature_names": [f"{HOSTILE}{j}" for j in range(query.n_features)],
        "qid": [HOSTILE] * query.n_docs,
        "top_grade": 4,
    }
    return rk.RankingData(query.X, query.y, **(values | fields))


@pytest.fixture(scope="module")
def models():
    data = DATA.replace(feature_names=tuple(f"{HOSTILE}{j}" for j in range(14)))
    return [rk.LambdaMART(n_trees=n, n_leaves=8).fit(data) for n in (3, 12)]


@pytest.fixture(scope="module")
def explanation(models):
    return rk.explain(models[1], named())


def test_a_page_is_whole_and_escaped(models, explanation):
    pair = explanation.pair(1, 4)
    against = rk.explain(models[0], named())
    options = {"against": against, "title": HOSTILE, "against_title": HOSTILE}
    text = explanation_html(explanation, pair, **options)
    assert_needs_nothing_else(text)
    assert "alert(" in Page(text).text
    assert HOSTILE not in text
    assert text == explanation_html(explanation, pair, **options)


def test_documents_stand_in_the_order_of_the_model(explanation):
    text = explanation_html(explanation, explanation.pair(1, 2), title="m")
    shown = re.findall(r'<th scope="row">(\d+)</th>', text.split('id="documents"')[1])
    assert [int(rank) for rank in shown] == list(range(1, DATA[2].n_docs + 1))
    # Without another model, the order of the labels stands beside.
    assert "Rank by the labels" in Page(text).text


def test_a_waterfall_ends_at_the_difference(explanation, monkeypatch):
    monkeypatch.setattr("rankinite.report.explanation_page.MOST_BARS", 4)
    pair = explanation.pair(1, 5)
    *steps, total = waterfall_of(pair)
    assert len(steps) == 5
    assert steps[-1].label.endswith("other features")
    place = total.left if pair.difference > 0 else total.left + total.width
    for bar in steps:
        begin, end = bar.left, bar.left + bar.width
        if bar.kind == "loss":
            begin, end = end, begin
        assert begin == pytest.approx(place, abs=0.02)
        place = end
    assert place == pytest.approx(total.left + total.width, abs=0.02)


def test_a_page_without_labels_pairs_or_ids(models):
    data = named(doc_ids=None)
    bare = rk.RankingData(data.X[:1], qid=[1], feature_names=data.feature_names)
    text = explanation_html(rk.explain(models[1], bare), None)
    assert_needs_nothing_else(text)
    assert 'id="pair"' not in text
    assert 'id="orders"' not in text


def test_a_page_is_no_wider_than_its_screen(models, explanation, tmp_path):
    pair = explanation.pair(1, 4)
    assert_fits_screens(explanation_html(explanation, pair), tmp_path)
