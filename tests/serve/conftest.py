"""Models that tests of a module share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.serve.cases import Client, client_of, named_model, saved, small_model


@pytest.fixture(scope="module")
def model() -> Any:
    return small_model()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, model: Any) -> Path:
    """A folder with the models ``plain.rk`` and ``named.rk``."""
    made = tmp_path_factory.mktemp("models")
    saved(made, "plain", model)
    saved(made, "named", named_model())
    return made


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[Client]:
    with client_of(str(folder / "plain.rk"), f"shop={folder / 'named.rk'}") as made:
        yield made
