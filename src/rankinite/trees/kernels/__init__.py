"""The tree engine's kernels, one file per stage."""
