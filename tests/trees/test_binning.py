"""BinnedData: more columns, other rows, folders."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from rankinite.core.checksums import summed_folder
from rankinite.core.errors import DataError, RankiniteError
from rankinite.trees.binning import BinnedData
from rankinite.trees.forest import Forest
from rankinite.trees.grower import Grower
from tests.trees.cases import bin_all, boost, bytes_of, growth, mixed_features, names

N_ROWS = 120
N_FEATURES = 21


@pytest.fixture
def features() -> np.ndarray:
    return mixed_features(np.random.default_rng(0), N_ROWS, N_FEATURES)


@pytest.fixture
def target() -> np.ndarray:
    return np.random.default_rng(1).normal(size=N_ROWS)


def trees_of(binned: BinnedData, target, **options) -> tuple[bytes, bytes]:
    trees, scores = boost(Grower(binned, None, growth(12)), target, 5, **options)
    return bytes_of(trees), scores.tobytes()


def appended(X, *ends: int) -> BinnedData:
    """Bin the columns up to the first end, then append those up to the next, and so on."""
    binned = bin_all(X[:, : ends[0]])
    for start, end in pairwise(ends):
        binned = binned.append(X[:, start:end], names(end)[start:])
    return binned


@pytest.mark.parametrize("ends", [(20, 21), (8, 21), (3, 9, 21), (1, 2, 3, 4, 21), (16, 21, 21)])
@pytest.mark.parametrize("options", [{}, {"sample": 0.5, "n_features": 6}], ids=["all", "sampled"])
def test_appended_columns_are_as_good_as_the_others(features, target, ends, options):
    """The trees are those of all columns binned at once, from whichever block a column comes."""
    binned = appended(features, *ends)
    whole = bin_all(features)
    assert binned.feature_names == whole.feature_names
    assert trees_of(binned, target, **options) == trees_of(whole, target, **options)


def test_appending_shares_what_is_there(features):
    first = bin_all(features[:, :9])
    second = first.append(features[:, 9:12], ["a", "b", "c"])
    third = second.append(features[:, 12:13], ["d"])
    assert second.main is first.main
    assert third.main is first.main
    assert first.feature_names == tuple(names(9))
    assert third.feature_names == (*names(9), "a", "b", "c", "d")


@pytest.mark.kernel
def test_the_second_block_is_binned_like_the_first():
    X = mixed_features(np.random.default_rng(2), 15, 4)
    binned = appended(X, 1, 3, 4)
    whole = bin_all(X)
    assert binned.more.columns.tolist() == whole.main.columns[1:4].tolist()
    assert binned.more.n_bins.tolist() == whole.main.n_bins[1:4].tolist()
    target = np.arange(15.0) ** 2 % 7
    assert trees_of(binned, target) == trees_of(whole, target)


def test_forests_on_appended_columns_score_raw_features(features, target):
    grower = Grower(appended(features, 10, 21), None, growth(12))
    trees, scores = boost(grower, target, 5)
    assert any(feature >= 10 for tree in trees for feature in tree.feature)
    assert Forest(trees, np.zeros(1), N_FEATURES).scores(features)[0].tobytes() == scores.tobytes()


@pytest.mark.parametrize(
    ("shape", "new_names"),
    [((N_ROWS, 2), ["a"]), ((N_ROWS - 1, 1), ["a"]), ((N_ROWS,), ["a"]), ((N_ROWS, 1), [])],
)
def test_appended_columns_must_fit(features, shape, new_names):
    with pytest.raises(DataError, match=f"append: .* expected .*{N_ROWS} rows"):
        bin_all(features).append(np.zeros(shape, np.float32), new_names)


@pytest.mark.parametrize("value", [math.inf, -math.inf, 1e300])
def test_appended_columns_must_be_finite(features, value):
    column = np.zeros((N_ROWS, 1))
    column[3] = value
    with pytest.raises(DataError, match="expected finite numbers"):
        bin_all(features).append(column, ["a"])


@pytest.mark.parametrize(
    ("new_names", "twice"), [(["f0", "a"], "f0"), (["a", "a"], "a"), (["a", "f20"], "f20")]
)
def test_a_name_is_there_once(features, new_names, twice):
    with pytest.raises(DataError, match=f"append: feature '{twice}' is there already"):
        bin_all(features).append(np.zeros((N_ROWS, 2)), new_names)
    binned = bin_all(features).append(np.zeros((N_ROWS, 1)), ["a"])
    with pytest.raises(DataError, match="feature 'a' is there already"):
        binned.append(np.zeros((N_ROWS, 1)), ["a"])


def test_missing_values_may_be_appended(features):
    column = np.where(np.arange(N_ROWS) % 3 == 0, math.nan, 1.0)[:, None]
    binned = bin_all(features).append(column, ["a"])
    assert binned.more.n_bins[0] == 1
    assert binned.more.columns[0, :3].tolist() == [1, 0, 0]


@pytest.mark.parametrize("ends", [(21,), (8, 21), (3, 9, 21)])
def test_other_rows_are_binned_by_the_same_cut_points(features, ends):
    binned = appended(features, *ends)
    main, more = binned.columns_of(features)
    assert main.tolist() == binned.main.columns.tolist()
    assert more.tolist() == binned.more.columns.tolist()
    rows = np.array([5, 0, 119, 5])
    main, more = binned.columns_of(features, rows)
    assert main.tolist() == binned.main.columns[:, rows].tolist()
    assert more.tolist() == binned.more.columns[:, rows].tolist()


def test_other_rows_may_lie_outside():
    binned = bin_all([[1.0], [2.0], [3.0]])
    other = np.array([[-9], [1.5], [1.6], [99], [math.nan]], np.float32)
    assert binned.columns_of(other)[0][0].tolist() == [0, 0, 1, 2, 3]


@pytest.mark.parametrize("n_features", [20, 22])
def test_other_rows_must_have_the_same_features(features, n_features):
    with pytest.raises(DataError, match=f"have {n_features} features; expected 21"):
        bin_all(features).columns_of(np.zeros((3, n_features), np.float32))


@pytest.mark.parametrize("most_bins", [0, 1, 256, 2.5, "many"])
def test_a_wrong_number_of_bins_is_refused(features, most_bins):
    with pytest.raises(RankiniteError, match="most_bins"):
        bin_all(features, most_bins=most_bins)


def test_bins_cannot_be_changed(features):
    binned = appended(features, 8, 21)
    for block in (binned.main, binned.more):
        for array in (block.bundled, block.columns, block.cuts, block.n_bins):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1


def test_a_column_of_equal_values_cannot_be_split():
    binned = bin_all(
        [[1, 0, math.nan, 7, math.nan], [1, 2, math.nan, 7, 3], [1, 2, math.nan, math.nan, 3]]
    )
    assert (binned.main.splittable > 0).tolist() == [False, True, False, True, True]


@pytest.mark.parametrize("ends", [(21,), (8, 21)])
def test_a_folder_gives_the_same_trees(features, target, tmp_path, ends):
    binned = appended(features, *ends)
    binned.save(tmp_path / "deep" / "bins")
    opened = BinnedData.open(tmp_path / "deep" / "bins")
    assert opened.feature_names == binned.feature_names
    assert trees_of(opened, target) == trees_of(binned, target)
    more = opened.append(features[:, :1], ["again"])
    assert trees_of(more, target) == trees_of(binned.append(features[:, :1], ["again"]), target)


def test_a_folder_is_mapped_not_read(features, tmp_path):
    bin_all(features).save("bins")
    opened = BinnedData.open("bins")
    for array in (opened.main.bundled, opened.main.columns):
        assert isinstance(array.base, np.memmap)
        assert not array.flags.writeable
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bins"]


def test_a_folder_is_not_overwritten(features):
    bin_all(features).save("bins")
    with pytest.raises(RankiniteError, match="bins: is there already; name a new folder"):
        bin_all(features).save("bins")
    Path("file").write_text("precious")
    with pytest.raises(RankiniteError, match="file: is there already"):
        bin_all(features).save("file")
    assert Path("file").read_text() == "precious"


def manifest(**changes):
    def change(folder: Path) -> None:
        path = folder / "manifest.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


def array(name: str, change):
    def rewrite(folder: Path) -> None:
        path = folder / f"{name}.npy"
        np.save(path, change(np.load(path)))

    return rewrite


def contents(name: str, change):
    return lambda folder: (folder / name).write_bytes(change((folder / name).read_bytes()))


ARRAYS = [
    f"{block}-{name}" for block in ("main", "more") for name in ("bundled", "columns", "cuts")
]
DAMAGES = {
    "another format": manifest(format="rankinite binned data 0"),
    "a name too few": manifest(feature_names=names(N_FEATURES - 1)),
    "no names": manifest(feature_names=None),
    "no manifest": lambda folder: (folder / "manifest.json").unlink(),
    "half a manifest": contents("manifest.json", lambda text: text[: len(text) // 2]),
    "a manifest of something else": contents("manifest.json", lambda _: b"[1, 2]"),
    "a manifest of bytes": contents("manifest.json", lambda _: b"\xff\xfe\x00"),
    "more bins than a byte has": array("main-n_bins", lambda n_bins: n_bins + 255),
    "bins below 0": array("more-n_bins", lambda n_bins: -n_bins),
    "numbers of bins in a table": array("main-n_bins", lambda n_bins: n_bins[None]),
    "one number of bins": array("main-n_bins", lambda n_bins: n_bins[0]),
    "fractions of bins": array("main-n_bins", lambda n_bins: n_bins + 0.5),
    "more codes than bins": array("main-n_codes", lambda n_codes: n_codes + 2),
    "no codes": array("main-n_codes", lambda n_codes: n_codes * 0),
    "other bundles": array("main-n_codes", lambda n_codes: np.minimum(n_codes, 2)),
    "wider bytes": array("main-bundled", lambda rows: rows.astype(np.int16)),
    "cuts of another kind": array("main-cuts", lambda cuts: cuts.astype(np.float64)),
    "a row too few": array("main-bundled", lambda rows: rows[:-1]),
    "a column too few": array("more-columns", lambda columns: columns[:-1]),
    "rows for columns": array("main-bundled", lambda rows: rows.T.copy()),
    "columns in a line": array("main-columns", lambda columns: columns.reshape(-1)),
    "blocks of different rows": array("more-bundled", lambda rows: rows[1:]),
}
DAMAGES |= {
    f"no {name}": lambda folder, name=name: (folder / f"{name}.npy").unlink() for name in ARRAYS
}
DAMAGES |= {
    f"half of {name}": contents(f"{name}.npy", lambda b: b[: len(b) // 2]) for name in ARRAYS
}
DAMAGES |= {f"an empty {name}": contents(f"{name}.npy", lambda _: b"") for name in ARRAYS}
DAMAGES |= {f"text for {name}": contents(f"{name}.npy", lambda _: b"hello") for name in ARRAYS}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_folder_is_refused(features, damage):
    appended(features, 8, 21).save("bins")
    damage(Path("bins"))
    with pytest.raises(DataError, match=r"^bins: cannot be opened as binned data: bins/"):
        BinnedData.open("bins")
    # As if the checksums were right, too.
    Path("bins").rename("damaged")
    with summed_folder("bins") as folder:
        for path in Path("damaged").glob("*[!S]"):
            path.rename(folder / path.name)
    with pytest.raises(DataError, match=r"^bins: "):
        BinnedData.open("bins")


def test_a_folder_that_is_not_there():
    with pytest.raises(DataError, match="bins: cannot be opened as binned data"):
        BinnedData.open("bins")
