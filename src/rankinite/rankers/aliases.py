"""What other tools call our parameters, for people who come from there."""

from __future__ import annotations

from collections.abc import Collection

_SAME = {
    "n_trees": (
        "n_estimators num_iterations num_boost_round iterations num_trees num_round "
        "num_rounds nrounds n_iter max_iter"
    ),
    "n_leaves": "num_leaves max_leaves max_leaf max_leaf_nodes num_leaf",
    "learning_rate": "eta shrinkage shrinkage_rate lr learning_rate_init eta0 step_size",
    "max_depth": "depth",
    "symmetric": "grow_policy oblivious",
    "min_docs_in_leaf": (
        "min_data_in_leaf min_child_samples min_data min_data_per_leaf min_samples_leaf "
        "min_examples_in_leaf"
    ),
    "min_gain": "min_split_gain min_gain_to_split gamma min_split_loss",
    "docs_per_tree": "bagging_fraction subsample sub_row bagging",
    "features_per_tree": (
        "feature_fraction colsample_bytree sub_feature rsm colsample feature_fraction_bynode "
        "colsample_bynode colsample_bylevel max_features"
    ),
    "most_bins": "max_bin max_bins border_count n_bins",
    "hidden": (
        "hidden_layer_sizes hidden_layers hidden_layer_dims hidden_units hidden_size hidden_sizes "
        "hidden_dim hidden_dims n_hidden num_hidden layer layers layer_sizes n_layers num_layers "
        "node nodes units n_units"
    ),
    "optimiser": "optimizer solver",
    "n_epochs": (
        "epoch epochs max_epochs num_epochs num_train_epochs n_iter max_iter iterations "
        "num_iterations"
    ),
    "queries_per_step": "batch batch_size minibatch_size mini_batch_size train_batch_size",
    "most_restarts": "restarts n_restarts max_restarts num_restarts",
    "random_state": "seed random_seed bagging_seed feature_fraction_seed",
    "patience": (
        "early_stopping_rounds early_stopping_round od_wait n_iter_no_change "
        "early_stopping_patience"
    ),
    "min_improvement": "early_stopping_min_delta min_delta tol",
    "truncation": (
        "lambdarank_truncation_level lambdarank_num_pair_per_sample truncation_level max_position"
    ),
    "normalise": "lambdarank_norm lambdarank_normalization normalize norm",
    "measure": "objective loss loss_function metric ndcg_eval_at application",
    "valid_measure": "eval_metric eval_at",
    "base": "init_model init_score base_margin baseline submodel",
}
_OURS = {
    theirs: [ours for ours, names in _SAME.items() if theirs in names.split()]
    for names in _SAME.values()
    for theirs in names.split()
}

# By a parameter that only rankers of trees have, and one that only nets have.
_TREES, _NETS = "n_trees", "hidden"
_ANY = ""
_THREADS = {_ANY: "set NUMBA_NUM_THREADS, or call numba.set_num_threads"}
_PROGRESS = {_ANY: "give fit a progress, or use the command line"}
_ANEW = {
    _TREES: "every tree draws anew: 'docs_per_tree' and 'queries_per_tree' say how much",
}
_OVERFITTING = {
    _TREES: "use 'min_docs_in_leaf', 'docs_per_tree' or fewer leaves against overfitting",
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
_CATEGORIES = {_ANY: "categories are to be turned into numbers before"}
_TANGENT = {_NETS: "hidden units have the hyperbolic tangent"}
_MOMENTS = {_NETS: "'optimiser' is adam with its usual numbers, or sgd without momentum"}
_BY_ITSELF = {_NETS: "the rate falls by itself, and 'learning_rate' is what it begins with"}
_SCALED = {_NETS: "nets have none, and bring features to mean 0 and deviation 1 by themselves"}
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

# What has no name of its own here, by what a ranker must have for the words to make sense.
_ADVICE = {
    "bagging_freq": _ANEW,
    "subsample_freq": _ANEW,
    "n_jobs": _THREADS,
    "num_threads": _THREADS,
    "nthread": _THREADS,
    "verbose": _PROGRESS,
    "verbosity": _PROGRESS,
    "boosting_type": {_ANY: "LambdaMART, MART, McRank and LambdaRank are classes of their own"},
    "tree_method": {_TREES: "there is one way to grow trees, by histograms"},
    "group": {_ANY: "give fit a qid, or a RankingData with group_sizes"},
    "label_gain": {_ANY: "the measure has it: NDCG(gain=linear), or gain 2^y - 1"},
    "reg_lambda": _OVERFITTING,
    "lambda_l2": _OVERFITTING,
    "l2_leaf_reg": _OVERFITTING,
    "lambda_l1": _OVERFITTING,
    "reg_alpha": _OVERFITTING,
    "alpha": _OVERFITTING,
    "weight_decay": _OVERFITTING,
    "l2_regularization": _OVERFITTING,
    "dropout": _NO_DROPOUT,
    "dropout_rate": _NO_DROPOUT,
    "min_child_weight": _COUNTED,
    "min_sum_hessian_in_leaf": _COUNTED,
    "categorical_feature": _CATEGORIES,
    "cat_features": _CATEGORIES,
    "activation": _TANGENT,
    "activation_fn": _TANGENT,
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


def our_word(owner: str, theirs: str, known: Collection[str]) -> str | None:
    """Return the words for what another tool's parameter is here; None if it is of none we know.

    Parameters
    ----------
    owner, known
        Who was given it, and the parameters that it has.
    theirs
        The name that another tool has.

    Examples
    --------
    >>> our_word("MART", "max_iter", ["n_trees"])
    "it is called 'n_trees' here"
    >>> our_word("MART", "batch_size", ["n_trees"])
    "it is called 'queries_per_step' here, and MART has none"
    """
    advice = [words for kind, words in _ADVICE.get(theirs, {}).items() if not kind or kind in known]
    if advice:
        return ", or ".join(advice)
    ours = _OURS.get(theirs, [])
    there = [repr(name) for name in ours if name in known]
    if there:
        return f"it is called {' or '.join(there)} here"
    if ours:
        return f"it is called {' or '.join(map(repr, ours))} here, and {owner} has none"
    return f"{owner} has nothing of that kind" if theirs in _ADVICE else None


_VALID = "give valid, a RankingData or (X, y, qid)"
_QUERIES = "give qid, the query of every document"

# What other tools' fit takes.
FIT_WORD = {
    "sample_weight": (
        "pairs have no weight of one document: give query_weight, one weight a query, instead"
    ),
    "weight": "give query_weight, one weight a query",
    "group_weight": "give query_weight, one weight a query",
    "eval_set": _VALID,
    "eval_group": _VALID,
    "eval_qid": _VALID,
    "validation_data": _VALID,
    "group": _QUERIES,
    "groups": _QUERIES,
    "group_id": _QUERIES,
    "eval_metric": "the class has it: valid_measure",
    "eval_at": "the class has it: valid_measure='NDCG@10'",
    "early_stopping_rounds": "the class has it: patience",
    "epochs": "LambdaRank itself has it: n_epochs",
    "batch_size": "LambdaRank itself has it: queries_per_step",
    "validation_split": _VALID,
    "init_score": "the class has it: base",
    "base_margin": "the class has it: base",
    "baseline": "the class has it: base",
    "init_model": "the class has it: base",
    "xgb_model": "the class has it: base",
    "verbose": "give progress",
    "categorical_feature": "categories are to be turned into numbers before",
    "cat_features": "categories are to be turned into numbers before",
}
