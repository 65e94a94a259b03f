"""Recipes: which models to train on what, and how to make them one; TOML files."""
