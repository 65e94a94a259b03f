"""The command ``compare``, called as a person would call it."""

import csv
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rankinite as rk
from rankinite.cli import main
from rankinite.cli.names import short_names

PNG = b"\x89PNG\r\n\x1a\n"
N_QUERIES = 8


@pytest.fixture(autouse=True)
def files():
    """Eight queries of two documents; a has the relevant one first always, c in half, b never."""
    data = rk.RankingData(
        X=np.zeros((2 * N_QUERIES, 1)), y=[1, 0] * N_QUERIES, group_sizes=[2] * N_QUERIES
    )
    rk.save(data, "test.parquet")
    rk.save_scores([1, 0] * N_QUERIES, data, "a.scores")
    rk.save_scores([0, 1] * N_QUERIES, data, "b.txt.gz")
    rk.save_scores([1, 0, 0, 1] * (N_QUERIES // 2), data, "c.run", run="c")
    return data


SYSTEMS = ["a.scores", "b.txt.gz", "c.run", "--data", "test.parquet"]


def test_tables_in_a_pipe(call):
    # The same by hand is in tests/evaluation/test_comparison.py: p is 0.0331, twice 0.0663.
    assert call("compare", *SYSTEMS, "--measure", "MRR,P@1") == (
        "Means over 8 queries\n"
        "   System     MRR       P@1\n"
        "a  a       1.0000*ᵇ  1.0000*ᵇ\n"
        "b  b       0.5000    0.0000\n"
        "c  c       0.7500    0.5000\n"
        "   oracle  1.0000    1.0000\n"
        "A letter: significantly better than that system; *: the best mean.\n"
        "Paired t-test, Holm's correction for 3 pairs, level 0.05.\n"
        "\n"
        "p-values, MRR\n"
        "            b       c\n"
        "a  a  <0.0001  0.0663\n"
        "b  b           0.0663\n"
        "\n"
        "p-values, P@1\n"
        "            b       c\n"
        "a  a  <0.0001  0.0663\n"
        "b  b           0.0663\n"
        "\n"
        "Kendall's tau\n"
        "        P@1\n"
        "MRR  1.0000\n"
    )


def test_options_reach_the_library(call, files):
    found = json.loads(
        call(
            "compare", *SYSTEMS, "-m", "MRR", "--test", "randomisation", "--permutations", 100,
            "--resamples", 50, "--level", 0.2, "--correction", "none", "--seed", 3,
            "--drop-single-label", "--json",
        )
    )  # fmt: skip
    scores = {
        name: rk.load_scores(path, files)
        for name, path in zip("abc", SYSTEMS[:3], strict=True)
    }  # fmt: skip
    expected = rk.compare(
        scores, files, "MRR", test="randomisation", permutations=100, resamples=50, level=0.2,
        correction="none", seed=3, drop_single_label=True,
    )  # fmt: skip
    assert found == {**expected.as_json(), "wrote": []}
    assert found["kendall_tau"] is None


def test_files_and_figures(call):
    outs = [f"r.{ending}" for ending in ("md", "tex", "csv", "json")]
    arguments = [word for path in outs for word in ("--out", path)]
    arguments += ["--figures", "f", "--baseline", "c", "-m", "MRR"]
    printed = call("compare", *SYSTEMS, *arguments)
    written = [*outs, "f/differences-MRR.png"]
    assert printed.splitlines()[-5:] == [f"wrote {path}" for path in written]
    assert Path("f/differences-MRR.png").read_bytes()[:8] == PNG
    assert "**1.0000**ᵇ" in Path("r.md").read_text()
    assert r"\textbf{1.0000}\textsuperscript{b}" in Path("r.tex").read_text()
    assert len(list(csv.reader(Path("r.csv").read_text().splitlines()))) == 4
    found = json.loads(call("compare", *SYSTEMS, *arguments, "--json"))
    assert found.pop("wrote") == written
    assert found == json.loads(Path("r.json").read_text())


def test_many_systems_get_no_matrix(call, files):
    names = [f"s{k}" for k in range(11)]
    for k, name in enumerate(names):
        rk.save_scores(np.arange(16.0) * (-1) ** k, files, name)
    printed = call("compare", *names, "--data", "test.parquet", "-m", "MRR")
    assert "p-values, MRR" not in printed
    assert "--out FILE.json" in printed


def test_what_systems_are_called(call, files):
    for folder in ("x", "y"):
        Path(folder).mkdir()
        rk.save_scores([1, 0] * N_QUERIES, files, f"{folder}/run.scores")
    found = json.loads(
        call("compare", "x/run.scores", "y/run.scores", "--data", "test.parquet", "--json")
    )
    assert found["systems"] == ["x/run", "y/run"]
    paths = [Path("r/a.scores"), Path("r/a.run"), Path("b.txt.gz")]
    assert short_names(paths) == ["a.scores", "a.run", "b.txt.gz"]
    assert short_names([Path("x/a.run"), Path("y/a.scores")]) == ["x/a", "y/a"]
    assert short_names([Path(".gz"), Path("/a/b.gz")]) == [".gz", "b"]


def test_documents_that_a_run_lacks(call):
    Path("short.run").write_text("1 Q0 1 1 9.0 x\n")
    arguments = ["compare", "a.scores", "short.run", "--data", "test.parquet", "-m", "MRR"]
    assert "short.run: the run lacks 15 of 16 documents" in call(*arguments, code=1)
    assert "short" in call(*arguments, "--missing", "last", "-q")


def test_queries_brought_together(call):
    Path("apart.txt").write_text("0 qid:1 1:1\n3 qid:2 1:9\n2 qid:1 1:2\n0 qid:2 1:3\n")
    Path("good").write_text("1\n9\n2\n3\n")
    Path("bad").write_text("2\n3\n1\n9\n")
    arguments = ["compare", "good", "bad", "--data", "apart.txt", "--group", "-m", "MRR", "--json"]
    assert json.loads(call(*arguments))["means"] == {"MRR": {"good": 1.0, "bad": 0.5}}


def test_notes_and_warnings(call, capsys):
    Path("one.txt").write_text("1 qid:1 1:1\n0 qid:1 1:2\n")
    for name in ("a", "b"):
        Path(name).write_text("1\n2\n")
    with pytest.raises(SystemExit):
        main(["compare", "a", "b", "--data", "one.txt", "-m", "MRR"])
    errors = capsys.readouterr().err
    assert "warning: MRR: one query counts; a test needs at least two\n" in errors
    assert "note: 'a', 'b' have the same values for every query\n" in errors


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (["a.scores", "--data", "test.parquet"], "at least two files of scores", 2),
        (["a.scores", "c.run"], "Missing option '--data'", 2),
        (["a.scores", "a.scores", "--data", "test.parquet"], "a.scores was named twice", 2),
        ([*SYSTEMS, "--out", "x.xlsx"], "x.xlsx: a comparison is written to files that end in", 2),
        ([*SYSTEMS, "--out", "no/x.md"], "no: there is no such folder", 1),
        ([*SYSTEMS, "--baseline", "a"], "say --figures FOLDER", 2),
        ([*SYSTEMS, "--baseline", "z", "--figures", "f"], "the systems are 'a', 'b', 'c'", 2),
        ([*SYSTEMS, "--level", "2"], "level must be a finite number, above 0 and below 1", 2),
        ([*SYSTEMS, "--test", "wilcoxon"], "'wilcoxon' is not one of", 2),
        ([*SYSTEMS, "-m", "NGCD"], "there is no measure 'NGCD'", 2),
        (["a.scores", "absent", "--data", "test.parquet"], "absent: there is no such file", 1),
        (["a.scores", "three", "--data", "test.parquet"], "three: 3 scores for 16 documents", 1),
        (["a.scores", "nan", "--data", "test.parquet"], "nan:2: 'nan' is not a score", 1),
        ([*SYSTEMS, "-m", "MRR(relevant=2)"], "MRR(relevant=2): no query counts", 1),
    ],
)
def test_one_sentence_and_the_right_code(call, arguments, words, code):
    Path("three").write_text("1\n2\n3\n")
    Path("nan").write_text("1\nnan\n" * N_QUERIES)
    said = call("compare", *arguments, "--quiet", code=code)
    assert words in said
    assert said.startswith("Error: ")
    assert said.count("\n") == 1


