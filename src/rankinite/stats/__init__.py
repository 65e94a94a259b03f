"""Paired tests, intervals and corrections on plain arrays, and tests of local optimality."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

del lazy_loader
