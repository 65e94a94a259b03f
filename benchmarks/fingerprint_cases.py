"""The cases of ``fingerprints.py``: what is computed, on which data, with which settings.

A case is a function without arguments in `CASES`; `each` makes one for every choice of names. What
cases share (data, fitted members) is computed once, when the first of them asks for it. Names of
cases are keys of earlier runs: a renamed case is missing there, and new.
"""

from __future__ import annotations

import ast
import gzip
import re
from collections.abc import Callable, Iterable
from functools import cache, partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import sklearn

import rankinite as rk

CASES: dict[str, Callable[[], Any]] = {}

# Rankers, and settings of trees and nets, as text that `settings_of` reads: it is the name of the
# case too.
TREES = "n_trees=12 n_leaves=8 learning_rate=0.2 min_docs_in_leaf=5 random_state=3"
NETS = "n_epochs=8 hidden=5 learning_rate=0.01 random_state=3"
KINDS = """LambdaMART; LambdaMART measure=ERR symmetric=True docs_per_tree=0.7; LambdaMART
 step=line-search n_trees=6; LambdaMART measure=MAP(relevant=3)>NDCG@5 criterion=newton; MART; MART
 loss=centred; MART loss=logistic features_per_tree=0.5; MART loss=logistic per_query=True; McRank
 n_trees=5; LambdaRank; LambdaRank hidden=0 measure=ERR; LambdaRank hidden=(6,3) queries_per_step=4;
 LambdaRank measure=MAP(relevant=3)>NDCG@5; LambdaRank optimiser=sgd learning_rate=0.1 patience=1"""
TREE_SETTINGS = """symmetric=True; criterion=newton; step=gradient; max_depth=2 min_gain=0.01;
 criterion=newton step=gradient symmetric=True; most_bins=7; n_leaves=99 min_docs_in_leaf=1;
 docs_per_tree=0.4; queries_per_tree=0.4; features_per_tree=0.3; queries_per_tree=1
 docs_per_tree=1; max_delta_step=0.1 path_smooth=3 interaction_constraints=[[0,1,2],[2,3]]"""
MONOTONE = """monotone_constraints=[[0,1],[1,-1]]; symmetric=False path_smooth=3
 monotone_constraints=[[0,-1],[2,1]]"""
NET_SETTINGS = """hidden=40; hidden=(9,5,2); queries_per_step=7 weight_decay=0; normalise=distance;
 optimiser=sgd learning_rate=0.05; optimiser=sgd hidden=0 patience=2; queries_per_step=all;
 optimiser=sgd learning_rate=0.5 patience=1 most_restarts=1; truncation=4 normalise=deviation"""
SEARCHES = "line_search_on=valid measure=ERR; alpha_bounds=(0.5,2.0); measure=NDCG@3>CNDCG[clicks]"
PAIRS = """normalise=none; normalise=none truncation=3; normalise=deviation truncation=None;
 normalise=deviation truncation=3; normalise=distance; normalise=distance truncation=1"""
MEASURES = """NDCG; NDCG@10; NDCG(gain=linear)@5; NDCG(empty=1)@3; DCG@5; ERR; ERR@5; MAP; MRR; P@5;
 MAP(relevant=2)@10; MRR@5; pFound; pFound(break=0.3)@9; CNDCG@3[clicks]; CNDCG[similar_clicks]"""
OBJECTIVES = f"""{MEASURES}; RankNet; NDCG@3 > CNDCG@3[clicks]; NDCG@3 ~0.005 > CNDCG@3[clicks] >
 CNDCG[similar_clicks]; Tiered(NDCG@3 > CNDCG@3[clicks], weights=0.5, train_depth=3, pairs_of=all);
 Tiered(NDCG > CNDCG[clicks], weights=0.1, pairs_of=labelled); SpringSmooth(ERR); LocalCost(MAP);
 SpringSmooth(NDCG@10); LocalCost(NDCG@10); LocalGradient(NDCG@10, margin=0.5); LocalGradient(MRR);
 DiscreteBounded(NDCG); DiscreteBounded(ERR@5); SigmoidCost(NDCG); SigmoidCost(ERR@5, mu=0.5);
 Transition(NDCG, SigmoidCost(NDCG@3), linear(start=0.1, eta=0.1)); Transition(RankNet, NDCG@10,
 exponential(start=0, eta=2)); Transition(NDCG, ERR, levelling(start=0, eta=4)); Transition(MAP,
 LocalCost(NDCG), 0.25)"""


