"""Contents of a ranker: structure, parameters, learning curves and importances."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from rankinite.core.figures import drawn_as_is, save_figure, subplots
from rankinite.core.params import file_parameters_of
from rankinite.ensembles.ensemble import Ensemble
from rankinite.ensembles.score_features import WithScoreFeatures
from rankinite.objectives.position_bias import PROPENSITY, PositionBias
from rankinite.rankers.imported import ImportedForest
from rankinite.rankers.lambdarank import LambdaRank
from rankinite.rankers.model_file import plain
from rankinite.rankers.tree_ranker import TreeRanker

if TYPE_CHECKING:
    from rankinite.models import TrainedRanker

# The files of `draw_figures`.
FIGURES = ("learning-curve.png", "importances.png", "position-bias.png")


@dataclass(frozen=True, kw_only=True)
class Importance:
    """Importance of a feature; values that do not apply to the ranker are None.

    Attributes
    ----------
    feature
        Name of the feature.
    gain, count
        Total gain and number of its splits.
    slope, weight
        Largest slope of a net's score along it, and the weight of a linear net.
    share
        Its share in the gain, or in the slopes, of all features.
    """

    feature: str
    gain: float | None = None
    slope: float | None = None
    share: float
    count: int | None = None
    weight: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the values that apply, as JSON can hold them."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class Curve:
    """Values of a measure on a validation set, one per round."""

    set_name: str
    measure: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class Trees:
    """Number of trees of a round, and numbers of leaves and categorical splits of all trees."""

    per_round: int
    n_leaves: int
    n_categorical: int = 0


@dataclass(frozen=True)
class Layers:
    """Numbers of inputs and of units in each hidden layer, and of all weights."""

    sizes: tuple[int, ...]
    n_weights: int


@dataclass(frozen=True)
class Member:
    """A member of an ensemble.

    Attributes
    ----------
    name
        Its name in the ensemble.
    weight
        Weight of its normalised scores; None if a ranker on top learned from them.
    mean, scale
        Normalisation of its scores: the mean is subtracted, and the rest divided by the scale.
    inspection
        Contents of the member; None if only its scores were known.
    """

    name: str
    weight: float | None
    mean: float
    scale: float
    inspection: Inspection | None

    @property
    def kind(self) -> str:
        """Name of its class, or ``"scores"``."""
        return "scores" if self.inspection is None else self.inspection.kind

    def as_json(self, top: int | None) -> dict[str, Any]:
        """Return values as JSON can hold them, with at most `top` importances."""
        return {
            "name": self.name,
            "weight": self.weight,
            "mean": self.mean,
            "scale": self.scale,
            "model": None if self.inspection is None else self.inspection.as_json(top),
        }


@dataclass(frozen=True)
class Inspection:
    """Contents of a ranker.

    Attributes
    ----------
    kind
        Name of its class.
    parameters, defaults
        Its parameters except the base or members, and their default values.
    rounds
        Plural name of its rounds: trees or epochs.
    kept, best_round, n_rounds
        Number of rounds of trees that were kept, or the epoch; the best round; and the number of
        rounds of training.
    features
        Names of the features that it was fitted to.
    top_grade
        Top grade of its training data.
    n_queries, n_docs, version
        Numbers of queries and documents of its training data, and the version of rankinite that
        fitted it; None for an ensemble, and if its model file has none.
    trees, net
        Its trees or its layers; the other is None, and both are for an ensemble.
    importances
        The most important feature first; features that are not used are left out.
    curves
        Learning curves; empty if nothing was measured.
    base
        What training started from: another ranker, ``"scores"`` or None.
    members
        Members of an ensemble.
    on_top
        The ranker that learned from the scores of the members, or of the scorer, if there is one.
    scorer
        The ranker whose scores are features of the one on top, if there is one.
    position_bias
        How much each position mattered in training; None if positions were not corrected for.
    origin
        Of an imported forest, the tool that trained it, and for what; nothing for others.
    """

    kind: str
    parameters: Mapping[str, Any]
    defaults: Mapping[str, Any]
    rounds: str
    kept: int
    best_round: int
    n_rounds: int
    features: tuple[str, ...]
    top_grade: float
    n_queries: int | None = None
    n_docs: int | None = None
    version: str | None = None
    trees: Trees | None = None
    net: Layers | None = None
    importances: tuple[Importance, ...] = ()
    curves: tuple[Curve, ...] = ()
    base: Inspection | str | None = None
    members: tuple[Member, ...] = ()
    on_top: Inspection | None = None
    scorer: Inspection | None = None
    position_bias: PositionBias | None = None
    origin: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_composed(self) -> bool:
        """Whether it consists of other rankers, and has no rounds of its own."""
        return bool(self.members) or self.scorer is not None

    def as_json(self, top: int | None = None) -> dict[str, Any]:
        """Return values as JSON can hold them, with at most `top` importances."""
        base = self.base.as_json(top) if isinstance(self.base, Inspection) else self.base
        # An ensemble has no rounds of its own: those of its members are in their parts.
        structure: dict[str, Any] = {}
        if not self.is_composed:
            structure = dict(_rounds(self.rounds, self.kept, self.n_rounds))
        if self.trees is not None:
            structure |= {"trees_a_round": self.trees.per_round, "leaves": self.trees.n_leaves}
        if self.net is not None:
            structure |= {"layers": [*self.net.sizes, 1], "weights": self.net.n_weights}
        if self.members:
            structure["members"] = [member.as_json(top) for member in self.members]
        if self.scorer is not None:
            structure["scorer"] = self.scorer.as_json(top)
        if self.on_top is not None:
            structure["ranker"] = self.on_top.as_json(top)
        if self.position_bias is not None:
            structure["position_bias"] = _bias_as_json(self.position_bias)
        return {
            "class": self.kind,
            **self.origin,
            "parameters": dict(self.parameters),
            **structure,
            "features": list(self.features),
            "top_grade": self.top_grade,
            "queries": self.n_queries,
            "documents": self.n_docs,
            "rankinite": self.version,
            "importances": [importance.as_json() for importance in self.importances[:top]],
            "history": [
                {"set": curve.set_name, "measure": curve.measure, "values": list(curve.values)}
                for curve in self.curves
            ],
            "base": base,
        }


def _bias_as_json(bias: PositionBias) -> dict[str, Any]:
    by_name = {name: values.tolist() for name, values in bias.estimates.items()}
    return {"method": bias.method, "positions": bias.positions.tolist(), **by_name}


def rounds_as_json(ranker: TrainedRanker) -> dict[str, int]:
    """Return the numbers of trees kept and grown; or the best epoch, and the number of epochs."""
    return _rounds(ranker.rounds, kept_rounds(ranker), ranker.n_rounds_)


def kept_rounds(ranker: TrainedRanker) -> int:
    """Return the number of rounds of trees of the model; or the epoch whose weights it has."""
    return ranker.n_trees_ if isinstance(ranker, TreeRanker) else ranker.best_round_


def _rounds(name: str, kept: int, n_rounds: int) -> dict[str, int]:
    return {name: kept, f"{name}_{'grown' if name == 'trees' else 'done'}": n_rounds}


def inspect_ranker(
    ranker: TrainedRanker | Ensemble | WithScoreFeatures | ImportedForest,
) -> Inspection:
    """Return the contents of a fitted ranker, of its base and of its members."""
    if isinstance(ranker, Ensemble):
        return _inspect_ensemble(ranker)
    if isinstance(ranker, WithScoreFeatures):
        return _inspect_with_score_features(ranker)
    if isinstance(ranker, ImportedForest):
        return _inspect_imported(ranker)
    started_from = getattr(ranker, "base", None)
    base: Inspection | str | None = None
    # Only a ranker is part of the model; scores that training started from are the caller's.
    if isinstance(
        started_from, (TreeRanker, LambdaRank, Ensemble, WithScoreFeatures, ImportedForest)
    ):
        base = inspect_ranker(started_from)
    elif started_from is not None:
        base = "scores"
    declared = file_parameters_of(type(ranker))
    return Inspection(
        kind=type(ranker).__name__,
        parameters={name: getattr(ranker, name) for name in declared},
        defaults={name: parameter.default for name, parameter in declared.items()},
        rounds=ranker.rounds,
        kept=kept_rounds(ranker),
        best_round=ranker.best_round_,
        n_rounds=ranker.n_rounds_,
        trees=_trees_of(ranker) if isinstance(ranker, TreeRanker) else None,
        net=_layers_of(ranker) if isinstance(ranker, LambdaRank) else None,
        features=ranker.feature_names_,
        top_grade=ranker.top_grade_,
        n_queries=ranker.n_queries_,
        n_docs=ranker.n_docs_,
        version=ranker.version_,
        importances=importances_of(ranker),
        curves=tuple(
            Curve(name, measure, tuple(values))
            for name, measures in ranker.history_.items()
            for measure, values in measures.items()
        ),
        base=base,
        position_bias=getattr(ranker, "position_bias_", None),
    )


def _inspect_ensemble(ranker: Ensemble) -> Inspection:
    """Return the contents of an ensemble and of its members."""
    members = _members_of(ranker)
    # Ensembles declare no parameters for files and flags; their signatures are all there is.
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(type(ranker)).parameters.items()
        if name != "members"
    }
    parameters = ranker.get_params(deep=False)
    on_top = getattr(ranker, "ranker_", None)
    return Inspection(
        kind=type(ranker).__name__,
        parameters={name: _in_one_line(parameters[name]) for name in defaults},
        defaults=defaults,
        rounds=ranker.rounds,
        kept=len(members),
        best_round=len(members),
        n_rounds=len(members),
        features=ranker.feature_names_,
        top_grade=ranker.top_grade_,
        members=members,
        on_top=None if on_top is None else inspect_ranker(on_top),
    )


def _inspect_imported(ranker: ImportedForest) -> Inspection:
    """Return the contents of a forest of another tool."""
    return Inspection(
        kind=type(ranker).__name__,
        parameters={},
        defaults={},
        rounds=ranker.rounds,
        kept=ranker.n_trees_,
        best_round=ranker.n_trees_,
        n_rounds=ranker.n_trees_,
        trees=_trees_of(ranker),
        features=ranker.feature_names_,
        top_grade=ranker.top_grade_,
        importances=_importances_of_trees(ranker),
        origin={"tool": ranker.tool_, "objective": ranker.objective_},
    )


def _inspect_with_score_features(ranker: WithScoreFeatures) -> Inspection:
    """Return the contents of a ranker with another one's scores as features, and of both."""
    scorer, on_top = (
        inspect_ranker(cast("TrainedRanker | Ensemble", part))
        for part in (ranker.scorer_, ranker.ranker_)
    )
    default = inspect.signature(type(ranker)).parameters["folds"].default
    return Inspection(
        kind=type(ranker).__name__,
        parameters={"folds": ranker.folds},
        defaults={"folds": default},
        rounds=on_top.rounds,
        kept=on_top.kept,
        best_round=on_top.best_round,
        n_rounds=on_top.n_rounds,
        features=ranker.feature_names_,
        top_grade=ranker.top_grade_,
        on_top=on_top,
        scorer=scorer,
    )


