"""The kernels of objectives: gradients of queries, compiled."""
