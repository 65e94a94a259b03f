"""Models by name and version, and files that are replaced."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest

import rankinite as rk
from rankinite.serve.repository import ModelFile, Repository, Watcher
from tests.serve.cases import DATA, client_of, saved, small_model

X = np.asarray(DATA.X, np.float32)[:5]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("models/a.rk", ("models/a.rk", "a", "1")),
        ("shop=models/a.rk", ("models/a.rk", "shop", "1")),
        ("shop:7=models/a.rk", ("models/a.rk", "shop", "7")),
        ("shop=C:x=y.rk", ("C:x=y.rk", "shop", "1")),
    ],
)
def test_models_are_named(text, expected):
    file = ModelFile.parse(text)
    assert (str(file.path), file.name, file.version) == expected


@pytest.mark.parametrize("text", ["", "=a.rk", "a=", "a/b=c.rk", "a:=b.rk", "ä=a.rk", ".rk=a"])
def test_other_names_are_refused(text):
    with pytest.raises(rk.UsageError, match="names no model; expected FILE, NAME=FILE or"):
        ModelFile.parse(text)


def test_no_model_and_two_of_a_name_are_refused(folder):
    with pytest.raises(rk.UsageError, match="there is no model"):
        Repository([])
    file = ModelFile(folder / "plain.rk", "m")
    with pytest.raises(rk.UsageError, match="two models 'm' of version '1'"):
        Repository([file, file])


def test_what_cannot_score_is_refused(tmp_path):
    scores = {"a": np.arange(DATA.n_docs), "b": np.ones(DATA.n_docs)}
    ranker = rk.Average(members=None).fit(DATA, member_scores=scores)
    path = saved(tmp_path, "average", ranker)
    with pytest.raises(rk.UsageError, match=r"average.rk: cannot be served: .* member_scores"):
        Repository([ModelFile(path, "m")])
    with pytest.raises(rk.ModelFileError, match="there is no such file"):
        Repository([ModelFile(tmp_path / "none.rk", "m")])


@pytest.fixture
def replaced(folder, tmp_path):
    """A model file in use, and what sees to it."""
    path = tmp_path / "m.rk"
    shutil.copy(folder / "plain.rk", path)
    repository = Repository([ModelFile(path, "m")])
    outcomes = []
    watcher = Watcher(repository, reloaded=lambda slot, succeeded: outcomes.append(succeeded))
    return path, repository.find("m"), watcher, outcomes


def replace(path, content):
    """Replace a file as `save` does."""
    beside = path.with_suffix(".new")
    beside.write_bytes(content)
    beside.replace(path)


def test_a_replaced_file_is_loaded(replaced, tmp_path):
    path, slot, watcher, outcomes = replaced
    before = slot.served
    watcher.look()
    assert slot.served is before
    other = small_model(n_trees=7)
    replace(path, saved(tmp_path, "other", other).read_bytes())
    watcher.look()
    assert slot.served is before  # it may still be written
    watcher.look()
    assert outcomes == [True]
    assert slot.served.ranker.predict(X).tolist() == other.predict(X).tolist()
    # A request that had begun goes on with the old one.
    assert before.ranker.n_trees_ == 3


def test_a_broken_file_leaves_the_old_model(replaced, tmp_path):
    path, slot, watcher, outcomes = replaced
    before, content = slot.served, path.read_bytes()
    replace(path, content[:-100])
    for _ in range(3):
        watcher.look()
    assert outcomes == [False]  # tried once
    assert slot.served is before
    assert slot.problem == (
        "the file of m: is not a model file, or it is damaged: its checksum does not fit its bytes"
    )
    path.unlink()
    for _ in range(3):
        watcher.look()
    assert outcomes == [False, False]
    assert "there is no such file" in slot.problem
    replace(path, content)
    for _ in range(2):
        watcher.look()
    assert outcomes == [False, False, True]
    assert slot.problem is None
    assert slot.served is not before


def test_a_file_that_grows_is_waited_for(replaced):
    path, slot, watcher, outcomes = replaced
    content = path.read_bytes()
    for length in (100, 200, len(content)):
        path.write_bytes(content[:length])
        os.utime(path, ns=(length, length))
        watcher.look()
    assert outcomes == []
    watcher.look()
    assert outcomes == [True]
    assert slot.problem is None


def test_another_defect_leaves_the_old_model(replaced, monkeypatch):
    path, slot, watcher, outcomes = replaced
    monkeypatch.setattr("rankinite.serve.repository.load_model", lambda path: 1 / 0)
    os.utime(path, ns=(1, 1))
    for _ in range(2):
        watcher.look()
    assert outcomes == [False]
    assert slot.problem == "the file cannot be loaded; the log says why"


def test_clients_learn_of_a_broken_file(folder, tmp_path):
    path = tmp_path / "m.rk"
    shutil.copy(folder / "plain.rk", path)
    with client_of(f"m={path}") as client:
        replace(path, b"broken")
        for _ in range(2):
            client.service.watcher.look()
        assert client.post("/rank", {"features": [[1, 2, 3]]}).status == 200
        (model,) = client.get("/models").json["models"]
        assert "is too short for a model file" in model["problem"]
        (entry,) = client.post("/v2/repository/index", {}).json
        assert entry["state"] == "READY"
        assert "too short" in entry["reason"]
        metrics = client.get("/metrics").body.decode()
        assert 'rankinite_model_stale{model="m",version="1"} 1.0' in metrics
        assert 'rankinite_reloads_total{model="m",result="refused",version="1"} 1.0' in metrics
        assert str(tmp_path) not in metrics + str(model) + str(entry)
