"""The sections of ``benchmarks/train.py``: each measures something and keeps the results."""
