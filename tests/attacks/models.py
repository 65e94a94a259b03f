"""Damaged and forged model files, checkpoints and cut points."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import resource
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import rankinite as rk
from rankinite.cli import main
from rankinite.core.container import Content, read_container
from rankinite.explanation.inspection import inspect_ranker
from rankinite.rankers.base import Base
from tests.attacks import Outcome
from tests.attacks.damage import damaged
from tests.attacks.forgery import forged
from tests.attacks.tries import REFUSALS
from tests.rankers.cases import SMALL, SMALL_NET

FILE, AGAIN = Path("file.rk"), Path("again.rk")
SECONDS, MEGABYTES = 5.0, 300
N_FEATURES = 3
HUGE = float(np.finfo(np.float32).max)
# Documents as hostile as data sets may be.
ROWS = np.array(
    [
        *([0.0, 0.0, 0.0], [np.nan] * 3, [HUGE] * 3, [-HUGE] * 3, [HUGE, -HUGE, np.nan]),
        *([1e-45, -1e-45, -0.0], [0.5, 2.0, 1.0], [0.1, 7.0, 0.3], [1e30, 3.0, -1e30]),
    ],
    np.float32,
)
QID = np.repeat([0, 1], [4, 5])
TREES: dict[str, Any] = SMALL | {"n_trees": 3}
NET: dict[str, Any] = SMALL_NET | {"n_epochs": 2, "hidden": [3, 2]}


# Sound files


@cache
def data() -> rk.RankingData:
    """Return a data set with missing values, a categorical feature and positions."""
    rng = np.random.default_rng(1)
    X = rng.random((60, N_FEATURES)).astype(np.float32)
    X[:, 1] = rng.integers(0, 5, 60)
    X[::7, 0] = np.nan
    y = rng.integers(0, 3, 60)
    labels = {"position": np.tile(np.arange(6.0), 10)}
    return rk.RankingData(X, y, np.repeat(np.arange(10), 6), labels=labels)


@cache
def with_categories() -> rk.RankingData:
    plain = data()
    texts = ("red", "green", "blue", "é", "none")
    return rk.RankingData(plain.X, plain.y, plain.qid, categories={"2": texts})


def rankers() -> Iterator[Any]:
    """Iterate over fitted rankers of every class, which have all that a file can hold."""
    plain = data()
    mart = rk.MART(**TREES).fit(plain)
    net = rk.LambdaRank(**NET).fit(plain, valid=plain)
    lambdamart = rk.LambdaMART(**TREES, step="line-search", base=mart).fit(plain, valid=plain)
    yield from (mart, net, lambdamart)
    yield rk.LambdaMART(**TREES, position_bias="additive").fit(plain)
    yield rk.LambdaMART(**TREES, base=np.zeros(plain.n_docs)).fit(plain)
    yield rk.LambdaMART("ERR", **TREES).fit(with_categories(), valid=with_categories())
    yield rk.MART("logistic", **TREES, per_query=True).fit(plain)
    yield rk.McRank(**TREES).fit(plain)
    yield rk.LambdaRank(**NET | {"hidden": 0, "rank_inputs": False, "activation": "tanh"}).fit(
        plain
    )
    members = {"a": mart, "b": net, "c d": lambdamart}
    yield rk.Average(members).fit(plain)
    yield rk.BestMix(members, tree="((1 3)2)").fit(plain)
    yield rk.Interpolation(members, most_evaluations=20).fit(plain)
    yield rk.Stacked(members, ranker=rk.LambdaRank(**NET | {"hidden": 0})).fit(plain)
    scores = {name: member.predict(plain) for name, member in members.items()}
    yield rk.Average().fit(plain, member_scores=scores)
    yield rk.WithScoreFeatures(rk.MART(**TREES), rk.LambdaMART(**TREES), folds=2).fit(plain)


@cache
def model_files() -> list[bytes]:
    return [written(ranker.save) for ranker in rankers()]


@cache
def normaliser_files() -> list[bytes]:
    exact, rough = rk.RankNormaliser().fit(data()), rk.RankNormaliser(3).fit(ROWS)
    return [written(normaliser.save) for normaliser in (exact, rough)]


@dataclass(frozen=True)
class Fit:
    """A fit that resumes from a checkpoint."""

    ranker: Callable[..., Any]
    rounds: str
    data: Callable[[], rk.RankingData] = data
    has_valid: bool = True

    def __call__(self, path: Path, n_rounds: int) -> Any:
        ranker = self.ranker(**{self.rounds: n_rounds})
        valid = {"valid": self.data()} if self.has_valid else {}
        return ranker.fit(self.data(), checkpoint=path, **valid)


def _trees(kind: Any, **more: Any) -> Callable[..., Any]:
    return lambda **rounds: kind(**{**TREES, **more, **rounds})


def _net(**more: Any) -> Callable[..., Any]:
    return lambda **rounds: rk.LambdaRank(**{**NET, **more, **rounds})


FITS = [
    Fit(_trees(rk.LambdaMART, step="line-search"), "n_trees"),
    Fit(_trees(rk.LambdaMART, position_bias="propensity"), "n_trees", has_valid=False),
    Fit(_trees(rk.MART), "n_trees", with_categories),
    Fit(_trees(rk.McRank), "n_trees"),
    Fit(_net(), "n_epochs"),
    Fit(_net(optimiser="sgd", patience=1), "n_epochs"),
]


@cache
def checkpoint_files() -> list[tuple[Fit, bytes]]:
    return [(fit, written(lambda path, fit=fit: fit(path, 3))) for fit in FITS]


def written(save: Callable[[Path], object]) -> bytes:
    path = Path("sound.rk")
    save(path)
    content = path.read_bytes()
    path.unlink()
    return content


# Attacks


def damage(rng: np.random.Generator, n: int) -> Iterator[Outcome]:
    """Damage the bytes of files; all must be refused."""
    files = [*model_files(), *normaliser_files(), *(content for _, content in checkpoint_files())]
    contents = [sound_content(file) for file in files]
    for _ in range(n):
        number = int(rng.integers(len(files)))
        what, changed = damaged(rng, files[number])
        FILE.write_bytes(changed)
        try:
            content = read_container(FILE)
        except rk.ModelFileError:
            yield Outcome("refused")
        except Exception as problem:
            yield Outcome("foreign exception", f"file {number}: {what}: {problem!r}"[:300])
        else:
            same = are_equal(content, contents[number])
            yield Outcome("the same", "" if same else f"file {number}: {what} is read")


def sound_content(file: bytes) -> Content:
    FILE.write_bytes(file)
    return read_container(FILE)


def are_equal(first: Content, second: Content) -> bool:
    return first.manifest == second.manifest and all(
        first.arrays[name].tobytes() == array.tobytes() for name, array in second.arrays.items()
    )


def models(rng: np.random.Generator, n: int) -> Iterator[Outcome]:
    """Forge model files, load them, and use what is loaded."""
    files = model_files()
    for number in range(n):
        what, changed = forged(rng, files[int(rng.integers(len(files)))])
        FILE.write_bytes(changed)
        # The command takes longer than the rest.
        yield tried(what, lambda by_command=number % 20 == 0: used_model(by_command))


def cut_points(rng: np.random.Generator, n: int) -> Iterator[Outcome]:
    """Forge files of cut points, load them, and transform documents."""
    files = normaliser_files()
    for _ in range(n):
        what, changed = forged(rng, files[int(rng.integers(len(files)))])
        FILE.write_bytes(changed)
        yield tried(what, used_normaliser)


def checkpoints(rng: np.random.Generator, n: int) -> Iterator[Outcome]:
    """Forge checkpoints, and resume from them."""
    logging.getLogger("rankinite").setLevel(logging.ERROR)
    files = checkpoint_files()
    for _ in range(n):
        fit, content = files[int(rng.integers(len(files)))]
        what, changed = forged(rng, content)
        FILE.write_bytes(changed)
        yield tried(what, lambda fit=fit: used_fit(fit))


def tried(what: str, use: Callable[[], str]) -> Outcome:
    """Use a file; it must be refused, or work, and in any case take little."""
    begin, before = time.perf_counter(), peak()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "X does not have valid feature names")  # scikit-learn's
        try:
            outcome = Outcome("read", bad=use())
        except REFUSALS as problem:
            said = str(problem)
            # What was refused while it was used had been read.
            is_sentence = bool(said.strip()) and len(said) < 2_000
            outcome = Outcome("refused", "" if is_sentence else f"says {said[:99]!r}")
        except Exception as problem:
            bad = f"{type(problem).__name__}: {problem} {place_of(problem)}"
            outcome = Outcome("foreign exception", bad[:400])
    seconds, megabytes = time.perf_counter() - begin, peak() - before
    if seconds > SECONDS or megabytes > MEGABYTES:
        outcome = Outcome("takes much", f"{seconds:.1f} s, {megabytes} MB")
    return Outcome(outcome.what, outcome.bad and f"{what}: {outcome.bad}")


def peak() -> int:
    """Return the most memory that this process has used so far, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def place_of(problem: BaseException) -> str:
    trace = problem.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    code = None if trace is None else trace.tb_frame.f_code
    return "" if code is None or trace is None else f"({code.co_filename}:{trace.tb_lineno})"


