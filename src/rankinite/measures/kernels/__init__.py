"""The kernels of measures, of given scores and along a line of scores, compiled."""
