"""Reproductions of the papers' tables and figures on simulated data.

Every experiment is a function in a module of its name, whose docstring says what the paper claims.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankinite.evaluation.tables import Summary
    from rankinite.papers.setting import Setting


@dataclass(frozen=True)
class Experiment:
    """A reproduction.

    Attributes
    ----------
    name
        Name of the function and of its module.
    description
        What it does, and which tables and figures it reproduces.
    folder
        Default folder of its files.
    """

    name: str
    description: str
    folder: str

    def run(self, setting: Setting) -> Summary:
        """Run the experiment."""
        # Imported only now, so that the command line starts without loading all rankers.
        module = importlib.import_module(f"{__name__}.{self.name}")
        summary: Summary = getattr(module, self.name)(setting)
        return summary


_DESCRIPTIONS = {
    "matching": (
        "Train on four measures, test by all four: Optimality, Tables 3 and 4 and Figure 5."
    ),
    "constructions": "Compare five constructions of a lambda gradient: Optimality, Tables 1 and 2.",
    "linear": "Train linear nets for NDCG and for ERR, by epoch: Ensemble, Figure 1.",
    "optimality": (
        "Test whether learned weights are local optima: Optimality, Figures 1 to 4 and 6, Sec. 8."
    ),
    "combiners": "Combine six rankers in many ways: Ensemble, Table 1.",
    "accuracy": "Compare LambdaMART, McRank and LambdaRank: LambdaSMART, Table 1 and Figure 2.",
    "adaptation": "Adapt rankers to domains with few queries: LambdaSMART, Tables 2 to 4.",
    "line_search": (
        "Boost with Newton steps and with exact weights of trees: LambdaSMART, Figures 3 and 4."
    ),
    "graded": "Learn from judgements first and clicks second: Objectives, Table 1 and Figure 2.",
    "schedules": (
        "Change the objective during training: Objectives, Table 2 and Figures 3, 4 and 7."
    ),
}
# `rankinite optimality` writes into a folder of that name by default.
_FOLDERS = {"optimality": "reproduced"}

EXPERIMENTS = {
    name: Experiment(name, description, _FOLDERS.get(name, name.replace("_", "-")))
    for name, description in _DESCRIPTIONS.items()
}
