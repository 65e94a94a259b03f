"""Sweeps: the parameters of a recipe's model that are best in cross-validation by query."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

del lazy_loader
