"""Many rankers as one: averages, mixes, interpolation, stacking, and which of them to take."""
