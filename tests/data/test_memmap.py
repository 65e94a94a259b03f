import json

import numpy as np
import pytest

import rankinite as rk
from rankinite.core.errors import DataError
from rankinite.data.memmap import fingerprint, names_file, open_shared, save_shared


def some_data(**changes):
    given = {
        "X": [[0.5, np.nan], [0.1, 1.0], [0.9, 2.0]],
        "y": [0, 1, 2],
        "qid": ["a", "a", "ß"],
        "labels": {"clicks": [0.5, np.nan, 0.0]},
        "query_weight": [1.0, 2.0],
        "feature_names": ["bm25", "größe"],
        "top_grade": 4,
    }
    return rk.RankingData(**{**given, **changes})


@pytest.mark.parametrize("changes", [{}, {"query_weight": None}, {"qid": [1, 1, 2]}])
def test_what_was_saved_comes_back(tmp_path, changes):
    data = some_data(**changes)
    save_shared(data, tmp_path / "shared")
    found = open_shared(tmp_path / "shared")
    assert found.equals(data)
    assert fingerprint(found) == fingerprint(data)
    assert not found.matrix.flags.writeable


def test_parts_of_a_set_are_saved_as_they_are(tmp_path):
    data = some_data()[[1]]
    save_shared(data, tmp_path / "shared")
    found = open_shared(tmp_path / "shared")
    assert found.rows is None
    assert found.equals(data)


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
    names_file(wide).write_text(json.dumps(["more"]))
    found = open_shared(tmp_path / "shared", wide)
    assert found.feature_names == ("bm25", "größe", "more")
    assert found.X[:, 2].tolist() == [7.0, 8.0, 9.0]
    assert found.y.tolist() == [0, 1, 2]


@pytest.mark.parametrize("damage", ["missing", "cut", "manifest", "format"])
def test_a_damaged_folder_is_a_sentence(tmp_path, damage):
    folder = tmp_path / "shared"
    save_shared(some_data(), folder)
    if damage == "missing":
        (folder / "y.npy").unlink()
    elif damage == "cut":
        path = folder / "features.npy"
        path.write_bytes(path.read_bytes()[:-4])
    elif damage == "manifest":
        (folder / "manifest.json").write_text("{")
    else:
        (folder / "manifest.json").write_text('{"format": "other"}')
    with pytest.raises(DataError, match="cannot be opened as shared data"):
        open_shared(folder)
