from .recipe import Recipe as Recipe
from .run import Run as Run
