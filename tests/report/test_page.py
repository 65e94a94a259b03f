"""The report: a whole page that needs nothing else, with the numbers of the run in it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ttest_rel

from rankinite.data.ranking_data import RankingData
from rankinite.evaluation.evaluate import Evaluation
from rankinite.objectives.position_bias import ADDITIVE, PROPENSITY, PositionBias
from rankinite.report import report_html
from rankinite.report.page import TITLES, position_charts
from rankinite.runs.results import ENSEMBLE, Curve, MemberFacts
from tests.report.cases import fake_recipe, fake_results, without_labels
from tests.report.pages import HOSTILE, Page, assert_needs_nothing_else


def nets_only():
    return fake_results(fake_recipe({"M9": "LambdaRank for ERR", "M10": "LambdaRank"}, {}))


def thirty_models():
    names = {f"Modèle {k} {HOSTILE}": "MART" for k in range(30)}
    return fake_results(fake_recipe(names, {"All": tuple(names)}, bags=1), sets=("test",))


CASES = {
    "two sets": fake_results,
    "nothing but training data": lambda: fake_results(sets=()),
    "valid only": lambda: fake_results(sets=("valid",)),
    "test only": lambda: fake_results(sets=("test",)),
    "test without labels": lambda: without_labels(fake_results(), "test"),
    "no labels at all": lambda: without_labels(fake_results(sets=("test",)), "test"),
    "no subsets": lambda: fake_results(fake_recipe(subsets={}), sets=()),
    "one model": lambda: fake_results(fake_recipe({"M1": "MART"}, {})),
    "nets only": nets_only,
    "thirty models": thirty_models,
}


@pytest.fixture(scope="module")
def results():
    return fake_results()


@pytest.fixture(scope="module")
def page(results):
    return Page(report_html(results))


@pytest.mark.parametrize("case", CASES)
def test_every_page_is_whole_and_needs_nothing_else(case):
    assert_needs_nothing_else(report_html(CASES[case]()))


def test_every_section_is_there_and_in_the_contents(page):
    ids = page.all_of("id")
    links = page.all_of("href")
    for name, title in TITLES.items():
        assert name in ids
        assert f"#{name}" in links
        assert title in page.text


def test_equal_results_give_equal_bytes(results):
    assert report_html(results) == report_html(fake_results())


def test_the_headline_by_hand(results, page):
    members = results.outcomes["test"].members
    ensemble, best = (
        members[n].per_query["NDCG@10"] for n in (ENSEMBLE, results.selection.best_member)
    )
    counted = ~np.isnan(ensemble)
    p = ttest_rel(ensemble[counted], best[counted]).pvalue
    assert p < 0.05
    assert (
        f"On {counted.sum()} queries of the test set the ensemble of 12 models reaches NDCG@10 "
        f"{np.nanmean(ensemble):.4f}; the best member, {results.selection.best_member}, "
        f"reaches {np.nanmean(best):.4f}. The ensemble is significantly better, by "
        f"{np.nanmean(ensemble - best):.4f} (p = {p:.3f})."
    ) in page.text


def test_the_headline_counts_the_models_of_the_ensemble(results):
    # The best member was trained again to compare with, though it is none of the ensemble.
    best = results.selection.best_member
    chosen = tuple(name for name in ("M1", "M5", "M9") if name != best)
    fewer = replace(results, selection=replace(results.selection, chosen=chosen))
    text = Page(report_html(fewer)).text
    assert f"the ensemble of {len(chosen)} models reaches" in text
    assert f"{best} is the best member by the held-out parts; it is not in the" in text


def test_every_mean_is_on_the_page(results, page):
    evaluations = [*results.selection.members.values(), *results.selection.subsets.values()]
    for outcome in results.outcomes.values():
        evaluations += outcome.members.values()
    for evaluation in evaluations:
        for values in evaluation.per_query.values():
            assert f"{np.nanmean(values):.4f}" in page.text


def test_wins_and_losses_by_hand(results, page):
    outcome = results.outcomes["test"]
    names = (ENSEMBLE, results.selection.best_member)
    whole, single = (outcome.members[name].per_query["NDCG@10"] for name in names)
    difference = whole - single
    tied = np.abs(difference) < 1e-12
    wins, losses = (difference > 0) & ~tied, (difference < 0) & ~tied
    sentence = (
        f"wins on {wins.sum()} queries and loses on {losses.sum()} queries; {tied.sum()} are ties"
    )
    assert sentence in page.text
    worst = np.nanargmin(difference)
    row = (
        f"{outcome.data.qids[worst]} \N{MINUS SIGN}{-difference[worst]:.4f} {whole[worst]:.4f} "
        f"{single[worst]:.4f} {outcome.data.sizes[worst]}"
    )
    assert row in page.text


def test_features_are_averaged_over_models_of_trees(results, page):
    # M12 takes the training of M11, which so counts once.
    facts = [member for name, member in results.facts.items() if name != "M12"]
    trees = [member.importances for member in facts if member.importances]
    assert len(trees) == 9
    share = max(np.mean([importances[name] for importances in trees]) for name in trees[0])
    assert f"averaged over {len(trees)} final tree models" in page.text
    assert f"{share:.1%}" in page.text


def test_a_training_is_drawn_once(results, page):
    assert "M12 takes the training of M11." in page.text
    assert sum(label.endswith(", learning curves") for label in _starts(page)) == 11


def _starts(page):
    return [label.partition(":")[0] for label in page.all_of("aria-label")]


def test_names_and_ids_are_escaped():
    results = fake_results(sets=("test",), n_queries=20)
    outcome = results.outcomes["test"]
    qids = np.array([f"{HOSTILE}{k}" for k in range(outcome.data.n_queries)])
    data = RankingData(
        outcome.data.X, outcome.data.y, np.repeat(qids, outcome.data.sizes), top_grade=4
    )
    members = {
        n: Evaluation(qids, evaluation.per_query) for n, evaluation in outcome.members.items()
    }
    facts = {n: replace(member, importances={HOSTILE: 1.0}) for n, member in results.facts.items()}
    hostile = replace(
        results,
        recipe=replace(results.recipe, name=HOSTILE, description=HOSTILE, text=HOSTILE),
        outcomes={"test": replace(outcome, data=data, members=members)},
        facts=facts,
        versions={HOSTILE: HOSTILE},
    )
    text = report_html(hostile)
    assert "<script>alert" not in text
    assert text.count("<script>") == 1
    assert Page(text).text.count(HOSTILE) > 10


def test_curves_with_holes_are_drawn():
    results = fake_results(fake_recipe({"M1": "MART", "M2": "MART"}, {}), sets=())
    holes = Curve("ERR", "trees", (0.1, float("nan"), 0.3, 0.2), 3)
    none = Curve("ERR", "trees", (float("nan"),), 0)
    facts = {
        "M1": MemberFacts((holes, none), {}, 1.0),
        "M2": MemberFacts((none,), {}, 1.0),
    }
    text = report_html(replace(results, facts=facts))
    # Values 0.1 to 0.3 over four rounds; the third, at the top, was kept.
    assert 'd="M0 100L66.67 0L100 50"' in text
    assert 'd="M66.67 0h0"' in text
    assert "M2 has no learning curve." in text


def test_position_bias_by_hand():
    results = fake_results(fake_recipe({"M1": "LambdaMART", "M2": "LambdaMART"}, {}), sets=())
    propensities = {"clicked": np.array([1.0, 0.5, 0.25]), "unclicked": np.array([1.0, 2.0, 1.0])}
    facts = {
        # Positions 1, 2 and 5: of the 3 others nothing is known.
        "M1": MemberFacts(
            (),
            {},
            1.0,
            position_bias=(PositionBias(PROPENSITY, np.array([1, 2, 5]), propensities),),
        ),
        "M2": MemberFacts((), {}, 1.0),
    }
    text = report_html(replace(results, facts=facts))
    page = Page(text)
    assert "propensities of clicked documents" in page.text
    assert "effects on the score" not in page.text
    # From 0 to the largest, at a quarter and at the end of the way from position 1 to 5.
    assert 'd="M0 0L25 50L100 75"' in text
    assert 'd="M0 50L25 0L100 50"' in text
    without = report_html(replace(results, facts={"M1": facts["M2"], "M2": facts["M2"]}))
    assert "Position bias" not in without


def test_copies_of_a_training_have_no_position_bias_of_their_own():
    results = fake_results(fake_recipe({"M1": "LambdaMART", "M2": "LambdaMART"}, {}), sets=())
    bias = PositionBias(ADDITIVE, np.array([0]), {"effect": np.zeros(1)})
    facts = {name: MemberFacts((), {}, 1.0, position_bias=(bias,)) for name in ("M1", "M2")}
    models = {"M1": results.recipe.models["M1"]}
    models["M2"] = replace(results.recipe.models["M2"], trained_as="M1")
    copied = replace(results, facts=facts, recipe=replace(results.recipe, models=models))
    assert [chart.title for chart in position_charts(copied)] == ["M1"]
