"""What every layer stands on: errors, checks, seeds, kernels, progress, files."""
