"""The tests mirror the sources: whoever knows a module knows where its tests are."""

from pathlib import Path

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "src" / "rankinite"
# Tests of the project as a whole.
WHOLE = {"benchmarks", "layout", "models", "public_names", "readme", "vocabulary"}
HELPERS = {"__init__.py", "cases.py", "conftest.py", "pages.py"}


def test_folders_of_tests_are_packages():
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")} - {Path()}
    assert folders
    assert [str(folder) for folder in sorted(folders) if not (PACKAGE / folder).is_dir()] == []


def test_files_of_tests_are_named_after_modules():
    strays = []
    for path in sorted(TESTS.rglob("*.py")):
        folder, name = path.parent.relative_to(TESTS), path.name
        if name in HELPERS or folder.parts[:1] == ("naive",):
            continue
        topic = path.stem.removeprefix("test_")
        modules = {module.stem for module in (PACKAGE / folder).glob("*.py")}
        is_of_module = any(topic == stem or topic.startswith(f"{stem}_") for stem in modules)
        if not is_of_module and not (folder == Path() and topic in WHOLE):
            strays.append(str(folder / name))
    assert strays == []