def used_model(by_command: bool) -> str:
    """Load a model and do with it what can be done; return what must not be."""
    model = rk.load_model(FILE)
    if bad := saved_otherwise(model.save, lambda: rk.load_model(FILE).save(AGAIN)):
        return bad
    repr(model)
    model.get_params()
    rk_clone(model)
    json.dumps(inspect_ranker(model).as_json(), allow_nan=False)
    for number in range(min(len(getattr(model, "forest_", ())), 4)):
        model.tree_nodes(number)
        model.plot_tree(number)
    if by_command:
        said = called("inspect", str(FILE))
        if said:
            return said
    return predicted(model)


def saved_otherwise(save: Callable[[Path], object], save_again: Callable[[], object]) -> str:
    """Tell what is read from a file and is written in another way than it was there."""
    before = read_container(FILE)
    save(FILE)
    save_again()
    if FILE.read_bytes() != AGAIN.read_bytes():
        return "is saved in two ways"
    after = read_container(FILE)
    for name, array in after.arrays.items():
        if name not in before.arrays or before.arrays[name].tobytes() != array.tobytes():
            return f"has another {name} when it is saved"
    return "" if agree(before.manifest, after.manifest) else "has another manifest when it is saved"


def agree(first: Any, second: Any) -> bool:
    """Tell whether two manifests agree where both say something."""
    if isinstance(first, dict) and isinstance(second, dict):
        return all(agree(first[name], second[name]) for name in first.keys() & second.keys())
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(agree, first, second))
    return bool(first == second)


