"""A few tries of every attack; ``make test-long`` makes the whole campaigns."""

from __future__ import annotations

import pytest

from tests.attacks import CAMPAIGNS
from tests.attacks.tries import outcomes


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_no_try_ends_badly(name):
    tried = list(outcomes(name, seed=0, n=CAMPAIGNS[name].few))
    assert [outcome.bad for outcome in tried if outcome.bad] == []
    assert len(tried) == CAMPAIGNS[name].few
