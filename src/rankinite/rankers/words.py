"""What other tools call our parameters, for people who come from there."""

from __future__ import annotations

_SAME = {
    "n_trees": (
        "n_estimators num_iterations num_boost_round iterations num_trees num_round "
        "num_rounds nrounds n_iter max_iter"
    ),
    "n_leaves": "num_leaves max_leaves max_leaf max_leaf_nodes num_leaf",
    "learning_rate": "eta shrinkage shrinkage_rate",
    "max_depth": "depth",
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
    "random_state": "seed random_seed bagging_seed feature_fraction_seed",
    "patience": "early_stopping_rounds early_stopping_round od_wait n_iter_no_change",
    "min_improvement": "early_stopping_min_delta min_delta tol",
    "truncation": (
        "lambdarank_truncation_level lambdarank_num_pair_per_sample truncation_level max_position"
    ),
    "normalise": "lambdarank_norm lambdarank_normalization normalize norm",
    "measure": "objective loss loss_function metric ndcg_eval_at application",
    "valid_measure": "eval_metric eval_at",
    "base": "init_model init_score base_margin baseline submodel",
}

OUR_WORD = {
    theirs: f"it is called {ours!r} here"
    for ours, names in _SAME.items()
    for theirs in names.split()
} | {
    "bagging_freq": "every tree draws anew: 'docs_per_tree' and 'queries_per_tree' say how much",
    "subsample_freq": "every tree draws anew: 'docs_per_tree' and 'queries_per_tree' say how much",
    "n_jobs": "set NUMBA_NUM_THREADS, or call numba.set_num_threads",
    "num_threads": "set NUMBA_NUM_THREADS, or call numba.set_num_threads",
    "nthread": "set NUMBA_NUM_THREADS, or call numba.set_num_threads",
    "verbose": "give fit a progress, or use the command line",
    "verbosity": "give fit a progress, or use the command line",
    "boosting_type": "LambdaMART, MART and McRank are classes of their own",
    "tree_method": "there is one way to grow trees, by histograms",
    "group": "give fit a qid, or a RankingData with group_sizes",
    "label_gain": "the measure has it: NDCG(gain=linear), or gain 2^y - 1",
    "reg_lambda": "use 'min_docs_in_leaf', 'docs_per_tree' or fewer leaves against overfitting",
    "lambda_l2": "use 'min_docs_in_leaf', 'docs_per_tree' or fewer leaves against overfitting",
    "l2_leaf_reg": "use 'min_docs_in_leaf', 'docs_per_tree' or fewer leaves against overfitting",
    "lambda_l1": "use 'min_docs_in_leaf', 'docs_per_tree' or fewer leaves against overfitting",
    "reg_alpha": "use 'min_docs_in_leaf', 'docs_per_tree' or fewer leaves against overfitting",
    "min_child_weight": "use 'min_docs_in_leaf', which counts documents",
    "min_sum_hessian_in_leaf": "use 'min_docs_in_leaf', which counts documents",
    "categorical_feature": "categories are to be turned into numbers before",
    "cat_features": "categories are to be turned into numbers before",
}

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
    "init_score": "the class has it: base",
    "base_margin": "the class has it: base",
    "baseline": "the class has it: base",
    "init_model": "the class has it: base",
    "xgb_model": "the class has it: base",
    "verbose": "give progress",
    "categorical_feature": "categories are to be turned into numbers before",
    "cat_features": "categories are to be turned into numbers before",
}
