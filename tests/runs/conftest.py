import pytest

from rankinite.runs.recipe_reader import read_recipe
from tests.runs.cases import MICRO


@pytest.fixture
def recipe_of(tmp_path):
    """Read the micro recipe, with some texts in it replaced by others."""

    def read(*changes):
        text = MICRO
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / "micro.toml"
        path.write_text(text)
        return read_recipe(path)

    return read
