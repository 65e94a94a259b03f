"""Tests, intervals and agreement, on plain arrays: what may be told of systems from queries."""
