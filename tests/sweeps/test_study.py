"""Proposals of Optuna, the file of its trials, and pruning."""

from __future__ import annotations

import statistics
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankinite.core.errors import DataError, MissingExtraError
from rankinite.sweeps.space import Choice, Range, Steps, points_of
from rankinite.sweeps.study import (
    JOURNAL,
    SEARCHES,
    Journal,
    import_optuna,
    importances,
    next_batch,
    open_journal,
    quietly,
)
from rankinite.sweeps.trials import (
    FoldResult,
    Trial,
    best_of,
    best_so_far,
    floors_of,
    pruned_after,
    pruning_rounds,
    ranked,
    some_points,
)

FINITE = {"a": Steps(2, 11, 3, whole=True), "b": Choice((None, "x", 0.5))}
ENDLESS = {
    "a": Steps(0.1, 0.7, 0.2, whole=False),
    "b": Range(1, 9, whole=True),
    "c": Range(1e-4, 1e-1, whole=False),
}


@pytest.fixture(autouse=True)
def quiet():
    with quietly():
        yield


SWEEP = "the hash of a sweep"


def a_trial(number, parameters, value=0.5, curve=(0.1, 0.2), *, is_pruned=False):
    values = (value,) if is_pruned else (value, value + 0.25)
    folds = tuple(FoldResult(v, 1, len(curve), some_points(curve)) for v in values)
    return Trial(number, parameters, folds, best_so_far(curve, [1, 2]), is_pruned)


