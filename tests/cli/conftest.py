"""How the tests call commands."""

import pytest

from rankinite.cli import main


@pytest.fixture
def call(capsys):
    """Call a command as a person would; what it prints, or its errors if it fails."""

    def run(*arguments, code=0):
        with pytest.raises(SystemExit) as leaving:
            main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        assert (leaving.value.code or 0) == code, printed.err
        return printed.err if code else printed.out

    return run
