"""Parameters by the names that other tools have, and slips: a sentence with the name here."""

from __future__ import annotations

import pytest

import rankinite as rk
from tests.rankers.cases import CLASSES, TRAIN, every_ranker


def refused(call):
    with pytest.raises(rk.UsageError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 700
    return message


OTHER_NAMES = {
    "trees": [
        # LightGBM, XGBoost, CatBoost and scikit-learn, in turns.
        ("num_leaves", "it is called 'n_leaves' here"),
        ("lambdarank_unbiased", "it is called 'position_bias' here"),
        ("n_estimators", "it is called 'n_trees' here"),
        ("min_child_samples", "it is called 'min_docs_in_leaf' here"),
        ("bagging_fraction", "it is called 'docs_per_tree' here"),
        ("early_stopping_rounds", "it is called 'patience' here"),
        ("num_boost_round", "it is called 'n_trees' here"),
        ("eta", "it is called 'learning_rate' here"),
        ("colsample_bytree", "it is called 'features_per_tree' here"),
        ("max_leaves", "it is called 'n_leaves' here"),
        ("reg_lambda", "it is called 'l2_regularization' here"),
        ("iterations", "it is called 'n_trees' here"),
        ("depth", "it is called 'max_depth' here"),
        ("border_count", "it is called 'most_bins' here"),
        ("l2_leaf_reg", "it is called 'l2_regularization' here"),
        ("random_seed", "it is called 'random_state' here"),
        ("max_iter", "it is called 'n_trees' here"),
        ("max_leaf_nodes", "it is called 'n_leaves' here"),
        ("monotonic_cst", "it is called 'monotone_constraints' here"),
        ("interaction_cst", "it is called 'interaction_constraints' here"),
        ("max_leaf_output", "it is called 'max_delta_step' here"),
        ("cat_features", "it is called 'categorical_features' here"),
        ("categorical_feature", "it is called 'categorical_features' here"),
        ("cat_smooth", "it is called 'categorical_smoothing' here"),
        ("enable_categorical", "columns of a category type are categorical by themselves"),
        ("max_cat_to_onehot", "'categorical_smoothing' holds back those of few documents"),
        ("zero_as_missing", "give NaN where 0 means missing"),
        ("deterministic", "the same 'random_state' always gives the same model"),
        (
            "monotone_constraints_method",
            "there is one method, by which 'monotone_constraints' hold",
        ),
        ("tolerance", "tiers have it in their measure, behind ~: 'NDCG@3 ~0.002 > CNDCG"),
        # What only nets have.
        ("hidden_layer_sizes", "it is called 'hidden' here, and "),
        ("dropout", "use 'docs_per_tree', 'queries_per_tree' or 'features_per_tree' against over"),
        ("betas", "has nothing of that kind"),
        # Slips.
        ("n_tree", "did you mean 'n_trees'?"),
    ],
    "nets": [
        # scikit-learn, PyTorch, Keras, allRank and RankLib, in turns.
        ("hidden_layer_sizes", "it is called 'hidden' here"),
        ("learning_rate_init", "it is called 'learning_rate' here"),
        ("solver", "it is called 'optimiser' here"),
        ("max_iter", "it is called 'n_epochs' here"),
        ("batch_size", "it is called 'queries_per_step' here"),
        ("n_iter_no_change", "it is called 'patience' here"),
        ("tol", "it is called 'min_improvement' here"),
        ("alpha", "use 'weight_decay', a validation set or fewer 'hidden' units against overfit"),
        ("activation_fn", "it is called 'activation' here"),
        ("momentum", "'optimiser' is adam with its usual numbers, or sgd without momentum"),
        ("early_stopping", "give fit valid, queries of their own, and see 'patience'"),
        ("warm_start", "give 'base' a fitted ranker, or fit a checkpoint"),
        ("lr", "it is called 'learning_rate' here"),
        ("dropout", "nets have none: use 'weight_decay', "),
        ("shuffle", "every epoch draws the order of queries anew"),
        ("epochs", "it is called 'n_epochs' here"),
        ("max_epochs", "it is called 'n_epochs' here"),
        ("optimizer", "it is called 'optimiser' here"),
        ("hidden_units", "it is called 'hidden' here"),
        ("lr_scheduler", "the rate falls by itself"),
        ("layer", "it is called 'hidden' here"),
        ("node", "it is called 'hidden' here"),
        # What only trees have.
        ("num_leaves", "it is called 'n_leaves' here, and LambdaRank has none"),
        ("tree_method", "LambdaRank has nothing of that kind"),
        # Slips.
        ("n_epoch", "did you mean 'n_epochs'?"),
    ],
}
OF_EVERYBODY = [
    ("n_jobs", "set RANKINITE_THREADS"),
    ("learning_rat", "did you mean 'learning_rate'?"),
    ("zzz", "known are '"),
]
NAMES_OF_OTHERS = [
    pytest.param(case, theirs, ours, id=f"{name}-{theirs}")
    for name, case in CLASSES.items()
    for theirs, ours in [*OF_EVERYBODY, *OTHER_NAMES["nets" if case.is_net else "trees"]]
]


@pytest.mark.parametrize(("case", "theirs", "ours"), NAMES_OF_OTHERS)
def test_names_of_other_tools_and_slips(case, theirs, ours):
    name = case.kind.__name__
    for call in (lambda: case.kind(**{theirs: 1}), lambda: case.new().set_params(**{theirs: 1})):
        message = refused(call)
        assert message.startswith(f"{name}: there is no parameter {theirs!r}; ")
        assert ours in message


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("eval_set", "write valid=(X_valid, y_valid, qid_valid)"),
        ("validation_data", "give valid, a RankingData or (X, y, qid)"),
        ("groups", "give qid, the query of every document, or group, the sizes of consecutive"),
        ("verbose", "give progress=True, or callbacks=[print] for a line per round"),
        ("early_stopping_rounds", "set it in the constructor: patience"),
        ("epochs", "set it in the constructor of LambdaRank: n_epochs"),
        ("zzz", "see help("),
    ],
)
@every_ranker
def test_names_of_other_tools_in_fit(case, name, sentence):
    message = refused(lambda: case.new().fit(TRAIN, **{name: 1}))
    assert message.startswith(f"{case.kind.__name__}.fit: there is no parameter {name!r}; ")
    assert sentence in message


