"""The tests mirror the sources: whoever knows a module knows where its tests are."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "src" / "rankinite"
# Tests of the project as a whole.
WHOLE = {
    "attacks", "benchmarks", "concurrency", "docs", "layout", "models", "processors",
    "public_names", "vocabulary",
}  # fmt: skip
# Folders that mirror no package.
OTHER_FOLDERS = {"attacks", "naive"}
# `rankers/trainer.py` in a document is a file of the package, `tests/x.py` one of the project.
NAMED_FILE = re.compile(r"`([a-z_]+/[a-z_/]+\.pyi?)`")
HELPERS = {
    "__init__.py",
    "__main__.py",
    "cases.py",
    "conftest.py",
    "make_models.py",
    "pages.py",
    "processes.py",
}


def test_folders_of_tests_are_packages():
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")} - {Path()}
    assert folders
    folders = {folder for folder in folders if folder.parts[0] not in OTHER_FOLDERS}
    assert [str(folder) for folder in sorted(folders) if not (PACKAGE / folder).is_dir()] == []


def test_files_of_tests_are_named_after_modules():
    strays = []
    for path in sorted(TESTS.rglob("*.py")):
        folder, name = path.parent.relative_to(TESTS), path.name
        if name in HELPERS or OTHER_FOLDERS.intersection(folder.parts[:1]):
            continue
        topic = path.stem.removeprefix("test_")
        modules = {module.stem for module in (PACKAGE / folder).glob("*.py")}
        is_of_module = any(topic == stem or topic.startswith(f"{stem}_") for stem in modules)
        if not is_of_module and not (folder == Path() and topic in WHOLE):
            strays.append(str(folder / name))
    assert strays == []


@pytest.mark.parametrize("document", ["CONTRIBUTING.md", "docs/explanation/design.md"])
def test_files_that_documents_name_exist(document):
    project = TESTS.parent
    named = NAMED_FILE.findall((project / document).read_text(encoding="utf-8"))
    missing = [
        file for file in named if not any((root / file).exists() for root in (PACKAGE, project))
    ]
    assert missing == []


def test_documents_name_files():
    assert len(NAMED_FILE.findall((TESTS.parent / "docs/explanation/design.md").read_text())) > 10
