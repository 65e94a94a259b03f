"""The tables of a recipe that say what its models are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from rankinite.core.errors import UsageError
from rankinite.core.params import Constraint, OneOf, Whole
from rankinite.models import RANKERS
from rankinite.runs.configuration import (
    BASE,
    FILES,
    LOADING,
    YES_OR_NO,
    Text,
    defaults_of,
    from_toml,
    keys_of,
    unknown_key,
)
from rankinite.runs.recipe import ORIGINAL, Model, Samples, ScoreFeatures
from rankinite.runs.toml_lines import KeyPath, Mistakes, spelled

SEED, BAGS, TRAINED_AS, PER_QUERY = "random_state", "bags", "trained_as", "per_query"
LOSS = "loss"
MODELS, DEFAULTS = "models", "defaults"
# What a model is, besides the parameters of its ranker.
OWN: Mapping[str, Constraint] = {
    "description": Text(),
    "ranker": OneOf(list(RANKERS)),
    "train": Text(),
    "features": Text(),
    BAGS: Whole(1),
    TRAINED_AS: Text(),
}
# What a model is if another's training is taken.
OF_TRAINED: Mapping[str, Constraint] = {
    "description": Text(),
    TRAINED_AS: Text(),
    PER_QUERY: YES_OR_NO,
}
_BY_SEED = "the recipe's seed gives every training its own"
_BY_RUN = "say it to the command that runs the recipe"
ADVICE = {
    SEED: _BY_SEED,
    "seed": _BY_SEED,
    "random_seed": _BY_SEED,
    BASE: "the models of a recipe do not build on each other, but see 'features'",
    "valid": "of what a model is trained on, one fold is for validation: see 'folds' of [data]",
    "out": "a run writes all its files into its folder",
    "top_grade": "it is a key of [data]",
    **{key: _BY_RUN for key in LOADING if key != "top_grade"},
}


def parameters_of(ranker: str) -> dict[str, Constraint]:
    """Return what a recipe may say of a ranker, by key."""
    keys = keys_of(ranker)
    return {key: keys[key] for key in defaults_of(ranker) if key != SEED}


class ModelTables:
    """Reads models, once training sets and features are known.

    Parameters
    ----------
    mistakes
        Who notes what is wrong.
    training_sets, features
        Those of the recipe, by name.
    folds
        How many folds there are, and so how many bags there can be.
    defaults
        The tables of defaults, by ranker.
    """

    def __init__(
        self,
        mistakes: Mistakes,
        training_sets: Mapping[str, Samples],
        features: Mapping[str, ScoreFeatures],
        folds: int,
        defaults: Mapping[str, Any],
    ) -> None:
        self._mistakes = mistakes
        self._training_sets = training_sets
        self._features = features
        self._folds = folds
        self._defaults = {
            ranker: self._default(ranker, given) for ranker, given in defaults.items()
        }

    def read(self, given: Mapping[str, Any]) -> dict[str, Model]:
        """Return the models that could be read, in the order of the file."""
        for name, one in given.items():
            self._mistakes.table((MODELS, name), one)
        tables = {name: one for name, one in given.items() if isinstance(one, dict)}
        own = {
            name: self._model(name, one) for name, one in tables.items() if TRAINED_AS not in one
        }
        found = {
            name: self._trained_as(name, one, own, tables) if TRAINED_AS in one else own[name]
            for name, one in tables.items()
        }
        return {name: model for name, model in found.items() if model is not None}

    def _default(self, ranker: str, given: Any) -> dict[str, Any]:
        path = (DEFAULTS, ranker)
        table = self._mistakes.table(path, given)
        if ranker not in RANKERS:
            self._mistakes.unknown(path, "ranker", RANKERS)
            return {}
        values = self._values(path, ranker, table, {BAGS: OWN[BAGS]})
        self._check_bags(path, values)
        values |= self._sound_measures(path, ranker, values)
        return values

    def _model(self, name: str, given: Mapping[str, Any]) -> Model | None:
        path = (MODELS, name)
        ranker = self._ranker_of(path, given)
        if ranker is None:
            return None
        said = self._values(path, ranker, given, OWN)
        values = {**self._defaults.get(ranker, {}), **said}
        train, features = values.get("train", ORIGINAL), values.get("features")
        if train not in {ORIGINAL, *self._training_sets}:
            known = [ORIGINAL, *self._training_sets]
            self._mistakes.unknown((*path, "train"), "training set", known, train)
        if features is not None and features not in self._features:
            known = list(self._features)
            self._mistakes.unknown((*path, "features"), "score features", known, features)
        self._check_bags(path, said)
        parameters = {
            key: values.get(key, default)
            for key, default in defaults_of(ranker).items()
            if key != SEED
        }
        parameters |= self._sound_measures(path, ranker, parameters)
        if not self._is_loss_wrong(name, ranker, given):
            self._try(path, lambda: RANKERS[ranker](**parameters).check_parameters())
        return self._described(
            Model(name, values.get("description", ""), ranker, parameters, train, features,
                  values.get(BAGS, 1))
        )  # fmt: skip

    def _is_loss_wrong(self, name: str, ranker: str, given: Mapping[str, Any]) -> bool:
        """Tell whether a mistake of the loss was noted: what follows from it is none."""
        table = (MODELS, name) if LOSS in given else (DEFAULTS, ranker)
        return self._mistakes.has((*table, LOSS))

    def _ranker_of(self, path: KeyPath, given: Mapping[str, Any]) -> str | None:
        ranker = given.get("ranker")
        if ranker is None:
            self._mistakes.add(path, f"{spelled(path)} has no ranker: {OWN['ranker']}")
        elif not isinstance(ranker, str):
            self._mistakes.check((*path, "ranker"), ranker, OWN["ranker"])
        elif ranker not in RANKERS:
            self._mistakes.unknown((*path, "ranker"), "ranker", RANKERS, ranker)
        else:
            return ranker
        return None

    def _values(
        self, path: KeyPath, ranker: str, given: Mapping[str, Any], own: Mapping[str, Constraint]
    ) -> dict[str, Any]:
        """Return what a table says, of parameters and of the model itself."""
        known = {**parameters_of(ranker), **own}
        found = {}
        for key, value in given.items():
            place = (*path, key)
            if key in known:
                if self._mistakes.check(place, value, known[key]):
                    found[key] = from_toml(value, known[key])
            elif key in ADVICE or key in OWN or key in FILES:
                advice = ADVICE.get(key, "it is said of each model")
                self._mistakes.add(place, f"{spelled(path)} cannot have {key!r}; {advice}")
            else:
                sentence = unknown_key(key, key, ranker, known)
                if sentence is None:
                    self._mistakes.unknown(place, "key", known)
                else:
                    self._mistakes.add(place, sentence)
        return found

    def _check_bags(self, path: KeyPath, values: Mapping[str, Any]) -> None:
        if values.get(BAGS, 1) > self._folds:
            self._mistakes.add(
                (*path, BAGS),
                f"{spelled((*path, BAGS))} is {values[BAGS]}, but each bag has another fold for "
                f"validation, and there are {self._folds}; ask for fewer bags or more folds",
            )

    def _sound_measures(
        self, path: KeyPath, ranker: str, values: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Note texts that are no measures, and return others in their place."""
        defaults = defaults_of(ranker)
        sound: dict[str, Any] = {}
        for key in ("measure", "valid_measure"):
            if key in defaults and values.get(key, defaults[key]) != defaults[key]:
                one = RANKERS[ranker](**{key: values[key]})
                asked = one.objective if key == "measure" else one.validation_measures
                if not self._try((*path, key), asked):
                    sound[key] = defaults[key]
        return sound

    def _try(self, path: KeyPath, call: Callable[[], Any]) -> bool:
        try:
            call()
        except UsageError as problem:
            self._mistakes.add(path, f"{spelled(path)}: {problem}")
            return False
        return True

    def _trained_as(
        self,
        name: str,
        given: Mapping[str, Any],
        own: Mapping[str, Model | None],
        tables: Mapping[str, Any],
    ) -> Model | None:
        """Return a model whose training is that of another."""
        path: KeyPath = (MODELS, name)
        for key in given:
            if key not in OF_TRAINED:
                self._mistakes.add(
                    (*path, key),
                    f"{spelled(path)} is trained as another model, so it cannot have {key!r}; "
                    f"only {PER_QUERY!r} and 'description' can be its own",
                )
        said = {key: value for key, value in given.items() if key in OF_TRAINED
                and self._mistakes.check((*path, key), value, OF_TRAINED[key])}  # fmt: skip
        other = said.get(TRAINED_AS)
        model = None if other is None else self._other(path, other, own, tables)
        if model is None:
            return None
        parameters = {**model.parameters, PER_QUERY: said.get(PER_QUERY, False)}
        if parameters == model.parameters:
            self._mistakes.add(
                path, f"{spelled(path)} is the same as {other!r}; set {PER_QUERY} = "
                f"{str(not parameters[PER_QUERY]).lower()}, or leave it out"
            )  # fmt: skip
        return self._described(
            Model(name, said.get("description", ""), model.ranker, parameters, model.train,
                  model.features, model.bags, other)
        )  # fmt: skip

    def _other(
        self,
        path: KeyPath,
        other: str,
        own: Mapping[str, Model | None],
        tables: Mapping[str, Any],
    ) -> Model | None:
        """Return the model whose training another takes, if that can be."""
        place = (*path, TRAINED_AS)
        if other not in tables or other == path[-1]:
            known = [one for one in own if one != path[-1]]
            self._mistakes.unknown(place, "other model", known, other)
            return None
        if other not in own:
            self._mistakes.add(
                place, f"{spelled(path)} is trained as {other!r}, which is itself trained as "
                "another; name that one"
            )  # fmt: skip
            return None
        model = own[other]
        if model is None or self._is_loss_wrong(other, model.ranker, tables[other]):
            return None
        if model.parameters.get(LOSS) != "logistic":
            self._mistakes.add(
                place, f"{spelled(path)} is trained as {other!r}, which must be a MART with "
                'loss = "logistic": only its scores can be given in two ways'
            )  # fmt: skip
            return None
        return model

    def _described(self, model: Model) -> Model:
        """Return a model with a description, made of the rest if it has none."""
        if model.description:
            return model
        parts = [model.ranker]
        if "measure" in model.parameters:
            parts[0] += f" for {model.parameters['measure']}"
        if LOSS in model.parameters:
            parts[0] += f" {model.parameters[LOSS]}"
        if model.parameters.get(PER_QUERY):
            parts.append("scores normalised per query")
        if model.train != ORIGINAL:
            parts.append(f"trained on {model.train}")
        if model.features is not None and model.features in self._features:
            parts.append(f"with {self._features[model.features].scores_of}'s scores as features")
        return replace(model, description=", ".join(parts))
