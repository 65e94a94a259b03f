"""The tables of a recipe that describe its models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from rankinite.core.errors import UsageError
from rankinite.core.params import YES_OR_NO, Constraint, OneOf, Text, Whole
from rankinite.models import RANKERS
from rankinite.runs.recipe import ORIGINAL, Model, Samples, ScoreFeatures
from rankinite.runs.toml import KeyPath, Mistakes, from_toml, spelled
from rankinite.runs.training import (
    BASE,
    FILES,
    LOADING,
    PRESET,
    defaults_of,
    parameter_keys,
    unknown_key,
)

SEED, BAGS, TRAINED_AS, PER_QUERY = "random_state", "bags", "trained_as", "per_query"
LOSS = "loss"
MODELS, DEFAULTS = "models", "defaults"
# Keys of a model besides the parameters of its ranker.
OWN: Mapping[str, Constraint] = {
    "description": Text(),
    "ranker": OneOf(list(RANKERS)),
    "train": Text(),
    "features": Text(),
    BAGS: Whole(1),
    TRAINED_AS: Text(),
}
# Keys of a model that takes the training of another.
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


def recipe_parameters(ranker: str) -> dict[str, Constraint]:
    """Return the parameters that a recipe can set: all but the seed, which the recipe has."""
    return {key: allowed for key, allowed in parameter_keys(ranker).items() if key != SEED}


class ModelTables:
    """Reads models, once training sets and features are known.

    Parameters
    ----------
    mistakes
        Collects the mistakes.
    training_sets, features
        Those of the recipe, by name.
    folds
        Number of folds, and so of bags at most.
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
            ranker: self._default(ranker, table) for ranker, table in defaults.items()
        }

    def read(self, content: Mapping[str, Any]) -> dict[str, Model]:
        """Return the models that could be read, in the order of the file."""
        for name, value in content.items():
            self._mistakes.table((MODELS, name), value)
        tables = {name: table for name, table in content.items() if isinstance(table, dict)}
        # These first: a model may be trained as another that comes later in the file.
        trained = {
            name: self._model(name, table)
            for name, table in tables.items()
            if TRAINED_AS not in table
        }
        models = {
            name: self._trained_as(name, table, trained, tables)
            if TRAINED_AS in table
            else trained[name]
            for name, table in tables.items()
        }
        return {name: model for name, model in models.items() if model is not None}

    def _default(self, ranker: str, value: Any) -> dict[str, Any]:
        path = (DEFAULTS, ranker)
        table = self._mistakes.table(path, value)
        if ranker not in RANKERS:
            self._mistakes.unknown(path, "ranker", RANKERS)
            return {}
        values = self._values(path, ranker, table, {BAGS: OWN[BAGS]})
        self._check_bags(path, values)
        # A wrong measure is reported here once, and not by every model that inherits it.
        values |= self._sound_measures(path, ranker, values)
        return values

    def _model(self, name: str, table: Mapping[str, Any]) -> Model | None:
        path = (MODELS, name)
        ranker = self._ranker_of(path, table)
        if ranker is None:
            return None
        set_here = self._values(path, ranker, table, OWN)
        values = {**self._defaults.get(ranker, {}), **set_here}
        train, features = values.get("train", ORIGINAL), values.get("features")
        if train not in {ORIGINAL, *self._training_sets}:
            known = [ORIGINAL, *self._training_sets]
            self._mistakes.unknown((*path, "train"), "training set", known, train)
        if features is not None and features not in self._features:
            known = list(self._features)
            self._mistakes.unknown((*path, "features"), "score features", known, features)
        # Only what stands in this table: a mistake of the defaults has been reported there.
        self._check_bags(path, set_here)
        parameters = {
            key: values.get(key, default)
            for key, default in defaults_of(ranker, values.get(PRESET)).items()
            if key != SEED
        }
        parameters |= self._sound_measures(path, ranker, parameters)
        # Constraints on one parameter have been checked; this checks those on several together.
        if not self._is_loss_wrong(name, ranker, table):
            self._try(path, lambda: RANKERS[ranker](**parameters).check_parameters())
        return self._described(
            Model(name, values.get("description", ""), ranker, parameters, train, features,
                  values.get(BAGS, 1))
        )  # fmt: skip

    def _is_loss_wrong(self, name: str, ranker: str, table: Mapping[str, Any]) -> bool:
        """Tell whether the loss is a mistake, whose consequences are not reported as well."""
        path = (MODELS, name) if LOSS in table else (DEFAULTS, ranker)
        return self._mistakes.has((*path, LOSS))

    def _ranker_of(self, path: KeyPath, table: Mapping[str, Any]) -> str | None:
        ranker = table.get("ranker")
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
        self, path: KeyPath, ranker: str, table: Mapping[str, Any], others: Mapping[str, Constraint]
    ) -> dict[str, Any]:
        """Return the valid values of a table: parameters of the ranker, and other keys."""
        known = {**recipe_parameters(ranker), **others}
        values = {}
        for key, value in table.items():
            place = (*path, key)
            if key in known:
                if self._mistakes.check(place, value, known[key]):
                    values[key] = from_toml(value, known[key])
            elif key in ADVICE or key in OWN or key in FILES:
                advice = ADVICE.get(key, "set it for each model")
                self._mistakes.add(place, f"{spelled(path)} cannot have {key!r}; {advice}")
            else:
                # Another tool's name, or a parameter of another ranker, gets better advice than a
                # similar key.
                sentence = unknown_key(key, key, ranker, known)
                if sentence is None:
                    self._mistakes.unknown(place, "key", known)
                else:
                    self._mistakes.add(place, sentence)
        return values

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
        """Return defaults in place of texts that are not measures, which are mistakes."""
        defaults = defaults_of(ranker)
        sound: dict[str, Any] = {}
        for key in ("measure", "valid_measure"):
            if key in defaults and values.get(key, defaults[key]) != defaults[key]:
                # A ranker with this one parameter: the sentence is then about nothing else.
                candidate = RANKERS[ranker](**{key: values[key]})
                parse = candidate.objective if key == "measure" else candidate.validation_measures
                if not self._try((*path, key), parse):
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
        table: Mapping[str, Any],
        trained: Mapping[str, Model | None],
        tables: Mapping[str, Any],
    ) -> Model | None:
        """Return a model whose training is that of another."""
        path: KeyPath = (MODELS, name)
        for key in table:
            if key not in OF_TRAINED:
                self._mistakes.add(
                    (*path, key),
                    f"{spelled(path)} is trained as another model, so it cannot have {key!r}; "
                    f"only {PER_QUERY!r} and 'description' can be its own",
                )
        values = {key: value for key, value in table.items() if key in OF_TRAINED
                and self._mistakes.check((*path, key), value, OF_TRAINED[key])}  # fmt: skip
        other = values.get(TRAINED_AS)
        model = None if other is None else self._other(path, other, trained, tables)
        if model is None:
            return None
        parameters = {**model.parameters, PER_QUERY: values.get(PER_QUERY, False)}
        # A copy would count twice in every average without anybody's intention.
        if parameters == model.parameters:
            self._mistakes.add(
                path, f"{spelled(path)} is the same as {other!r}; set {PER_QUERY} = "
                f"{str(not parameters[PER_QUERY]).lower()}, or leave it out"
            )  # fmt: skip
        return self._described(
            Model(name, values.get("description", ""), model.ranker, parameters, model.train,
                  model.features, model.bags, other)
        )  # fmt: skip

    def _other(
        self,
        path: KeyPath,
        other: str,
        trained: Mapping[str, Model | None],
        tables: Mapping[str, Any],
    ) -> Model | None:
        """Return the model whose training another takes, if that can be."""
        place = (*path, TRAINED_AS)
        if other not in tables or other == path[-1]:
            known = [name for name in trained if name != path[-1]]
            self._mistakes.unknown(place, "other model", known, other)
            return None
        # A chain of them would have to be followed, and has no use: name the first.
        if other not in trained:
            self._mistakes.add(
                place, f"{spelled(path)} is trained as {other!r}, which is itself trained as "
                "another; name that one"
            )  # fmt: skip
            return None
        model = trained[other]
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
