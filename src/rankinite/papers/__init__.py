"""Reproductions of the papers' tables and figures, one function each."""
