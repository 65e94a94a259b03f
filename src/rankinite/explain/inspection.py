"""What is in a model: numbers, parameters, learning curves and importances."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from rankinite.core.figures import save_figure, subplots
from rankinite.core.params import file_parameters_of
from rankinite.ensembles.ensemble import Ensemble
from rankinite.ensembles.score_features import WithScoreFeatures
from rankinite.models import TrainedRanker
from rankinite.rankers.lambdarank import LambdaRank
from rankinite.rankers.model_file import plain
from rankinite.rankers.tree_ranker import TreeRanker


@dataclass(frozen=True, kw_only=True)
class Importance:
    """How much a feature matters; what does not apply to its ranker is None.

    Attributes
    ----------
    feature
        Its name.
    gain, count
        What its splits gained, and how many they are.
    slope, weight
        How steep a net's score can be along it; and the weight of a linear net.
    share
        Its share of all gain, or of all slopes.
    """

    feature: str
    gain: float | None = None
    slope: float | None = None
    share: float
    count: int | None = None
    weight: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return plain values, of what applies."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class Curve:
    """The values of a measure on a validation set, one a round."""

    set_name: str
    measure: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class Trees:
    """How many trees a round has, and how many leaves all trees have."""

    a_round: int
    n_leaves: int


@dataclass(frozen=True)
class Layers:
    """How many inputs a net has and units each hidden layer; and the number of all weights."""

    sizes: tuple[int, ...]
    n_weights: int


@dataclass(frozen=True)
class Member:
    """One of the rankers in a combination.

    Attributes
    ----------
    name
        What it is called there.
    weight
        What its scores, on one scale with the others', are multiplied by; None if a ranker on top
        learned from them.
    mean, scale
        What brings its scores to that scale.
    found
        What is in it; None if only its scores were known.
    """

    name: str
    weight: float | None
    mean: float
    scale: float
    found: Inspection | None

    @property
    def kind(self) -> str:
        """What it is: the name of its class, or scores."""
        return "scores" if self.found is None else self.found.kind

    def as_json(self, top: int | None) -> dict[str, Any]:
        """Return plain values, with so many importances."""
        own = {"name": self.name, "weight": self.weight, "mean": self.mean, "scale": self.scale}
        return {**own, "model": None if self.found is None else self.found.as_json(top)}


@dataclass(frozen=True)
class Inspection:
    """What is in a ranker.

    Attributes
    ----------
    kind
        The name of its class.
    parameters, defaults
        Its parameters but the base or members, and what they are if nobody says.
    rounds
        What a round of its training is called, of which there are several.
    kept, done
        After how many rounds it was kept, and how many were done in training.
    trees, net
        What it consists of; one of them is None, and both of a combination.
    features
        The names of the features that it was fitted to.
    importances
        The most important first; features without a split, or that are no inputs, are left out.
    curves
        The learning curves; empty if nothing was measured.
    base
        What training started from: another ranker, ``"scores"`` or nothing.
    members
        The rankers that a combination consists of.
    on_top
        The ranker that learned from the scores of the members, or of the scorer, if there is one.
    scorer
        The ranker whose scores are features of the one on top, if there is one.
    """

    kind: str
    parameters: Mapping[str, Any]
    defaults: Mapping[str, Any]
    rounds: str
    kept: int
    done: int
    trees: Trees | None
    net: Layers | None
    features: tuple[str, ...]
    top_grade: float
    importances: tuple[Importance, ...]
    curves: tuple[Curve, ...]
    base: Inspection | str | None
    members: tuple[Member, ...] = ()
    on_top: Inspection | None = None
    scorer: Inspection | None = None

    @property
    def is_composed(self) -> bool:
        """Whether it consists of other rankers, and has no rounds of its own."""
        return bool(self.members) or self.scorer is not None

    def as_json(self, top: int | None = None) -> dict[str, Any]:
        """Return plain values, with so many importances."""
        base = self.base.as_json(top) if isinstance(self.base, Inspection) else self.base
        own: dict[str, Any] = {}
        if not self.is_composed:
            own = dict(_rounds(self.rounds, self.kept, self.done))
        if self.trees is not None:
            own |= {"trees_a_round": self.trees.a_round, "leaves": self.trees.n_leaves}
        if self.net is not None:
            own |= {"layers": [*self.net.sizes, 1], "weights": self.net.n_weights}
        if self.members:
            own["members"] = [one.as_json(top) for one in self.members]
        if self.scorer is not None:
            own["scorer"] = self.scorer.as_json(top)
        if self.on_top is not None:
            own["ranker"] = self.on_top.as_json(top)
        return {
            "class": self.kind,
            "parameters": dict(self.parameters),
            **own,
            "features": list(self.features),
            "top_grade": self.top_grade,
            "importances": [one.as_json() for one in self.importances[:top]],
            "history": [
                {"set": one.set_name, "measure": one.measure, "values": list(one.values)}
                for one in self.curves
            ],
            "base": base,
        }


def rounds_as_json(ranker: TrainedRanker) -> dict[str, int]:
    """Return how many trees were kept and grown; or which epoch was kept, and how many done."""
    return _rounds(ranker.rounds, ranker.kept_rounds_, ranker.n_rounds_)


def _rounds(word: str, kept: int, done: int) -> dict[str, int]:
    return {word: kept, f"{word}_{'grown' if word == 'trees' else 'done'}": done}


def inspect_ranker(ranker: TrainedRanker | Ensemble | WithScoreFeatures) -> Inspection:
    """Look into a fitted ranker, and into its base or members."""
    if isinstance(ranker, Ensemble):
        return _inspect_combination(ranker)
    if isinstance(ranker, WithScoreFeatures):
        return _inspect_with_score_features(ranker)
    own_base = getattr(ranker, "base", None)
    base: Inspection | str | None = None
    if isinstance(own_base, (TreeRanker, LambdaRank, Ensemble, WithScoreFeatures)):
        base = inspect_ranker(own_base)
    elif own_base is not None:
        base = "scores"
    declared = file_parameters_of(type(ranker))
    return Inspection(
        kind=type(ranker).__name__,
        parameters={name: getattr(ranker, name) for name in declared},
        defaults={name: parameter.default for name, parameter in declared.items()},
        rounds=ranker.rounds,
        kept=ranker.kept_rounds_,
        done=ranker.n_rounds_,
        trees=_trees_of(ranker) if isinstance(ranker, TreeRanker) else None,
        net=_layers_of(ranker) if isinstance(ranker, LambdaRank) else None,
        features=ranker.feature_names_,
        top_grade=ranker.top_grade_,
        importances=importances_of(ranker),
        curves=tuple(
            Curve(name, measure, tuple(values))
            for name, measures in ranker.history_.items()
            for measure, values in measures.items()
        ),
        base=base,
    )


def _inspect_combination(ranker: Ensemble) -> Inspection:
    """Look into a combination, and into its members."""
    members = _members_of(ranker)
    defaults = {
        name: given.default
        for name, given in inspect.signature(type(ranker)).parameters.items()
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
        done=len(members),
        trees=None,
        net=None,
        features=ranker.feature_names_,
        top_grade=ranker.top_grade_,
        importances=(),
        curves=(),
        base=None,
        members=members,
        on_top=None if on_top is None else inspect_ranker(on_top),
    )


def _inspect_with_score_features(ranker: WithScoreFeatures) -> Inspection:
    """Look into a ranker that sees another one's scores, and into both."""
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
        done=on_top.done,
        trees=None,
        net=None,
        features=ranker.feature_names_,
        top_grade=ranker.top_grade_,
        importances=(),
        curves=(),
        base=None,
        on_top=on_top,
        scorer=scorer,
    )


