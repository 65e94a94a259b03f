"""The command ``compare``, called as a person would call it."""

import csv
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rankinite as rk
from rankinite.cli import main
from rankinite.cli.files import short_names

PNG = b"\x89PNG\r\n\x1a\n"
N_QUERIES = 8
RUN = [sys.executable, "-m", "rankinite"]


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
    values = json.loads(
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
    more = {"data": "test.parquet", "drop_single_label": True, "wrote": []}
    assert values == {**expected.as_json(), **more}
    assert values["kendall_tau"] is None


def test_files_and_figures(call):
    outs = [f"r.{ending}" for ending in ("md", "tex", "csv", "json")]
    arguments = [word for path in outs for word in ("--out", path)]
    arguments += ["--pairs", "p", "--figures", "f", "--baseline", "c", "-m", "MRR"]
    printed = call("compare", *SYSTEMS, *arguments)
    written = [*outs, "p", "f/differences-MRR.png"]
    assert printed.splitlines()[-6:] == [f"wrote {path}" for path in written]
    pairs = list(csv.DictReader(Path("p").read_text().splitlines()))
    assert [(row["system"], row["other"]) for row in pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert Path("f/differences-MRR.png").read_bytes()[:8] == PNG
    assert "**1.0000**ᵇ" in Path("r.md").read_text()
    assert r"\textbf{1.0000}\textsuperscript{b}" in Path("r.tex").read_text()
    assert len(list(csv.reader(Path("r.csv").read_text().splitlines()))) == 4
    assert "r.md exists; write to another place" in call("compare", *SYSTEMS, *arguments, code=2)
    values = json.loads(call("compare", *SYSTEMS, *arguments, "--json", "--force"))
    assert values.pop("wrote") == written
    assert (values.pop("data"), values["drop_single_label"]) == ("test.parquet", False)
    assert values == json.loads(Path("r.json").read_text())


def test_features_are_systems_too(call, files):
    X = np.column_stack([files.y, -files.y])
    data = rk.RankingData(X=X, y=files.y, group_sizes=files.sizes)
    rk.save(data, "two.parquet")
    arguments = ["--feature", "2", "--feature", "1", "--data", "two.parquet", "-m", "MRR", "--json"]
    values = json.loads(call("compare", "c.run", *arguments))
    assert values["means"] == {"MRR": {"feature 2": 0.5, "feature 1": 1.0, "c": 0.75}}
    assert json.loads(call("compare", *arguments))["systems"] == ["feature 2", "feature 1"]
    assert "called 'feature 2'; name each once" in call(
        "compare", "c.run", *arguments, "--feature", "2", code=2
    )
    Path("feature 1.scores").write_bytes(Path("a.scores").read_bytes())
    assert "called 'feature 1'" in call("compare", "feature 1.scores", *arguments, code=2)
    assert "no feature called '9'" in call("compare", "c.run", *arguments, "--feature", 9, code=2)


def test_many_systems_get_no_matrix(call, files):
    names = [f"s{k}" for k in range(11)]
    for k, name in enumerate(names):
        rk.save_scores(np.arange(16.0) * (-1) ** k, files, name)
    printed = call("compare", *names, "--data", "test.parquet", "-m", "MRR")
    assert "p-values, MRR" not in printed
    assert "--pairs FILE" in printed


LONG = [f"lambdamart-with-{k}-leaves-and-a-learning-rate-of-0.05" for k in range(10)]


@pytest.fixture
def long_names(files):
    for k, name in enumerate(LONG):
        rk.save_scores(np.arange(16.0) * (-1) ** (k == 0), files, name)


def test_a_wide_matrix_has_letters_only(call, long_names):
    def matrix(*names):
        printed = call("compare", *names, "--data", "test.parquet", "-m", "MRR", "-q")
        return printed.split("\n\n")[1].splitlines()

    # Two columns: 51 letters of a name fit in 80, with those of five systems they do not.
    assert matrix(*LONG[:2])[2] == f"a  {Path(LONG[0]).stem}  <0.0001"
    assert matrix(*LONG[:5])[2].split() == ["a"] + ["<0.0001"] * 4
    short = [f"s{k}" for k in range(6)]
    for name in short:
        Path(name).write_bytes(Path("a.scores").read_bytes())
    assert matrix(*short[:5])[2].split() == ["a", "s0"] + ["1.0000"] * 4
    assert matrix(*short)[2].split() == ["a"] + ["1.0000"] * 5


@pytest.mark.parametrize("columns", [60, 80])
def test_a_narrow_terminal_cuts_no_number(long_names, columns):
    text = on_a_terminal(
        "compare", *LONG, "--data", "test.parquet", "-m", "MRR", "-q", columns=columns
    )
    plain = re.sub(r"\x1b\[\d+m", "", text)
    table, _ = plain.split("A letter:")
    matrix = plain.partition("p-values, MRR")[2]
    assert "…" not in plain
    assert max(map(len, (table + matrix).splitlines())) <= columns
    # The first system wins always, as the oracle does; the other nine are alike.
    assert (table.count(" 1.0000"), table.count(" 0.5000")) == (2, 9)
    assert (matrix.count(" <0.0001"), matrix.count(" 1.0000")) == (9, 36)


def test_a_tiny_terminal_gets_a_plain_table(long_names):
    arguments = ["compare", *LONG, "--data", "test.parquet", "-m", "MRR,P@1,ERR", "-q"]
    text = on_a_terminal(*arguments, columns=30)
    assert text.count(f"a {Path(LONG[0]).stem} 1.0000*ᵇᶜᵈ") == 2  # of MRR and P@1
    assert text.count("Means over 8 queries, continued") == 2
    assert text.count("*: the best mean.") == 1


def test_what_systems_are_called(call, files):
    for folder in ("x", "y"):
        Path(folder).mkdir()
        rk.save_scores([1, 0] * N_QUERIES, files, f"{folder}/run.scores")
    values = json.loads(
        call("compare", "x/run.scores", "y/run.scores", "--data", "test.parquet", "--json")
    )
    assert values["systems"] == ["x/run", "y/run"]
    paths = [Path("r/a.scores"), Path("r/a.run"), Path("b.txt.gz")]
    assert short_names(paths) == ["a.scores", "a.run", "b.txt.gz"]
    assert short_names([Path("x/a.run"), Path("y/a.scores")]) == ["x/a", "y/a"]
    assert short_names([Path(".gz"), Path("/a/b.gz")]) == [".gz", "b"]
    assert short_names([Path(), Path("a.run")]) == [".", "a"]
    assert short_names([Path("/")]) == ["/"]
    assert short_names([Path()]) == ["."]
    assert short_names([]) == []


def test_names_that_are_no_text_are_escaped(call, files):
    strange = os.fsdecode(b"model-\xff.scores")
    rk.save_scores([1, 0] * N_QUERIES, files, strange)
    arguments = ["compare", strange, "c.run", "--data", "test.parquet", "-m", "MRR", "-o", "r.md"]
    assert "a  model-\\udcff  1.0000" in call(*arguments)
    assert "model-\\\\udcff" in Path("r.md").read_text()


def test_samples_are_refused(call, files):
    qid = np.repeat(["1", "1~1", *map(str, range(2, N_QUERIES))], 2)
    rk.save(rk.RankingData(X=files.X, y=files.y, qid=qid), "sampled.parquet")
    said = call("compare", "a.scores", "b.txt.gz", "--data", "sampled.parquet", "-q", code=1)
    assert "such as '1~1'" in said
    assert "rankinite data convert --originals" in said


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
        (["a.scores", "--data", "test.parquet"], "at least two models or files of scores", 2),
        (["a.scores", "c.run"], "Missing option '--data'", 2),
        (["a.scores", "a.scores", "--data", "test.parquet"], "a.scores was given twice", 2),
        ([*SYSTEMS, "--out", "x.xlsx"], "x.xlsx: a comparison is written to files that end in", 2),
        ([*SYSTEMS, "--out", "no/x.md"], "no: there is no such folder", 1),
        ([*SYSTEMS, "--out", "three/x.md"], "three: this is a file; expected a folder", 1),
        ([*SYSTEMS, "--pairs", "."], ".: this is a directory; expected a file", 1),
        ([*SYSTEMS, "--pairs", "c.run"], "would overwrite c.run", 2),
        ([*SYSTEMS, "-o", "x.md", "-o", "./x.md"], "two files would be written to x.md", 2),
        ([*SYSTEMS, "-o", "x.csv", "--pairs", "x.csv"], "two files would be written to x.csv", 2),
        ([*SYSTEMS, "--figures", "three"], "three: this is a file; expected a folder", 1),
        ([*SYSTEMS, "--baseline", "a"], "add --figures FOLDER", 2),
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


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (["--level", "2"], "level must be a finite number", 2),
        (["--out", "no/x.md"], "no: there is no such folder", 1),
        (["--pairs", "no/x"], "no: there is no such folder", 1),
        (["--out", "x.xlsx"], "x.xlsx: a comparison is written", 2),
        (["line\nbreak"], "is no name for a system", 2),
    ],
)
def test_mistakes_are_told_before_anything_is_loaded(call, arguments, words, code):
    assert words in call("compare", "a.scores", "b", "-d", "absent", *arguments, code=code)


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


def _read(terminal):
    try:
        return os.read(terminal, 65536)
    except OSError:  # nobody writes any more
        return b""


def on_a_terminal(*arguments, columns=80):
    """Return what a command prints on a terminal."""
    shown, typed = pty.openpty()
    plain = {**os.environ, "TERM": "xterm", "COLUMNS": str(columns)}
    plain.pop("NO_COLOR", None)
    worker = subprocess.Popen([*RUN, *arguments], stdout=typed, env=plain)
    os.close(typed)
    text = b""
    while piece := _read(shown):
        text += piece
    os.close(shown)
    assert worker.wait() == 0
    return text.decode()


def test_a_terminal_gets_bold_and_a_poor_one_gets_carets():
    arguments = ["compare", *SYSTEMS, "-m", "MRR", "-q"]
    text = on_a_terminal(*arguments)
    assert "\x1b[1m1.0000\x1b[0mᵇ" in text
    assert "┃" in text
    assert "bold: the best mean." in text
    poor = subprocess.run(
        [*RUN, *arguments],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert b"1.0000*^b" in poor.stdout
