"""SVMlight/LETOR text: ``<label> qid:<query> <feature>:<value> ... # <comment>``."""

from rankinite.data.svmlight.read import read_svmlight
from rankinite.data.svmlight.write import write_svmlight

__all__ = ["read_svmlight", "write_svmlight"]
