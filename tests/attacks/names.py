"""Hostile names of features, queries, documents, categories, sources, members and files.

Whatever is printed or written for people shows the names and does nothing else: no control
character reaches a terminal, Markdown and HTML have no elements of a name, and a spreadsheet
computes nothing.
"""

from __future__ import annotations

import contextlib
import csv
import io
import os
import re
import shutil
import tomllib
import warnings
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import markdown_it
import numpy as np

import rankinite as rk
from rankinite.cli import main
from rankinite.core.format import HIDDEN, visible
from rankinite.evaluation.tables import FORMULA_SIGNS, NUMBER
from tests.attacks import Outcome

PIECES = [
    "\x1b]0;owned\x07", "\x1b[2J", "\x9b31m", "\x00", "\x08\x08", "\x7f", "\r", "\n", "\t",
    "\u2028", "\u202egpj.exe", "\u2066", "\u200b", "\ufeff", "\ufffe", "\U000e0041",
    "a\u0301", "é", "模", "😀", "=1+1", "=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\uff1d1",
    "'", '"', ",", ";", "-1", "1e5", "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>',
    "</title>", "<!--", "]]>", "&lt;b&gt;", "&#27;", "{{ 7*7 }}", "{% raw %}", "|", "`", "``",
    "[a](javascript:x)", "![a](b)", "*b*", "__c__", "~~d~~", "# e", "1. f", "- g", "> h", "$x_1$",
    "$$", "\\", "\\$", "\\(", "[red]", "[/]", "[link=file:///]", "%s", "%(x)d", "{0}", "${HOME}",
    "a b", " ", "x",
]  # fmt: skip
# In the names of files: what is not UTF-8, as Python reads it.
BYTES = ["\udcff", "\udc9b"]
NOT_IN_FILES = "\x00/"
QUICK = ["--n-trees", "2", "--n-leaves", "4", "--min-docs-in-leaf", "1"]


def hostile(rng: np.random.Generator, n: int, pieces: list[str] = PIECES) -> list[str]:
    """Return different names, each of one to three pieces."""
    names: dict[str, None] = {}
    while len(names) < n:
        chosen = rng.choice(len(pieces), int(rng.integers(1, 4)))
        name = "".join(pieces[k] for k in chosen)
        if name.strip():
            names[name] = None
    return list(names)


def file_name(rng: np.random.Generator) -> str:
    """Return a name for a file."""
    pieces = [piece for piece in PIECES if not set(piece) & set(NOT_IN_FILES)] + BYTES
    # A name that begins with a dash is an option.
    return f"f{hostile(rng, 1, pieces)[0]}"


class Names:
    """Data with hostile names, and a model of them, in files with hostile names."""

    def __init__(self, rng: np.random.Generator) -> None:
        n_queries, n_docs = 4, 6
        n = n_queries * n_docs
        self.features, self.qids = hostile(rng, 3), hostile(rng, n_queries)
        self.texts, source = hostile(rng, 3), self.source(rng)
        matrix = rng.normal(size=(n, 3)).astype(np.float32)
        codes = rng.integers(0, 3, n)
        matrix[:, 2] = codes
        labels = np.tile([0, 1, 2, 0, 1, 2], n_queries).astype(float)
        data = rk.RankingData(
            matrix,
            labels,
            np.repeat(self.qids, n_docs),
            labels={source: labels[::-1].copy()},
            doc_ids=hostile(rng, n),
            feature_names=self.features,
            categories={self.features[2]: tuple(self.texts)},
        )
        self.data, self.model, self.scores = (
            f"{file_name(rng)}{s}" for s in (".parquet", ".rk", "")
        )
        self.other = f"{file_name(rng)}.rk"
        rk.save(data, self.data)
        for path, seed in ((self.model, 1), (self.other, 2)):
            model = rk.LambdaMART(
                n_trees=2, n_leaves=4, min_docs_in_leaf=1, random_state=seed,
                categorical_features=[self.features[2]],
            )  # fmt: skip
            model.fit(data, valid={hostile(rng, 1)[0]: data}).save(path)
        rk.save_scores(model.predict(data), data, self.scores)
        self.measure = f"NDCG[{source}]"

    @staticmethod
    def source(rng: np.random.Generator) -> str:
        """Return the name of a label source, which a measure's text can hold."""
        return re.sub(r"[\[\]()>,\n]", "", hostile(rng, 1)[0]).strip() or "x"


