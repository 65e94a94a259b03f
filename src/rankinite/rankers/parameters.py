"""Parameters of the rankers, each declared once.

Signatures, constraints, docstrings, flags of ``rankinite train``, keys of configurations and
recipes, and hints for other tools' names derive from these declarations. Parameters that several
rankers share stand in a group that they inherit from; a ranker overrides a default in one line.

This module imports neither numba nor numpy, because ``--help`` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass
from typing import Any, ClassVar

from rankinite.core.params import (
    SEED,
    YES_OR_NO,
    Bounds,
    Either,
    OneOf,
    Parameter,
    Real,
    SourceName,
    Text,
    Whole,
    file_parameters_of,
    or_none,
    parameter,
    parameter_group,
    parameters_of,
)
from rankinite.rankers.constraints import FeatureDirections, FeatureGroups

LINE_SEARCH = "line-search"
FROM_DTYPE = "from_dtype"
PAPER = "paper"
ALL = "all"
# More units than any ranking net has; a file that claims more is damaged.
MOST_UNITS = 1 << 16
FRACTION = Real(0, 1, low_open=True)
POSITIVE = Real(0, low_open=True)


# How trees grow in the papers: as large as their data, and as plain.
PAPER_TREES: Mapping[str, Any] = {
    "n_trees": 500,
    "n_leaves": 31,
    "learning_rate": 0.1,
    "symmetric": False,
    "l2_regularization": 0.0,
    "random_strength": 0.0,
    "docs_per_tree": 1.0,
    "queries_per_tree": 0.5,
    "criterion": "mse",
    "average_rounds": False,
    "most_bins": 255,
}


@dataclass(frozen=True)
class LayerSizes:
    """Number of units of the hidden layer, or one number for each of several layers."""

    def allows(self, value: Any) -> bool:
        """Tell whether the value is such a number, or a list of them without 0."""
        if isinstance(value, (list, tuple)):
            return all(Whole(1, MOST_UNITS).allows(size) for size in value)
        return Whole(0, MOST_UNITS).allows(value)

    def __str__(self) -> str:
        return (
            f"a whole number from 0 (a linear net) to {MOST_UNITS}, or several from 1, one for "
            "each hidden layer"
        )


@dataclass(frozen=True)
class FeatureList:
    """Names of features, or their columns from 0."""

    def allows(self, value: Any) -> bool:
        """Tell whether the value is a list of names and columns."""
        return isinstance(value, (list, tuple)) and all(
            Text().allows(feature) or Whole(0).allows(feature) for feature in value
        )

    def __str__(self) -> str:
        return "a list of features, by name or column from 0"


@parameter_group
class CommonParameters:
    """Parameters of every ranker that learns in rounds.

    ``preset`` is the name of other defaults: with ``"paper"``, a parameter that is not given has
    the value that the papers' experiments need. It is no parameter itself; the values are.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {PAPER: {}}

    preset: InitVar[str | None] = None
    valid_measure: Any = parameter(
        default=None,
        file_constraint=or_none(Text()),
        type_name="str, measure, or list of them, or None",
        help="Measures of the validation sets, separated by commas; the first, tier after tier, "
        "decides which round is best.",
        details="If None, the measure of training; NDCG@10 if training has none.",
        aliases="eval_metric eval_at",
    )
    patience: int | None = parameter(
        default=100,
        constraint=or_none(Whole(1)),
        help="Number of rounds without improvement on the validation set after which training "
        "stops.",
        details="If None, training does not stop early.",
        aliases="early_stopping_rounds early_stopping_round od_wait n_iter_no_change "
        "early_stopping_patience",
    )
    min_improvement: float = parameter(
        default=0.0,
        constraint=Real(0),
        help="Improvement of the validation measure that a round must exceed to count as better.",
        aliases="early_stopping_min_delta min_delta tol",
    )
    weight_source: str | None = parameter(
        default=None,
        constraint=or_none(SourceName()),
        help="Label source of the training data that holds the weights of documents.",
        details="For data sets and files; with arrays, ``fit`` takes them as ``sample_weight``.",
        aliases="weight_column weight_col sample_weight_column",
    )
    random_state: Any = parameter(
        default=0,
        file_constraint=SEED,
        type_name="int, RandomState or None",
        help="Seed of all random draws.",
        details="If None, every fit draws another seed.",
        aliases="seed random_seed bagging_seed feature_fraction_seed",
        flags=("--seed",),
    )


