"""Measures of rankings: values with a text form, exact under ties; `Scorer` computes them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

del lazy_loader