@pytest.mark.parametrize("kind", [rk.LambdaMART, rk.LambdaRank])
def test_options_of_objectives_stand_in_the_measure(kind):
    for name in ("weights", "tier_weights", "train_depth", "pairs_of"):
        assert "Tiered(NDCG@3 > CNDCG@3[clicks], weights=0.3)" in refused(
            lambda n=name: kind(**{n: 1})
        )
    assert "Transition(NDCG, SigmoidCost(NDCG)" in refused(lambda: kind(schedule=0.5))


EVAL_SETS = [
    # As in LightGBM, with sizes, and as in XGBoost, with ids.
    (
        {"eval_set": [(1, 2)], "eval_group": [[3]]},
        "write valid=rankinite.RankingData(X_valid, y_valid, group_sizes=sizes_valid)",
    ),
    ({"eval_set": [(1, 2)], "eval_qid": [3]}, "write valid=(X_valid, y_valid, qid_valid)"),
    (
        {"eval_qid": [3, 4], "eval_set": [(1, 2), (3, 4)]},
        'write valid={"valid_0": (X_valid, y_valid, qid_valid), "valid_1": (X_valid, y_valid, '
        "qid_valid)}, of which the first decides when to stop",
    ),
    (
        {"eval_set": [(1, 2)] * 3, "eval_names": ["a", "b", "c"]},
        'write valid={"a": (X_valid, y_valid, qid_valid), "b": (X_valid, y_valid, qid_valid), '
        "...}, of which the first decides when to stop",
    ),
]


@pytest.mark.parametrize(("arguments", "sentence"), EVAL_SETS)
def test_validation_sets_of_other_tools_are_answered_with_the_call_to_write(arguments, sentence):
    message = refused(lambda: rk.LambdaMART().fit(TRAIN, **arguments))
    name = next(iter(arguments))
    assert message == f"LambdaMART.fit: there is no parameter {name!r}; {sentence}"
