"""What every layer stands on: errors, checks, seeds, kernels, progress, files."""

__version__ = "0.1.0"
