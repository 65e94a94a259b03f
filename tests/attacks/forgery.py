"""Forged containers: files with a right checksum whose content nobody has written."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rankinite.core.npy import read_array
from rankinite.core.stored_zip import directory, write_entry
from tests.attacks.damage import damaged

Entries = dict[str, bytes]
DIGEST = 64
# The time and the attributes that the entries of our zips have.
TIMESTAMP = (1980, 1, 1, 0, 0, 0)


def entries_of(content: bytes) -> Entries:
    """Return the entries of a container by name."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def container_of(entries: Entries) -> bytes:
    """Return a container in our form with these entries, in the order that it has."""
    file = io.BytesIO()
    first = [name for name in entries if name == "manifest.json"]
    others = sorted(entries.keys() - set(first), key=lambda name: name.removesuffix(".npy"))
    written = [write_entry(file, name, entries[name]) for name in (*first, *others)]
    file.write(directory(written, file.tell(), DIGEST))
    return with_digest(file.getvalue())


def with_digest(body: bytes) -> bytes:
    return body + hashlib.sha256(body).hexdigest().encode()


def forged(rng: np.random.Generator, content: bytes) -> tuple[str, bytes]:
    """Forge a container: return what was done, and its bytes."""
    if rng.random() < 0.05:
        return forged_zip(rng, content)
    entries = entries_of(content)
    done = []
    for _ in range(1 + rng.poisson(0.5)):
        # What was forged already may be nothing that can be forged again.
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            if rng.random() < 0.5:
                what, entries["manifest.json"] = forged_manifest(rng, entries["manifest.json"])
            else:
                what = forge_array(rng, entries)
            done.append(what)
    return ", ".join(done), container_of(entries)


# The zip


def forged_zip(rng: np.random.Generator, content: bytes) -> tuple[str, bytes]:
    """Forge what is around the entries."""
    entries, body = entries_of(content), content[:-DIGEST]
    ways: dict[str, Callable[[], bytes]] = {
        "bytes before": lambda: with_digest(rng.bytes(int(rng.integers(1, 99))) + body),
        "bytes behind": lambda: with_digest(body + rng.bytes(int(rng.integers(1, 99)))),
        "twice": lambda: with_digest(body * 2),
        "damaged": lambda: with_digest(damaged(rng, body)[1]),
        "compressed": lambda: zip_of(entries, compression=zipfile.ZIP_DEFLATED),
        "other time": lambda: zip_of(entries, time=(2020, 2, 2, 2, 2, 2)),
        "extra": lambda: zip_of(entries, extra=b"\xfe\xca\x04\x00abcd"),
        "name twice": lambda: zip_of(entries, twice=str(rng.choice(list(entries)))),
        "other order": lambda: zip_of(dict(sorted(entries.items(), key=lambda _: rng.random()))),
        "no manifest": lambda: container_of(
            {name: data for name, data in entries.items() if name != "manifest.json"}
        ),
        "strange name": lambda: container_of({**entries, some(rng, NAMES): b"x"}),
    }
    what = some(rng, list(ways))
    return what, ways[what]()


NAMES = [
    "",
    "/",
    "../x.npy",
    "manifest.json.npy",
    "a.json",
    "\n.npy",
    "ä.npy",
    "x" * 9_999 + ".npy",
]