def _in_one_line(value: Any) -> Any:
    """Return a parameter as a file can hold it; a ranker is its text."""
    found = plain(value)
    return " ".join(found.split()) if isinstance(found, str) else found


def _members_of(ranker: Ensemble) -> tuple[Member, ...]:
    found: list[Inspection | None] = [None] * len(ranker.member_names_)
    if ranker.members_:
        inside = ranker.members_.values()
        found = [inspect_ranker(cast("TrainedRanker | Ensemble", member)) for member in inside]
    weights = getattr(ranker, "weights_", [None] * len(found))
    rows = zip(ranker.member_names_, weights, ranker.means_, ranker.scales_, found, strict=True)
    return tuple(
        Member(name, None if weight is None else float(weight), float(mean), float(scale), inner)
        for name, weight, mean, scale, inner in rows
    )


def _trees_of(ranker: TreeRanker) -> Trees:
    forest = ranker.forest_
    return Trees(len(forest.start), sum(tree.n_leaves for tree in forest.trees))


def _layers_of(ranker: LambdaRank) -> Layers:
    net = ranker.net_
    return Layers((len(net.inputs.features), *net.hidden), len(net.weights))


def importances_of(ranker: TrainedRanker) -> tuple[Importance, ...]:
    """Return the features that a ranker looks at, the most important first."""
    if isinstance(ranker, LambdaRank):
        return _importances_of_net(ranker)
    return _importances_of_trees(ranker) if isinstance(ranker, TreeRanker) else ()


