"""Comparisons as text, Markdown, LaTeX, CSV and JSON."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest

import rankinite as rk
from rankinite.stats.paired_tests import SMALLEST_P
from tests.evaluation.cases import graded_systems, pairs_of_documents


@pytest.fixture(scope="module")
def graded() -> tuple[dict[str, np.ndarray], rk.RankingData]:
    return graded_systems()


@pytest.fixture(scope="module")
def named() -> rk.Comparison:
    """Names that every format has to escape, and measures for which other queries count."""
    scores, data = pairs_of_documents(**{"bm25 | x": "00000000", "tree_2 & 50%": "11111111"})
    y = data.y.copy()
    y[0] = 0
    changed = rk.RankingData(X=data.X, y=y, group_sizes=data.sizes, top_grade=1)
    return rk.compare(scores, changed, "MRR,P@1")


def test_text(named):
    # The first query has no relevant document: MRR skips it, P counts 0.
    assert str(named) == (
        "Means over 7 (MRR), 8 (P@1) queries\n"
        "   System           MRR       P@1\n"
        "a  bm25 | x      0.5000    0.0000\n"
        "b  tree_2 & 50%  1.0000*ᵃ  0.8750*ᵃ\n"
        "   oracle        1.0000    0.8750\n"
        "A letter: significantly better than that system; *: the best mean.\n"
        "Paired t-test, level 0.05."
    )


def test_text_without_unicode(named):
    assert "1.0000*^a  0.8750*^a\n" in named.table().to_text(unicode=False)
    assert named.table().to_text(unicode=False).isascii()


def test_markdown(named):
    assert named.to_markdown() == (
        "**Means over 7 (MRR), 8 (P@1) queries**\n"
        "\n"
        "|  | System | MRR | P@1 |\n"
        "| --- | --- | ---: | ---: |\n"
        "| a | bm25 \\| x | 0.5000 | 0.0000 |\n"
        "| b | tree\\_2 \\& 50% | **1.0000**ᵃ | **0.8750**ᵃ |\n"
        "|  | oracle | 1.0000 | 0.8750 |\n"
        "\n"
        "A letter: significantly better than that system; bold: the best mean. "
        "Paired t-test, level 0.05.\n"
    )


def test_latex(named):
    lines = named.to_latex().splitlines()
    assert r"a & bm25 \textbar{} x & 0.5000 & 0.0000 \\" in lines
    wins = r"\textbf{1.0000}\textsuperscript{a} & \textbf{0.8750}\textsuperscript{a}"
    assert rf"b & tree\_2 \& 50\% & {wins} \\" in lines
    assert (
        lines.index(r"\midrule", lines.index(r"\midrule") + 1)
        == lines.index(r" & oracle & 1.0000 & 0.8750 \\") - 1
    )
    assert r"\caption{Means over 7 (MRR), 8 (P@1) queries. A letter: " in named.to_latex()
    opened = re.findall(r"\\begin\{(\w+)\}", named.to_latex())
    assert opened == re.findall(r"\\end\{(\w+)\}", named.to_latex())[::-1] == ["table", "tabular"]


def test_csv(named):
    rows = list(csv.DictReader(named.to_csv().splitlines()))
    assert [(row["system"], row["measure"]) for row in rows] == [
        (system, measure) for measure in named.measures for system in named.systems
    ]
    last = rows[-1]
    assert (last["mean"], last["queries"]) == ("0.875", "8")
    assert float(last["low"]) < 0.875 <= float(last["high"]) == 1.0
    assert last["significantly_better_than"] == "bm25 | x"
    assert rows[0]["significantly_better_than"] == ""


def test_names_with_semicolons_stay_apart():
    names = ["x;y", 'say "z"', "plain"]
    scores, data = pairs_of_documents(**dict.fromkeys(names, "0" * 8), best="1" * 8)
    rows = list(csv.DictReader(rk.compare(scores, data, "MRR").to_csv().splitlines()))
    beaten = rows[-1]["significantly_better_than"]
    assert beaten.startswith('"x;y";')
    assert list(csv.reader([beaten], delimiter=";")) == [names]


def test_without_correction_nothing_is_corrected(graded):
    scores, data = graded
    corrected, alone = (rk.compare(scores, data, "ERR", correction=c) for c in ("holm", "none"))
    assert [pair.corrected_p for pair in alone.pairs("ERR")] == [None] * 6
    assert all(pair.corrected_p >= pair.p for pair in corrected.pairs("ERR"))
    assert json.loads(alone.to_json())["pairs"][0]["corrected_p"] is None
    assert {row["corrected_p"] for row in csv.DictReader(alone.pairs_to_csv().splitlines())} == {""}


def test_csv_of_pairs(named):
    rows = list(csv.DictReader(named.pairs_to_csv().splitlines()))
    assert [row["measure"] for row in rows] == ["MRR", "P@1"]
    assert float(rows[0]["difference"]) == -0.5
    assert float(rows[0]["p"]) == named.uncorrected["MRR"][0, 1]
    assert float(rows[1]["high"]) == named.intervals["P@1"].differences[0, 1, 1]
    assert rows[1]["better"] == "tree_2 & 50%"


def test_json_has_everything_and_no_nan(named):
    def refuse(word):
        raise AssertionError(word)

    values = json.loads(named.to_json(), parse_constant=refuse)
    assert values["systems"] == ["bm25 | x", "tree_2 & 50%"]
    assert values["queries"] == {"MRR": 7, "P@1": 8}
    assert values["per_query"]["MRR"]["bm25 | x"] == [None] + [0.5] * 7
    assert values["qids"] == list(range(1, 9))
    assert (values["test"], values["correction"], values["level"]) == ("t", "holm", 0.05)
    assert values["oracle"] == {"MRR": 1.0, "P@1": 0.875}
    assert values["kendall_tau"] == [[1.0, 1.0], [1.0, 1.0]]
    assert values["intervals"]["MRR"]["tree_2 & 50%"] == [1.0, 1.0]
    (first, _) = values["pairs"]
    assert first["better"] == "tree_2 & 50%"
    assert first["corrected_p"] == SMALLEST_P


def test_json_of_measures_that_see_no_difference():
    scores, data = pairs_of_documents(a="110", b="110")
    assert json.loads(rk.compare(scores, data, "MRR,ERR").to_json())["kendall_tau"][0] == [None] * 2


def test_twins_at_the_top_are_both_the_best():
    scores, data = pairs_of_documents(a="110", b="110", c="000")
    text = str(rk.compare(scores, data, "MRR"))
    assert text.count("*") == 2 + 1


@pytest.mark.parametrize("ending", ["md", "tex", "csv", "json"])
def test_files_by_their_ending(named, tmp_path, ending):
    named.save(tmp_path / f"x.{ending}")
    names = {"md": "markdown", "tex": "latex"}
    text = getattr(named, f"to_{names.get(ending, ending)}")()
    assert (tmp_path / f"x.{ending}").read_text() == text


def test_other_endings_are_refused(named, tmp_path):
    with pytest.raises(rk.UsageError, match=r"x\.xlsx: .* end in \.md, \.tex, \.csv, \.json"):
        named.save(tmp_path / "x.xlsx")
