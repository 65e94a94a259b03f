"""Parameters and data at the ends of what numbers can be.

Every parameter of every ranker gets values far out, in Python and in files; labels, features and
weights are as large and as small as floats are. A fit must end in a model with finite scores, which
comes back from its file as it was, or in a sentence.
"""

from __future__ import annotations

import fractions
import math
import resource
import signal
import warnings
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

import rankinite as rk
from rankinite.core.params import parameters_of
from rankinite.core.threads import set_threads
from rankinite.models import RANKERS
from tests.attacks import Outcome
from tests.attacks.disks import in_child
from tests.attacks.tries import REFUSALS

SECONDS = 60
MOST_BYTES = 3 << 30
SMALL = {"n_trees": 3, "n_epochs": 3, "n_leaves": 4, "min_docs_in_leaf": 1, "hidden": 3}
VALUES: list[Any] = [
    0, 1, -1, 2, 3, 255, 10**20, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**62, 2**63 - 1, 2**63,
    -(2**63), 10**400, 10**5000, 0.0, -0.0, 0.5, 1.0, 1e-320, 5e-324, 1e-45, 1e-8, 1e8, 1e38, 1e39,
    1e100, 1e200, 1e300, 1.7e308, math.inf, -math.inf, math.nan, -1e300, "1e5", "nan", "", "all",
    "\x00", b"1", True, False, None, np.int8(3), np.uint64(2**64 - 1), np.float16(0.5),
    np.float32(1e38), np.float64(2), np.longdouble("1e4000"), np.bool_(True), np.array(3),
    np.array([3, 4]), fractions.Fraction(1, 3), fractions.Fraction(10**400, 3), Decimal("0.5"),
    Decimal("NaN"), 1j, [], [3], [2**40], [0], [1e300], (), {}, {"1": 1}, {"1": 10**20},
    {"2": math.nan}, [[0, 1]], [["1", "2"]], [2**63], object(), len,
]  # fmt: skip
EXTREMES = [
    0.0, 1.0, 2.0, 5e-324, 1e-310, 1e-45, 1e-38, 1e-20, 1e20, 1e38, 3e38, 1e39, 1e100, 1e154, 1e155,
    1e200, 1e300, 1.7e308,
]  # fmt: skip
MEASURES = [
    "NDCG@10", "NDCG(gain=linear)", "DCG", "ERR", "MAP(relevant=1)", "MRR(relevant=1)", "RBP",
    "Spearman",
]  # fmt: skip


def hostile(rng: np.random.Generator, n: int) -> Iterator[Outcome]:
    """Fit, save and measure with values far out, each in a process of its own."""
    plain = data_set(rng, np.zeros(0, bool))
    for kind in RANKERS.values():  # the children have what is compiled
        kind(**{k: v for k, v in SMALL.items() if k in parameters_of(kind)}).fit(plain)
    for k in range(n):
        seed = int(rng.integers(2**63))
        attack = with_parameters if k % 2 else with_data
        what, bad = in_child(lambda seed=seed, attack=attack: limited(attack, seed))
        yield Outcome(what, f"{bad}: {Path('tried').read_text()}" if what == "death" else bad)


def limited(attack: Any, seed: int) -> tuple[str, str]:
    """Call an attack with limits of memory and time."""
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(SECONDS)
    set_threads(1)
    rng = np.random.default_rng(seed)
    tried = ""
    try:
        # Numpy's warnings of overflows: what counts is what comes of them.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            tried, function = attack(rng)
            Path("tried").write_text(tried)  # which is read if the process dies
            function()
    except REFUSALS as problem:
        return "refused", "" if str(problem).strip() else f"{tried}: no sentence"
    except Exception as problem:
        return "foreign exception", f"{tried}: {type(problem).__name__}: {problem}"[:400]
    return "finite", ""


def with_parameters(rng: np.random.Generator) -> tuple[str, Any]:
    """Return a fit with hostile values of one or two parameters."""
    name = str(rng.choice(list(RANKERS)))
    kind = RANKERS[name]
    declared = list(parameters_of(kind))
    chosen = {
        str(key): VALUES[int(rng.integers(len(VALUES)))]
        for key in rng.choice(declared, int(rng.integers(1, 3)))
    }
    data = data_set(rng, np.zeros(0, bool))
    settings = {key: value for key, value in SMALL.items() if key in declared} | chosen

    def fit() -> None:
        model = kind(**settings)
        # Many rounds are what somebody may want: two of them tell enough.
        n_rounds = iter(range(2, 0, -1))
        options = {"valid": data} if rng.random() < 0.3 else {}
        model.fit(data, callbacks=[lambda _done: next(n_rounds) == 1], **options)
        finish(model, data)

    return f"{name}({', '.join(f'{k}={shown(v)}' for k, v in chosen.items())})", fit


def shown(value: Any) -> str:
    """Return a value as text; Python writes no numbers with more than some thousand digits."""
    return "10**5000" if isinstance(value, int) and value > 10**1000 else repr(value)


def with_data(rng: np.random.Generator) -> tuple[str, Any]:
    """Return a fit, measures and a comparison on data far out."""
    name = str(rng.choice(list(RANKERS)))
    kind = RANKERS[name]
    where = rng.random(3) < 0.5
    data = data_set(rng, where)
    chosen: dict[str, Any] = {k: v for k, v in SMALL.items() if k in parameters_of(kind)}
    for key in ("leaf_values", "loss", "optimiser"):
        values = getattr(parameters_of(kind).get(key), "constraint", None)
        if hasattr(values, "values"):
            chosen[key] = values.values[int(rng.integers(len(values.values)))]
    measures = [str(m) for m in rng.choice(MEASURES, 2, replace=False)]

    def fit_and_measure() -> None:
        scores = rng.choice(EXTREMES, data.n_docs) * rng.choice([-1, 1], data.n_docs)
        for measure in measures:
            try:
                evaluation = rk.evaluate(scores, data, measure)
                rk.compare({"a": scores, "b": scores[::-1].copy()}, data, measure)
            except REFUSALS:
                continue
            values = np.concatenate(list(evaluation.per_query.values()))
            assert not np.isinf(values).any(), f"{measure} is {values}"
        model = kind(**chosen).fit(data)
        finish(model, data)

    what = [
        w
        for w, is_chosen in zip(("labels", "features", "weights"), where, strict=True)
        if is_chosen
    ]
    return f"{name}({chosen}) with {what}, {measures}", fit_and_measure


def data_set(rng: np.random.Generator, where: Any) -> rk.RankingData:
    """Return a data set; of labels, features and weights, some are far out."""
    n_queries, n_docs, n_features = 6, 8, 3
    n = n_queries * n_docs
    labels = rng.integers(0, 4, n).astype(float)
    matrix = rng.normal(size=(n, n_features))
    weights = np.ones(n_queries)
    if where.any():
        labels_, features_, weights_ = where
        few = rng.choice(EXTREMES, 4)
        if labels_:
            labels = rng.choice(few, n)
        if features_:
            matrix = rng.choice(few, (n, n_features)) * rng.choice([-1, 1], (n, n_features))
        if weights_:
            weights = rng.choice(few, n_queries)
    return rk.RankingData(
        matrix, labels, np.repeat(np.arange(n_queries), n_docs), query_weight=weights
    )


def finish(model: Any, data: rk.RankingData) -> None:
    """Score, save and load a model: scores are finite, and the same."""
    scores = model.predict(data)
    assert np.isfinite(scores).all(), "scores that are not finite"
    path = Path("m.rk")
    model.save(path)
    again = rk.load_model(path).predict(data)
    assert np.array_equal(scores, again), "other scores from the file"