def _importances_of_trees(ranker: TreeRanker) -> tuple[Importance, ...]:
    gains, counts = ranker.importances("gain"), ranker.importances("count")
    total = sum(gains.values()) or 1.0
    return tuple(
        Importance(feature=name, gain=gain, share=gain / total, count=int(counts[name]))
        for name, gain in gains.items()
        if counts[name]
    )


def _importances_of_net(ranker: LambdaRank) -> tuple[Importance, ...]:
    net, slopes = ranker.net_, ranker.importances()
    inputs = [ranker.feature_names_[j] for j in net.inputs.features]
    weights = {} if net.hidden else dict(zip(inputs, net.weights.tolist(), strict=False))
    total = sum(slopes.values()) or 1.0
    return tuple(
        Importance(feature=name, slope=slope, share=slope / total, weight=weights.get(name))
        for name, slope in slopes.items()
        if name in set(inputs)
    )


def draw_figures(found: Inspection, folder: str | Path, top: int) -> list[Path]:
    """Draw the learning curves and the importances as PNG files, where there are any.

    Parameters
    ----------
    found
        What is in the model.
    folder
        Where to put the files; made if it is not there.
    top
        How many features to draw.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    drawn = []
    if found.curves:
        drawn.append(target / "learning-curve.png")
        _draw_curves(drawn[-1], found)
    if found.importances[:top]:
        drawn.append(target / "importances.png")
        _draw_importances(drawn[-1], found, top)
    return drawn


def _draw_curves(path: Path, found: Inspection) -> None:
    measures = list(dict.fromkeys(one.measure for one in found.curves))
    figure, drawn = subplots(len(measures))
    for axes, measure in zip(drawn, measures, strict=True):
        for one in found.curves:
            if one.measure == measure:
                rounds = np.arange(1, len(one.values) + 1)
                axes.plot(rounds, one.values, linewidth=1.5, label=one.set_name)
        axes.axvline(found.kept, color="grey", linewidth=1, linestyle=":")
        kept = f"{found.kept} trees kept" if found.trees is not None else f"epoch {found.kept} kept"
        axes.set(xlabel=found.rounds.capitalize(), ylabel=measure, title=f"{measure}, {kept}")
        axes.legend()
    save_figure(figure, path)


def _draw_importances(path: Path, found: Inspection, top: int) -> None:
    chosen = found.importances[:top]
    share = "Share of the gain" if found.trees is not None else "Share of the slopes"
    figure, (axes,) = subplots(1, max(2.0, 0.22 * len(chosen) + 1.0))
    axes.barh([one.feature for one in chosen], [one.share for one in chosen])
    axes.invert_yaxis()
    axes.set(xlabel=share, ylabel="Feature", title="Most important features")
    save_figure(figure, path)