def items(texts: str) -> list[str]:
    return [" ".join(text.split()) for text in texts.split(";")]


def settings_of(text: str) -> dict[str, Any]:
    """Return settings such as ``hidden=(6,3) optimiser=sgd``; what is no number is a text."""
    pairs = (word.partition("=")[::2] for word in text.split())
    python = re.compile(r"-?\d+(\.\d+)?$|[(\[]|(True|False|None)$")
    return {name: ast.literal_eval(text) if python.match(text) else text for name, text in pairs}


def each(prefix: str, *names: Iterable[Any]) -> Callable[[Any], Any]:
    """Register a function as cases, one for every choice of names, which are its arguments."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for chosen in product(*names):
            CASES["/".join([prefix, *map(str, chosen)])] = partial(function, *chosen)
        return function

    return register


SIZES = {"train": 60, "valid": 30, "test": 40}
small = cache(lambda p: rk.clicks(rk.polynomials(SIZES[p], part=p, n_features=12, n_docs=25)))
web = cache(lambda part: rk.challenge(SIZES[part] * 2, part=part, seed=5))
# More documents to train on than any part of the library takes at once, so that blocks are joined.
large = cache(lambda p: rk.polynomials({"train": 2_700}.get(p, 90), part=p, n_features=4))
scores = np.random.default_rng(2).normal(size=828)
rankings = [scores, np.round(scores * 2) / 2, scores * 300, np.zeros(828)]  # of `ragged`


@cache
def holes(part: str) -> Any:
    """Return a set with missing values, an empty feature and a constant one."""
    data, X = small(part), np.array(small(part).X)
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    X[:, 3], X[:, 7] = np.nan, 0.5
    return rk.RankingData(X, data.y, data.qid, labels=data.labels, top_grade=4)


@cache
def ragged(_part: str = "") -> Any:
    """Return queries of 1 to 200 documents, some of one label only, with labels missing."""
    sizes = [1, 2, 3, 5, 8, 9, 17, 33, 64, 128, 129, 137, 200, 40, 40, 12]
    data, random = large("valid"), np.random.default_rng(3)
    y, clicks = np.array(data.y[:828]), random.integers(0, 9, 828) / 8
    clicks[random.random(len(y)) < 0.4] = np.nan
    y[736:776], y[776:816] = 0.0, 2.0
    y[(random.random(len(y)) < 0.1) & ~np.isnan(clicks)] = np.nan
    labels = {"clicks": clicks, "similar_clicks": random.integers(0, 5, len(y)) / 4}
    options = {"query_weight": np.arange(len(sizes)) % 4 / 2, "top_grade": 4}
    return rk.RankingData(data.X[:828], y, group_sizes=sizes, labels=labels, **options)


@cache
def documented(part: str) -> Any:
    """Return a set with all that a file can hold: names, comments, weights, words for queries."""
    data, n_docs = holes(part), holes(part).n_docs
    texts = {"doc_ids": [f"D{i}" for i in range(n_docs)], "comments": ["a # b"] * n_docs}
    texts |= {
        "feature_names": [f"feature {j}" for j in range(12)],
        "qid": [f"q{q}" for q in data.qid],
    }
    options = {"query_weight": np.arange(SIZES[part]) / 7, "labels": data.labels, "top_grade": 5}
    return rk.RankingData(np.round(data.X * 1e3) / 7, data.y, **texts, **options)


def everything_in(data: Any) -> list[Any]:
    numbers = [data.X, data.y, data.offsets, data.qids, data.labels, data.query_weight]
    return [*numbers, data.doc_ids, data.comments, data.feature_names, data.top_grade, data.origins]


def new(kind: str, more: str = "", **settings: Any) -> Any:
    name, _, settings_text = kind.partition(" ")
    usual = NETS if name == "LambdaRank" else TREES
    return getattr(rk, name)(**{**settings_of(f"{usual} {settings_text} {more}"), **settings})


def fit(model: Any, sets: Callable[[str], Any] = small, **options: Any) -> Any:
    return model.fit(sets("train"), **{"valid": sets("valid"), **options})


def saved(model: Any) -> Any:
    with TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.rk")
        return rk.load_model(Path(folder) / "model.rk")


def fitted_values(model: Any, data: Any = None, **options: Any) -> dict[str, Any]:
    data, alphas = small("test") if data is None else data, getattr(model, "alphas_", None)
    staged = getattr(model, "staged_predict", lambda *_, **__: ())
    return {
        "scores": [model.predict(data, **options), *staged(data, every=5, **options)],
        "history": [model.history_, model.n_rounds_, model.best_round_, alphas],
        "importances": [model.feature_importances_, model.importances()],
    }


@each("settings", ["LambdaMART", "MART", "MART loss=logistic", "McRank"], items(TREE_SETTINGS))
@each("settings", ["LambdaMART", "MART loss=logistic"], items(MONOTONE))
@each("settings", ["LambdaRank"], items(NET_SETTINGS))
@each("pairs", ["LambdaMART", "LambdaMART step=line-search n_trees=4"], items(PAIRS))
@each("search", ["LambdaMART step=line-search n_trees=5"], items(SEARCHES))
@each("objective", ["LambdaMART step=gradient", "LambdaRank"], items(OBJECTIVES))
@each("objective", ["LambdaMART"], [text for text in items(OBJECTIVES) if "Sigmoid" not in text])
def _(kind: str, text: str) -> Any:
    measure = {} if re.match("[a-z_]+=", text) else {"measure": text}
    return fitted_values(fit(new(kind, "" if measure else text, **measure)))


@each("objective values", ["LambdaMART", "LambdaRank"])
def _(kind: str) -> Any:
    growth = rk.objectives.Transition(
        rk.objectives.LocalCost("NDCG"), rk.objectives.RankNet(), lambda m: min(m / 9, 1.0)
    )
    values = [
        growth,
        rk.objectives.Lambdas("MRR", gain_only=True),
        rk.objectives.Tiered("MAP > NDCG"),
        rk.MAP(),
    ]
    return [fitted_values(fit(new(kind, measure=value))) for value in values]


def arrays(kind: str) -> Any:
    data, order = small("train"), np.random.default_rng(4).permutation(1500)  # queries apart
    model = new(kind).fit(data.X[order], data.y[order], qid=data.qid[order])
    return fitted_values(model, np.array(small("test").X), qid=small("test").qid)


def on_scores(kind: str) -> Any:
    bases = {part: small(part).X[:, 0] * 2.0 for part in SIZES}
    model = fit(new(kind, base=bases["train"]), valid_base=bases["valid"])
    return fitted_values(model, base_scores=bases["test"])


def stopped(kind: str, measures: str | None) -> Any:
    more, sets = "patience=2 min_improvement=0.02 learning_rate=0.3", {"a": small("valid")}
    return fitted_values(
        fit(new(kind, more, valid_measure=measures), valid={**sets, "b": small("test")})
    )


def diagnosed(kind: str, **options: Any) -> Any:
    model = fit(new(kind), diagnostics=(diagnostics := rk.Diagnostics(top=5)), **options)
    return {**fitted_values(model), "diagnostics": [diagnostics.rounds, diagnostics.curves]}


def resumed(kind: str) -> Any:
    with TemporaryDirectory() as folder:
        kept = Path(folder) / "fit.ckpt"
        fit(new(kind), checkpoint=kept, callbacks=[lambda done: done.number == 3])
        return diagnosed(kind, checkpoint=kept)


KINDS_BY_WAY: dict[str, tuple[str, Callable[[str], Any]]] = {
    "small": (".", diagnosed),
    "resumed": (".", resumed),
    "arrays": (".", arrays),
    "saved": (".", lambda kind: fitted_values(saved(fit(new(kind))))),
    "holes": (".", lambda kind: fitted_values(fit(new(kind), holes), holes("test"))),
    "ragged": (".", lambda kind: fitted_values(fit(new(kind), ragged, valid=None), ragged())),
    "web": (".", lambda kind: fitted_values(fit(new(kind), web), web("test"))),
    "augmented": (
        ".",
        lambda kind: fitted_values(new(kind).fit(rk.augment(small("train"), 0.6, 3))),
    ),
    "weights": (
        ".",
        lambda kind: fitted_values(fit(new(kind), query_weight=np.arange(60) % 5 / 2)),
    ),
    "sample weights": (
        "^M",
        lambda kind: fitted_values(fit(new(kind), sample_weight=np.arange(1500) % 7)),
    ),
    "base": (
        "^(?!McR)",
        lambda kind: fitted_values(fit(new(kind, base=new("MART").fit(small("valid"))))),
    ),
    "base scores": ("^(?!McRank)", on_scores),
    "stopped": (".", partial(stopped, measures=None)),
    "stopped by several": (".", partial(stopped, measures="ERR,MAP,NDCG@3>CNDCG@3[clicks],MRR")),
    "stopped by tiers": (".", partial(stopped, measures="NDCG@3>CNDCG@3[clicks]")),
    "large": (r"^\w+$|Mc|ERR", lambda kind: fitted_values(fit(new(kind), large), large("train"))),
    "backfit": ("^LambdaMART", lambda kind: fitted_values(fit(new(kind)).backfit(small("valid")))),
}
for _way, (_pattern, _function) in KINDS_BY_WAY.items():
    each(_way, [kind for kind in items(KINDS) if re.search(_pattern, kind)])(_function)

members = cache(lambda: {f"M{k}": fit(new(items(KINDS)[k])) for k in (0, 7, 8, 9, 10)})
scores_of = cache(lambda part: {k: member.predict(small(part)) for k, member in members().items()})
each("score features", range(4))(lambda k: rk.score_features(rankings[k], ragged().offsets))


@each("combination", ["Average"], [{}, {"scaled": False}])
@each("combination", ["BestMix"], [{}, {"tree": "((1 3)((2 5) 4))", "measure": "ERR"}])
@each("combination", ["Interpolation"], [{}, {"most_evaluations": 30, "measure": "MAP"}])
@each("combination", ["Stacked"], [{}, {"ranker": "LambdaRank"}, {"ranker": "LambdaMART"}])
def _(kind: str, options: dict[str, Any]) -> Any:
    settings = {k: new(ranker) if k == "ranker" else ranker for k, ranker in options.items()}
    make = partial(getattr(rk, kind), **settings)
    watched = {"valid": small("test")} if "ranker" in options else {}
    model = make(members()).fit(small("valid"), **watched)
    again = make().fit(small("valid"), member_scores=scores_of("valid"))
    scores = [ranker.predict(small("test")) for ranker in (model, saved(model))]
    scores += [again.predict(None, member_scores=scores_of("test"))]
    names = ("means_", "scales_", "weights_", "value_", "n_evaluations_")
    nodes = [(node.text, node.alpha, node.value) for node in getattr(model, "nodes_", ())]
    return {"scores": scores, "learned": [nodes, *(getattr(model, name, None) for name in names)]}


@each("combination/WithScoreFeatures", ["LambdaMART", "LambdaRank", "MART loss=logistic"])
def _(kind: str) -> Any:
    model = fit(rk.WithScoreFeatures(new("MART loss=logistic"), new(kind), folds=3))
    again = rk.WithScoreFeatures.from_fitted(model.scorer_, model.ranker_)
    return [ranker.predict(small("test")) for ranker in (model, again, saved(model))]


@each("best subset", ["", "most_exhaustive=1 seed=1", "candidates=[['M0','M8'],['M9']] level=0.5"])
def _(options: str) -> Any:
    search = rk.best_subset(members(), small("valid"), ["ERR", "NDCG@10"], **settings_of(options))
    table = [
        (subset.members, subset.values) for subset in (search.best, search.full, *search.table)
    ]
    tests = [search.p_value, search.gain, search.naive_p_value, search.naive_gain, search.method]
    return {"chosen": search.chosen, "table": table, "tests": tests}


@each("lambdas", items(OBJECTIVES), items(PAIRS))
@each("lambdas", ["MRR"], ["gain_only=True", "gain_only=True truncation=3 normalise=distance"])
def _(objective: str, text: str) -> Any:
    data, options = ragged(), settings_of(text)
    labels = {None: data.y, **data.labels}
    return [
        rk.lambda_gradients(objective, scores, labels, data.offsets, **options, **varied)
        for scores in rankings
        for varied in ({"query_weight": data.query_weight, "seed": 5}, {"iteration": 3}, {})
    ]


@each("evaluate", [*items(MEASURES), "P"])
def _(measure: str) -> Any:
    rows = [(scores, ragged(), drop) for scores, drop in product(rankings, (False, True))]
    rows += [] if "[" in measure else [(np.round(large("train").X[:, 0], 2), large("train"), False)]
    evaluations = [
        rk.evaluate(ranking, data, measure, drop_single_label=drop) for ranking, data, drop in rows
    ]
    return [
        [ranking.per_query, ranking.mean, ranking.n_queries, ranking.qids]
        for ranking in evaluations
    ]


@each("compare", ["", "test=randomisation seed=3", "correction=none drop_single_label=True"])
def _(options: str) -> Any:
    data, measures = small("test"), "NDCG@10, ERR, MAP(relevant=3), CNDCG@3[clicks]"
    comparison = rk.compare(scores_of("test"), data, measures, **settings_of(options))
    evaluated = {name: rk.evaluate(entry, data, "MRR") for name, entry in scores_of("test").items()}
    return {
        "means": [
            comparison.means,
            comparison.differences,
            comparison.oracle,
            comparison.tau,
            comparison.per_query,
        ],
        "p-values": [comparison.p_values, comparison.uncorrected],
        "intervals": {
            m: [interval.means, interval.differences]
            for m, interval in comparison.intervals.items()
        },
        "texts": [
            str(comparison),
            comparison.to_csv(),
            comparison.pairs_to_csv(),
            comparison.to_latex(),
        ],
        "of evaluations": rk.compare_evaluations(evaluated).pairs_to_csv(),
    }


@each("best mix", items(MEASURES), ["whole_course=True", "form=additive bounds=(-1.0,5.0)"])
def _(measure: str, options: str) -> Any:
    other = np.round(small("valid").X[:, 1], 1)
    mix = rk.best_mix(members()["M0"], other, small("valid"), measure, **settings_of(options))
    best = [mix.alpha, mix.value, mix.interval, mix.at_ends, mix.peak and mix.peak.value]
    course = [mix.course.begins, mix.course.ends, mix.course.values, mix.course.is_whole]
    return {"best": best, "course": course, "scores": mix.scores(other, -other)}


@each("optimality", [*[kind for kind in items(KINDS) if "LambdaRank" in kind], "sum"])
def _(kind: str) -> Any:
    along = (
        rk.stats.directional_values(np.sum, np.ones(7))
        if kind == "sum"
        else fit(new(kind)).along(small("test"))
    )
    n_weights = getattr(along, "n_weights", 7)
    moved = rk.stats.local_optimality(along, n_weights, epsilon=0.2, seed=1)
    single = rk.stats.single_weights(along, n_weights, chosen=5)
    return {"directions": moved.as_json(), "single": single.as_json(), "text": f"{moved} {single}"}


@each("scorer", ["NDCG@10", "ERR(top_grade=4)"])
def _(measure: str) -> Any:
    data, model = small("test"), fit(new("LambdaMART"))
    with sklearn.config_context(enable_metadata_routing=True):
        return rk.scorer(measure)(model, np.array(data.X), data.y, qid=data.qid)


MADE: dict[str, Callable[[], list[Any]]] = {
    "polynomials": lambda: [rk.polynomials(130, n_features=7, n_docs=9, seed=3, part="valid")],
    "challenge": lambda: [rk.challenge(230, seed=1), rk.challenge(30, part="test", market=2)],
    "clicks": lambda: [rk.clicks(rk.polynomials(1_100, n_docs=12, n_features=5), users=30, seed=7)],
    "clicks by scores": lambda: [rk.clicks(web("valid"), scores=web("valid").X[:, 636])],
    "aug70": lambda: [rk.augment(data) for data in (small("train"), web("valid"), ragged())],
    "aug50": lambda: [rk.augment(data, 0.5, 10, seed=3) for data in (small("train"), ragged())],
    "ranks": lambda: rk.RankNormaliser().fit_transform([holes("train"), holes("valid")]),
    "cut points": lambda: rk.RankNormaliser(20).fit_transform([holes("train"), holes("valid")]),
    "parts": lambda: [*small("train").split(4, seed=2), *sampled().split([0.6, 0.3, 0.1])],
    "folds": lambda: [fold for pair in sampled().folds(3, seed=1) for fold in pair],
    "concat": lambda: [rk.concat(documented("test").split(3)[::-1]), rk.concat([small("test")])],
    "chosen": lambda: [sampled().originals, sampled()[5:9], holes("test").select_features([2, 0])],
}
sampled = cache(lambda: rk.augment(documented("valid"), 0.5, 2))
each("data", MADE)(lambda name: [everything_in(data) for data in MADE[name]()])


@each("files", ["small", "web", "documented"], [".txt", ".txt.gz", ".parquet"])
def _(name: str, ending: str) -> Any:
    data = {"small": small, "web": web, "documented": documented}[name]("test")
    with TemporaryDirectory() as folder:
        rk.save(data, path := Path(folder) / f"data{ending}")
        loaded = rk.load(path, labels=list(data.labels), top_grade=data.top_grade)
        written = b"" if ending == ".parquet" else path.read_bytes()
    text = gzip.decompress(written) if ending == ".txt.gz" else written
    return {"loaded": everything_in(loaded), "text": text}


@each("files", ["scores"])
def _(_name: str) -> Any:
    with TemporaryDirectory() as folder:
        qrels, plain, run = (Path(folder) / name for name in ("qrels", "plain", "run"))
        rk.save_qrels(ragged(), qrels)
        rk.save_scores(rankings[1], ragged(), plain)
        rk.save_scores(rankings[1], ragged(), run, run="ours")
        loaded = [rk.load_scores(path, ragged()) for path in (plain, run)]
        return {"loaded": loaded, "texts": [path.read_bytes() for path in (qrels, plain, run)]}


@each("recipe", ["winner-tiny"])
def _(name: str) -> Any:
    with TemporaryDirectory() as folder:
        run = rk.run_recipe(name, *(web(part) for part in SIZES), out=folder, jobs=2)
        # The numbers only: how a table is laid out may change.
        tables = re.findall(r"[<+-]?\d+\.\d+", (Path(folder) / "tables.md").read_text())
    chosen = run.results.selection
    return {
        "chosen": [chosen.chosen, chosen.best_member],
        "tables": tables,
        "first stage": chosen.scores,
        "outcomes": {name: entry.scores for name, entry in run.results.outcomes.items()},
        "members": {k: entry.predict(web("test")) for k, entry in run.ensemble.members_.items()},
        "ensemble": run.ensemble.predict(web("test")),
    }


@each("sweep", ["M5"], ["search=tpe trials=14 n_leaves=4:10:2 learning_rate=0.05..0.5"])
@each("sweep", ["M4", "M10"], [f"search={s} learning_rate=0.003,0.1" for s in ("grid", "random")])
def _(model: str, text: str) -> Any:
    space = settings_of(text)
    options = {name: space.pop(name, None) for name in ("search", "trials")}
    options |= {"space": space, "folds": 2, "jobs": 2, "batch": 3}
    with TemporaryDirectory() as folder:
        sweep = rk.run_sweep("winner-tiny", model, small("train"), out=folder, **options)
    trials = [*sweep.trials, sweep.baseline]
    folds = [[(fold.value, fold.kept, fold.curve) for fold in trial.folds] for trial in trials]
    values = [
        (trial.parameters, trial.value, trial.is_pruned, trial.best_so_far) for trial in trials
    ]
    return {"trials": values, "folds": folds, "importances": sweep.importances}
