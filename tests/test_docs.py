"""The documentation is true: its code runs and prints what is shown, its links lead somewhere."""

import importlib.util
import itertools
import pkgutil
import re
import sys
from pathlib import Path

import pytest

import rankinite as rk

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
BUILT = {"_build", "generated"}
PAGES = {
    str(path.relative_to(ROOT)): path
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
    if not BUILT & set(path.relative_to(ROOT).parts)
}


def load_runner():
    spec = importlib.util.spec_from_file_location("run_pages", DOCS / "run_pages.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["run_pages"] = module  # where dataclasses look
    spec.loader.exec_module(module)
    return module


RUNNER = load_runner()


def text_of(name):
    return PAGES[name].read_text(encoding="utf-8")


WITH_CODE = [
    name
    for name in PAGES
    if any(block.language in {"python", "console"} for block in RUNNER.blocks_of(text_of(name)))
]


@pytest.mark.parametrize("name", WITH_CODE)
def test_code_prints_what_is_shown(name, tmp_path):
    for module in pkgutil.iter_modules(rk.objectives.__path__, "rankinite.objectives."):
        importlib.import_module(module.name)  # what registers itself then is ours
    registries = [rk.measures.MEASURES, rk.objectives.OBJECTIVES]
    before = [dict(registry) for registry in registries]
    try:
        with RUNNER.in_folder(tmp_path):
            outcome = RUNNER.run_page(text_of(name))
    finally:
        # What a page registers is its own.
        for registry, entries in zip(registries, before, strict=True):
            for key in registry.keys() - entries.keys():
                del registry[key]
    assert not outcome.mismatches, "\n".join(map(str, outcome.mismatches))
    for image in RUNNER.images_of(PAGES[name], text_of(name)):
        assert list(tmp_path.rglob(image.name)), f"{image.name}: the page's code does not make it"


def test_tutorials_and_the_readme_have_code():
    tutorials = {name for name in PAGES if name.startswith("docs/tutorials/")}
    assert len(tutorials) > 6
    assert {"README.md", *tutorials} - {"docs/tutorials/index.md"} <= set(WITH_CODE)


LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")


@pytest.mark.parametrize("name", PAGES)
def test_links_and_images_exist(name):
    targets = [target for target, _ in LINK.findall(text_of(name))]
    missing = [target for target in targets if not (PAGES[name].parent / target).exists()]
    assert missing == []


def test_links_are_found():
    assert LINK.findall("[a](b.md) ![c](d/e.png) [f](g.md#h) [i](https://j)") == [
        ("b.md", ""), ("d/e.png", ""), ("g.md", "#h")]  # fmt: skip


def public_names():
    for stub in sorted((ROOT / "src" / "rankinite").rglob("__init__.pyi")):
        package = ".".join(stub.parent.relative_to(ROOT / "src").parts)
        for name in re.findall(r" as (\w+)$", stub.read_text(), re.MULTILINE):
            if not (stub.parent / name).is_dir():
                yield package, name


def test_every_public_name_has_a_page():
    """One page each, in whatever package it is listed: some names are public in two."""
    page = text_of("docs/reference/api.md")
    listed = set(re.findall(r"^   (\w+)$", page, re.MULTILINE))
    assert {name for _, name in public_names()} - listed == set()


def test_the_readme_is_short():
    assert text_of("README.md").count("\n") <= 150
    assert "make demo" in text_of("README.md")
    assert "make test" in text_of("README.md")


@pytest.mark.parametrize("name", PAGES)
def test_headings_are_in_order(name):
    text = RUNNER.FENCE.sub("", text_of(name))
    levels = [len(marks) for marks in re.findall(r"^(#+) ", text, re.MULTILINE)]
    assert levels.count(1) == (0 if name == "docs/reference/changelog.md" else 1)
    assert all(below <= above + 1 for above, below in itertools.pairwise(levels))


@pytest.mark.parametrize(
    ("printed", "shown", "alike"),
    [
        ("a 0.51 b\n", "a 0.52  b\n", True),
        ("a 0.51\n", "a 0.58\n", False),
        ("a 7 0.5\n", "a 8 0.5\n", True),  # numbers of trees and the like
        ("a 0.5\n", "b 0.5\n", False),
        ("a\nb\nc\nd\n", "a\n...\nd\n", True),
        ("a\nb\nc\nd\n", "a\n...\ne\n", False),
        ("a\n", "", False),
    ],
)
def test_what_counts_as_the_same_output(printed, shown, alike):
    assert RUNNER.is_alike(printed, shown) is alike


def test_wrong_output_is_noticed_and_renewed():
    page = "# P\n\n```python\nx = 2\nprint('two', x)\n```\n\n```output\nthree 2\n```\n\nEnd\n"
    outcome = RUNNER.run_page(page)
    assert [mismatch.printed for mismatch in outcome.mismatches] == ["two 2\n"]
    assert outcome.text == page.replace("three", "two")
    assert RUNNER.run_page(outcome.text).mismatches == []
    silent = page.replace("```output\nthree 2\n```\n\n", "")
    assert [mismatch.printed for mismatch in RUNNER.run_page(silent).mismatches] == ["two 2\n"]


def test_transcripts_and_files_of_pages():
    page = (
        "```{code-block} text\n:caption: words.txt\n\none\ntwo\n```\n\n"
        "```console\n$ cat words.txt\none\ntwo\n$ rankinite --version > version.txt\n"
        "$ head -c 9 version.txt\nwrong\n```\n"
    )
    outcome = RUNNER.run_page(page)
    assert Path("words.txt").read_text() == "one\ntwo\n"
    assert [mismatch.code for mismatch in outcome.mismatches] == ["head -c 9 version.txt"]
    assert outcome.text == page.replace("wrong\n", "rankinite")
    with pytest.raises(ValueError, match="'ruby'"):
        RUNNER.run_page("```ruby\nputs 1\n```\n")
