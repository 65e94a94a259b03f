"""Descriptions of data sets against numpy and counting by hand."""

import numpy as np
import pytest

from rankinite.data.describe import describe, draw_figures
from rankinite.data.kernels import COLUMNS_A_BLOCK, count_values
from rankinite.data.ranking_data import RankingData

PNG = b"\x89PNG\r\n\x1a\n"


def naive_counts(X):
    """Count with numpy: equal numbers are one value, NaN is none."""
    distinct = [len(np.unique(column[~np.isnan(column)])) for column in X.T]
    return distinct, np.isnan(X).sum(axis=0).tolist()


@pytest.mark.kernel
@pytest.mark.parametrize("n_columns", [1, COLUMNS_A_BLOCK - 1, COLUMNS_A_BLOCK, 35])
@pytest.mark.parametrize("n_rows", [1, 2, 50])
def test_values_are_counted_as_numpy_does(n_rows, n_columns):
    rng = np.random.default_rng(n_rows * 100 + n_columns)
    choice = np.array([0.0, -0.0, np.nan, 1.0, -1.0, 1e-45, 3e38, 0.5, 0.25], np.float32)
    base = np.where(
        rng.random((n_rows, n_columns)) < 0.5,
        rng.choice(choice, (n_rows, n_columns)),
        rng.normal(size=(n_rows, n_columns)).astype(np.float32),
    ).astype(np.float32)
    rows = rng.integers(n_rows, size=n_rows)
    distinct, missing = np.empty(n_columns, np.int64), np.empty(n_columns, np.int64)
    n_blocks = -(-n_columns // COLUMNS_A_BLOCK)
    count_values(0, n_blocks, base.view(np.uint32), rows, distinct, missing)
    assert (distinct.tolist(), missing.tolist()) == naive_counts(base[rows])


def test_a_part_describes_itself_and_not_the_whole():
    data = RankingData(
        X=[[1, 0], [2, np.nan], [2, 0], [3, 0]],
        y=[0, 2, 0, 0],
        qid=["a", "a", "b", "b"],
        labels={"clicks": [0.5, np.nan, np.nan, 1]},
        top_grade=4,
    )
    whole, part = describe(data), describe(data[[1]])
    assert whole.grades == {0.0: 3, 2.0: 1}
    assert whole.distinct_values.tolist() == [3, 1]
    assert (whole.without_relevant, whole.single_label, whole.features_in_use) == (1, 1, 1)
    assert whole.missing == 1 / 8
    assert whole.sources == {"clicks": 2}
    assert part.grades == {0.0: 2}
    assert part.distinct_values.tolist() == [2, 1]
    assert part.sources == {"clicks": 1}
    assert part.top_grade == 4


def test_decimal_labels_have_no_table_of_grades():
    labels = np.linspace(0, 1, 30)
    data = RankingData(np.zeros((30, 1)), labels, group_sizes=[30])
    assert describe(data).grades == {}


@pytest.mark.parametrize("n_sets", [1, 3])
def test_figures_are_drawn_even_of_the_smallest_data(n_sets, tmp_path):
    data = RankingData([[1.0]], [0], [1])
    sets = {f"set {k}": describe(data) for k in range(n_sets)}
    paths = draw_figures(sets, tmp_path / "new" / "folder")
    assert [path.name for path in paths] == ["documents-per-query.png", "values-per-feature.png"]
    assert all(path.read_bytes().startswith(PNG) for path in paths)
