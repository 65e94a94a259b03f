"""What `import rankinite` gives, and nothing else."""

import inspect
import subprocess
import sys

import rankinite as rk


def test_all_is_sorted_and_complete():
    assert rk.__all__ == sorted(set(rk.__all__))
    for name in rk.__all__:
        assert getattr(rk, name) is not None
        assert name in dir(rk)


def test_nothing_else_leaks():
    assert {name for name in dir(rk) if not name.startswith("_")} == set(rk.__all__)
    assert not hasattr(rk, "lazy_loader")


def test_public_names_have_docstrings():
    for name in rk.__all__:
        assert inspect.getdoc(getattr(rk, name)), name


def test_every_error_is_a_rankinite_error():
    errors = [getattr(rk, name) for name in rk.__all__ if name.endswith("Error")]
    assert len(errors) >= 4
    assert all(issubclass(error, rk.RankiniteError) for error in errors)


def test_import_is_light():
    code = "import sys, rankinite; print(sorted({'numba', 'pyarrow', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_unknown_name_is_an_attribute_error():
    assert not hasattr(rk, "LambdaMARTT")