def a_sweep(space, search, n, size=4, seed=1):
    """Return trials whose values are some function of their parameters."""
    trials = []
    while len(trials) < n:
        points = next_batch(space, search, seed, trials, len(trials) // size, size)
        if not points:
            break
        for point in points:
            value = point["a"] / 10 - 0.1 * (point["b"] is None)
            trials.append(a_trial(len(trials), point, value, is_pruned=len(trials) % 5 == 4))
    return trials


@pytest.mark.parametrize("search", SEARCHES)
def test_all_points_of_a_finite_space_once(search):
    trials = a_sweep(FINITE, search, 99)
    points = [tuple(trial.parameters.values()) for trial in trials]
    assert sorted(points, key=repr) == sorted(
        ((a, b) for a in (2, 5, 8, 11) for b in (None, "x", 0.5)), key=repr
    )


@pytest.mark.parametrize("search", ["tpe", "random"])
def test_equal_seeds_ask_the_same_and_stay_within_the_space(search):
    first, second = (a_sweep(ENDLESS, search, 24) for _ in range(2))
    assert first == second
    assert first != a_sweep(ENDLESS, search, 24, seed=2)
    for trial in first:
        assert trial.parameters["a"] in (0.1, 0.3, 0.5, 0.7)
        assert trial.parameters["b"] in range(1, 10)
        assert 1e-4 <= trial.parameters["c"] <= 1e-1
        assert float(f"{trial.parameters['c']:.4g}") == trial.parameters["c"]


def test_a_smaller_batch_asks_the_first_of_a_larger():
    earlier = a_sweep(ENDLESS, "tpe", 12)
    whole = next_batch(ENDLESS, "tpe", 1, earlier, 3, 4)
    assert next_batch(ENDLESS, "tpe", 1, earlier, 3, 2) == whole[:2]


def test_tpe_learns():
    late = a_sweep({**ENDLESS, "a": Range(0.0, 10.0, whole=False)}, "tpe", 40)[20:]
    assert statistics.fmean(trial.parameters["a"] for trial in late) > 6


def test_the_journal_gives_back_what_it_got(tmp_path):
    trials = a_sweep(ENDLESS, "random", 6)
    journal = Journal(tmp_path, ENDLESS, SWEEP)
    for trial in trials:
        journal.add(trial)
    assert journal.trials() == Journal(tmp_path, ENDLESS, SWEEP).trials() == trials


def test_a_journal_cut_anywhere_goes_on(tmp_path):
    trials = a_sweep(FINITE, "random", 3, size=3)
    journal = Journal(tmp_path, FINITE, SWEEP)
    for trial in trials:
        journal.add(trial)
    path = tmp_path / JOURNAL
    whole = path.read_bytes()
    last = len(whole.rstrip(b"\n").rsplit(b"\n", 1)[0]) + 1
    for end in (0, 1, 40, last, last + 1, len(whole) - 1, len(whole)):
        path.write_bytes(whole[:end])
        # What a process leaves that is killed while it writes.
        (tmp_path / f"{JOURNAL}.lock").symlink_to(path)
        again = Journal(tmp_path, FINITE, SWEEP)
        kept = again.trials()
        assert kept == trials[: len(kept)]
        assert len(kept) == {len(whole): 3, last: 2, last + 1: 2, len(whole) - 1: 2}.get(end, 0)
        for trial in trials[len(kept) :]:
            again.add(trial)
        assert Journal(tmp_path, FINITE, SWEEP).trials() == trials


def test_a_damaged_journal_is_a_sentence(tmp_path):
    (tmp_path / JOURNAL).write_bytes(b"nonsense\nmore\n")
    with pytest.raises(DataError, match=r"optuna\.log: is damaged"):
        Journal(tmp_path, FINITE, SWEEP)


CHANGES = {
    "value": lambda lines: [line.replace(b'"value":1.', b'"value":0.', 1) for line in lines],
    "fold": lambda lines: [line.replace(b'{"value":1.', b'{"value":0.', 1) for line in lines],
    "range": lambda lines: [line.replace(b": 11}", b": 17}", 1) for line in lines],
    "lost": lambda lines: [*lines[:-2], lines[-1]],
    "again": lambda lines: [*lines, lines[-1]],
    "swapped": lambda lines: [*lines[:-2], lines[-1], lines[-2]],
    "no checksum": lambda lines: [line.replace(b"sha256", b"sha257") for line in lines],
    "nonsense": lambda lines: [*lines, b"nonsense"],
    "a list": lambda lines: [*lines, b"[]"],
    "a number": lambda lines: [*lines, b"7"],
    "an empty entry": lambda lines: [*lines, b"{}"],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_journal_is_refused_or_begun_anew(tmp_path, change, caplog):
    trials = a_sweep(FINITE, "random", 3, size=3)
    journal = Journal(tmp_path, FINITE, SWEEP)
    for trial in trials:
        journal.add(trial)
    path = tmp_path / JOURNAL
    path.write_bytes(b"\n".join(change(path.read_bytes().splitlines())) + b"\n")
    with pytest.raises(DataError, match=r"optuna\.log: .*; run the recipe or the sweep again"):
        open_journal(tmp_path, FINITE, SWEEP, renew=False)
    journal, kept = open_journal(tmp_path, FINITE, SWEEP, renew=True)
    assert kept == journal.trials() == []
    assert "is made anew" in caplog.text


def test_trials_of_another_sweep_are_not_taken(tmp_path):
    Journal(tmp_path, FINITE, SWEEP).add(a_trial(0, next(points_of(FINITE)), 0.5))
    with pytest.raises(DataError, match=r"optuna\.log: the checksum of a trial"):
        open_journal(tmp_path, FINITE, "another sweep", renew=False)


def test_only_locks_of_optuna_are_removed(tmp_path):
    mine = tmp_path / f"{JOURNAL}.lock-notes.txt"
    mine.write_text("mine")
    Journal(tmp_path, FINITE, SWEEP)
    assert mine.read_text() == "mine"


def test_lists_come_back_as_they_were(tmp_path):
    # Warnings are errors here, and Optuna has no lists.
    space = {"a": Choice(([3, 2], 4, [5])), "b": Choice((True, None))}
    trials = []
    for search in ("tpe", "random"):
        points = next_batch(space, search, 1, [], 0, 9)
        assert sorted(points, key=repr) == sorted(points_of(space), key=repr)
        trials = [a_trial(k, point, k / 10) for k, point in enumerate(points)]
    journal = Journal(tmp_path, space, SWEEP)
    for trial in trials:
        journal.add(trial)
    assert Journal(tmp_path, space, SWEEP).trials() == trials
    more = [a_trial(k, {"a": [3, 2], "b": True}, k % 4) for k in range(6, 12)]
    assert importances(space, [*trials, *more], 0).keys() == {"a", "b"}


def test_importances():
    trials = [a_trial(k, {"a": 2 + 3 * (k % 4), "b": None}, k % 4) for k in range(12)]
    trials[5] = a_trial(5, {"a": 2, "b": "x"}, 0)
    shares = importances(FINITE, trials, 0)
    assert list(shares) == ["a", "b"]
    assert shares["a"] > 0.9
    assert importances(FINITE, trials[:7], 0) is None
    assert importances({"a": FINITE["a"]}, trials, 0) is None
    assert importances(FINITE, [a_trial(k, {"a": 2, "b": None}) for k in range(9)], 0) is None


def test_without_optuna(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'rankinite\[sweep\]'"):
        import_optuna()


def test_the_best_is_none_that_was_pruned():
    trials = [
        a_trial(0, {}, 0.5),
        a_trial(1, {}, 0.9, is_pruned=True),
        a_trial(2, {}, 0.6),
        a_trial(3, {}, 0.6),
    ]
    assert best_of(trials).number == 2
    assert [trial.number for trial in ranked(trials)] == [2, 3, 0, 1]
    # 0.6 and 0.85: mean 0.725, deviation 0.25 / sqrt(2), divided by sqrt(2).
    assert trials[2].value == pytest.approx(0.725)
    assert trials[2].standard_error == pytest.approx(0.125)
    assert trials[1].standard_error is None


def test_floors_are_medians_of_trials_that_came_to_an_end():
    trials = [a_trial(k, {}, curve=[k / 10, 0.05]) for k in range(4)]
    trials.insert(2, a_trial(9, {}, curve=[0.0, 0.0], is_pruned=True))
    # 0, 0.1, 0.2, 0.3 after the first round; the best so far after the second: 0.05, 0.1, 0.2, 0.3.
    assert floors_of(trials, [1, 2]) == pytest.approx({1: 0.15, 2: 0.15})
    assert floors_of(trials[:4], [1, 2]) == {}


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=12),
    st.dictionaries(st.integers(1, 14), st.integers(0, 9)),
)
def test_pruned_after_the_first_round_behind(curve, floors):
    behind = [r for r in floors if r <= len(curve) and all(v < floors[r] for v in curve[:r])]
    assert pruned_after(curve, floors) == min(behind, default=None)


@given(st.integers(1, 5000))
def test_pruning_begins_after_a_third(most):
    rounds = pruning_rounds(most)
    assert len(rounds) <= 8
    assert all(int(most / 3) <= r < most for r in rounds)
    assert len(rounds) == 8 or most < 24


@given(st.lists(st.floats(0, 1), min_size=1, max_size=300))
def test_some_points_of_a_curve(curve):
    points = some_points(curve)
    assert len(points) == min(len(curve), 60)
    assert points[0] == (1, curve[0])
    assert points[-1] == (len(curve), curve[-1])
    assert all(curve[r - 1] == value for r, value in points)
