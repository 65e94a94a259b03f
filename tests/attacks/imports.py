"""Forged and damaged model files of other tools: refused, or sound models."""

from __future__ import annotations

import copy
import json
import logging
import re
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import rankinite as rk
from rankinite.core.errors import RankiniteError
from rankinite.trees.forest import Forest
from tests.attacks import Outcome
from tests.attacks.damage import damaged
from tests.interop.cases import ENSEMBLE, RANKLIB
from tests.interop.make_models import FOLDER

# More than any file of a few kilobytes may take; kernels and libraries are loaded before.
SECONDS, MEMORY = 5.0, 1 << 30
NUMBERS: list[Any] = [
    0, 1, -1, -2, 2, 3, 7, 255, 256, 65535, 65536, 1 << 24, (1 << 31) - 1, 1 << 31, -(1 << 31),
    (1 << 63) - 1, 1 << 63, -(1 << 63), 10**30, 10**400, 0.5, -0.0, 1e-45, 3.4e38, 1e39, 1e300,
    1e400, float("nan"), float("-inf"),
]  # fmt: skip
VALUES: list[Any] = [*NUMBERS, None, True, "", "x", "1E5", "[1]", "\ud800", [], [[]], {}, {"a": 1}]
WORDS = [
    *(str(value) for value in NUMBERS), "", "x", "1_0", "0x1", "inf", "nan", "-nan", "=", "Tree=1",
    "\0", "\x85", "é", "٣",
]  # fmt: skip
WORD = re.compile(r"[^\s=<>\"/]+")


def forged(rng: np.random.Generator, n: int) -> Iterator[Outcome]:
    """Import changed files, and predict with what is not refused."""
    logging.getLogger("rankinite").setLevel(logging.ERROR)
    contents = {
        path.name: path.read_bytes()
        for path in sorted(FOLDER.iterdir())
        if path.name not in ("documents.txt", "scores.json", "frame.json")
    }
    contents["ranklib.xml"] = RANKLIB.format(name="MART", ensembles=ENSEMBLE * 2).encode()
    documents = rng.normal(size=(20, 8)).astype(np.float32)
    documents[rng.random(documents.shape) < 0.2] = np.nan
    for content in contents.values():  # loads what the first file of a process loads
        Path("model").write_bytes(content)
        score(rk.load_model("model"), documents)
    limit = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, limit[1]))
    try:
        for _ in range(n):
            name = str(rng.choice(list(contents)))
            what, content = change(rng, name, contents[name])
            yield tried(f"{name}: {what}", content, documents)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limit)


def change(rng: np.random.Generator, name: str, content: bytes) -> tuple[str, bytes]:
    """Return what was done to a file, and the file."""
    kind = rng.random()
    if kind < 0.3:
        return damaged(rng, content)
    if name.endswith(".json"):
        return changed_object(rng, json.loads(content))
    if name.endswith(".ubj"):
        return changed_bytes(rng, content)
    return changed_words(rng, content.decode())


def changed_object(rng: np.random.Generator, document: Any) -> tuple[str, bytes]:
    """Replace, remove or repeat some values of a JSON file."""
    done = []
    for _ in range(int(rng.integers(1, 4))):
        outer, key, path = random_place(rng, document)
        kind = str(rng.choice(["value", "value", "number", "remove", "repeat", "nest"]))
        value = outer[key]
        if kind == "remove":
            del outer[key]
        elif kind == "repeat" and isinstance(outer, list):
            outer.insert(key, copy.deepcopy(value))
        elif kind == "nest":
            # Not deeper than what can be written.
            for _ in range(int(rng.choice([1, 3, 200]))):
                value = [value] if rng.random() < 0.5 else {"split": value, "left": value}
                if len(json.dumps(value)) > 100_000:
                    break
            outer[key] = value
        else:
            choices = NUMBERS if kind == "number" else VALUES
            outer[key] = choices[int(rng.integers(len(choices)))]
        done.append(f"{kind} {path}")
        if not isinstance(document, (dict, list)) or not document:
            break
    return ", ".join(done), json.dumps(document).encode()


