"""Commands whose outputs are inputs or somebody else's files, under all names that a file can have.

Whatever is named as an output, by links, other paths or folders: no file that was there before may
change, unless it is one that rankinite made.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import rankinite as rk
from rankinite.cli import main
from tests.attacks import Outcome

OLD = "1 1:1\n0 1:2\n2 1:3\n1 1:0\n"
INPUTS = ["train.txt", "test.parquet", "m.rk", "n.rk", "scores.txt", "old.txt", "old.txt.query"]
# What a stranger may have called the files that commands write into folders.
FOREIGN = [
    ".rankinite", "combine.md", "combine.csv", "combine.json", "scores.txt", "test-scores.txt",
    "ensemble.rk", "train.txt", "part01.txt", "part02.txt", "distinct-values.png", "tables.md",
    "learning-curve.png", "importances.png", "m.rk.toml", "m.rk.checkpoint", "report.html",
    "recipe.toml", "run.json", "log.txt", "lock", "train.parquet", "test.parquet", "old.txt.query",
    "m.rk.diagnostics.csv", "m.rk.diagnostics.png", "settings.json",
]  # fmt: skip
RECIPE = """
[data]
parts = 2
train_parts = 1
folds = 2
[models.A]
ranker = "LambdaMART"
n_trees = 1
n_leaves = 2
min_docs_in_leaf = 1
"""


def overwritten(rng: np.random.Generator, n: int) -> Iterator[Outcome]:
    """Run commands with outputs that must not be written."""
    contents = originals()
    ORIGINALS.update(contents)
    for _ in range(n):
        for path in Path().iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        for name, content in contents.items():
            Path(name).write_bytes(content)
        yield tried(rng)


def originals() -> dict[str, bytes]:
    """Make the inputs; return their contents."""
    data = rk.polynomials(8, n_docs=5, n_features=3)
    rk.save(data, "train.txt")
    rk.save(data, "test.parquet")
    for name, seed in (("m.rk", 1), ("n.rk", 2)):
        model = rk.LambdaMART(n_trees=1, n_leaves=2, min_docs_in_leaf=1, random_state=seed)
        model.fit(data).save(name)
    rk.save_scores(np.linspace(-1, 1, data.n_docs) / 3, data, "scores.txt")
    Path("old.txt").write_text(OLD)
    Path("old.txt.query").write_text("4\n")
    Path("mine.toml").write_text(RECIPE)
    return {path.name: path.read_bytes() for path in Path().iterdir()}


def named(rng: np.random.Generator, name: str, folder: Path) -> str:
    """Return another name for a file: a path, or a link to it."""
    kind = int(rng.integers(7))
    link = folder / f"link{kind}{Path(name).suffix}"
    with contextlib.suppress(FileExistsError):
        if kind == 0:
            link.symlink_to(Path(name).absolute())
        elif kind == 1:
            os.link(name, link)
        elif kind == 2:
            (folder / "chain").symlink_to(Path(name).absolute())
            link.symlink_to("chain")
        elif kind == 3:
            (folder / "here").symlink_to(Path().absolute())
            return str(folder / "here" / name)
    others = (name, f"./{name}", str(Path(name).absolute()), f"{folder}/../{name}")
    return str(link) if kind < 3 else others[kind - 3]


def tried(rng: np.random.Generator) -> Outcome:
    """Prepare outputs, run a command, and look at what was there before."""
    out = Path("out")
    out.mkdir()
    name = INPUTS[int(rng.integers(len(INPUTS)))]
    target = named(rng, name, out)
    # A folder in which names of outputs are taken, by files of somebody else or links to inputs.
    for taken in rng.choice(FOREIGN, int(rng.integers(1, 4)), replace=False):
        path = out / str(taken)
        if rng.random() < 0.5:
            path.symlink_to(Path(INPUTS[int(rng.integers(len(INPUTS)))]).absolute())
        else:
            path.write_bytes(b"precious")
    into = str(rng.choice(["out", "out", "."]))
    train = ["--n-trees", "1", "--n-leaves", "2", "--min-docs-in-leaf", "1"]
    known = [
        ["predict", "m.rk", "train.txt", "--out", target],
        ["predict", "m.rk", "old.txt", "--out", target],
        ["data", "convert", "train.txt", target],
        ["data", "convert", "old.txt", target],
        ["data", "convert", "train.txt", "out/old.txt"],
        ["data", "augment", "train.txt", "--out", target],
        ["data", "split", "train.txt", "--parts", "2", "--out", into],
        ["data", "normalise", "train.txt", "test.parquet", "--out", into],
        ["data", "normalise", "train.txt", "--out", "new", "--cut-points", target],
        ["data", "describe", "train.txt", "--figures", into],
        ["data", "simulate", "polynomials", "--size", "0.0002", "--out", into],
        ["data", "simulate", "clicks", "train.txt", "--out", into],
        ["train", "train.txt", *train, "--out", target],
        ["train", "train.txt", *train, "--out", f"{into}/m.rk", "--diagnose"],
        ["train", "train.txt", *train, "--base", "n.rk", "--out", f"{into}/n.rk"],
        ["inspect", "m.rk", "--figures", into],
        ["inspect", "m.rk", "--tree", "0", "--out", f"{into}/train.svg"],
        ["evaluate", "train.txt", "scores.txt", "--per-query", target],
        ["compare", "m.rk", "n.rk", "--data", "train.txt", "--pairs", target],
        ["compare", "m.rk", "n.rk", "--data", "train.txt", "--out", f"{into}/combine.md"],
        ["combine", "m.rk", "n.rk", "--data", "train.txt", "--out", into],
        ["mix", "m.rk", "n.rk", "--data", "train.txt", "--out", target],
        ["recipe", "run", "mine.toml", "--train", "train.txt", "--jobs", "1", "--out", into],
    ]
    arguments = known[int(rng.integers(len(known)))]
    forced = rng.random() < 0.3
    protected = {Path(path).absolute() for path in (*INPUTS, "mine.toml")}
    before = {
        path.absolute(): path.read_bytes()
        for path in Path().rglob("*")
        if path.is_file() and (not forced or path.absolute() in read_by(arguments, protected))
    }
    if forced:
        arguments = [*arguments, "--force"]
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            main(arguments)
        except SystemExit as leaving:
            code = int(leaving.code or 0)
    what = "written" if code == 0 else f"exit {code}"
    links = [str(p) for p in out.iterdir() if p.is_symlink()]
    if "should not happen" in said.getvalue():
        return Outcome(what, f"{arguments}: {said.getvalue()[-200:]}")
    for path, content in before.items():
        if path.is_file() and path.read_bytes() == content:
            continue
        if may_replace(content, arguments):
            continue
        return Outcome(what, f"{arguments} with links {links}: {path.name} has changed")
    return Outcome(what)


def read_by(arguments: list[str], paths: set[Path]) -> set[Path]:
    """Return the files that a command reads, which not even --force replaces."""
    outputs = {arguments[k + 1] for k, word in enumerate(arguments) if word in OPTIONS}
    if arguments[:2] == ["data", "convert"]:
        outputs.add(arguments[3])
    read = {Path(word).absolute() for word in arguments if word not in outputs}
    if Path("old.txt").absolute() in read:
        read.add(Path("old.txt.query").absolute())
    return read & paths


OPTIONS = ("--out", "--figures", "--cut-points", "--per-query", "--pairs")


def may_replace(content: bytes, arguments: list[str]) -> bool:
    """Tell whether a command may replace a file: scores by scores, and a model by a model.

    By content, as every link to a file that is replaced by right has changed as well.
    """
    if arguments[0] in ("predict", "mix"):
        return content == ORIGINALS["scores.txt"]
    is_read = "--base" in arguments and content == ORIGINALS["n.rk"]
    return (
        arguments[0] == "train"
        and not is_read
        and content in (ORIGINALS["m.rk"], ORIGINALS["n.rk"])
    )


ORIGINALS: dict[str, bytes] = {}