def zip_of(
    entries: Entries,
    *,
    compression: int = zipfile.ZIP_STORED,
    time: tuple[int, ...] = TIMESTAMP,
    extra: bytes = b"",
    twice: str | None = None,
) -> bytes:
    """Return a zip, with the right checksum as its comment."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        listed = [*entries, *([] if twice is None else [twice])]
        for number, name in enumerate(listed):
            # `zipfile` warns of a name that is there twice; so it gets it later.
            entry = zipfile.ZipInfo(f"{number:05}", time)  # type: ignore[arg-type]
            entry.compress_type, entry.extra = compression, extra
            archive.writestr(entry, entries[name])
            entry.filename = name
        archive.comment = b"0" * DIGEST
    return with_digest(buffer.getvalue()[:-DIGEST])


# The manifest

NUMBERS: list[Any] = [
    *(0, 1, -1, 2, 3, 7, 255, 256, 65_536, 2**31, 2**53, 2**63, 2**64, 10**18, 10**299, 10**400),
    *(0.0, -0.0, 0.5, 1.5, -2.5, 1e-320, 1e15, 1e38, 1e100, 1e150, 1e200, 1.7e308, -1.7e308),
    *(float("nan"), float("inf"), float("-inf")),
]
TEXTS = [
    *("", " ", "x", "1", "2", "NDCG", "NDCG@10", "ERR > MAP", "RankNet", "nan", "base", "additive"),
    *(
        "\ud800",
        "\udfff\ud800",
        "\x00",
        "\x1b[31m",
        "\n",
        "é",
        "\U0001f600",
        "a" * 5_000,
        "9" * 5_000,
    ),
    *("LambdaMART", "MART", "McRank", "LambdaRank", "Average", "BestMix", "Stacked", "checkpoint"),
    *(
        "tanh",
        "relu",
        "newton",
        "line-search",
        "(1 2)",
        "(" * 2_000,
        "((1 2)3)",
        "x=1,y=-1",
        "[a,b]",
    ),
]
OTHERS: list[Any] = [
    None,
    True,
    False,
    [],
    {},
    [[]],
    [0],
    {"a": 1},
    [None],
    [[1, 2], [3]],
    ["1", "1"],
]


def forged_manifest(rng: np.random.Generator, text: bytes) -> tuple[str, bytes]:
    """Forge a value of the manifest, or its text."""
    kind = rng.random()
    if kind < 0.05:
        what, changed = damaged(rng, text)
        return f"manifest: {what}", changed
    if kind < 0.08:
        return "manifest in UTF-16", text.decode().encode("utf-16")
    if kind < 0.12:
        return "manifest with a name twice", text.replace(b"{", b'{"class": "MART", ', 1)
    manifest = json.loads(text)
    if not isinstance(manifest, dict):
        raise ValueError(manifest)
    places = list(places_of(manifest))
    # Short paths are few, and matter most.
    place = places[int(len(places) * rng.random() ** 2)]
    what, value = nasty(rng, manifest, place)
    return f"manifest{place} {what}", json.dumps(value).encode()


def places_of(value: Any) -> Iterator[tuple[Any, ...]]:
    """Iterate over the paths to all values of a manifest, the shortest first."""
    level: list[tuple[tuple[Any, ...], Any]] = [((), value)]
    while level:
        yield from (path for path, _ in level)
        level = [
            ((*path, key), inner)
            for path, outer in level
            if isinstance(outer, (dict, list))
            for key, inner in (outer.items() if isinstance(outer, dict) else enumerate(outer))
        ]


def nasty(rng: np.random.Generator, manifest: Any, place: tuple[Any, ...]) -> tuple[str, Any]:
    """Return what is done to a place of a manifest, and the manifest then."""
    if not place:
        value = nasty_value(rng, manifest)
        if isinstance(value, dict) or rng.random() < 0.2:
            return "replaced", value
        name = some(rng, ["base", "members", "ranker", "preset", "n_rounds", "x", *TEXTS])
        return f"[{name[:20]!r}] = {shown(value)}", {**manifest, name: value}
    outer = manifest
    for key in place[:-1]:
        outer = outer[key]
    key, old = place[-1], outer[place[-1]]
    kind = rng.random()
    if kind < 0.1:
        del outer[key]
        return "deleted", manifest
    if kind < 0.2 and isinstance(outer, list):
        outer.insert(key, copy.deepcopy(old))
        return "repeated", manifest
    if kind < 0.3 and isinstance(old, dict):
        old[some(rng, ["base", "preset", "members", "measure", *TEXTS])] = nasty_value(rng, old)
        return "with one more", manifest
    if kind < 0.45 and type(old) in (int, float):
        outer[key] = old + some(rng, [1, -1, 0.5, 100])
        return f"moved to {shown(outer[key])}", manifest
    outer[key] = nasty_value(rng, old)
    return f"= {shown(outer[key])}", manifest


def nasty_value(rng: np.random.Generator, old: Any) -> Any:
    """Return a value that does not belong there, perhaps of the type that does."""
    kind = rng.random()
    if kind < 0.08:
        deep: Any = 0
        for _ in range(int(rng.choice([3, 6, 100, 240, 500, 5_000]))):
            deep = [deep] if rng.random() < 0.8 else {"a": deep}
        # json.dumps gives up earlier than that.
        return deep if depth_of(deep) < 300 else [[[]]]
    if kind < 0.12:
        return [old] * int(rng.choice([2, 100]))
    if isinstance(old, str) or kind < 0.3:
        return some(rng, TEXTS)
    if type(old) in (int, float) or kind < 0.6:
        return some(rng, NUMBERS)
    return copy.deepcopy(some(rng, OTHERS))


def depth_of(value: Any) -> int:
    depth = 0
    while isinstance(value, (list, dict)) and value:
        value = value[0] if isinstance(value, list) else value["a"]
        depth += 1
    return depth


# Arrays

KINDS = [
    *("<f8", "<f4", "<f2", "<i8", "<i4", "<i2", "|i1", "<u8", "<u4", "<u2", "|u1", "|b1", ">f8"),
    *("<U3", "|S3", "<M8[s]", "<m8[D]", "<c16", "|V8", "|O"),
]
DESCRIPTIONS = [
    *("", "'<f8'", "''", "'|O'", "'<U0'", "'<U999999'", "'<M8[s]'", "[('a', '<f8')]", "'<f8'" * 99),
    *("[" * 500, "().__class__", "__import__('os')", "'<f8', 'descr': '<i8'", "1" * 9_999, "\x00"),
]
SHAPES = [
    *("()", "(0,)", "(1,)", "(-1,)", "(3,)", f"({10**12},)", f"({10**18 - 1},)", f"({10**40},)"),
    *("(0, 1000000000000)", "(9, 9, 9)", "(1" + ", 1" * 40 + ")", "(True,)", "(1.0,)", "[1]", "("),
]


OTHER_ARRAYS = [
    *("x.npy", "base.x.npy", "members.9.value.npy", "alphas.npy", "left_sets.npy"),
    *("categories.npy", "n_categories.npy", "position_bias.effect.npy"),
]


def forge_array(rng: np.random.Generator, entries: Entries) -> str:
    """Forge an array of a container; return what was done."""
    names = [name for name in entries if name != "manifest.json"]
    if not names:
        return "nothing"
    name = some(rng, names)
    kind = rng.random()
    if kind < 0.04:
        del entries[name]
        return f"no {name}"
    if kind < 0.08:
        other = some(rng, OTHER_ARRAYS)
        entries[other] = entries[name]
        return f"{name} also as {other}"
    if kind < 0.12:
        other = some(rng, names)
        entries[name], entries[other] = entries[other], entries[name]
        return f"{name} and {other} exchanged"
    if kind < 0.25:
        what, entries[name] = forged_npy(rng, entries[name])
        return f"{name}: {what}"
    # numpy's own reader fails in many ways on what was forged before.
    array = read_array(entries[name])
    if kind < 0.45:
        what, array = reshaped(rng, array)
    else:
        what, array = revalued(rng, array)
    entries[name] = npy_of(array)
    return f"{name}: {what}"


def npy_of(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def forged_npy(rng: np.random.Generator, content: bytes) -> tuple[str, bytes]:
    """Forge the bytes of an array's file."""
    kind = rng.random()
    if kind < 0.3:
        what, changed = damaged(rng, content)
        return what, changed
    if kind < 0.4:
        return "version 2", content[:6] + b"\x02" + content[7:]
    length = 10 + int.from_bytes(content[8:10], "little")
    description, shape = some(rng, DESCRIPTIONS), some(rng, SHAPES)
    order = some(rng, ["False", "True", "0"])
    text = f"{{'descr': {description}, 'fortran_order': {order}, 'shape': {shape}, }}"
    header = text.encode()[:60_000]
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    start = content[:8] + len(header).to_bytes(2, "little") + header
    return f"header {text[:60]}", start + content[length:]


