"""The settings of a sweep: all that its trials depend on, and the file that keeps them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rankinite.core import __version__
from rankinite.core.errors import DataError, UsageError
from rankinite.core.sources import module_hash
from rankinite.runs.graph import Graph
from rankinite.runs.recipe import ORIGINAL, Model, Recipe
from rankinite.runs.recipe_reader import recipe_of
from rankinite.runs.store import DATA, NAME, SETTINGS, STATE, TRAIN, Store, write_json
from rankinite.sweeps.space import Space, space_of

# The recipe that is swept; recipe.toml is the one with the best parameters.
SWEPT = "swept.toml"
# The module whose code trials depend on, with all that it imports.
TRIALS = "rankinite.sweeps.trials"
AGAIN = "run the sweep again in this folder"


@dataclass(frozen=True)
class Settings:
    """The settings of a sweep; the number of trials is not one of them, as it may grow.

    Attributes
    ----------
    recipe, model
        The recipe, and its model whose parameters are swept.
    space
        The swept parameters and their values.
    search, batch
        How trials are proposed, and how many at the same time.
    folds, measure, seed
        How trials are compared.
    pruning
        Whether trials that fall behind are stopped.
    data
        Fingerprint of the training data.
    """

    recipe: Recipe
    model: Model
    space: Space
    search: str
    batch: int
    folds: int
    measure: str
    seed: int
    pruning: bool
    data: str

    @property
    def scorers(self) -> tuple[Model, ...]:
        """The model whose scores the swept one sees as features, if it does."""
        if self.model.features is None:
            return ()
        return (self.recipe.models[self.recipe.features[self.model.features].scores_of],)

    def to_json(self) -> dict[str, Any]:
        """Return all that trials depend on, under names that messages can use."""
        model, recipe = self.model, self.recipe
        samples = None if model.train == ORIGINAL else asdict(recipe.training_sets[model.train])
        fixed = {k: v for k, v in model.parameters.items() if k not in self.space}
        return {
            "version of rankinite": f"{__version__}, sources {module_hash(TRIALS)}",
            "model": model.name,
            "space": {name: str(domain) for name, domain in self.space.items()},
            "search": self.search,
            "batch": self.batch,
            "folds": self.folds,
            "parts": recipe.parts,
            "measure": self.measure,
            "seed": self.seed,
            "pruning": self.pruning,
            "ranker": model.ranker,
            "other parameters": fixed,
            "training set": samples,
            "score features": self._features(),
        }

    def _features(self) -> dict[str, Any] | None:
        """Return the score features, with the key of all that they depend on except the data."""
        if self.model.features is None:
            return None
        graph = Graph(self.recipe, digest="")
        task = graph.model(self.model.name, graph.final).features
        key = None if task is None else task.key
        return {**asdict(self.recipe.features[self.model.features]), "key": key}


def check_settings(store: Store, settings: Settings) -> None:
    """Record the settings of a sweep; refuse a folder that holds another sweep, or a run."""
    path = store.path / SETTINGS
    if not path.exists():
        if (store.path / STATE).exists():
            raise UsageError(f"{store.path}: a run is in this folder; name another for the sweep")
        store.refuse_recipe()
    wanted = _as_stored(settings)
    if path.exists():
        known = _read(store)
        differing = [name for name in wanted if known.get(name) != wanted[name]]
        if differing:
            raise UsageError(
                f"{store.path}: the sweep in this folder has another {', '.join(differing)}; ask "
                "for the same again (the number of trials may grow), or name another folder"
            )
    write_json(path, wanted)
    store.check_data({TRAIN: settings.data}, settings.recipe, SWEPT)


def read_settings(store: Store) -> Settings:
    """Return the settings of the sweep in a folder.

    Raises
    ------
    DataError
        If they are damaged, or of another version of rankinite, whose trials are others.
    """
    state, content = store.read_state(), _read(store)
    try:
        text = (store.path / SWEPT).read_text("utf-8")
        recipe = recipe_of(f"{state[NAME]}.toml", text)
        model = recipe.models[content["model"]]
        settings = Settings(
            recipe=recipe,
            model=model,
            space=space_of(model, content["space"]),
            data=state[DATA][TRAIN],
            **{name: content[name] for name in PLAIN},
        )
    except (OSError, KeyError, TypeError, UsageError) as problem:
        raise DataError(f"{store.path}: the sweep cannot be read ({problem}); {AGAIN}") from None
    differing = [name for name, value in _as_stored(settings).items() if content.get(name) != value]
    if differing:
        raise DataError(
            f"{store.path}: the sweep in this folder has another {', '.join(differing)}; {AGAIN}"
        )
    return settings


# Settings that JSON holds as they are.
PLAIN = ("search", "batch", "folds", "measure", "seed", "pruning")


def _as_stored(settings: Settings) -> dict[str, Any]:
    """Return settings as they come back from a file, with lists for tuples."""
    content: dict[str, Any] = json.loads(json.dumps(settings.to_json()))
    return content


def _read(store: Store) -> Mapping[str, Any]:
    path = store.path / SETTINGS
    try:
        content = json.loads(path.read_text("utf-8"))
        if isinstance(content, dict):
            return content
    except (ValueError, UnicodeDecodeError):
        pass
    raise DataError(f"{path}: is damaged; name another folder")
