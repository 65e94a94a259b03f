"""The kernels of nets: forward, backward and the steps of training."""
