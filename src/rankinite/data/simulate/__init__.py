"""Simulated data sets, seeded: equal arguments give equal bits, for any number of threads."""
