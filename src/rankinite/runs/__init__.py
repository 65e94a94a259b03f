"""Runs: a recipe executed in a folder, task by task; finished tasks are not repeated."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

del lazy_loader