@parameter_group
class StartParameters(CommonParameters):
    """What training starts from."""

    base: Any = parameter(
        default=None,
        type_name="fitted ranker, array of scores, or None",
        help="Fitted ranker, or one score for each training document, to start from.",
        aliases="init_model init_score base_margin baseline submodel",
    )


@parameter_group
class LambdaParameters(CommonParameters):
    """Parameters of rankers that follow lambda gradients."""

    measure: Any = parameter(
        default="NDCG",
        file_constraint=Text(),
        type_name="str, measure or objective",
        help="Measure to improve, such as NDCG, NDCG@3 > CNDCG@3[clicks] or RankNet.",
        details='A text or a value: ``"NDCG"``, ``"ERR"``, ``"MAP@10"``; tiers, as in '
        '``"NDCG@3 > CNDCG@3[clicks]"`` (see `Tiered`); ``"RankNet"``; or an objective, such as a '
        "`Transition`.",
        aliases="objective loss loss_function metric ndcg_eval_at application",
        flags=("-m",),
        kw_only=False,
    )
    truncation: int | None = parameter(
        default=30,
        constraint=or_none(Whole(1)),
        help="Only pairs with a document among this many first ranks count.",
        details="If None, all pairs count.",
        aliases="lambdarank_truncation_level lambdarank_num_pair_per_sample truncation_level "
        "max_position",
    )
    normalise: str = parameter(
        default="distance",
        constraint=OneOf(["none", "deviation", "distance"]),
        help="How the lambdas of a query are scaled.",
        details='``"none"``: not at all; ``"deviation"``: by their standard deviation, so that all '
        "queries count alike, also those that are ranked well already; "
        '``"distance"``: pair by pair, by the distance of the scores. See `Lambdas`.',
        aliases="lambdarank_norm lambdarank_normalization normalize norm",
    )


