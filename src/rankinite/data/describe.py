"""Statistics of a data set: Tables 2 and 3, and Figures 1 and 2, of Challenge, Sec. 4."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankinite.core.figures import save_figure, subplots
from rankinite.core.format import plain_number
from rankinite.core.threads import parallel_for
from rankinite.core.types import Floats, Integers
from rankinite.data.kernels import COLUMNS_A_BLOCK, count_values
from rankinite.data.ranking_data import RankingData, rows_of

FIGURES = ("documents-per-query.png", "values-per-feature.png")
MOST_GRADES = 20  # more labels are real numbers, of which a table tells nothing


@dataclass(frozen=True)
class Description:
    """Statistics of a data set.

    Attributes
    ----------
    n_unlabelled
        Number of documents without a label in ``y``, which have one in another source.
    grades
        Number of documents by label; empty if there are too many labels.
    sizes
        Number of documents of each query.
    distinct_values
        Number of distinct values of each feature, without missing values.
    missing
        Share of missing values.
    without_relevant, single_label
        Number of queries without a label above 0, and of queries without two different labels;
        documents without a label do not count.
    sources
        Number of labelled documents of each further label source.
    categories
        Names of the categorical features.
    """

    n_queries: int
    n_docs: int
    n_unlabelled: int
    n_features: int
    top_grade: float
    grades: Mapping[float, int]
    sizes: Integers
    distinct_values: Integers
    missing: float
    without_relevant: int
    single_label: int
    sources: Mapping[str, int]
    categories: tuple[str, ...] = ()

    @property
    def features_in_use(self) -> int:
        """Number of features with more than one value."""
        return int((self.distinct_values > 1).sum())

    def as_json(self) -> dict[str, Any]:
        """Return plain values for a JSON file."""
        sizes, queries = np.unique(self.sizes, return_counts=True)
        return {
            "queries": self.n_queries,
            "documents": self.n_docs,
            "documents_without_label": self.n_unlabelled,
            "features": self.n_features,
            "features_in_use": self.features_in_use,
            "categorical_features": list(self.categories),
            "top_grade": self.top_grade,
            "documents_per_query": {
                "min": int(self.sizes.min()),
                "mean": float(self.sizes.mean()),
                "max": int(self.sizes.max()),
                "queries_by_documents": {
                    str(size): count
                    for size, count in zip(sizes.tolist(), queries.tolist(), strict=True)
                },
            },
            "grades": {plain_number(grade): count for grade, count in self.grades.items()},
            "distinct_values_per_feature": self.distinct_values.tolist(),
            "missing": self.missing,
            "queries_without_relevant": self.without_relevant,
            "queries_with_one_label": self.single_label,
            "label_sources": dict(self.sources),
        }


def describe(data: RankingData) -> Description:
    """Return the statistics of a data set."""
    data = data.dense("describe")
    absent = np.isnan(data.y)
    labels, counts = np.unique(data.y[~absent], return_counts=True)
    # Documents without a label are neither: -inf and inf leave the others' bounds as they are.
    highest = np.maximum.reduceat(np.where(absent, -np.inf, data.y), data.offsets[:-1])
    lowest = np.minimum.reduceat(np.where(absent, np.inf, data.y), data.offsets[:-1])
    distinct = np.zeros(data.n_features, np.int64)
    missing = np.zeros(data.n_features, np.int64)
    # Seen as bits, values are equal if they are the same number, and a hash set can hold them.
    arguments = data.matrix.view(np.uint32), rows_of(data), distinct, missing
    parallel_for(count_values, -(-data.n_features // COLUMNS_A_BLOCK), *arguments)
    return Description(
        n_queries=data.n_queries,
        n_docs=data.n_docs,
        n_unlabelled=int(absent.sum()),
        n_features=data.n_features,
        top_grade=data.top_grade,
        grades=dict(zip(labels.tolist(), counts.tolist(), strict=True))
        if len(labels) <= MOST_GRADES
        else {},
        sizes=data.sizes,
        distinct_values=distinct,
        missing=float(missing.sum() / (data.n_docs * data.n_features)),
        without_relevant=int((highest <= 0).sum()),
        single_label=int((highest <= lowest).sum()),
        sources={name: int((~np.isnan(v)).sum()) for name, v in data.labels.items()},
        categories=tuple(data.categories),
    )


def draw_figures(sets: Mapping[str, Description], folder: str | Path) -> list[Path]:
    """Draw documents per query (Figure 1) and values per feature (Figure 2) as PNG files.

    Parameters
    ----------
    sets
        Descriptions by name, one line each.
    folder
        Folder of the files; it is made if it does not exist.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    sizes = {name: description.sizes for name, description in sets.items()}
    values = {name: description.distinct_values for name, description in sets.items()}
    longest = max(int(column.max()) for column in sizes.values())
    most = max(int(column.max()) for column in values.values())
    width = max(1, -(-longest // 60))  # about 60 bars
    paths = [target / name for name in FIGURES]
    _histogram(
        paths[0],
        sizes,
        np.arange(0.5, longest + width + 0.5, width),
        ("Number of documents", "Number of queries", "Documents per query"),
    )
    _histogram(
        paths[1],
        values,
        # Bars of their own for constant and binary features, and then of equal logarithmic width.
        np.concatenate([[0.5, 1.5, 2.5], np.geomspace(4.5, max(most, 5) * 1.01, 24)]),
        ("Number of different values", "Number of features", "Different values per feature"),
        logarithmic=True,
    )
    return paths


def _histogram(
    path: Path,
    columns: Mapping[str, Integers],
    edges: Floats,
    labels: tuple[str, str, str],
    *,
    logarithmic: bool = False,
) -> None:
    from matplotlib.ticker import MaxNLocator

    figure, (axes,) = subplots()
    for name, values in columns.items():
        counts, _ = np.histogram(values, edges)
        axes.stairs(counts, edges, fill=len(columns) == 1, linewidth=1.5, label=name)
    axes.set(xlabel=labels[0], ylabel=labels[1], title=labels[2])
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    if logarithmic:
        axes.set_xscale("log")
    if len(columns) > 1:
        axes.legend()
    save_figure(figure, path)
