"""The command ``mix``: two queries whose best mix is known by hand."""

import json
from pathlib import Path

import numpy as np
import pytest

import rankinite as rk

PNG = b"\x89PNG\r\n\x1a\n"
# Of each query the second document is relevant. Mixed, its score and that of the other are
# alpha and 1 - alpha in the first query, so it is first above 1/2; 2 - 2 alpha and alpha in the
# second, so it is first below 2/3.
A, B = [1, 0, 0, 2], [0, 1, 1, 0]
PAIR = ["a.scores", "b.scores", "--data", "data.parquet", "--measure", "MRR"]


@pytest.fixture(autouse=True)
def data():
    data_set = rk.RankingData(X=[[0.0], [1.0]] * 2, y=[0, 1] * 2, qid=[1, 1, 2, 2])
    rk.save(data_set, "data.parquet")
    rk.save_scores(A, data_set, "a.scores")
    rk.save_scores(B, data_set, "b.scores")
    return data_set


def test_a_table_in_a_pipe(call):
    # Differences 1/2 and 0: their mean is 1/4, and so is its error; t = 1 of one degree is p 1/2.
    assert call("mix", *PAIR) == (
        "a and b on 2 queries\n"
        "           alpha     MRR\n"
        "a              0  0.7500\n"
        "b              1  0.7500\n"
        "best mix  0.5833  1.0000\n"
        "All alphas between 0.5 and 0.6667 give the same value.\n"
        "The best mix gains +0.2500 over a (paired t-test: p = 0.5), on the queries that alpha was "
        "chosen by; on others expect less.\n"
    )


def test_the_additive_form(call):
    """Added, scores are alpha and 1, then 2 and alpha: best between 1 and 2."""
    printed = json.loads(
        call("mix", *PAIR, "--form", "additive", "--bounds", "0.5", "3", "--json")
    )  # fmt: skip
    assert printed["interval"] == pytest.approx([1, 2])
    assert printed["alpha"] == pytest.approx(1.5)
    assert (printed["value"], printed["at_ends"], printed["bounds"]) == (1, [0.75, 0.75], [0.5, 3])
    assert (printed["gain"], printed["better_end"]) == (0.25, 0)
    assert printed["p_value"] == pytest.approx(0.5)
    assert (printed["a"], printed["b"], printed["peak"], printed["wrote"]) == ("a", "b", None, [])
    out = call("mix", *PAIR, "--form", "additive", "--bounds", "0.5", "3")
    assert "a + 0.5 b    0.5  0.7500\n" in out
    assert "\na " in call("mix", *PAIR, "--form", "additive")


def test_scores_and_figure_are_written(call, data):
    out = call("mix", *PAIR, "--out", "mixed.txt", "--figures", "drawn")
    assert out.splitlines()[-2:] == ["wrote mixed.txt", "wrote drawn/mix.png"]
    alpha = json.loads(call("mix", *PAIR, "--json"))["alpha"]
    expected = [(1 - alpha) * a + alpha * b for a, b in zip(A, B, strict=True)]
    np.testing.assert_allclose(rk.load_scores("mixed.txt", data), expected, rtol=1e-15)
    assert Path("drawn/mix.png").read_bytes().startswith(PNG)
    call("mix", *PAIR, "--out", "mixed.run", "-q")
    assert Path("mixed.run").read_text().startswith("1 Q0 2 1 ")


def test_a_single_point_is_told(call):
    """Three documents tie in the middle: (1 + 1/2 + 1/3) / 3 there, and 1/2 elsewhere."""
    data = rk.RankingData(X=[[0.0]] * 3, y=[0, 1, 0], qid=[1] * 3)
    rk.save(data, "three.parquet")
    rk.save_scores([2, 1, 0], data, "x.scores")
    rk.save_scores([0, 1, 2], data, "y.scores")
    out = call("mix", "x.scores", "y.scores", "--data", "three.parquet", "-m", "MRR")
    assert "No mix is better than x on these queries.\n" in out
    assert "At the single point alpha = 0.5, where documents tie, the measure is 0.6111" in out


def test_a_model_and_scores(call, data):
    rk.LambdaRank("NDCG", hidden=0, n_epochs=1).fit(data).save("net.rk")
    call("predict", "net.rk", "data.parquet", "--out", "net.scores")
    printed = [
        json.loads(call("mix", name, *PAIR[1:], "--json")) for name in ("net.rk", "net.scores")
    ]
    assert printed[0] == printed[1]


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["--form", "additive", "--bounds", "3", "1"], "--bounds must be two numbers", 2),
        (["--bounds", "0", "1"], "--bounds is for --form additive; in the convex form", 2),
        (["--measure", "MRR,P@1"], "are 2 measures; give one", 2),
        (["--out", "a.scores"], "this would overwrite a.scores", 2),
        (["--out", "gone/x.txt"], "gone: there is no such folder", 1),
        (["--figures", "a.scores"], "a.scores: this is a file; expected a folder", 1),
    ],
)
def test_wrong_flags(call, arguments, message, code):
    assert message in call("mix", *PAIR, *arguments, code=code)


def test_wrong_files(call, data):
    rest = PAIR[2:]
    assert "gone.rk: there is no such file" in call("mix", "a.scores", "gone.rk", *rest, code=1)
    assert "was given twice" in call("mix", "a.scores", "./a.scores", *rest, code=2)
    assert ".: this is a directory" in call("mix", "a.scores", ".", *rest, code=1)
    Path("short.scores").write_text("1\n2\n")
    assert "2 scores for 4 documents" in call("mix", "a.scores", "short.scores", *rest, code=1)
    sampled = rk.augment(rk.polynomials(3, n_features=2, n_docs=6), 0.5, 2)
    rk.save(sampled, "sampled.parquet")
    rk.save_scores(np.zeros(sampled.n_docs), sampled, "zero.scores")
    rk.save_scores(np.ones(sampled.n_docs), sampled, "one.scores")
    err = call("mix", "zero.scores", "one.scores", "--data", "sampled.parquet", code=1)
    assert "mix: the data hold samples" in err