def random_place(rng: np.random.Generator, document: Any) -> tuple[Any, Any, str]:
    """Return an object or list inside a document, one of its keys, and the path to that."""
    outer, path = document, ""
    while True:
        keys = list(outer) if isinstance(outer, dict) else range(len(outer))
        key = keys[int(rng.integers(len(keys)))]
        path += f"/{key}"
        inner = outer[key]
        if not isinstance(inner, (dict, list)) or not inner or rng.random() < 0.15:
            return outer, key, path
        outer = inner


def changed_bytes(rng: np.random.Generator, content: bytes) -> tuple[str, bytes]:
    """Change types, lengths and numbers of a UBJSON file."""
    at = [m.start() for m in re.finditer(rb"[\[{$#LlidDSUITFZN\]}]", content)]
    place = at[int(rng.integers(len(at)))]
    new = [b"[", b"{", b"$", b"#", b"L", b"l", b"i", b"d", b"S", b"T", b"Z", b"N", b"H", b"]", b"}",
           b"\xff" * 8, b"\x7f" + b"\xff" * 7, b"\0" * 4, b"\x7f\xff\xff\xff", b"[" * 5000,
           b"[$T#L\x7f" + b"\xff" * 7, b"[#L" + b"\x7f" * 8]  # fmt: skip
    chosen = new[int(rng.integers(len(new)))]
    skipped = len(chosen) if rng.random() < 0.7 else 0
    return f"{chosen[:8]!r} at {place}", content[:place] + chosen + content[place + skipped :]


def changed_words(rng: np.random.Generator, text: str) -> tuple[str, bytes]:
    """Replace some words of a text, which are names and numbers; or move lines."""
    done = []
    for _ in range(int(rng.integers(1, 4))):
        if rng.random() < 0.2:
            lines = text.splitlines(keepends=True)
            begin, end, to = (int(k) for k in rng.integers(len(lines), size=3))
            moved = lines[min(begin, end) : max(begin, end)][:50]
            text = "".join([*lines[:to], *moved, *lines[to:]])
            done.append(f"lines {begin} to {end} at {to}")
            continue
        words = list(WORD.finditer(text))
        word = words[int(rng.integers(len(words)))]
        other = words[int(rng.integers(len(words)))][0]
        new = str(rng.choice([*WORDS, other, other, other]))
        text = text[: word.start()] + new + text[word.end() :]
        done.append(f"{word[0][:20]} is {new[:20]!r}")
    return ", ".join(done), text.encode("utf-8", "surrogatepass")


def score(model: Any, documents: np.ndarray) -> None:
    """Use a model as far as its number of features is that of the documents."""
    n = model.n_features_in_
    X = np.resize(documents, (len(documents), n)) if n < 1000 else np.zeros((2, n), np.float32)
    scores = model.predict(X)
    assert np.isfinite(scores).all()
    if model.n_trees_:
        model.predict_leaf(X)
        model.tree_nodes(0)
    model.importances("count")
    # What is sound as our own file says.
    again = Forest.from_arrays(model.forest_.to_arrays(), n)
    assert (again.scores(model._features_of(X)[0])[0] == scores).all()
    model.save("again.rk")
    assert (rk.load_model("again.rk").predict(X) == scores).all()


def tried(what: str, content: bytes, documents: np.ndarray) -> Outcome:
    """Import a file; tell how that ended."""
    Path("model").write_bytes(content)
    begin = time.process_time()
    try:
        model: Any = rk.load_model("model")
        is_read = True
        score(model, documents)
    except RankiniteError as problem:
        is_read = False
        if "model" not in str(problem) or len(str(problem)) > 1000:
            return Outcome("refused", f"{what}: says {str(problem)[:200]}")
    except Exception as problem:
        return Outcome("exception", f"{what}: {type(problem).__name__}: {problem}"[:300])
    seconds = time.process_time() - begin
    bad = f"{what}: takes {seconds:.1f} s" if seconds > SECONDS else ""
    return Outcome("read" if is_read else "refused", bad)
