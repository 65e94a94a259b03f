"""The page of a sweep: whole, in need of nothing, with every trial where it belongs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rankinite.report.sweep_page import coordinates_of, history_of, sweep_html
from rankinite.sweeps.results import Settings, Sweep
from rankinite.sweeps.space import space_of
from rankinite.sweeps.trials import BASELINE, FoldResult, Trial
from tests.report.pages import HOSTILE, Page, assert_fits_screens, assert_needs_nothing_else
from tests.sweeps.cases import micro_recipe

SPACE = {"n_leaves": "2:6:2", "learning_rate": "0.01..1"}


def fold(value):
    return FoldResult(value, 2, 3, ((1, value - 0.1), (2, value), (3, value - 0.01)))


def trial(number, n_leaves, rate, *values):
    return Trial(
        number,
        {"n_leaves": n_leaves, "learning_rate": rate},
        tuple(map(fold, values)),
        {},
        is_pruned=len(values) == 1,
    )


def hand_made(space=SPACE, trials=None, importances=None):
    recipe = micro_recipe()
    model = recipe.models["S"]
    settings = Settings(
        recipe=recipe, model=model, space=space_of(model, space), search="tpe", batch=4, folds=2,
        measure="NDCG@3", seed=1, pruning=True, data="0123",
    )  # fmt: skip
    if trials is None:
        trials = (
            trial(0, 2, 0.01, 0.3, 0.5),
            trial(1, 4, 0.1, 0.6, 0.8),
            trial(2, 6, 1.0, 0.9),
            trial(3, 6, 0.1, 0.5, 0.7),
        )
    baseline = trial(BASELINE, 4, 0.1, 0.4, 0.6)
    if space is not SPACE:
        baseline = replace(baseline, parameters={name: baseline.parameters[name] for name in space})
    return Sweep(Path("sweep"), settings, trials, baseline, importances)


def small():
    only = trial(0, 2, 0.1, 0.3, 0.5)
    return hand_made({"n_leaves": "2:3:9"}, (replace(only, parameters={"n_leaves": 2}),))


CASES = {
    "four trials": hand_made,
    "importances": lambda: hand_made(importances={"n_leaves": 0.25, "learning_rate": 0.75}),
    "one trial of steps with one value": small,
}


@pytest.mark.parametrize("case", CASES)
def test_every_page_is_whole_and_needs_nothing_else(case):
    assert_needs_nothing_else(sweep_html(CASES[case]()))


def test_history_by_hand():
    # Means are 0.4, 0.7 and 0.6; the own parameters have 0.5. From the best, 0.7, the scale goes
    # down by four times the distance to the middle, 0.6, but not below the worst, 0.4; with a
    # margin of 0.04 of 0.3 at each end it is 0.388 to 0.712, and the worst at 0.012 / 0.324.
    history = history_of(hand_made())
    assert (history.top, history.bottom, history.right) == ("0.7120", "0.3880", "trial 3")
    assert [dot.path for dot in history.marks] == [
        "M0 96.3h0", "M33.33 3.7h0", "M66.67 100h0", "M100 34.57h0",
    ]  # fmt: skip
    assert [dot.kind for dot in history.marks] == ["", "best", "pruned", ""]
    assert history.best == "M0 96.3H33.33V3.7H66.67H100"
    assert history.recipe == "M0 65.43H100"


def test_coordinates_by_hand():
    coordinates = coordinates_of(hand_made())
    assert [axis.name for axis in coordinates.axes] == ["n_leaves", "learning_rate", "NDCG@3"]
    assert coordinates.axes[0].labels == (("100", "2"), ("50", "4"), ("0", "6"))
    # A rate of 0.1 is half way from 0.01 to 1 on a log scale; the best trial is drawn last.
    assert coordinates.lines[-1].path.startswith("M0 50L50 50L100 ")
    assert coordinates.lines[-1].kind == "best"
    assert coordinates.lines[0].path.startswith("M0 100L50 100L100 ")
    assert len(coordinates.lines) == 3  # the pruned trial has no mean


def test_a_pruned_trial_has_no_mean_in_the_table():
    text = Page(sweep_html(hand_made())).text
    assert "2 6 1 - - 3 pruned" in text
    assert "1 4 0.1 0.7000 0.1000 2 best" in text


def test_names_are_escaped():
    sweep = hand_made()
    settings = sweep.settings
    hostile = replace(
        settings,
        recipe=replace(settings.recipe, name=HOSTILE),
        model=replace(settings.model, name=HOSTILE, description=HOSTILE),
    )
    text = sweep_html(replace(sweep, settings=hostile))
    assert "<script>alert" not in text
    assert Page(text).text.count(HOSTILE) > 3


def test_no_page_is_wider_than_its_screen(tmp_path):
    assert_fits_screens(sweep_html(hand_made(importances={"n_leaves": 1.0})), tmp_path)