def reshaped(rng: np.random.Generator, array: np.ndarray) -> tuple[str, np.ndarray]:
    """Return an array in another shape or of another type."""
    ways: dict[str, Callable[[], np.ndarray]] = {
        "shorter": lambda: array[:-1],
        "longer": lambda: np.concatenate([array, array[-1:]]),
        "twice": lambda: np.concatenate([array, array]),
        "empty": lambda: array[:0],
        "a scalar": lambda: array.reshape(-1)[:1].reshape(()),
        "a row": lambda: array[np.newaxis],
        "a column": lambda: np.asfortranarray(array[..., np.newaxis]),
        "of many dimensions": lambda: array.reshape(*[1] * 20, *array.shape),
        "structured": lambda: np.zeros(len(array), [("a", "<f8"), ("b", "<i4")]),
    }
    with np.errstate(all="ignore"):
        if rng.random() < 0.5:
            kind = some(rng, KINDS)
            try:
                return f"as {kind}", array.astype(kind)
            except (TypeError, ValueError):
                return f"zeros of {kind}", np.zeros(array.shape, kind)
        what = some(rng, list(ways))
        try:
            return what, ways[what]()
        except (TypeError, ValueError, IndexError):
            return "a scalar 1", np.array(1)


def revalued(rng: np.random.Generator, array: np.ndarray) -> tuple[str, np.ndarray]:
    """Return an array with other numbers."""
    changed = np.array(array)
    if not changed.size:
        return "longer", np.ones(3, array.dtype)
    kind = rng.random()
    flat = changed.reshape(-1)
    if kind < 0.25:
        raw = flat.view(np.uint8)
        for _ in range(1 + rng.poisson(1)):
            raw[rng.integers(len(raw))] ^= np.uint8(1 << rng.integers(8))
        return "bits flipped", changed
    if kind < 0.35:
        return "other order", rng.permutation(changed)
    number = some(rng, [*NUMBERS, *limits_of(array.dtype)])
    places: Any = slice(None) if kind < 0.5 else rng.integers(len(flat), size=1 + rng.poisson(1))
    with np.errstate(all="ignore"):
        try:
            flat[places] = number
        except (OverflowError, ValueError):
            flat[places] = limits_of(array.dtype)[0]
    which = "all" if isinstance(places, slice) else str(places.tolist())
    return f"{which} = {shown(number)}", changed


def limits_of(kind: np.dtype) -> list[Any]:
    if kind.kind == "f":
        largest = float(np.finfo(kind).max)
        return [largest, -largest, largest / 10, float(np.finfo(kind).tiny)]
    if kind.kind in "iu":
        return [int(np.iinfo(kind).max), int(np.iinfo(kind).min)]
    return [1]


def some(rng: np.random.Generator, values: list[Any]) -> Any:
    return values[int(rng.integers(len(values)))]


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}... ({len(text)} characters)"