def rk_clone(model: Any) -> Any:
    from sklearn.base import clone

    return clone(model)


def called(*arguments: str) -> str:
    """Call a command; return what must not be."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            main(list(arguments))
    except SystemExit as leaving:
        if leaving.code not in (0, None):
            return f"rankinite {arguments[0]}: exit {leaving.code}, {said.getvalue()[-200:]}"
    return ""


def predicted(model: Any) -> str:
    """Score documents; return what must not be."""
    n_features = model.n_features_in_
    if n_features > 1_000:
        return ""
    X = np.resize(ROWS.T, (n_features, len(ROWS))).T.copy()
    # Columns of categories are codes, also where a frame would have texts.
    options: dict[str, Any] = {}
    if Base("model", getattr(model, "base", None)).is_scores:
        options["base_scores"] = np.linspace(-1e300, 1e300, len(X))
    if getattr(model, "members_", None) == {}:
        options["member_scores"] = {name: np.arange(len(X)) for name in model.member_names_}
    scores = model.predict(X, QID, **options)
    if scores.shape != (len(X),) or not np.isfinite(scores).all():
        return f"predicts {scores}"
    if hasattr(model, "forest_"):
        leaves = model.predict_leaf(X)
        if leaves.size and not (leaves >= 0).all():
            return f"leaves {leaves}"
    if hasattr(model, "importances") and not np.isfinite(model.feature_importances_).all():
        return "importances are not finite"
    return ""


def used_normaliser() -> str:
    normaliser = rk.RankNormaliser.load(FILE)
    save_again = lambda: rk.RankNormaliser.load(FILE).save(AGAIN)  # noqa: E731
    if bad := saved_otherwise(normaliser.save, save_again):
        return bad
    repr(normaliser)
    rk_clone(normaliser)
    ranks = normaliser.transform(np.resize(ROWS, (len(ROWS), normaliser.n_features_in_)))
    known = ranks[~np.isnan(ranks)]
    return "" if ((known >= 0.0) & (known <= 1.0)).all() else f"ranks {known}"


def used_fit(fit: Fit) -> str:
    model = fit(FILE, 4)
    FILE.unlink()
    bad = predicted(model)
    model.save(FILE)
    rk.load_model(FILE)
    return bad