@parameter_group
class TreeParameters(CommonParameters):
    """Parameters of all rankers of boosted trees; the defaults are those of LambdaMART."""

    n_trees: int = parameter(
        default=1000,
        constraint=Whole(1),
        help="Number of trees at most.",
        aliases="n_estimators num_iterations num_boost_round iterations num_trees num_round "
        "num_rounds nrounds n_iter max_iter",
    )
    n_leaves: int = parameter(
        default=64,
        constraint=Whole(2, 1 << 16),
        help="Number of leaves of a tree at most.",
        details="A level of a symmetric tree is split whole, as long as twice its leaves are "
        "allowed; leaves that cannot be split stay as they are.",
        aliases="num_leaves max_leaves max_leaf max_leaf_nodes num_leaf",
    )
    learning_rate: float = parameter(
        default=0.06,
        constraint=POSITIVE,
        help="Factor that the values of leaves are multiplied by.",
        aliases="eta shrinkage shrinkage_rate lr learning_rate_init eta0 step_size",
    )
    max_depth: int | None = parameter(
        default=None,
        constraint=or_none(Whole(1)),
        help="Depth of a tree at most.",
        details="If None, only the number of leaves limits it.",
        aliases="depth",
    )
    symmetric: bool = parameter(
        default=True,
        constraint=YES_OR_NO,
        help="Whether all leaves of a level are split by the same feature and threshold.",
        details="The split is the one that gains most over the whole level, so that the few "
        "documents of one leaf cannot lead it astray. A tree then has as many levels as "
        "``n_leaves`` allows: 6 for 64. If False, the leaf that gains most is split next, as in "
        "LightGBM.",
        aliases="grow_policy oblivious",
    )
    min_docs_in_leaf: int = parameter(
        default=20,
        constraint=Whole(1),
        help="Number of documents in a leaf at least.",
        aliases="min_data_in_leaf min_child_samples min_data min_data_per_leaf min_samples_leaf "
        "min_examples_in_leaf",
    )
    min_gain: float = parameter(
        default=0.0,
        constraint=Real(0),
        help="Gain that a split must exceed.",
        aliases="min_split_gain min_gain_to_split gamma min_split_loss",
    )
    l2_regularization: float = parameter(
        default=3.0,
        constraint=Real(0),
        help="L2 regularisation of the values of leaves.",
        details="This many documents of mean hessian, whose gradients are 0, are added to every "
        "leaf. So it means the same for every objective, and more in small leaves than in large "
        "ones.",
        aliases="reg_lambda lambda_l2 lambda l2_leaf_reg l2 l2_reg",
    )
    max_delta_step: float = parameter(
        default=0.0,
        constraint=Real(0),
        help="Largest absolute value of a leaf, before the learning rate; 0 for no limit.",
        details="Splits are chosen by what the limited values gain. A line search weighs trees "
        "after their values were limited.",
        aliases="max_tree_output max_leaf_output",
    )
    path_smooth: float = parameter(
        default=0.0,
        constraint=Real(0),
        help="How much the value of a leaf is drawn towards that of its parent.",
        details="A node of n documents has the value (n v + path_smooth p) / (n + path_smooth), "
        "where v is what it would have by itself and p is the value of its parent, smoothed in the "
        "same way; the root has its own. Splits are chosen by what the smoothed values gain.",
    )
    monotone_constraints: Any = parameter(
        default=None,
        constraint=or_none(FeatureDirections()),
        type_name="list, mapping or str, or None",
        help="Features with which scores may only rise (1) or fall (-1), as price=-1,bm25=1.",
        details="One of 1, 0 and -1 for every feature in order, or by feature: a mapping from "
        "names or positions (from 0), or a text such as 'price=-1,bm25=1'. If a feature rises and "
        "all others stay as they are, the score never moves the other way, for any input; a "
        "missing value may have any score. Not for McRank, and not for more than 1024 leaves.",
        aliases="monotone_constraint mc monotonic_cst monotonicity",
    )
    interaction_constraints: Any = parameter(
        default=None,
        constraint=or_none(FeatureGroups()),
        type_name="list of lists or str, or None",
        help="Groups of features that may be split on one path, as [price,bm25],[age].",
        details="Features by name or position (from 0), as lists or as a text. Two features occur "
        "on one path of a tree only if some group has all features of the path; a feature in no "
        "group occurs on paths of its own.",
        aliases="interaction_cst",
    )
    random_strength: float = parameter(
        default=1.0,
        constraint=Real(0),
        help="How much chance there is in the choice of the feature of a split.",
        details="It is the standard deviation of a normal number that is added to the root of a "
        "feature's gain, in units of the root of what a split of pure noise gains. So features "
        "whose gains the data cannot tell apart win in turn: with little data that makes better "
        "models, with much data nearly the same ones.",
        aliases="extra_trees",
    )
    docs_per_tree: float = parameter(
        default=0.8,
        constraint=FRACTION,
        help="Fraction of the documents that each tree sees.",
        aliases="bagging_fraction subsample sub_row bagging",
    )
    queries_per_tree: float = parameter(
        default=1.0,
        constraint=FRACTION,
        help="Fraction of the queries that each tree sees.",
        details="With 0.5 trees grow in little more than half of the time, and models are a little "
        "worse. Samples of one query, called 12~1, 12~2 and so on, are drawn together.",
    )
    features_per_tree: float = parameter(
        default=1.0,
        constraint=FRACTION,
        help="Fraction of the features that each tree sees.",
        aliases="feature_fraction colsample_bytree sub_feature rsm colsample "
        "feature_fraction_bynode colsample_bynode colsample_bylevel max_features",
    )
    criterion: str | None = parameter(
        default=None,
        constraint=or_none(OneOf(["mse", "newton"])),
        help="How splits are chosen.",
        details='``"mse"``: by the squared error of the gradients, as in the papers; '
        '``"newton"``: by what the Newton steps of the leaves promise. If None, by what the step '
        'is: ``"newton"`` for Newton steps, ``"mse"`` for others.',
    )
    step: str = parameter(
        default="newton",
        constraint=OneOf(["newton", "gradient"]),
        help="How the value of a leaf is found.",
        details='``"newton"``: by a Newton step; ``"gradient"``: it is the mean gradient '
        "(Objectives, Sec. 5.3).",
    )
    categorical_features: Any = parameter(
        default=FROM_DTYPE,
        constraint=Either(OneOf([FROM_DTYPE]), FeatureList()),
        type_name='"from_dtype" or list of str or int',
        help="Features that are categories, by name, separated by commas; from_dtype: only those "
        "whose column has a category or dictionary type.",
        details="In Python a list of names, or of columns from 0. Those whose type says so are "
        "categorical in any case. Categories are whole "
        "numbers from 0, or in frames texts. Each has a bin of its own, the rarest none if there "
        "are more than ``most_bins`` (255 if that is None). Categories without a bin, and those "
        "that training has not seen, count as missing.",
        aliases="categorical_feature cat_feature cat_features categorical_column cat_column",
    )
    categorical_smoothing: float = parameter(
        default=10.0,
        constraint=Real(0),
        help="How much categories of few documents are drawn to the mean.",
        details="This many documents with the mean gradient of the leaf are added to every "
        "category when categories are sorted, and when a split by them is compared with others. So "
        "many small categories do not win by chance.",
        aliases="cat_smooth cat_l2",
    )
    average_rounds: bool = parameter(
        default=True,
        constraint=YES_OR_NO,
        help="Whether the model is the mean over rounds, by their values on the validation set.",
        details="The model after round t counts exp((value - best value) sqrt(n) / 0.03) in it, "
        "for n validation queries. So of rounds that few queries cannot tell apart all count, and "
        "with many queries the best one alone. If False, and with tiers of measures, it is the "
        "best round. Without a validation set it is the last one.",
    )
    most_bins: int | None = parameter(
        default=None,
        constraint=or_none(Whole(2, 255)),
        help="Number of bins of a feature at most; none is one for every 100 documents, 64 to 255.",
        aliases="max_bin max_bins border_count n_bins",
    )


