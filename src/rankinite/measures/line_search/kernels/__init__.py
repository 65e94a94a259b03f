"""Kernels of the line search: values of lines, and the sweep over their crossings."""
