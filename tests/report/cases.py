"""Results of a run that never was: invented scores, grades with noise, and no training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from rankinite.data.describe import describe
from rankinite.data.ranking_data import RankingData
from rankinite.ensembles.members import Scaling
from rankinite.ensembles.selection import Selection
from rankinite.evaluation.evaluate import Evaluation, evaluate_all
from rankinite.objectives.position_bias import ADDITIVE, PROPENSITY, PositionBias
from rankinite.runs.recipe import ALL, ORIGINAL, TABLES, Model, Recipe
from rankinite.runs.results import (
    ENSEMBLE,
    Curve,
    MemberFacts,
    Outcome,
    Results,
    measured_subsets,
)

MEASURES = ("NDCG@10", "ERR")
WINNERS = {
    "M1": "LambdaMART for ERR",
    "M2": "LambdaMART for ERR, trained on Aug50",
    "M3": "LambdaMART for ERR, trained on Aug70",
    "M4": "LambdaMART for ERR, with MART scores as features",
    "M5": "LambdaMART for NDCG",
    "M6": "LambdaMART for NDCG, trained on Aug50",
    "M7": "LambdaMART for NDCG, trained on Aug70",
    "M8": "LambdaMART for NDCG, with MART scores as features",
    "M9": "LambdaRank for ERR",
    "M10": "LambdaRank for NDCG",
    "M11": "MART",
    "M12": "MART, scores normalised per query",
}
SUBSETS = {
    "All": tuple(WINNERS),
    "All minus MARTs": tuple(f"M{k}" for k in range(1, 11)),
    "LambdaMART only": tuple(f"M{k}" for k in range(1, 9)),
    "All minus LambdaRanks": (*(f"M{k}" for k in range(1, 9)), "M11", "M12"),
    "Augmented only": ("M2", "M3", "M6", "M7"),
    "Non-augmented": ("M1", "M4", "M5", "M8", "M9", "M10", "M11", "M12"),
    "Just ERR": ("M1", "M2", "M3", "M4", "M9"),
    "Just NDCG": ("M5", "M6", "M7", "M8", "M10"),
}


def invented_data(n_queries: int, seed: int, n_features: int = 30) -> RankingData:
    rng = np.random.default_rng(seed)
    sizes = np.clip(rng.lognormal(2.6, 0.6, n_queries).astype(int), 2, 60)
    n_docs = int(sizes.sum())
    grades = rng.choice(5, size=n_docs, p=[0.42, 0.3, 0.18, 0.07, 0.03])
    features = rng.random((n_docs, n_features), np.float32)
    qids = np.repeat([f"{1000 * seed + k}" for k in range(n_queries)], sizes)
    return RankingData(features, grades, qids, top_grade=4)


def invented_scores(
    data: RankingData, names: Sequence[str], seed: int, noise: float = 1.2
) -> dict[str, np.ndarray]:
    """Grades with noise of which models share a part; the later of equals are M11 and M12."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=data.n_docs)
    scores = {}
    for k, name in enumerate(names):
        noise_of_model = rng.normal(size=data.n_docs) * (1.0 + 0.04 * (k % 5))
        scores[name] = data.y + noise * (shared + 0.7 * noise_of_model)
    if "M12" in scores and "M11" in scores:
        scores["M12"] = scores["M11"] * 2.0
    return scores


def averaged(scores: Mapping[str, np.ndarray], names: Sequence[str]) -> np.ndarray:
    stacked = np.stack([scores[name] for name in names])
    return Scaling.fit(stacked).apply("test", list(names), stacked).mean(axis=0)


def evaluated(scores: Mapping[str, np.ndarray], data: RankingData) -> dict[str, Evaluation]:
    evaluations = evaluate_all(list(scores.values()), data, MEASURES, drop_single_label=False)
    return dict(zip(scores, evaluations, strict=True))


def fake_selection(recipe: Recipe, data: RankingData) -> Selection:
    scores = invented_scores(data, tuple(recipe.models), 1)
    members = evaluated(scores, data)
    subsets = evaluated(
        {name: averaged(scores, models) for name, models in measured_subsets(recipe).items()}, data
    )
    return Selection(data, scores, members, subsets, None, tuple(recipe.models))


def fake_outcome(names: Sequence[str], data: RankingData, seed: int) -> Outcome:
    scores = invented_scores(data, names, seed, noise=1.1)
    scores[ENSEMBLE] = averaged(scores, names)
    return Outcome(data, scores, evaluated(scores, data))


def fake_facts(models: Mapping[str, Model], features: Sequence[str]) -> dict[str, MemberFacts]:
    """Invent curves and importances; a model that takes another's training shows the same."""
    rng = np.random.default_rng(3)
    facts: dict[str, MemberFacts] = {}
    for name, model in models.items():
        if model.trained_as is not None:
            facts[name] = replace(facts[model.trained_as], seconds=0.0)
        else:
            facts[name] = _facts(model, features, rng)
    return facts


