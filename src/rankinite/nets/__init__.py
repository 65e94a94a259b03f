"""Nets of one, two or more layers: from features to scores, and from lambdas to better weights."""
