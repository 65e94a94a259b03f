"""Whole experiments: data in, tables and files out."""
