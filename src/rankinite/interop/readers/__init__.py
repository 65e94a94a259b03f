"""One module for each format of other tools' model files, which nobody vouches for.

Every reader has a function ``read(content: bytes) -> ForeignForest``. Values are taken through
``fields``, which refuses what is not of the expected kind, and become a forest in ``nodes``, which
refuses what is none.
"""
