from .best_mix import Mix as Mix
from .subsets import SubsetSearch as SubsetSearch
