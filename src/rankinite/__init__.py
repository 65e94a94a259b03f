"""Learning to rank with lambda gradients.

The stable names are those of ``rankinite.__all__`` and of the public submodules listed there; all
else may change between versions. Names are imported when they are first used, so that
``rankinite --help`` does not wait for them; they are listed once, in ``__init__.pyi``.
"""

import lazy_loader

from rankinite.core import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

del lazy_loader
