"""Tables: letters of systems, marks of cells, and what stands around them."""

from __future__ import annotations

import csv

import rankinite as rk
from rankinite.evaluation.tables import Cell, Summary, Table, csv_text, letters_for
from tests.evaluation.cases import pairs_of_documents

MANY = 30


def test_plain_tables_have_no_legend():
    table = Table("Sizes", ("Set", "Queries"), (("a|b", "1,000"), ("c", "20")))
    assert table.to_text() == "Sizes\nSet  Queries\na|b    1,000\nc         20"
    assert table.to_markdown() == (
        "**Sizes**\n\n| Set | Queries |\n| --- | ---: |\n| a\\|b | 1,000 |\n| c | 20 |\n"
    )
    assert r"\caption{Sizes.}" in table.to_latex()


def test_columns_of_texts_are_aligned_to_the_left():
    table = Table("Members", ("Name", "Kind", "Mean"), (("1", "net", "0.5"), ("22", "MART", "-")))
    assert table.to_text() == "Members\nName  Kind  Mean\n1     net    0.5\n22    MART     -"


def test_a_part_keeps_the_labels():
    row = ("a", "bm25", Cell("0.5", "b"), Cell("0.7", best=True))
    table = Table("Means", ("", "System", "MRR", "ERR"), [row], "By a test.", n_labels=2)
    assert list(table.part(3, 4).columns) == ["", "System", "ERR"]
    assert table.part(3, 4).lines() == ["Means", "   System  ERR", "a  bm25    0.7*"]
    assert table.footer()[-1] == "By a test."


def test_letters_leave_out_q_and_double_when_they_run_out():
    assert letters_for(25) == tuple("abcdefghijklmnoprstuvwxyz")
    assert letters_for(26)[:2] == ("aa", "ab")
    assert letters_for(26)[25] == "ba"
    assert len(set(letters_for(700))) == 700
    marks = {f"s{k:02}": "1" * k + "0" * (MANY - k) for k in range(MANY)}
    scores, data = pairs_of_documents(**marks)
    comparison = rk.compare(scores, data, "MRR", correction="none", resamples=1)
    table = comparison.table()
    assert table.rows[-2][0] == letters_for(MANY)[-1]
    beaten = comparison.better_than("MRR", "s29")
    assert table.rows[-2][2].letters.count(",") == len(beaten) - 1
    assert "ᵃᵃ,ᵃᵇ," in str(comparison)


def test_cells_that_a_spreadsheet_would_compute_are_texts():
    cells = ["=1+1", "+cmd", "-a", "@x", "\t=1", "\r=1", " =1", "\uff1d1", "-1", "+2.5e-3", "a", ""]
    line = csv_text(cells, []).rstrip("\n")
    assert next(csv.reader([line])) == [
        "'=1+1", "'+cmd", "'-a", "'@x", "'\t=1", r"\r=1", "' =1", "'\uff1d1",
        "-1", "+2.5e-3", "a", "",
    ]  # fmt: skip


def test_names_mean_nothing_to_markdown_and_latex():
    table = Table("a\x1b]0;x\x07", ["[b]", "*c*"], [["[d]", "x\ny"], ["*", "$e$"]], note="<f>")
    markdown = table.to_markdown()
    assert r"**a\\x1b\]0;x\\x07**" in markdown
    assert r"| \[d\] | x\\ny |" in markdown
    assert r"| \* | \$e\$ |" in markdown
    assert r"\<f\>" in markdown
    assert r"{[}d] & x\textbackslash{}ny \\" in table.to_latex()
    assert table.to_text().splitlines()[0] == r"a\x1b]0;x\x07"
    summary = Summary("s", (), ("# a", "1. b", "-c", "d <e>"))
    assert summary.to_markdown().split("\n")[:4] == ["- \\# a", "- 1\\. b", "- \\-c", "- d \\<e\\>"]
