"""Which sources a module depends on, in a package of a few files."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from rankinite.core import sources
from rankinite.core.sources import all_sources, module_hash, with_imports

FILES = {
    "__init__.py": "import lazy_loader",
    "__init__.pyi": """
        from . import tools as tools
        from .tools.saw import cut as cut
        """,
    "tools/__init__.py": "",
    "tools/__init__.pyi": "from .saw import cut as cut",
    "tools/saw.py": "from rankinite.tools.blade import STEEL",
    "tools/blade.py": "STEEL = 1",
    "tools/glue.py": "",
    "top.py": "from rankinite.tools.saw import (\n    cut,\n)",
    "nested.py": "def late():\n    from rankinite.tools import glue",
    "lazy.py": "from rankinite.tools import cut",
    "whole.py": "import rankinite as rk",
    "named.py": 'MODULES = {"saw": "rankinite.tools.saw"}',
    "dotted.py": "import rankinite.tools.glue",
    "nothing.py": "import numpy",
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Put a package of a few files in the place of the package; return its texts, to be edited."""
    folder = tmp_path / "rankinite"
    texts = {folder / name: textwrap.dedent(text) for name, text in FILES.items()}
    monkeypatch.setattr(sources, "PACKAGE", folder)
    monkeypatch.setattr(sources, "all_sources", lambda: texts)
    sources.module_hash.cache_clear()
    yield texts
    sources.module_hash.cache_clear()


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("top.py", {"top.py", "tools/saw.py", "tools/blade.py"}),
        ("named.py", {"named.py", "tools/saw.py", "tools/blade.py"}),
        ("nested.py", {"nested.py", "tools/__init__.py", "tools/glue.py"}),
        ("lazy.py", {"lazy.py", "tools/__init__.py", "tools/saw.py", "tools/blade.py"}),
        (
            "whole.py",
            {"whole.py", "__init__.py", "tools/__init__.py", "tools/saw.py", "tools/blade.py"},
        ),
        ("dotted.py", {"dotted.py", "tools/glue.py"}),
        ("nothing.py", {"nothing.py"}),
    ],
)
def test_imports_are_followed_wherever_they_stand(package, module, names):
    reached = with_imports([sources.PACKAGE / module])
    assert {path.relative_to(sources.PACKAGE).as_posix() for path in reached} == names


def test_a_hash_depends_on_what_is_imported_and_on_nothing_else(package):
    before = module_hash("rankinite.top")
    package[sources.PACKAGE / "tools/glue.py"] = "# edited"
    sources.module_hash.cache_clear()
    assert module_hash("rankinite.top") == before
    package[sources.PACKAGE / "tools/blade.py"] = "STEEL = 2"
    sources.module_hash.cache_clear()
    assert module_hash("rankinite.top") != before
    assert module_hash("rankinite.top", "tests.somewhere") == module_hash("rankinite.top")


def test_all_modules_that_python_imports_are_found():
    """An import that is not found in the text would leave stale results."""
    code = "import sys, rankinite.runs.tasks; print(*(m for m in sys.modules if 'rankinite.' in m))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    reached = with_imports([sources.PACKAGE / "runs" / "tasks.py"])
    for module in done.stdout.split():
        path = sources.PACKAGE.joinpath(*module.split(".")[1:])
        # Packages hold no code: their names are lazy.
        assert path.is_dir() or path.with_suffix(".py") in reached, module
    assert not [path for path in all_sources() if path.suffix == ".py" and _has_relative(path)]


def _has_relative(path):
    return any(line.startswith("from .") for line in all_sources()[path].splitlines())
