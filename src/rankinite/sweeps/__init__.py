"""Sweeps: the parameters of a recipe's model that do best in cross-validation by query."""
