"""Rankers: scikit-learn estimators that are trained in rounds, and the parts of a fit."""