@parameter_group
class LineSearchParameters(CommonParameters):
    """Parameters of the line search for the weight of a tree (LambdaSMART, Sec. 5.6)."""

    alpha_bounds: tuple[float, float] = parameter(
        default=(0.1, 100.0),
        constraint=Bounds(0),
        help="Smallest and largest weight of a tree, with line search.",
    )
    line_search_on: str = parameter(
        default="train",
        constraint=OneOf(["train", "valid"]),
        help="Data on which the line search maximises the measure.",
        details='``"train"``: the training data, with query weights and the measure of training; '
        '``"valid"``: the first validation set, with its first measure.',
    )


@parameter_group
class PositionParameters(CommonParameters):
    """Parameters of the correction of clicks for the positions at which documents were shown."""

    position_bias: str | None = parameter(
        default=None,
        constraint=or_none(OneOf(["none", "propensity", "additive"])),
        help="How clicks are corrected for the positions at which documents were shown.",
        details='``"propensity"``: pairs are divided by the propensities of their positions, '
        "which are estimated together with the ranker, as in unbiased LambdaMART (Unbiased, "
        'Sec. 4); ``"additive"``: an effect of its position is added to the score of a document '
        'while training, as in LightGBM; ``"none"``: not at all. If None, ``"propensity"`` where '
        "``fit`` is given a ``position``. The regression term is corrected in the same way.",
        aliases="lambdarank_unbiased",
    )
    # 1 was better than 0 and 0.1 on clicks of sessions; see benchmarks/position_bias.py.
    position_bias_regularization: float = parameter(
        default=1.0,
        constraint=Real(0),
        help="How much the estimated position bias is held back.",
        details="Propensities are ratios of losses to the power of 1 / (1 + this); for effects it "
        "is an L2 regularisation, as a share of the hessian.",
        aliases="lambdarank_position_bias_regularization lambdarank_bias_norm",
    )
    position_source: str = parameter(
        default="position",
        constraint=SourceName(),
        help="Label source of the training data that holds positions, if these are corrected for.",
        details="For data sets and files; with arrays, ``fit`` takes them as ``position``.",
        aliases="position_column position_col",
    )


