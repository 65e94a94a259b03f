"""Hints for users of other tools: what their parameters are called here, or what to do instead.

The aliases of a parameter stand in its declaration, in `rankinite.rankers.parameters`; here is the
advice on parameters of other tools that have no counterpart.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from rankinite.rankers.parameters import RANKER_PARAMETERS, names_by_alias

_NAMES = names_by_alias()

# Advice is keyed by a parameter that a ranker must have for it to apply: n_trees tells rankers of
# trees, hidden tells nets.
_TREES, _NETS = "n_trees", "hidden"
_ANY = ""
*_FIRST, _LAST = RANKER_PARAMETERS
_RANKERS = f"{', '.join(_FIRST)} and {_LAST}"
_THREADS = {_ANY: "set RANKINITE_THREADS, or call rankinite.set_threads"}
_PROGRESS = {_ANY: "give fit progress=True, or callbacks=[print] for a line per round"}
_ANEW = {
    _TREES: "every tree draws anew: 'docs_per_tree' and 'queries_per_tree' say how much",
}
_OVERFITTING = {
    _TREES: "use 'l2_regularization', 'min_docs_in_leaf' or fewer leaves against overfitting",
    _NETS: "use 'weight_decay', a validation set or fewer 'hidden' units against overfitting",
}
_NO_DROPOUT = {
    _TREES: "use 'docs_per_tree', 'queries_per_tree' or 'features_per_tree' against overfitting",
    _NETS: (
        "nets have none: use 'weight_decay', a validation set or fewer 'hidden' units against "
        "overfitting"
    ),
}
_COUNTED = {_TREES: "use 'min_docs_in_leaf', which counts documents"}
_CATEGORIES = {
    _NETS: "nets take numbers: give a column of 0 and 1 for each category, or use a ranker of trees"
}
_BY_TYPE = {
    _TREES: (
        "columns of a category type are categorical by themselves, and 'categorical_features' "
        "names others"
    ),
    **_CATEGORIES,
}
_SORTED = {
    _TREES: (
        "categories are sorted at every split, and 'categorical_smoothing' holds back those of "
        "few documents"
    )
}
_MISSING = {_ANY: "NaN is missing and 0 is a number: give NaN where 0 means missing"}
_MOMENTS = {_NETS: "'optimiser' is adam with its usual numbers, or sgd without momentum"}
_BY_ITSELF = {_NETS: "the rate falls by itself, and 'learning_rate' is what it begins with"}
_SCALED = {_NETS: "nets have none, and bring features to mean 0 and deviation 1 by themselves"}
_NO_POSITIONS = (
    "LambdaMART corrects for positions; other rankers take sample_weight, 1 over the propensity"
)
_SEPARATE = {_ANY: "give fit valid, queries of their own, and see 'patience'"}

_OF_TIERS = {
    "measure": (
        "tiers have it in the measure: 'Tiered(NDCG@3 > CNDCG@3[clicks], weights=0.3)', "
        "where train_depth and pairs_of stand, too"
    ),
}
_TOLERANCE = {
    _ANY: "tiers have it in their measure, behind ~: 'NDCG@3 ~0.002 > CNDCG@3[clicks]'",
}
_SCHEDULE = {
    "measure": (
        "the measure has it: 'Transition(NDCG, SigmoidCost(NDCG), linear(start=0.1, eta=0.001))'"
    ),
}

_ADVICE = {
    "bagging_freq": _ANEW,
    "subsample_freq": _ANEW,
    "n_jobs": _THREADS,
    "num_threads": _THREADS,
    "nthread": _THREADS,
    "verbose": _PROGRESS,
    "verbosity": _PROGRESS,
    "boosting_type": {_ANY: f"{_RANKERS} are classes of their own"},
    "tree_method": {_TREES: "there is one way to grow trees, by histograms"},
    "group": {_ANY: "give it to fit, as group or as qid"},
    "label_gain": {_ANY: "the measure has it: NDCG(gain=[0,1,3,7]), or gain=linear"},
    "lambda_l1": _OVERFITTING,
    "reg_alpha": _OVERFITTING,
    "alpha": _OVERFITTING,
    "weight_decay": _OVERFITTING,
    "dropout": _NO_DROPOUT,
    "dropout_rate": _NO_DROPOUT,
    "drop_rate": _NO_DROPOUT,
    "rate_drop": _NO_DROPOUT,
    "monotone_constraints_method": {
        _TREES: "there is one method, by which 'monotone_constraints' hold for all inputs"
    },
    "min_child_weight": _COUNTED,
    "min_sum_hessian_in_leaf": _COUNTED,
    "categorical_feature": _CATEGORIES,
    "categorical_features": _CATEGORIES,
    "cat_features": _CATEGORIES,
    "enable_categorical": _BY_TYPE,
    "feature_types": _BY_TYPE,
    "max_cat_to_onehot": _SORTED,
    "max_cat_threshold": _SORTED,
    "min_data_per_group": _SORTED,
    "use_missing": _MISSING,
    "zero_as_missing": _MISSING,
    "deterministic": {_ANY: "the same 'random_state' always gives the same model"},
    "momentum": _MOMENTS,
    "nesterovs_momentum": _MOMENTS,
    "betas": _MOMENTS,
    "beta_1": _MOMENTS,
    "beta_2": _MOMENTS,
    "epsilon": _MOMENTS,
    "lr_scheduler": _BY_ITSELF,
    "scheduler": _BY_ITSELF,
    "learning_rate_schedule": _BY_ITSELF,
    "learning_rate_decay": _BY_ITSELF,
    "power_t": _BY_ITSELF,
    "batch_norm": _SCALED,
    "use_batch_norm": _SCALED,
    "batch_normalization": _SCALED,
    "position_bias": {_ANY: _NO_POSITIONS},
    "position_bias_regularization": {_ANY: _NO_POSITIONS},
    "position_source": {_ANY: _NO_POSITIONS},
    "early_stopping": _SEPARATE,
    "validation_fraction": _SEPARATE,
    "validation_split": _SEPARATE,
    "weights": _OF_TIERS,
    "tier_weights": _OF_TIERS,
    "train_depth": _OF_TIERS,
    "pairs_of": _OF_TIERS,
    "tolerance": _TOLERANCE,
    "schedule": _SCHEDULE,
    "warm_start": {_ANY: "give 'base' a fitted ranker, or fit a checkpoint"},
    "shuffle": {
        _TREES: "the order of queries does not matter to trees",
        _NETS: "every epoch draws the order of queries anew",
    },
}


def explain_alias(owner: str, alias: str, known: Collection[str]) -> str | None:
    """Return the hint for a parameter of another tool; None if no tool that we know has it.

    Parameters
    ----------
    owner
        Class or command that the parameter was given to.
    alias
        The name that another tool has for it.
    known
        The parameters that the owner has.

    Examples
    --------
    >>> explain_alias("MART", "max_iter", ["n_trees"])
    "it is called 'n_trees' here"
    >>> explain_alias("MART", "batch_size", ["n_trees"])
    "it is called 'queries_per_step' here, and MART has none"
    """
    by_parameter = _ADVICE.get(alias, {})
    advice = [text for name, text in by_parameter.items() if name == _ANY or name in known]
    if advice:
        return ", or ".join(advice)
    names = _NAMES.get(alias, [])
    there = [repr(name) for name in names if name in known]
    if there:
        return f"it is called {' or '.join(there)} here"
    if names:
        instead = _ADVICE.get(names[0], {}).get(_ANY)
        none = f"it is called {' or '.join(map(repr, names))} here, and {owner} has none"
        return none if instead is None else f"{none}; {instead}"
    return f"{owner} has nothing of that kind" if alias in _ADVICE else None


_VALID = "give valid, a RankingData or (X, y, qid)"
_QUERIES = "give qid, the query of every document, or group, the sizes of consecutive queries"
_VALID_BASE = "give valid_base, the base's scores of the validation set"
_UNWEIGHTED = "queries of validation sets count alike"
_LINES = "give progress=True, or callbacks=[print] for a line per round"

# Hints for arguments of other tools' fit; validation sets are in `explain_fit_argument`.
_FIT_ADVICE = {
    "weight": "give sample_weight, one weight per document, or query_weight, one per query",
    "position": _NO_POSITIONS,
    "group_weight": "give query_weight, one weight per query",
    "validation_data": _VALID,
    "eval_sample_weight": _UNWEIGHTED,
    "sample_weight_eval_set": _UNWEIGHTED,
    "eval_init_score": _VALID_BASE,
    "base_margin_eval_set": _VALID_BASE,
    "groups": _QUERIES,
    "group_id": _QUERIES,
    "eval_metric": "set it in the constructor: valid_measure",
    "eval_at": "set it in the constructor: valid_measure='NDCG@10'",
    "early_stopping_rounds": "set it in the constructor: patience",
    "epochs": "set it in the constructor of LambdaRank: n_epochs",
    "batch_size": "set it in the constructor of LambdaRank: queries_per_step",
    "validation_split": _VALID,
    "init_score": "set it in the constructor: base",
    "base_margin": "set it in the constructor: base",
    "baseline": "set it in the constructor: base",
    "init_model": "set it in the constructor: base",
    "xgb_model": "set it in the constructor: base",
    "verbose": _LINES,
    "verbose_eval": _LINES,
    "feature_name": "give X as a frame, whose columns have names, or a RankingData",
    "categorical_feature": "set it in the constructor: categorical_features",
    "cat_features": "set it in the constructor: categorical_features",
}
_EVAL_SETS = ("eval_set", "eval_X", "eval_y", "eval_group", "eval_qid", "eval_names")


def explain_fit_argument(name: str, arguments: Mapping[str, Any]) -> str | None:
    """Return the hint for an argument of another tool's fit; None if no tool that we know has it.

    Parameters
    ----------
    name
        The argument.
    arguments
        All arguments of that call that fit does not have, with their values.

    Examples
    --------
    >>> explain_fit_argument("eval_set", {"eval_set": [("X", "y")], "eval_qid": ["qid"]})
    'write valid=(X_valid, y_valid, qid_valid)'
    """
    return _instead_of_eval_sets(arguments) if name in _EVAL_SETS else _FIT_ADVICE.get(name)


def _instead_of_eval_sets(arguments: Mapping[str, Any]) -> str:
    """Return what to write for the validation sets of LightGBM or XGBoost, which are lists."""
    valid = "(X_valid, y_valid, qid_valid)"
    if "eval_group" in arguments:
        valid = "rankinite.RankingData(X_valid, y_valid, group_sizes=sizes_valid)"
    sets = arguments.get("eval_set")
    if not isinstance(sets, list) or len(sets) < 2:
        return f"write valid={valid}"
    names = arguments.get("eval_names") or [f"valid_{k}" for k in range(len(sets))]
    listed = ", ".join(f'"{name}": {valid}' for name in list(names)[:2])
    more = ", ..." if len(sets) > 2 else ""
    return f"write valid={{{listed}{more}}}, of which the first decides when to stop"
