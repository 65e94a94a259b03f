"""Contents of fitted rankers: structure, importances, learning curves, local optimality."""
