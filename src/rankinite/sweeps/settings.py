"""What a sweep is: all that its trials depend on, and the file that keeps it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rankinite.core.errors import DataError, UsageError
from rankinite.core.jit import package_hash
from rankinite.core.version import __version__
from rankinite.runs.graph import Plan
from rankinite.runs.recipe import ORIGINAL, Model, Recipe
from rankinite.runs.store import SETTINGS, STATE, RunFolder, write_json
from rankinite.sweeps.space import Space


@dataclass(frozen=True)
class Settings:
    """What a sweep is; how many trials it has is no part of it.

    Attributes
    ----------
    recipe, model
        The recipe, and its model whose parameters are swept.
    space
        What can be tried.
    search, batch
        How trials are found, and how many at once.
    folds, measure, seed
        How they are compared.
    pruning
        Whether trials are given up that fall behind.
    data
        The fingerprint of the training data.
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
        """Return all that trials depend on, by what a person would call it."""
        model, recipe = self.model, self.recipe
        samples = None if model.train == ORIGINAL else asdict(recipe.training_sets[model.train])
        fixed = {k: v for k, v in model.parameters.items() if k not in self.space}
        return {
            "version of rankinite": f"{__version__}, sources {package_hash()}",
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
        """Return what score features are, with the key of all that they depend on but the data."""
        if self.model.features is None:
            return None
        plan = Plan(self.recipe, digest="")
        unit = plan.member(self.model.name, plan.final).features
        key = None if unit is None else unit.key
        return {**asdict(self.recipe.features[self.model.features]), "key": key}


def check_settings(folder: RunFolder, settings: Settings) -> None:
    """Remember what the sweep is; refuse to go on with another in the same folder."""
    path = folder.path / SETTINGS
    if not path.exists():
        if (folder.path / STATE).exists():
            raise UsageError(f"{folder.path}: a run is in this folder; name another for the sweep")
        folder.refuse_recipe()
    said = json.loads(json.dumps(settings.to_json()))
    if path.exists():
        known = _read(folder)
        differing = [name for name in said if known.get(name) != said[name]]
        if differing:
            raise UsageError(
                f"{folder.path}: the sweep in this folder has another {', '.join(differing)}; ask "
                "for the same again (the number of trials may grow), or name another folder"
            )
    write_json(path, said)
    folder.check_data({"train": settings.data})


def _read(folder: RunFolder) -> Mapping[str, Any]:
    path = folder.path / SETTINGS
    try:
        found = json.loads(path.read_text("utf-8"))
        if isinstance(found, dict):
            return found
    except (ValueError, UnicodeDecodeError):
        pass
    raise DataError(f"{path}: is damaged; name another folder")