def commands(rng: np.random.Generator, names: Names) -> list[list[str]]:
    """Return commands that print or write names."""
    data, model, other, scores = names.data, names.model, names.other, names.scores
    feature, out = names.features[int(rng.integers(3))], file_name(rng)
    members = [model, other]
    recipe = {"name": hostile(rng, 1)[0], "description": hostile(rng, 1)[0]}
    models = [
        (
            "".join(c for c in name if c.isprintable() and c not in '/\\:*?"<>|').strip(". "),
            description,
        )
        for name, description in zip(hostile(rng, 2), hostile(rng, 2), strict=True)
    ]
    Path("mine.toml").write_text(_recipe(recipe, *models), "utf-8")
    with_sources = ["--measures", f"MRR,{names.measure}"]
    return [
        ["data", "describe", data, "--figures", "figures"],
        ["data", "describe", data, f"{out}.parquet"],
        ["data", "convert", data, f"{out}.txt"],
        ["data", "convert", data, "labels.qrels"],
        ["data", "split", data, "--parts", "2", "--out", out],
        ["data", "normalise", data, "--out", out],
        ["train", data, "--out", f"{out}.rk", *QUICK, "--diagnose", "--valid", data],
        ["train", data, "--out", "m.rk", *QUICK, "--categorical-features", feature],
        ["train", data, "--out", "m.rk", "--monotone-constraints", f"{feature}=1", *QUICK],
        ["train", data, "--out", out, "--print-config"],
        ["predict", model, data, "--out", out],
        ["predict", model, scores],
        ["inspect", model, "--figures", "figures"],
        ["inspect", model, "--json"],
        ["inspect", model, "--trees", "all"],
        ["inspect", model, "--tree", "0", "--out", f"{out}.svg"],
        ["inspect", out],
        ["evaluate", data, scores, "--per-query", "values.csv", *with_sources],
        ["evaluate", data, "--feature", feature, *with_sources],
        ["evaluate", data, "--feature", hostile(rng, 1)[0]],
        ["evaluate", data, scores, "--measures", f"NDCG[{hostile(rng, 1)[0]}]"],
        ["compare", *members, scores, "--data", data, *with_sources, "--figures", "figures"],
        ["compare", *members, "--data", data, "--out", "t.md", "--out", "t.csv", "--out", "t.json"],
        ["compare", *members, "--data", data, "--out", "t.tex", "--pairs", "pairs.csv"],
        ["mix", *members, "--data", data, "--figures", "figures"],
        ["combine", *members, "--data", data, "--out", "both"],
        ["recipe", "check", "mine.toml"],
        ["recipe", "run", "mine.toml", "--train", data, "--jobs", "1", "--out", "run"],
        ["recipe", "show", out],
        [out], ["data", out], ["data", "describe", data, f"--{out}"],
    ]  # fmt: skip


def _recipe(texts: dict[str, str], *models: tuple[str, str]) -> str:
    from rankinite.runs.toml import toml_of

    lines = [f"{key} = {toml_of(text)}" for key, text in texts.items()]
    lines += ["[data]", "parts = 2", "train_parts = 1", "folds = 2"]
    for model, description in models:
        lines += [f"[models.{toml_of(model)}]", 'ranker = "LambdaMART"', "n_trees = 2"]
        lines += ["n_leaves = 3", "min_docs_in_leaf = 1", f"description = {toml_of(description)}"]
    return "\n".join(lines) + "\n"


class Screen(io.StringIO):
    """Stands for a terminal that has no colours, or for a pipe."""

    encoding = "utf-8"

    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal


def shown(rng: np.random.Generator, n: int) -> Iterator[Outcome]:
    """Run commands over data, models and files with hostile names."""
    os.environ.update(TERM="dumb", NO_COLOR="1")
    names: Names | None = None
    warnings.simplefilter("ignore")  # matplotlib's, on characters that its font lacks
    for k in range(n):
        if k % 20 == 0:
            for path in Path().iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            names = Names(rng)
            kept = {path.name for path in Path().iterdir()}
        assert names is not None
        known = commands(rng, names)
        # A run takes as long as twenty other commands.
        chances = np.array([0.05 if command[:2] == ["recipe", "run"] else 1.0 for command in known])
        arguments = known[int(rng.choice(len(known), p=chances / chances.sum()))]
        yield tried(names, arguments, is_terminal=bool(rng.integers(2)))
        for path in Path().iterdir():
            if path.name not in kept:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def tried(names: Names, arguments: list[str], *, is_terminal: bool) -> Outcome:
    """Run a command; look at what it prints and writes."""
    before = set(Path().rglob("*"))
    output, errors = Screen(is_terminal), Screen(is_terminal)
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            main(arguments)
        except SystemExit as leaving:
            code = int(leaving.code or 0)
    what = (
        f"exit {code}"
        if code
        else " ".join(arguments[:2] if arguments[0] in GROUPS else arguments[:1])
    )
    for stream, text in (("stdout", output.getvalue()), ("stderr", errors.getvalue())):
        if bad := unseen(text):
            return Outcome(what, f"{arguments}: {bad} on {stream}")
    if code not in (0, 1, 2) or "this should not happen" in errors.getvalue():
        return Outcome(what, f"{arguments}: exit {code}, {errors.getvalue()[-300:]}")
    if code and len(errors.getvalue().splitlines()) > 1 and not LISTED.search(errors.getvalue()):
        last = errors.getvalue().split("\n")
        if sum(bool(line) and not line.startswith(("note: ", "warning: ")) for line in last) > 1:
            return Outcome(what, f"{arguments}: several lines, {errors.getvalue()!r}")
    for path in sorted(set(Path().rglob("*")) - before):
        check = CHECKS.get(path.suffix)
        if check and path.is_file() and (bad := check(path.read_bytes().decode("utf-8"))):
            return Outcome(what, f"{arguments}: {path.name}: {bad}")
    if not code and (absent := missing(names, arguments, output.getvalue())):
        return Outcome(what, f"{arguments}: {absent!r} is not shown")
    return Outcome(what)


