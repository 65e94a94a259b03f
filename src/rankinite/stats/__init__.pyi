from .directions import directional_values as directional_values
from .optimality import Optimality as Optimality
from .optimality import local_optimality as local_optimality
from .optimality import single_weights as single_weights
