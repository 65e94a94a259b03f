"""How much a recipe is going to train."""

from __future__ import annotations

from rankinite.experiments.recipes.recipe import Model, Recipe


def own_trainings(recipe: Recipe) -> list[Model]:
    """Return the models that are trained, and do not take the training of another."""
    return [model for model in recipe.models.values() if model.trained_as is None]


def n_trainings(recipe: Recipe) -> tuple[int, int]:
    """Return how many trainings the two stages have, if the second is of all models.

    Those are counted that give training documents their out-of-fold scores.
    """
    models = own_trainings(recipe)
    used = {model.features for model in models}
    folds = sum(one.folds for name, one in recipe.features.items() if name in used)
    return len(models) + folds, sum(model.bags for model in models) + folds
