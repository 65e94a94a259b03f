from .recipe import SHIPPED as SHIPPED
from .recipe import Recipe as Recipe
from .recipe_reader import read_recipe as read_recipe
from .run import Run as Run
from .run import open_run as open_run
from .run import run_recipe as run_recipe
