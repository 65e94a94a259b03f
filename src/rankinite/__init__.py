"""Learning to rank with lambda gradients.

Names are imported when they are first used, so that ``rankinite --help`` need not wait for them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankinite.combine.average import Average as Average
    from rankinite.combine.best_mix import BestMix as BestMix
    from rankinite.combine.interpolation import Interpolation as Interpolation
    from rankinite.combine.mix import Mix as Mix
    from rankinite.combine.mix import best_mix as best_mix
    from rankinite.combine.score_features import score_features as score_features
    from rankinite.combine.stacked import Stacked as Stacked
    from rankinite.combine.subsets import SubsetSearch as SubsetSearch
    from rankinite.combine.subsets import best_subset as best_subset
    from rankinite.combine.with_score_features import WithScoreFeatures as WithScoreFeatures
    from rankinite.core.errors import DataError as DataError
    from rankinite.core.errors import FileFormatError as FileFormatError
    from rankinite.core.errors import MissingExtraError as MissingExtraError
    from rankinite.core.errors import ModelFileError as ModelFileError
    from rankinite.core.errors import RankiniteError as RankiniteError
    from rankinite.core.errors import RecipeError as RecipeError
    from rankinite.core.errors import RunError as RunError
    from rankinite.core.errors import UsageError as UsageError
    from rankinite.data.augment import augment as augment
    from rankinite.data.concat import concat as concat
    from rankinite.data.files import load as load
    from rankinite.data.files import save as save
    from rankinite.data.normalise import RankNormaliser as RankNormaliser
    from rankinite.data.ranking_data import RankingData as RankingData
    from rankinite.data.scores import load_scores as load_scores
    from rankinite.data.scores import save_qrels as save_qrels
    from rankinite.data.scores import save_scores as save_scores
    from rankinite.data.simulators.challenge import challenge as challenge
    from rankinite.data.simulators.clicks import clicks as clicks
    from rankinite.data.simulators.polynomials import polynomials as polynomials
    from rankinite.data.tables import from_frame as from_frame
    from rankinite.evaluation.compare import compare as compare
    from rankinite.evaluation.compare import compare_evaluations as compare_evaluations
    from rankinite.evaluation.comparison import Comparison as Comparison
    from rankinite.evaluation.evaluate import Evaluation as Evaluation
    from rankinite.evaluation.evaluate import evaluate as evaluate
    from rankinite.experiments.recipes.read import read_recipe as read_recipe
    from rankinite.experiments.recipes.recipe import Recipe as Recipe
    from rankinite.experiments.runs.run import Run as Run
    from rankinite.experiments.runs.run import run_recipe as run_recipe
    from rankinite.experiments.sweeps.sweep import run_sweep as run_sweep
    from rankinite.measures.graded import GradedMeasure as GradedMeasure
    from rankinite.measures.measure import CNDCG as CNDCG
    from rankinite.measures.measure import DCG as DCG
    from rankinite.measures.measure import ERR as ERR
    from rankinite.measures.measure import MAP as MAP
    from rankinite.measures.measure import MRR as MRR
    from rankinite.measures.measure import NDCG as NDCG
    from rankinite.measures.measure import Measure as Measure
    from rankinite.measures.measure import P as P
    from rankinite.measures.measure import PFound as PFound
    from rankinite.measures.text import parse_measure as parse_measure
    from rankinite.models import load_model as load_model
    from rankinite.objectives.constructions import DiscreteBounded as DiscreteBounded
    from rankinite.objectives.constructions import LocalCost as LocalCost
    from rankinite.objectives.constructions import LocalGradient as LocalGradient
    from rankinite.objectives.constructions import SpringSmooth as SpringSmooth
    from rankinite.objectives.graded import Graded as Graded
    from rankinite.objectives.gradients import lambda_gradients as lambda_gradients
    from rankinite.objectives.lambdas import Lambdas as Lambdas
    from rankinite.objectives.lambdas import RankNet as RankNet
    from rankinite.objectives.schedules import ExponentialGrowth as ExponentialGrowth
    from rankinite.objectives.schedules import LevellingGrowth as LevellingGrowth
    from rankinite.objectives.schedules import LinearGrowth as LinearGrowth
    from rankinite.objectives.sigmoid import SigmoidCost as SigmoidCost
    from rankinite.objectives.transition import Transition as Transition
    from rankinite.rankers.diagnostics import Diagnostics as Diagnostics
    from rankinite.rankers.lambdamart import LambdaMART as LambdaMART
    from rankinite.rankers.lambdarank import LambdaRank as LambdaRank
    from rankinite.rankers.mart import MART as MART
    from rankinite.rankers.mcrank import McRank as McRank
    from rankinite.rankers.scorer import scorer as scorer
    from rankinite.stats.optimality import local_optimality as local_optimality
    from rankinite.stats.optimality import single_weights as single_weights
    from rankinite.stats.optimality_along import along_of as along_of
    from rankinite.stats.optimality_moves import Optimality as Optimality
    from rankinite.trees.binned_data import BinnedData as BinnedData

__version__ = "0.1.0"

_HOME_OF = {
    name: home
    for home, names in {
        "combine.average": "Average",
        "combine.best_mix": "BestMix",
        "combine.interpolation": "Interpolation",
        "combine.mix": "Mix best_mix",
        "combine.score_features": "score_features",
        "combine.stacked": "Stacked",
        "combine.subsets": "SubsetSearch best_subset",
        "combine.with_score_features": "WithScoreFeatures",
        "core.errors": (
            "DataError FileFormatError MissingExtraError ModelFileError RankiniteError RecipeError "
            "RunError UsageError"
        ),
        "data.augment": "augment",
        "data.concat": "concat",
        "data.files": "load save",
        "data.normalise": "RankNormaliser",
        "data.ranking_data": "RankingData",
        "data.scores": "load_scores save_qrels save_scores",
        "data.simulators.challenge": "challenge",
        "data.simulators.clicks": "clicks",
        "data.simulators.polynomials": "polynomials",
        "data.tables": "from_frame",
        "evaluation.compare": "compare compare_evaluations",
        "evaluation.comparison": "Comparison",
        "evaluation.evaluate": "Evaluation evaluate",
        "experiments.recipes.read": "read_recipe",
        "experiments.recipes.recipe": "Recipe",
        "experiments.runs.run": "Run run_recipe",
        "experiments.sweeps.sweep": "run_sweep",
        "measures.graded": "GradedMeasure",
        "measures.measure": "CNDCG DCG ERR MAP MRR Measure NDCG P PFound",
        "measures.text": "parse_measure",
        "models": "load_model",
        "objectives.constructions": "DiscreteBounded LocalCost LocalGradient SpringSmooth",
        "objectives.graded": "Graded",
        "objectives.gradients": "lambda_gradients",
        "objectives.lambdas": "Lambdas RankNet",
        "objectives.schedules": "ExponentialGrowth LevellingGrowth LinearGrowth",
        "objectives.sigmoid": "SigmoidCost",
        "objectives.transition": "Transition",
        "rankers.diagnostics": "Diagnostics",
        "rankers.lambdamart": "LambdaMART",
        "rankers.lambdarank": "LambdaRank",
        "rankers.mart": "MART",
        "rankers.mcrank": "McRank",
        "rankers.scorer": "scorer",
        "stats.optimality": "local_optimality single_weights",
        "stats.optimality_along": "along_of",
        "stats.optimality_moves": "Optimality",
        "trees.binned_data": "BinnedData",
    }.items()
    for name in names.split()
}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'rankinite' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"rankinite.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
