"""The registry of ensembles, by class name: what model files may contain besides rankers."""

from __future__ import annotations

from collections.abc import Mapping

from rankinite.ensembles.average import Average
from rankinite.ensembles.best_mix import BestMix
from rankinite.ensembles.ensemble import Ensemble
from rankinite.ensembles.interpolation import Interpolation
from rankinite.ensembles.score_features import WithScoreFeatures
from rankinite.ensembles.stacked import Stacked

ENSEMBLES: Mapping[str, type[Ensemble]] = {
    ensemble.__name__: ensemble for ensemble in (Average, BestMix, Interpolation, Stacked)
}
# Rankers that contain other rankers, which are in the same model file.
COMPOSED: Mapping[str, type[Ensemble] | type[WithScoreFeatures]] = {
    **ENSEMBLES,
    WithScoreFeatures.__name__: WithScoreFeatures,
}
