"""Objectives: lambda gradients, pointwise losses and one's own, behind the `Objective` protocol."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

del lazy_loader