def _facts(model: Model, features: Sequence[str], rng: np.random.Generator) -> MemberFacts:
    is_net = model.ranker == "LambdaRank"
    shares = np.sort(rng.exponential(size=len(features)) ** 2)[::-1]
    shares[-5:] = 0.0
    named = dict(zip(rng.permutation(features).tolist(), (shares / shares.sum()), strict=True))
    curves = tuple(_curve(rng, "epochs" if is_net else "trees") for _ in range(model.bags))
    return MemberFacts(
        curves,
        {} if is_net else {n: float(v) for n, v in named.items()},
        float(rng.gamma(4, 9)),
        position_bias=_position_bias(model),
    )


def _position_bias(model: Model) -> tuple[PositionBias, ...]:
    """Invent estimates of two models, one of either method."""
    positions = np.arange(1, 11)
    if model.name == "M1":
        falling = [positions ** -(0.5 + 0.1 * bag) for bag in range(model.bags)]
        return tuple(
            PositionBias(PROPENSITY, positions, {"clicked": row, "unclicked": row**0.2})
            for row in falling
        )
    if model.name == "M5":
        return (PositionBias(ADDITIVE, positions, {"effect": -np.log(positions)}),)
    return ()


def _curve(rng: np.random.Generator, rounds: str) -> Curve:
    steps = np.arange(1, 301)
    values = 0.78 - 0.2 * np.exp(-steps / 40) - 0.0001 * np.maximum(steps - 180, 0)
    values += rng.normal(scale=0.002, size=300) + rng.normal(scale=0.004)
    return Curve("NDCG@10", rounds, tuple(values.tolist()), int(values.argmax()) + 1)


def fake_models(descriptions: Mapping[str, str], bags: int = 3) -> dict[str, Model]:
    return {name: _model(name, text, bags) for name, text in descriptions.items()}


def _model(name: str, description: str, bags: int) -> Model:
    if "LambdaRank" in description:
        parameters = {"measure": "ERR", "hidden": [25], "learning_rate": 0.001, "epochs": 500}
        return Model(name, description, "LambdaRank", parameters)
    if description.startswith("MART"):
        parameters = {"n_trees": 3000, "leaves": 100, "learning_rate": 0.05}
        same = "M11" if "normalised" in description else None
        return Model(name, description, "MART", parameters, trained_as=same)
    parameters = {"measure": "ERR", "n_trees": 3000, "leaves": 100, "learning_rate": 0.1}
    train = "aug50" if "Aug50" in description else ORIGINAL
    return Model(name, description, "LambdaMART", parameters, train=train, bags=bags)


def fake_recipe(
    descriptions: Mapping[str, str] = WINNERS,
    subsets: Mapping[str, tuple[str, ...]] = SUBSETS,
    bags: int = 3,
) -> Recipe:
    return Recipe(
        name="winner-fake",
        description="Twelve models that were never trained.",
        seed=7,
        measures=MEASURES,
        top_grade=4,
        parts=10,
        train_parts=6,
        folds=10,
        training_sets={},
        features={},
        models=fake_models(descriptions, bags),
        subsets=subsets,
        choose=ALL,
        level=0.05,
        tables=TABLES,
        text='name = "winner-fake"  # <all> & more\nseed = 7\n',
    )


def fake_results(
    recipe: Recipe | None = None, sets: Sequence[str] = ("valid", "test"), n_queries: int = 60
) -> Results:
    """Return results on so many held-out queries, and about as many of every further set."""
    recipe = recipe or fake_recipe()
    train = invented_data(2 * n_queries, 1)
    seeds = {"valid": 2, "test": 3}
    data = {name: invented_data(n_queries + seeds[name], seeds[name]) for name in sets}
    names = tuple(recipe.models)
    return Results(
        recipe=recipe,
        descriptions={name: describe(part) for name, part in {"train": train, **data}.items()},
        selection=fake_selection(recipe, train[:n_queries]),
        outcomes={name: fake_outcome(names, part, seeds[name]) for name, part in data.items()},
        facts=fake_facts(recipe.models, train.feature_names),
        seconds={"reading": 1.25, "training": 421.7, "scoring": 3.1},
        versions={"rankinite": "0.1.0", "numpy": "2.0.0"},
        digests={"train": "sha256:0123456789abcdef", **dict.fromkeys(sets, "sha256:fedcba")},
    )


def without_labels(results: Results, place: str) -> Results:
    """Return the results with a data set of which no query counts."""
    outcome = results.outcomes[place]
    blank = {name: _blank(evaluation) for name, evaluation in outcome.members.items()}
    return replace(results, outcomes={**results.outcomes, place: replace(outcome, members=blank)})


def _blank(evaluation: Evaluation) -> Evaluation:
    return Evaluation(
        evaluation.qids, {m: np.full_like(v, np.nan) for m, v in evaluation.per_query.items()}
    )
