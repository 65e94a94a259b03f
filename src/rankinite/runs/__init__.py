"""Runs: a recipe is executed in a folder, task by task; finished tasks are not repeated.

A run writes models, scores and tables; `rankinite.report.write_report` adds the report.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

del lazy_loader