@parameter_group
class LambdaMARTParameters(
    TreeParameters, LineSearchParameters, PositionParameters, LambdaParameters, StartParameters
):
    """Parameters of LambdaMART."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        PAPER: {**PAPER_TREES, "normalise": "deviation", "regression_weight": 0.0}
    }

    regression_weight: float = parameter(
        default=0.1,
        constraint=Real(0),
        help="Weight of a squared error of grades that is added to the lambdas.",
        details="It pulls differences of scores towards those of grades, which are scaled so that "
        "the largest is 4; what lambdas leave open, such as the order far down the ranking, it "
        "decides. It is the weight with two grades, and multiplied by the square of their number "
        "less 1, up to 4, so that one grade too many or too few always counts the same. Only for "
        "measures, RankNet and others that are made of lambdas: objectives of one's own are "
        "followed as they are.",
    )
    step: str = parameter(
        default="newton",
        constraint=OneOf(["newton", "gradient", LINE_SEARCH]),
        details='``"newton"``: by a Newton step, which the sigmoid cost does not have; '
        '``"gradient"``: it is the mean gradient (Objectives, Sec. 5.3); ``"line-search"``: it is '
        "the mean gradient times the exact best weight of the tree (LambdaSMART, Sec. 5.6), for "
        "the first tier if there are several.",
    )


@parameter_group
class MARTParameters(TreeParameters, StartParameters):
    """Parameters of MART; the preset ``"paper"`` is the challenge's baseline."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        PAPER: {
            **PAPER_TREES,
            "loss": "squared",
            "n_trees": 2400,
            "n_leaves": 20,
            "learning_rate": 0.05,
            "docs_per_tree": 0.5,
            "queries_per_tree": 1.0,
        }
    }

    loss: str = parameter(
        default="centred",
        constraint=OneOf(["squared", "centred", "logistic"]),
        help="Loss to minimise.",
        details='``"squared"``: the squared error of the grade; ``"centred"``: the squared error '
        "of grade and score, each less the mean of its query, which leaves differences between "
        'queries alone; ``"logistic"``: the cross entropy of the chance R = (2^y - 1) / '
        "2^top_grade that a document satisfies (Ensemble, Sec. 4.2), which predict then returns.",
        kw_only=False,
    )
    per_query: bool = parameter(
        default=False,
        constraint=YES_OR_NO,
        help="Whether scores are relative to the best document of the query, with logistic loss.",
        details="Predict then returns P_max (1 + P - P_max), where P_max is the largest chance of "
        "the query (Ensemble, Sec. 4.2), and needs the queries.",
    )
    # All hessians are the same, or nearly: without them trees grow faster.
    criterion: str | None = "mse"


@parameter_group
class McRankParameters(TreeParameters):
    """Parameters of McRank; the defaults are those of the papers."""

    n_trees: int = parameter(
        default=500, help="Number of rounds at most, each of which grows one tree per grade."
    )
    n_leaves: int = 20
    learning_rate: float = 0.1
    symmetric: bool = False
    l2_regularization: float = 0.0
    random_strength: float = 0.0
    docs_per_tree: float = 0.5
    criterion: str | None = "mse"
    average_rounds: bool = False
    most_bins: int | None = 255