def missing(names: Names, arguments: list[str], printed: str) -> str:
    """Return a name that a command does not show, and should."""
    if "--per-query" in arguments:
        with Path("values.csv").open(newline="", encoding="utf-8") as file:
            cells = {row[0].removeprefix("'") for row in csv.reader(file)}
        # Apostrophes of the names themselves, too.
        # Numpy, which holds them, drops zeros at their ends.
        qids = [qid.rstrip("\0") for qid in names.qids]
        wanted = {visible(qid, keep="\n\t").removeprefix("'") for qid in qids}
        return next(iter(wanted - cells), "")
    if arguments[:2] == ["recipe", "run"]:
        page = Elements()
        page.feed(Path("run/report.html").read_text("utf-8"))
        content = tomllib.loads(Path("mine.toml").read_text("utf-8"))
        texts = [*content["models"], *(m["description"] for m in content["models"].values())]
        shown = "".join("".join(page.texts).split())
        wanted = {"".join(visible(text, keep="\n\t").split()) for text in texts}
        return next((text for text in wanted if text not in shown), "")
    if arguments[0] == "inspect" and "--trees" in arguments:
        return "" if any(visible(name) in printed for name in names.features) else names.features[0]
    return ""


GROUPS = ("data", "recipe")
LISTED = re.compile(r"\d mistakes:")


def unseen(text: str) -> str:
    """Return what of a text is not seen, or changes how the rest is."""
    match = next((m for m in HIDDEN.finditer(text) if m[0] not in "\n\t"), None)
    return "" if match is None else f"{match[0]!r} in {text[max(0, match.start() - 40) :][:80]!r}"


def markdown(text: str) -> str:
    """Return which elements Markdown has that tables and sentences do not have."""
    tokens = markdown_it.MarkdownIt("gfm-like", {"linkify": False, "html": True}).parse(text)
    every = [*tokens, *(child for token in tokens for child in token.children or ())]
    kinds = {token.type.removesuffix("_open").removesuffix("_close") for token in every}
    return unseen(text) or ", ".join(kinds - IN_MARKDOWN)


IN_MARKDOWN = {
    "table", "thead", "tbody", "tr", "th", "td", "paragraph", "inline", "text", "strong",
    "bullet_list", "list_item", "text_special", "softbreak",
}  # fmt: skip


class Elements(HTMLParser):
    """Collects elements with their attributes, and what scripts and styles say."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = ""
        self.seen: set[tuple[str, str]] = set()
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.inside = tag
        self.seen |= {(tag, name) for name, _ in attributes} | {(tag, "")}

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside in ("script", "style"):
            self.seen.add((self.inside, data))
        else:
            self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        self.seen.add(("comment", data))


def html(text: str) -> str:
    """Return which elements and attributes a page has that that of harmless names has not."""
    page = Elements()
    page.feed(text)
    return unseen(text) or ", ".join(map(str, page.seen - harmless_page()))


_harmless: list[set[tuple[str, str]]] = []


def harmless_page() -> set[tuple[str, str]]:
    """Return the elements of the report of a run without hostile names."""
    if not _harmless:
        Path("harmless.toml").write_text(
            _recipe({"name": "n", "description": "d"}, ("a", "c"), ("b", "d"))
        )
        rk.save(rk.polynomials(6, n_docs=6, n_features=3), "harmless.txt")
        with contextlib.redirect_stdout(Screen(False)), contextlib.redirect_stderr(Screen(False)):
            run = ["recipe", "run", "harmless.toml", "--train", "harmless.txt", "--jobs", "1"]
            with contextlib.suppress(SystemExit):
                main([*run, "--out", "harmless"])
        page = Elements()
        page.feed(Path("harmless/report.html").read_text("utf-8"))
        _harmless.append(page.seen)
    return _harmless[0]


def sheet(text: str) -> str:
    """Return the first cell that a spreadsheet would compute, or a line of another length."""
    rows = list(csv.reader(io.StringIO(text, newline="")))
    if len({len(row) for row in rows}) > 1:
        return "lines of different lengths"
    for cell in (cell for row in rows for cell in row):
        if cell.lstrip()[:1] in FORMULA_SIGNS and cell.strip() and not NUMBER.fullmatch(cell):
            return f"the cell {cell!r}"
    return unseen(text)


def picture(text: str) -> str:
    """Return which elements an SVG file has that a drawn tree has not."""
    tags = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(text).iter()}
    return unseen(text) or ", ".join(tags - {"svg", "title", "style", "rect", "text", "path", "g"})


CHECKS: dict[str, Callable[[str], str]] = {
    ".md": markdown, ".html": html, ".csv": sheet, ".svg": picture, ".tex": unseen, ".toml": unseen,
}  # fmt: skip
