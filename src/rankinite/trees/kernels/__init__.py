"""The tree engine's kernels, one file a stage."""
