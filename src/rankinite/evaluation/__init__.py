"""Data and measures together: what scores are worth on a data set."""
