"""A finished run that is opened again, and its report."""

import json
import re
import shutil

import numpy as np
import pytest

from rankinite.core.checksums import with_checksum
from rankinite.core.errors import DataError, UsageError
from rankinite.data.memmap import fingerprint
from rankinite.report import write_report
from rankinite.runs.graph import Graph
from rankinite.runs.run import open_run
from tests.runs.cases import TRAIN, bytes_of, go


def test_a_finished_run_is_opened_again_with_the_same_results(recipe_of, tmp_path):
    run = go(recipe_of(('name = "micro"\n', ""), ('choose = "all"', 'choose = "named"')))
    report = write_report(run).read_bytes()
    before = bytes_of(tmp_path / "run")
    (tmp_path / "run" / "report.html").unlink()
    again = open_run(tmp_path / "run")
    assert again.results.recipe == run.results.recipe
    assert again.tables == run.tables
    assert again.ensemble.member_names_ == run.ensemble.member_names_
    for name, scores in run.results.outcomes["test"].scores.items():
        assert np.array_equal(again.results.outcomes["test"].scores[name], scores)
    again.tables.save(again.folder)
    assert write_report(again).read_bytes() == report
    assert bytes_of(tmp_path / "run") == before


def test_the_report_is_the_same_after_a_second_run_and_tells_the_versions_of_the_run(
    recipe_of, tmp_path, monkeypatch
):
    report = write_report(go(recipe_of())).read_bytes()
    assert write_report(go(recipe_of())).read_bytes() == report
    monkeypatch.setattr("rankinite.runs.run.version", lambda _: "another")
    assert write_report(open_run("run")).read_bytes() == report


def test_a_run_is_opened_with_the_data_sets_that_it_had_last(recipe_of):
    go(recipe_of())
    last = go(recipe_of(), valid=None)
    assert open_run("run").tables == last.tables


def test_a_report_of_an_earlier_recipe_does_not_stay(recipe_of, tmp_path):
    write_report(go(recipe_of()))
    assert list((tmp_path / "run" / "explained").glob("*.html"))
    go(recipe_of(("hidden = 3", "hidden = 2")))
    assert not (tmp_path / "run" / "report.html").exists()
    assert not list((tmp_path / "run" / "explained").glob("*.html"))


def test_the_report_links_to_pages_of_the_largest_wins_and_losses(recipe_of, tmp_path):
    run = go(recipe_of())
    report = write_report(run)
    links = re.findall(r'href="(explained/[^"]+)">([^<]+)</a>', report.read_text())
    assert links
    pages = sorted(f"explained/{path.name}" for path in (report.parent / "explained").iterdir())
    assert sorted(page for page, _ in links) == pages
    for page, qid in links:
        assert f"<h1>Query {qid}</h1>" in (report.parent / page).read_text()


def test_what_is_no_finished_run_is_not_opened(recipe_of, tmp_path):
    with pytest.raises(UsageError, match="none: is not the folder of a run; name one that"):
        open_run("none")
    (tmp_path / "sweep").mkdir()
    for name in ("run.json", "settings.json"):
        (tmp_path / "sweep" / name).write_text("{}")
    with pytest.raises(UsageError, match="sweep: is not the folder of a run"):
        open_run("sweep")
    recipe = recipe_of()
    go(recipe)
    graph = Graph(recipe, fingerprint(TRAIN))
    task = graph.model("A", graph.final).fits[1]
    shutil.rmtree(tmp_path / "run" / "tasks" / task.key)
    with pytest.raises(DataError, match=r"1 of \d+ tasks of the final training are missing or dam"):
        open_run("run")
    state = json.loads((tmp_path / "run" / "run.json").read_text())
    del state["sha256"]
    unfinished = with_checksum(state | {"files": [], "sets": []})
    (tmp_path / "run" / "run.json").write_text(json.dumps(unfinished))
    with pytest.raises(DataError, match="run: the run is not finished; run the recipe again in"):
        open_run("run")
