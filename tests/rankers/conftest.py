"""All tests of rankers run on one thread, but for those that start processes."""

from __future__ import annotations

import pytest

from ranker_cases import one_thread as one_thread


@pytest.fixture(autouse=True)
def always_one_thread(one_thread) -> None:
    """Use the fixture everywhere in this folder."""
