"""Evaluation of scores on a data set, comparison of systems, and tables of results."""
