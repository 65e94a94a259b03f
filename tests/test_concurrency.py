"""Every public function called by eight threads at once, and by the children of forks."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import rankinite as rk
from rankinite.data.memmap import fingerprint
from rankinite.runs.recipe_reader import recipe_of
from tests.processes import LIMIT
from tests.runs.cases import MICRO, micro_data

N_CALLERS = 8
DATA = rk.polynomials(12, n_features=4, n_docs=8, seed=1)
MORE = rk.polynomials(12, part="test", n_features=4, n_docs=8, seed=1)
SCORES = {name: MORE.X[:, k].astype(float) for k, name in enumerate("abc")}


def small(kind: Any) -> Any:
    return kind(random_state=1, **{"n_epochs": 1} if kind is rk.LambdaRank else {"n_trees": 3})


def fitted(kind: Any = rk.LambdaMART) -> Any:
    return small(kind).fit(DATA)


def members() -> dict[str, Any]:
    return {"trees": fitted(rk.MART), "net": fitted(rk.LambdaRank)}


def bytes_of(result: Any) -> bytes:
    """Return what must be equal of two results."""
    if isinstance(result, rk.RankingData):
        return fingerprint(result).encode()
    if isinstance(result, Path):
        return result.read_bytes()
    if hasattr(result, "save") and hasattr(result, "predict"):
        path = Path(f"{threading.get_ident()}.rk")
        result.save(path)
        return path.read_bytes()
    return repr(result).encode() if isinstance(result, str | float) else pickle.dumps(result)


def saved(path: Path) -> Path:
    rk.save(DATA, path)
    return path


def saved_scores(path: Path) -> Path:
    rk.save_scores(SCORES["a"], MORE, path)
    return path


def saved_qrels(path: Path) -> Path:
    rk.save_qrels(DATA, path)
    return path


def saved_model(path: Path) -> Path:
    fitted().save(path)
    return path


def warmed_up(path: Path) -> Any:
    model = rk.load_model(saved_model(path / "model.rk"))
    rk.warm_up(model)
    return model.predict(MORE)


def with_threads(_: Path) -> Any:
    with rk.threads(2):
        return fitted().predict(MORE)


def frame() -> pd.DataFrame:
    table = pd.DataFrame(DATA.X, columns=list(DATA.feature_names))
    return table.assign(label=DATA.y, query=DATA.qid)


def run(path: Path) -> Path:
    recipe = recipe_of("micro.toml", MICRO)
    rk.run_recipe(recipe, micro_data(40, 0), out=path / "run", jobs=1)
    return path / "run" / "ensemble.rk"


def sweep(path: Path) -> Path:
    from tests.sweeps.cases import micro_sweep

    micro_sweep(path / "sweep", trials=2)
    return path / "sweep" / "trials.csv"


# What each public function gives; its argument is a folder for files. Errors, measures and results
# are made by the others.
def exported(path):
    rk.export(fitted(), path, "c" if path.suffix == ".c" else "lightgbm")
    return path


CALLS: dict[str, Any] = {
    "Average": lambda _: rk.Average(members()).fit(DATA),
    "BestMix": lambda _: rk.BestMix(members()).fit(DATA),
    "BinnedData": lambda _: small(rk.MART).fit(
        DATA, binned=rk.BinnedData.make(DATA.X, DATA.feature_names)
    ),
    "Interpolation": lambda _: rk.Interpolation(members()).fit(DATA),
    "LambdaMART": lambda _: fitted(),
    "LambdaRank": lambda _: fitted(rk.LambdaRank),
    "MART": lambda _: fitted(rk.MART),
    "McRank": lambda _: fitted(rk.McRank),
    "RankNormaliser": lambda _: rk.RankNormaliser().fit(DATA).transform(DATA),
    "Stacked": lambda _: rk.Stacked(members(), ranker=small(rk.MART)).fit(DATA),
    "WithScoreFeatures": lambda _: rk.WithScoreFeatures(small(rk.MART), small(rk.McRank)).fit(DATA),
    "augment": lambda _: rk.augment(DATA, 0.8, 2, seed=1),
    "best_mix": lambda _: repr(rk.best_mix(SCORES["a"], SCORES["b"], MORE, "NDCG@3")),
    "best_subset": lambda _: repr(rk.best_subset(SCORES, MORE, "NDCG@3")),
    "challenge": lambda _: rk.challenge(5),
    "click_sessions": lambda _: rk.click_sessions(DATA, seed=1),
    "clicks": lambda _: rk.clicks(DATA, seed=1),
    "compare": lambda _: rk.compare(SCORES, MORE, "NDCG@3", test="randomisation").to_markdown(),
    "compare_evaluations": lambda _: rk.compare_evaluations(
        {name: rk.evaluate(scores, MORE, ["ERR"]) for name, scores in SCORES.items()}
    ).to_markdown(),
    "concat": lambda _: rk.concat(DATA.split(2, seed=1)),
    "evaluate": lambda _: repr(rk.evaluate(SCORES["a"], MORE, ["NDCG@3", "ERR", "MAP"])),
    "explain": lambda _: rk.explain(fitted(), DATA).contributions,
    "explain_losses": lambda _: repr(rk.explain_losses(fitted(), fitted(rk.MART), DATA, "NDCG@3")),
    "export": lambda folder: exported(folder / "model.c"),
    "from_frame": lambda _: rk.from_frame(frame(), label="label", qid="query"),
    "import_model": lambda folder: rk.import_model(exported(folder / "model.txt")).predict(DATA),
    "lambda_gradients": lambda _: rk.lambda_gradients("NDCG", SCORES["a"], MORE.y, MORE.offsets),
    "load": lambda folder: rk.load(saved(folder / "data.txt")),
    "load_model": lambda folder: rk.load_model(saved_model(folder / "model.rk")),
    "load_scores": lambda folder: rk.load_scores(saved_scores(folder / "scores.txt"), MORE),
    "partial_dependence": lambda _: repr(rk.partial_dependence(fitted(), DATA, "1")),
    "permutation_importances": lambda _: repr(
        rk.permutation_importances(fitted(), DATA, "NDCG@3", repeats=2)
    ),
    "parse_measure": lambda _: str(rk.parse_measure("NDCG@3 > MAP")),
    "polynomials": lambda _: rk.polynomials(5, n_features=3, seed=2),
    "read_recipe": lambda _: rk.read_recipe("winner-small").text,
    "run_recipe": run,
    "run_sweep": sweep,
    "save": lambda folder: saved(folder / "data.parquet"),
    "save_qrels": lambda folder: saved_qrels(folder / "qrels.txt"),
    "save_scores": lambda folder: saved_scores(folder / "scores.txt"),
    "score_features": lambda _: rk.score_features(SCORES["a"], MORE.offsets),
    "scorer": lambda _: float(rk.scorer("NDCG@3", qid=DATA.qid)(fitted(), DATA.X, DATA.y)),
    "threads": with_threads,
    "warm_up": warmed_up,
}
# They only ask or say how many threads there are.
SETTINGS = {"n_threads", "set_threads"}


def test_calls_cover_the_public_functions():
    public = {name for name in rk.__all__ if callable(getattr(rk, name))}
    functions = {name for name in public if not isinstance(getattr(rk, name), type)}
    assert functions - SETTINGS <= CALLS.keys() <= public
    rankers = {*rk.models.RANKERS, *rk.models.COMPOSED}
    assert rankers <= CALLS.keys()


@pytest.mark.parametrize("name", CALLS)
def test_eight_threads_at_once(name, tmp_path):
    def result(k: int) -> bytes:
        folder = tmp_path / str(k)
        folder.mkdir()
        with rk.threads(2):
            return bytes_of(CALLS[name](folder))

    expected = result(N_CALLERS)
    with ThreadPoolExecutor(N_CALLERS) as callers:
        assert list(callers.map(result, range(N_CALLERS))) == [expected] * N_CALLERS


SCRIPT = """
import multiprocessing, os
import numpy as np
import rankinite as rk

rk.set_threads(2)
data = rk.polynomials(12, n_features=4, n_docs=8, seed=1)
model = rk.LambdaMART(n_trees=3, random_state=1).fit(data)
rk.warm_up(model)
expected = model.predict(data).tobytes()

def answer(k):
    again = rk.LambdaMART(n_trees=3, random_state=1).fit(data)
    return [m.predict(data).tobytes() for m in (model, again)] == [expected] * 2
"""
# A pool of processes after a fit; and workers of a server that loads its model before it forks.
AFTER_A_FIT = {
    "pool": """
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(all(pool.map(answer, range(4))))
""",
    "pre-fork": """
children = []
for k in range(3):
    child = os.fork()
    if child == 0:
        os._exit(0 if answer(k) else 1)
    children.append(child)
print(all(os.waitpid(child, 0)[1] == 0 for child in children))
""",
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.parametrize("what", AFTER_A_FIT.values(), ids=AFTER_A_FIT)
def test_forks_after_a_fit(what):
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT + what], capture_output=True, text=True, timeout=LIMIT
    )
    assert (process.stdout, process.returncode) == ("True\n", 0), process.stderr