def _in_one_line(value: Any) -> Any:
    """Return a parameter as JSON can hold it; a ranker is its text, in one line."""
    plain_value = plain(value)
    return " ".join(plain_value.split()) if isinstance(plain_value, str) else plain_value


def _members_of(ranker: Ensemble) -> tuple[Member, ...]:
    names = ranker.member_names_
    inspections: list[Inspection | None] = [None] * len(names)
    if ranker.members_:
        members = ranker.members_.values()
        inspections = [
            inspect_ranker(cast("TrainedRanker | Ensemble", member)) for member in members
        ]
    # A stacked ensemble has no weights: a ranker on top learned from the members' scores.
    weights = getattr(ranker, "weights_", [None] * len(names))
    rows = zip(names, weights, ranker.means_, ranker.scales_, inspections, strict=True)
    return tuple(
        Member(name, None if weight is None else float(weight), float(mean), float(scale), inside)
        for name, weight, mean, scale, inside in rows
    )


def _trees_of(ranker: TreeRanker | ImportedForest) -> Trees:
    forest = ranker.forest_
    arrays = forest.arrays
    return Trees(len(forest.start), int(arrays.n_leaves.sum()), len(arrays.left_sets))


def _layers_of(ranker: LambdaRank) -> Layers:
    net = ranker.net_
    return Layers((len(net.inputs.features), *net.hidden), len(net.weights))


