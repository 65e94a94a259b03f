"""The folder of a run: its lock, its log, and what was left behind in it."""

import errno

import pytest

from rankinite.core.errors import UsageError
from rankinite.runs.store import Store
from tests.runs.cases import go


def test_a_folder_in_use_is_refused(recipe_of, tmp_path):
    with Store(tmp_path / "run").locked(), pytest.raises(UsageError, match="another run works"):
        go(recipe_of())


def test_what_was_killed_half_way_is_cleared_away(recipe_of, tmp_path):
    folder = tmp_path / "run"
    half = folder / "tasks" / ".0123.77-0123abcd.part"
    half.mkdir(parents=True)
    (half / "model.rk").write_bytes(b"half")
    go(recipe_of())
    assert not half.exists()


def test_the_folder_of_a_sweep_is_refused(recipe_of, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "settings.json").write_text("{}")
    with pytest.raises(UsageError, match="the folder of a sweep"):
        go(recipe_of())


def test_only_unfinished_work_of_the_run_itself_is_cleared_away(recipe_of, tmp_path):
    other = tmp_path / "run" / "another" / "tasks" / ".0123.77-0123abcd.part"
    mine = tmp_path / "run" / ".download.part"
    # Of a command that may be writing it at this moment.
    scores = tmp_path / "run" / ".scores.txt.77-0123abcd.part"
    other.mkdir(parents=True)
    for path in (mine, scores):
        path.write_text("not of the run")
    left = ["run.json", "ensemble.rk", "tables.md", "report.html", "models/A.rk",
            "scores/test/A.txt", "measures/test.csv", "checkpoints/0123"]  # fmt: skip
    for name in left:
        path = tmp_path / "run" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_name(f".{path.name}.77-0123abcd.part").write_text("half")
    go(recipe_of())
    assert other.exists()
    assert {path.name for path in tmp_path.rglob("*.part")} == {
        other.name, mine.name, scores.name}  # fmt: skip


def test_a_folder_that_cannot_be_locked_is_used_all_the_same(tmp_path, monkeypatch, caplog):
    def refused(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("rankinite.runs.store.fcntl.flock", refused)
    with caplog.at_level("INFO", "rankinite"), Store(tmp_path / "run").locked():
        pass
    assert "cannot be locked (No locks available)" in caplog.text


def test_the_log_is_whole_and_others_are_shown_no_more_than_before(recipe_of, tmp_path, caplog):
    with caplog.at_level("INFO", "rankinite"):
        go(recipe_of())
    assert not [record for record in caplog.records if record.levelname == "DEBUG"]
    assert "final training: A bag 1 of 2 begins" in (tmp_path / "run" / "log.txt").read_text()
