"""The kernels of `along`, one file a stage."""