@parameter_group
class LambdaRankParameters(LambdaParameters, StartParameters):
    """Parameters of LambdaRank."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        PAPER: {
            "hidden": 25,
            "activation": "tanh",
            "rank_inputs": False,
            "normalise": "none",
            "learning_rate": 1e-3,
            "queries_per_step": 1,
            "weight_decay": 0.2,
        }
    }

    hidden: int | Sequence[int] = parameter(
        default=64,
        constraint=LayerSizes(),
        type_name="int or list of int",
        help="Number of hidden units; several numbers for several layers; 0 for a linear net.",
        aliases="hidden_layer_sizes hidden_layers hidden_layer_dims hidden_units hidden_size "
        "hidden_sizes hidden_dim hidden_dims n_hidden num_hidden layer layers layer_sizes n_layers "
        "num_layers node nodes units n_units",
    )
    activation: str = parameter(
        default="relu",
        constraint=OneOf(["relu", "tanh"]),
        help="Activation function of hidden units.",
        details='``"tanh"`` is that of the papers. With ``"relu"``, which is max(0, x), the first '
        "scores of a net are small, too.",
        aliases="activation_fn activation_function nonlinearity",
    )
    rank_inputs: bool = parameter(
        default=True,
        constraint=YES_OR_NO,
        help="Whether the ranks of features are inputs of the net, beside their values.",
        details="The rank of a value is the share of the training documents with a smaller one. "
        "It tells apart what outliers press together, and a long tail cannot hide the rest.",
        aliases="quantile_transform",
    )
    optimiser: str = parameter(
        default="adam",
        constraint=OneOf(["adam", "sgd"]),
        help="How the weights are learned.",
        details='``"adam"``, whose rate falls to 0 along a cosine; or ``"sgd"``, as in the papers: '
        "straight along the lambdas, at a rate that is multiplied by 0.8 with a chance of 30 % "
        "whenever training accuracy has fallen, and from new random weights whenever ``patience`` "
        'is over (Optimality, Sec. 7). With ``"adam"`` nets were better on every validation set '
        "that was tried, in a tenth of the time.",
        aliases="optimizer solver",
    )
    learning_rate: float = parameter(
        default=3e-3, constraint=POSITIVE, help="Size of the first steps."
    )
    n_epochs: int | None = parameter(
        default=None,
        constraint=or_none(Whole(1)),
        help="Number of epochs at most; none is 40 with adam, 500 with sgd.",
        details="The winners had 500.",
        aliases="epoch epochs max_epochs num_epochs num_train_epochs n_iter max_iter iterations "
        "num_iterations",
    )
    queries_per_step: int | str = parameter(
        default=8,
        constraint=Either(Whole(1), OneOf([ALL])),
        help="Number of queries that a step learns from, or all.",
        aliases="batch batch_size minibatch_size mini_batch_size train_batch_size",
    )
    weight_decay: float = parameter(
        default=0.02,
        constraint=Real(0),
        help="Share of the weights, times the learning rate, that every step of adam takes away.",
        aliases="reg_lambda lambda_l2 lambda l2_leaf_reg l2 l2_reg l2_regularization",
    )
    most_restarts: int | None = parameter(
        default=None,
        constraint=or_none(Whole(0)),
        help="Number of times at most that sgd starts again from new random weights.",
        details="If None, as often as there are epochs for.",
        aliases="restarts n_restarts max_restarts num_restarts",
    )
    patience: int | None = parameter(
        default=50,
        help="Number of epochs without improvement after which adam stops, and sgd starts again "
        "from new random weights.",
    )
    truncation: int | None = None
    normalise: str = "deviation"


# By the name of the ranker; the first is what ``rankinite train`` trains by default.
RANKER_PARAMETERS: Mapping[str, type[Any]] = {
    "LambdaMART": LambdaMARTParameters,
    "MART": MARTParameters,
    "McRank": McRankParameters,
    "LambdaRank": LambdaRankParameters,
}


def file_parameters() -> dict[str, dict[str, Parameter]]:
    """Return what files and flags can set: by parameter, its declaration by ranker."""
    parameters: dict[str, dict[str, Parameter]] = {}
    for ranker, group in RANKER_PARAMETERS.items():
        for name, declared in file_parameters_of(group).items():
            parameters.setdefault(name, {})[ranker] = declared
    return parameters


def names_by_alias() -> dict[str, list[str]]:
    """Return the parameters that another tool's name can mean here, by that name."""
    names: dict[str, list[str]] = {}
    for group in RANKER_PARAMETERS.values():
        for name, declared in parameters_of(group).items():
            for alias in declared.aliases:
                if name not in names.setdefault(alias, []):
                    names[alias].append(name)
    return names