def importances_of(ranker: TrainedRanker) -> tuple[Importance, ...]:
    """Return the importances of the features that a ranker uses, the largest first."""
    if isinstance(ranker, LambdaRank):
        return _importances_of_net(ranker)
    return _importances_of_trees(ranker) if isinstance(ranker, TreeRanker) else ()


def _importances_of_trees(ranker: TreeRanker | ImportedForest) -> tuple[Importance, ...]:
    gains, counts = ranker.importances("gain"), ranker.importances("count")
    total = sum(gains.values()) or 1.0  # trees without a single split have no gain to share
    return tuple(
        Importance(feature=name, gain=gain, share=gain / total, count=int(counts[name]))
        for name, gain in gains.items()
        if counts[name]
    )


def _importances_of_net(ranker: LambdaRank) -> tuple[Importance, ...]:
    net, slopes = ranker.net_, ranker.importances()
    names = ranker.feature_names_
    # The ranks of features, if they are inputs, are behind the features.
    inputs = [names[j % len(names)] for j in net.inputs.features]
    # In a linear net the weights are the model, with their signs; slopes are sizes only.
    has_weights = not net.hidden and net.inputs.ranks is None
    weights = dict(zip(inputs, net.weights.tolist(), strict=False)) if has_weights else {}
    total = sum(slopes.values()) or 1.0
    return tuple(
        Importance(feature=name, slope=slope, share=slope / total, weight=weights.get(name))
        for name, slope in slopes.items()
        if name in set(inputs)
    )