def test_scores_are_not_overwritten(call):
    Path("a.scores").rename("a.csv")
    before = Path("a.csv").read_bytes()
    arguments = ["compare", "a.csv", "c.run", "--data", "test.parquet", "--out", "a.csv"]
    assert "would overwrite a.csv" in call(*arguments, code=2)
    assert Path("a.csv").read_bytes() == before


def test_evaluate_drops_single_labels(call):
    Path("t.txt").write_text("1 qid:1 1:1\n0 qid:1 1:2\n1 qid:2 1:1\n")
    arguments = ["evaluate", "t.txt", "--feature", "1", "--measure", "MRR", "--json"]
    assert json.loads(call(*arguments))["queries"] == {"MRR": 2}
    assert json.loads(call(*arguments, "--drop-single-label"))["queries"] == {"MRR": 1}


def test_a_terminal_gets_bold_and_a_poor_one_gets_carets():
    run = [sys.executable, "-m", "rankinite", "compare", *SYSTEMS, "-m", "MRR", "-q"]
    shown, typed = pty.openpty()
    plain = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    plain.pop("NO_COLOR", None)
    subprocess.run(run, stdout=typed, check=True, env=plain)
    os.close(typed)
    text = os.read(shown, 65536).decode()
    os.close(shown)
    assert "\x1b[1m1.0000\x1b[0mᵇ" in text
    assert "┃" in text
    assert "bold: the best mean." in text
    poor = subprocess.run(
        run, capture_output=True, check=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )
    assert b"1.0000*^b" in poor.stdout
