import json
from pathlib import Path

import numpy as np
import pytest

import rankinite as rk
from rankinite.core.checksums import SUMS, summed_folder
from rankinite.core.errors import DataError
from rankinite.data.memmap import fingerprint, open_shared, save_shared, with_features


def some_data(**changes):
    fields = {
        "X": [[0.5, np.nan], [0.1, 1.0], [0.9, 2.0]],
        "y": [0, 1, 2],
        "qid": ["a", "a", "ß"],
        "labels": {"clicks": [0.5, np.nan, 0.0]},
        "query_weight": [1.0, 2.0],
        "feature_names": ["bm25", "größe"],
        "top_grade": 4,
    }
    return rk.RankingData(**{**fields, **changes})


@pytest.mark.parametrize("changes", [{}, {"query_weight": None}, {"qid": [1, 1, 2]}])
def test_what_was_saved_comes_back(tmp_path, changes):
    data = some_data(**changes)
    save_shared(data, tmp_path / "shared")
    opened = open_shared(tmp_path / "shared")
    assert opened.equals(data)
    assert fingerprint(opened) == fingerprint(data)
    assert not opened.matrix.flags.writeable


def test_parts_of_a_set_are_saved_as_they_are(tmp_path):
    data = some_data()[[1]]
    save_shared(data, tmp_path / "shared")
    opened = open_shared(tmp_path / "shared")
    assert opened.rows is None
    assert opened.equals(data)


@pytest.mark.parametrize(
    "changes",
    [
        {"X": [[0.5, np.nan], [0.1, 1.0], [0.9, 2.5]]},
        {"y": [0, 1, 1]},
        {"qid": ["a", "a", "b"]},
        {"qid": ["a", "b", "b"]},
        {"labels": {"clicks": [0.5, 1.0, 0.0]}},
        {"labels": {"dwell": [0.5, np.nan, 0.0]}},
        {"query_weight": [1.0, 3.0]},
        {"query_weight": None},
        {"feature_names": ["bm25", "size"]},
        {"top_grade": 3},
    ],
)
def test_the_fingerprint_knows_all_that_can_be_learned(changes):
    assert fingerprint(some_data(**changes)) != fingerprint(some_data())


def test_ids_of_documents_are_no_part_of_it():
    assert fingerprint(some_data(doc_ids=["x", "y", "z"])) == fingerprint(some_data())


def test_more_features_come_from_another_file(tmp_path):
    data = some_data()
    save_shared(data, tmp_path / "shared")
    wide = tmp_path / "wide.npy"
    np.save(wide, np.hstack([data.X, [[7.0], [8.0], [9.0]]]).astype(np.float32))
    (tmp_path / "names.json").write_text(json.dumps(["more"]))
    opened = with_features(open_shared(tmp_path / "shared"), wide, tmp_path / "names.json")
    assert opened.feature_names == ("bm25", "größe", "more")
    assert opened.X[:, 2].tolist() == [7.0, 8.0, 9.0]
    assert opened.y.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("array", "names"),
    [
        (np.zeros((2, 3), np.float32), ["more"]),
        (np.zeros((3, 3)), ["more"]),
        (np.zeros((3, 3), np.float32), ["more", "and more"]),
        (np.zeros((3, 3), np.float32), ["bm25"]),
        (np.zeros((3, 3), np.float32), 7),
    ],
)
def test_features_that_do_not_fit_are_refused(tmp_path, array, names):
    save_shared(some_data(), tmp_path / "shared")
    np.save("wide.npy", array)
    Path("names.json").write_text(json.dumps(names))
    with pytest.raises(DataError, match=r"^wide\.npy: cannot be opened as features: "):
        with_features(open_shared(tmp_path / "shared"), Path("wide.npy"), Path("names.json"))


def flipped(path, place=-1):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


DAMAGES = {
    "missing": lambda folder: (folder / "y.npy").unlink(),
    "cut": lambda folder: (folder / "features.npy").write_bytes(b"\x93NUMPY"),
    "flip": lambda folder: flipped(folder / "features.npy"),
    "manifest": lambda folder: flipped(folder / "manifest.json", 30),
    "checksums": lambda folder: flipped(folder / "SHA256SUMS", 40),
    "no checksums": lambda folder: (folder / "SHA256SUMS").unlink(),
    "swapped": lambda folder: (folder / "y.npy").replace(folder / "label-0.npy"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_folder_is_a_sentence(tmp_path, damage):
    folder = tmp_path / "shared"
    save_shared(some_data(), folder)
    damage(folder)
    with pytest.raises(DataError, match="cannot be opened as shared data"):
        open_shared(folder)


def array(name, change):
    def forge(folder):
        path = folder / f"{name}.npy"
        np.save(path, change(np.load(path)))

    return forge


def manifest(**changes):
    def forge(folder):
        path = folder / "manifest.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return forge


FORGERIES = {
    "format": manifest(format="other"),
    "no list": lambda folder: (folder / "manifest.json").write_text("[]"),
    "half": lambda folder: (folder / "manifest.json").write_text("{"),
    "top grade": manifest(top_grade=1),
    "a name too few": manifest(feature_names=["bm25"]),
    "categories": manifest(categories={"other": ["a"]}),
    "source": manifest(sources=["clicks", "dwell"]),
    "a row too few": array("features", lambda X: X[:-1]),
    "wide": array("features", lambda X: X.astype(np.float64)),
    "a label too few": array("y", lambda y: y[:-1]),
    "integers": array("y", lambda y: y.astype(np.int64)),
    "huge label": array("y", lambda y: y * 1e300),
    "infinite": array("label-0", lambda y: y + np.inf),
    "negative": array("y", lambda y: -y),
    "offsets behind": array("offsets", lambda offsets: offsets + np.array([0, 0, 1 << 40])),
    "offsets between": array("offsets", lambda offsets: offsets + np.array([0, 1 << 40, 0])),
    "offsets before": array("offsets", lambda offsets: offsets - [1, 0, 0]),
    "an offset too few": array("offsets", lambda offsets: offsets[:-1]),
    "no offsets": array("offsets", lambda offsets: offsets[:0]),
    "32 bits": array("offsets", lambda offsets: offsets.astype(np.int32)),
    "a table": array("offsets", lambda offsets: offsets[None]),
    "an id too few": array("qids", lambda qids: qids[:-1]),
    "ids of another kind": array("qids", lambda qids: np.arange(len(qids)) / 2),
    "weight": array("query_weight", lambda weight: -weight),
    "weights": array("query_weight", lambda weight: weight[:1]),
    "objects": array("qids", lambda qids: qids.astype(object)),
}


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES)
def test_arrays_that_do_not_fit_are_refused_though_their_checksums_do(tmp_path, forge):
    folder = tmp_path / "shared"
    save_shared(some_data(), folder)
    with summed_folder(tmp_path / "again" / "shared") as again:
        for path in folder.iterdir():
            if path.name != SUMS:
                (again / path.name).write_bytes(path.read_bytes())
        forge(again)
    with pytest.raises(DataError, match="cannot be opened as shared data"):
        open_shared(tmp_path / "again" / "shared")