def draw_figures(inspection: Inspection, folder: str | Path, top: int) -> list[Path]:
    """Draw learning curves, importances and position bias as PNG files; return their paths.

    What a ranker does not have is not drawn.

    Parameters
    ----------
    inspection
        Contents of the ranker.
    folder
        Folder of the files; created if it does not exist.
    top
        Number of features to draw.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    drawn = []
    if inspection.curves:
        drawn.append(target / FIGURES[0])
        _draw_curves(drawn[-1], inspection)
    if inspection.importances[:top]:
        drawn.append(target / FIGURES[1])
        _draw_importances(drawn[-1], inspection, top)
    if inspection.position_bias is not None:
        drawn.append(target / FIGURES[2])
        _draw_position_bias(drawn[-1], inspection.position_bias)
    return drawn


def _draw_curves(path: Path, inspection: Inspection) -> None:
    measures = list(dict.fromkeys(curve.measure for curve in inspection.curves))
    figure, all_axes = subplots(len(measures))
    best = inspection.best_round
    kept = f"best round {best}" if inspection.trees is not None else f"epoch {best} kept"
    for axes, measure in zip(all_axes, measures, strict=True):
        for curve in inspection.curves:
            if curve.measure == measure:
                rounds = np.arange(1, len(curve.values) + 1)
                axes.plot(rounds, curve.values, linewidth=1.5, label=curve.set_name)
        axes.axvline(best, color="grey", linewidth=1, linestyle=":")
        axes.set(xlabel=inspection.rounds.capitalize(), ylabel=measure, title=f"{measure}, {kept}")
        axes.legend()
    save_figure(figure, path)


def _draw_position_bias(path: Path, bias: PositionBias) -> None:
    figure, (axes,) = subplots(1)
    for name, values in bias.estimates.items():
        axes.plot(bias.positions, values, marker="o", linewidth=1.5, label=name.capitalize())
    is_propensity = bias.method == PROPENSITY
    axes.set(
        xlabel="Position",
        ylabel="Propensity" if is_propensity else "Effect on the score",
        title="Estimated position bias",
    )
    if is_propensity:
        axes.set_ylim(bottom=0.0)
    axes.legend()
    save_figure(figure, path)


def _draw_importances(path: Path, inspection: Inspection, top: int) -> None:
    chosen = inspection.importances[:top]
    share = "Share of the gain" if inspection.trees is not None else "Share of the slopes"
    figure, (axes,) = subplots(1, max(2.0, 0.22 * len(chosen) + 1.0))
    axes.barh(range(len(chosen)), [i.share for i in chosen])
    axes.set_yticks(range(len(chosen)), [drawn_as_is(i.feature) for i in chosen])
    axes.invert_yaxis()  # the most important feature at the top
    axes.set(xlabel=share, ylabel="Feature", title="Most important features")
    save_figure(figure, path)
