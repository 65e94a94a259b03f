"""``rankinite train --diagnose``: two more files, and nothing else changes."""

import csv
import shlex
from pathlib import Path

import matplotlib.image
import pytest

import rankinite as rk
from rankinite.cli.train import Interruption

TOLD = ["m.rk.diagnostics.csv", "m.rk.diagnostics.png"]
GRADED = "-m 'Tiered(NDCG@3 > CNDCG@3[clicks], weights=0.3)' --n-trees 6 --n-leaves 4"


@pytest.fixture
def train(call):
    for part in ("train", "valid"):
        made = rk.polynomials(12, part=part, n_features=5)
        rk.save(made.with_labels({"clicks": made.y / 4}), f"{part}.parquet")

    def run(text, code=0):
        return call("train", "train.parquet", *shlex.split(text), "--out", "m.rk", code=code)

    return run


def rows_of(path):
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


def test_diagnose_writes_a_table_and_a_figure(train):
    train(f"--valid valid.parquet {GRADED}")
    plain = {name: Path(name).read_bytes() for name in ("m.rk", "m.rk.toml")}
    printed = train(f"--valid valid.parquet {GRADED} --diagnose")
    assert printed.splitlines()[-4:] == [f"wrote {name}" for name in (*plain, *TOLD)]
    assert {name: Path(name).read_bytes() for name in plain} == plain
    assert sorted(path.name for path in Path().glob("m.rk*")) == sorted([*plain, *TOLD])
    rows = rows_of(TOLD[0])
    assert [int(row["round"]) for row in rows] == [1, 2, 3, 4, 5, 6]
    kinds = ("agreement", "lambda share", "top 3 share", "rank changes", "NDCG@3", "CNDCG@3")
    assert [sum(name.startswith(kind) for name in rows[0]) for kind in kinds] == [2, 5, 5, 2, 2, 2]
    for row in rows:
        tops = [float(row[f"top 3 share of grade {grade}"]) for grade in range(5)]
        assert sum(tops) == pytest.approx(1.0, abs=1e-5)
    curve = rk.load_model("m.rk").history_["valid"]["NDCG@3"]
    values = [float(row["NDCG@3 of valid"]) for row in rows]
    assert values == pytest.approx(curve, abs=1e-6)
    assert matplotlib.image.imread(TOLD[1]).shape[:2] == (1200, 1920)  # two panels by two


@pytest.mark.parametrize(
    ("said", "n_panels"),
    [("--ranker LambdaRank --n-epochs 2 --hidden 2", 3), ("--ranker McRank --n-trees 2", 2)],
)
def test_other_rankers_without_a_validation_set(train, said, n_panels):
    train(f"{said} --diagnose")
    rows = rows_of(TOLD[0])
    assert len(rows) == 2
    measured = [name for name in rows[0] if name.startswith("NDCG")]
    assert len(measured) == 1
    assert measured[0].endswith(" of the training set")
    height, width = matplotlib.image.imread(TOLD[1]).shape[:2]
    assert (height, width) == (600 * (n_panels // 2 + n_panels % 2), 1920)


def test_an_interrupted_training_writes_the_same_files(train, monkeypatch):
    train(f"{GRADED} --diagnose")
    undisturbed = [Path(name).read_bytes() for name in TOLD]
    for name in ("m.rk", *TOLD):
        Path(name).unlink()
    asked = []
    with monkeypatch.context() as patched:
        patched.setattr(Interruption, "after_round", lambda self: len(asked) > 2 or asked.append(1))
        train(f"{GRADED} --diagnose", code=130)
    assert not any(Path(name).exists() for name in TOLD)
    train(f"{GRADED} --diagnose")
    assert [Path(name).read_bytes() for name in TOLD] == undisturbed


def test_nothing_is_written_without_the_flag(train):
    train("--n-trees 2")
    assert not any(Path(name).exists() for name in TOLD)
