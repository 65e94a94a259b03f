"""Tables of a run: numbers by hand and by scipy, and what is left out."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ttest_rel

from rankinite.data.describe import describe
from rankinite.data.ranking_data import RankingData
from rankinite.ensembles.selection import Selection, gain_over
from rankinite.ensembles.subsets import Subset, SubsetSearch
from rankinite.evaluation.evaluate import Evaluation, evaluate_all
from rankinite.runs.recipe import FINAL_TABLE, MEMBERS_TABLE
from rankinite.runs.results import (
    ENSEMBLE,
    Outcome,
    Results,
    compare_ensemble,
)
from rankinite.runs.tables import per_query_csv, short_form, tables_of
from tests.report.cases import MEASURES, fake_recipe, fake_results, without_labels

# Differences 0.1, 0.2, 0.3 have mean 0.2 and standard error 0.1 / sqrt(3): t = sqrt(12). With two
# degrees of freedom p = 1 - t / sqrt(t^2 + 2) = 1 - sqrt(12 / 14) = 0.0742.
WEAK, STRONG = (0.1, 0.1, 0.1), (0.2, 0.3, 0.4)


def hand_made(values: dict[str, tuple[float, ...]]) -> dict[str, Evaluation]:
    return {
        name: Evaluation(
            np.array(["1", "2", "3"]), {"NDCG@10": np.array(row), "ERR": np.array(row) / 2}
        )
        for name, row in values.items()
    }


def hand_made_results(**changes: object) -> Results:
    recipe = fake_recipe({"M1": "MART", "M2": "MART"}, {"All": ("M1", "M2"), "Weak": ("M1",)})
    data = RankingData(np.zeros((6, 1)), [0, 1] * 3, ["1", "1", "2", "2", "3", "3"], top_grade=4)
    scores = {name: np.arange(6.0) for name in ("M1", "M2", ENSEMBLE)}
    selection = Selection(
        data,
        scores,
        hand_made({"M1": WEAK, "M2": STRONG}),
        hand_made({"All": STRONG, "Weak": WEAK}),
        None,
        ("M1", "M2"),
    )
    members = hand_made({"M1": WEAK, "M2": WEAK, ENSEMBLE: STRONG})
    results = Results(
        recipe, {"train": describe(data)}, selection, {"test": Outcome(data, scores, members)},
        {}, {}, {}, {},
    )  # fmt: skip
    return replace(results, **changes)


def test_members_subsets_and_final_by_hand():
    members, subsets, final, *pairs, oracle = tables_of(hand_made_results()).tables
    assert members.columns == ("Model", "Description", "NDCG@10", "p", "ERR", "p", "")
    assert members.rows == (
        ("M1", "MART", "0.1000", "0.074", "0.0500", "0.074", ""),
        ("M2", "MART", "0.3000", "", "0.1500", "", "best member"),
    )
    assert subsets.rows == (
        ("All", "M1, M2", "0.3000", "", "0.1500", "", "chosen"),
        ("Weak", "M1", "0.1000", "0.074", "0.0500", "0.074", ""),
    )
    assert final.columns == ("Model", "test NDCG@10", "p", "test ERR", "p", "")
    assert final.rows == (
        ("M1", "0.1000", "0.074", "0.0500", "0.074", ""),
        ("M2", "0.1000", "0.074", "0.0500", "0.074", "best member"),
        (ENSEMBLE, "0.3000", "", "0.1500", "", ""),
    )
    # Holm: three pairs with p of 1, 0.0742 and 0.0742, of which the smaller are tripled.
    assert [sheet.title.split()[2] for sheet in pairs] == ["NDCG@10", "ERR"]
    for sheet in pairs:
        assert sheet.columns == ("", "M1", "M2")
        assert sheet.rows == (("M2", "1.000", ""), (ENSEMBLE, "0.223", "0.223"))
    assert oracle.rows == (
        ("M2", "0.1000", "0.0500"),
        (ENSEMBLE, "0.3000", "0.1500"),
        ("oracle", "0.1000", "0.0500"),
    )


def test_values_hold_means_and_p_values():
    values = tables_of(hand_made_results()).values
    assert json.loads(json.dumps(values, allow_nan=False)) == values
    assert values["final"]["test"][ENSEMBLE]["ERR"] == pytest.approx(0.15)
    p = 1 - np.sqrt(12 / 14)
    assert values["p_values"]["members"]["M1"] == pytest.approx({"NDCG@10": p, "ERR": p})
    assert values["p_values"]["members"]["M2"] == {"NDCG@10": None, "ERR": None}
    assert values["p_values"]["pairs"]["ERR"]["systems"] == ["M1", "M2", ENSEMBLE]
    assert values["compared_on"] == "test"


def test_p_values_are_scipys():
    results = fake_results()
    values = tables_of(results).values["p_values"]
    members = results.outcomes["test"].members
    for name in ("M1", "M9"):
        member, ensemble = (members[n].per_query["ERR"] for n in (name, ENSEMBLE))
        counted = ~np.isnan(member)
        expected = ttest_rel(member[counted], ensemble[counted]).pvalue
        assert values["final"]["test"][name]["ERR"] == pytest.approx(expected, rel=1e-9)


def test_intervals_are_scipys():
    members = fake_results().outcomes["valid"].members
    gain = gain_over(members[ENSEMBLE], members["M3"], "ERR")
    test = ttest_rel(members[ENSEMBLE].per_query["ERR"], members["M3"].per_query["ERR"])
    interval = test.confidence_interval(0.95)
    assert (gain.low, gain.high) == pytest.approx((interval.low, interval.high))


def test_oracle_takes_the_best_member_of_every_query():
    results = fake_results()
    members = results.outcomes["test"].members
    best = np.max([e.per_query["ERR"] for n, e in members.items() if n != ENSEMBLE], axis=0)
    tables = tables_of(results)
    assert tables.values["oracle"]["ERR"] == pytest.approx(np.nanmean(best))
    assert tables.tables[-1].rows[-1][2] == f"{np.nanmean(best):.4f}"


def test_only_the_tables_that_the_recipe_asks_for():
    results = fake_results(replace(fake_recipe(), tables=(FINAL_TABLE, MEMBERS_TABLE)))
    titles = [sheet.title.split(";")[0] for sheet in tables_of(results).tables]
    assert titles == ["Final models", "Members on 60 queries of the held-out parts"]


def test_times_change_nothing():
    results = fake_results()
    slow = {n: replace(f, seconds=f.seconds + 9) for n, f in results.facts.items()}
    later = replace(results, seconds={"training": 1e6}, facts=slow)
    assert tables_of(later) == tables_of(results)


def test_without_labels_there_are_dashes_and_a_note():
    tables = tables_of(without_labels(fake_results(), "test"))
    final = tables.tables[2]
    assert final.rows[0][5:9] == ("-", "", "-", "")
    assert tables.values["compared_on"] == "valid"
    assert tables.values["final"]["test"]["M1"]["ERR"] is None
    assert any("dash for the test set" in note for note in tables.notes)


def test_without_further_sets_members_meet_all_models():
    tables = tables_of(fake_results(sets=()))
    assert [sheet.title.split()[0] for sheet in tables.tables] == [
        "Members", "Averages", "p-values", "p-values", "The",
    ]  # fmt: skip
    assert tables.tables[2].rows[-1][0] == "All"
    assert tables.values["compared_on"] == "held-out"


def test_the_best_member_outside_the_ensemble_is_told():
    results = hand_made_results()
    tables = tables_of(replace(results, selection=replace(results.selection, chosen=("M1",))))
    assert "M2, the best member, is not in the ensemble." in tables.notes
    assert not any("not in the ensemble" in note for note in tables_of(results).notes)


@pytest.mark.parametrize("name", ["Trees", "all models"])
def test_subsets_are_tested_against_all_models_though_no_subset_is_that(name):
    recipe = fake_recipe({"M1": "MART", "M2": "MART", "M3": "MART"}, {name: ("M1", "M2")})
    results = fake_results(recipe)
    scores, data = results.selection.scores, results.selection.data
    # Scores of unit variance, added up; means do not change an order.
    (whole,) = evaluate_all(
        [sum(row / row.std() for row in scores.values())], data, MEASURES, drop_single_label=False
    )
    whole_name = {"Trees": "all models", "all models": "average of all models"}[name]
    values = tables_of(results).values
    assert values["subsets"][whole_name] == pytest.approx(whole.mean)
    trees = results.selection.subsets[name].per_query["ERR"]
    expected = ttest_rel(trees, whole.per_query["ERR"], nan_policy="omit").pvalue
    assert values["p_values"]["subsets"][name]["ERR"] == pytest.approx(expected, rel=1e-9)
    sheet = tables_of(results).tables[1]
    assert sheet.title.endswith(f"; p against {whole_name}")
    assert [row[:2] for row in sheet.rows] == [(whole_name, "M1-M3"), (name, "M1, M2")]
    assert sheet.rows[0][-4:] == ("", f"{whole.mean['ERR']:.4f}", "", "chosen")


def test_without_subsets_members_meet_all_models():
    results = fake_results(fake_recipe(subsets={}), sets=())
    tables = tables_of(results)
    assert [sheet.title.split()[0] for sheet in tables.tables] == [
        "Members", "p-values", "p-values", "The",
    ]  # fmt: skip
    assert tables.tables[1].rows[-1][0] == compare_ensemble(results).title == "all models"


def test_the_best_subset_of_a_search_is_listed_if_it_has_no_name():
    results = hand_made_results()
    best, full = Subset(("M2",), {"NDCG@10": 0.31}), Subset(("M1", "M2"), {"NDCG@10": 0.3})
    search = SubsetSearch(
        ("M2",), best, full, (best, full), 0.01, 0.02, 0.001, 0.03, "every subset", 0.05
    )
    selection = replace(results.selection, search=search, chosen=("M2",))
    tables = tables_of(replace(results, selection=selection))
    subsets = tables.tables[1]
    # The p-value of this subset; that of the way to choose it is in the notes.
    assert subsets.rows[-1] == ("Best of search", "M2", "0.3100", "0.001", "-", "", "chosen")
    assert subsets.rows[0][-1] == ""
    assert tables.values["search"]["p"] == 0.01
    assert (
        "Of 2 subsets the best by NDCG@10 is M2: 0.3100 against 0.3000 of all models. The best of "
        "many flatters; chosen by one half of the queries and tested on the other, each in turn, "
        "subsets differ from all models by +0.0200 (p = 0.010). The ensemble takes that subset."
    ) in tables.notes


def test_one_model():
    results = fake_results(fake_recipe({"M1": "MART"}, {}))
    tables = tables_of(results)
    assert compare_ensemble(results).best == "M1"
    # A pair alone needs no correction, and equal systems have a p-value of 1.
    assert tables.tables[2].rows == ((ENSEMBLE, "1.000"),)
    assert "Holm" not in tables.tables[2].title


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["M1", "M4", "M5", "M8", "M9", "M10", "M11", "M12"], "M1, M4, M5, M8-M12"),
        (["M3", "M2", "M1"], "M3, M2, M1"),
        (["M01", "M02", "M03"], "M01-M03"),
        (["a", "b", "c"], "a, b, c"),
        ([], ""),
    ],
)
def test_short_form(names, expected):
    assert short_form(names) == expected


def test_per_query_csv_can_be_read_back():
    results = fake_results(sets=("test",))
    members = results.outcomes["test"].members
    lines = list(csv.DictReader(io.StringIO(per_query_csv(members))))
    assert [line["qid"] for line in lines] == results.outcomes["test"].data.qids.tolist()
    read = [float(line["M2 ERR"] or "nan") for line in lines]
    np.testing.assert_array_equal(read, members["M2"].per_query["ERR"])
