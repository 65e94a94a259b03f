"""Models against models: how alike they rank, and which differences are significant."""

from __future__ import annotations

from dataclasses import dataclass

from rankinite.evaluation.comparison import Comparison
from rankinite.runs.ensemble_comparison import LEVEL
from rankinite.runs.tables import NOTHING, p_text
from rankinite.stats.kendall import RankCorrelation

# Shades of the lowest and the highest tau: dark letters stay readable on the latter.
LIGHTEST, DARKEST = 0.03, 0.6
# A tau from which on two models rank alike.
ALIKE = 0.995


@dataclass(frozen=True)
class Cell:
    """A number, and how it is shown.

    Attributes
    ----------
    text
        The number.
    kind
        ``"self"`` on the diagonal; ``"better"`` or ``"worse"`` for a significant difference.
    shade
        Of a heat map.
    """

    text: str
    kind: str = ""
    shade: float = 0.0


@dataclass(frozen=True)
class Matrix:
    """A number for every two systems; rows have the names of their systems."""

    names: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]

    @property
    def n_pairs(self) -> int:
        """How many pairs there are."""
        return len(self.names) * (len(self.names) - 1) // 2


def heat_map(likeness: RankCorrelation) -> Matrix | None:
    """Return how alike every two members rank; None for a single member."""
    names, tau = likeness.names, likeness.tau.tolist()
    if len(names) < 2:
        return None
    known = [tau[i][j] for i in range(len(names)) for j in range(i) if tau[i][j] == tau[i][j]]
    # Models that rank alike, such as one and the same with scores on another scale, would leave no
    # shades for the differences of the others.
    low, high = min(known, default=0.0), max((v for v in known if v < ALIKE), default=1.0)
    rows = tuple(
        (name, tuple(_heat_cell(tau[i][j], low, high, i == j) for j in range(len(names))))
        for i, name in enumerate(names)
    )
    return Matrix(names, rows)


def _heat_cell(value: float, low: float, high: float, is_diagonal: bool) -> Cell:
    if is_diagonal:
        return Cell("", "self")
    if value != value:
        return Cell(NOTHING)
    share = min((value - low) / (high - low), 1.0) if high > low else 0.0
    return Cell(f"{value:.2f}", "", round(LIGHTEST + share * (DARKEST - LIGHTEST), 3))


def p_matrices(compared: Comparison | None) -> dict[str, Matrix]:
    """Return corrected p-values by measure; nothing where there is nothing to test."""
    if compared is None:
        return {}
    return {measure: _p_matrix(compared, measure) for measure in compared.measures}


def _p_matrix(compared: Comparison, measure: str) -> Matrix:
    systems = compared.systems
    rows = tuple(
        (name, tuple(_p_cell(compared, measure, i, j) for j in range(len(systems))))
        for i, name in enumerate(systems)
    )
    return Matrix(systems, rows)


def _p_cell(compared: Comparison, measure: str, i: int, j: int) -> Cell:
    if i == j:
        return Cell("", "self")
    p = float(compared.p_values[measure][i, j])
    difference = float(compared.differences[measure][i, j])
    if p > LEVEL or difference == 0:
        return Cell(_short_p(p))
    return Cell(_short_p(p), "better" if difference > 0 else "worse")


def _short_p(p: float) -> str:
    """Return a p-value without the 0 before the point, of which a matrix would have hundreds.

    >>> _short_p(0.25), _short_p(1e-5), _short_p(0.9999)
    ('.250', '<.001', '1')
    """
    text = p_text(p)
    return "1" if text == "1.000" else text.replace("0.", ".", 1)
