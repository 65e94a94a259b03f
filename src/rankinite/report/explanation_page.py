"""The page of a query: its documents, why one is above another, and what would swap them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankinite.core.format import number_text, plain_number, signed_text
from rankinite.core.types import Integers
from rankinite.explanation.explain import Contribution, Document, Explanation, Pair
from rankinite.report.charts import Scale, coordinate
from rankinite.report.page import page_of

TEMPLATE = "explanation.html.j2"
SECTIONS = {
    "pair": "Why one is above the other",
    "swaps": "What would swap them",
    "documents": "Documents",
    "orders": "Both orders",
}
MOST_BARS = 10
MOST_SWAPS = 12
MOST_DOCUMENTS = 50
MOST_LINES = 30
TOP_FEATURES = 3


@dataclass(frozen=True)
class Bar:
    """A step of a waterfall: where it begins and how wide it is, in percent."""

    label: str
    values: str
    amount: str
    left: float
    width: float
    kind: str


@dataclass(frozen=True)
class Line:
    """A document in two orders: its ranks, its label, and the line between its places."""

    name: str
    grade: str
    before: str
    after: str
    path: str
    kind: str


@dataclass(frozen=True)
class Against:
    """Another order of the documents.

    Attributes
    ----------
    title
        What it is the order of.
    ranks
        The rank of each document by it, in the order of the data.
    value
        The measure of it, if it is that of another model.
    """

    title: str
    ranks: Integers
    value: float | None = None


def explanation_html(
    explanation: Explanation,
    pair: Pair | None,
    *,
    measure: str = "NDCG@10",
    against: Explanation | None = None,
    title: str = "",
    against_title: str = "the other model",
) -> str:
    """Return the page of a query: one HTML file that needs no network.

    Equal explanations give equal bytes.

    Parameters
    ----------
    explanation
        The explanation of a single query.
    pair
        Two of its documents; None if there is only one document.
    measure
        The measure that is told.
    against
        The same query by another model, whose order stands beside that of this one. Without, it is
        the order by the labels.
    title, against_title
        Names of the models.
    """
    return page_of(TEMPLATE, _content(explanation, pair, measure, against, title, against_title))


def _content(
    explanation: Explanation,
    pair: Pair | None,
    measure: str,
    against: Explanation | None,
    title: str,
    against_title: str,
) -> dict[str, Any]:
    documents = explanation.documents(TOP_FEATURES)
    other = _other_order(explanation, measure, against, against_title)
    present = {
        "pair": pair is not None,
        "swaps": pair is not None and bool(pair.swaps),
        "orders": other is not None,
    }
    value = explanation.measured(measure)[0]
    return {
        "sections": {name: text for name, text in SECTIONS.items() if present.get(name, True)},
        "qid": str(explanation.data.qids[0]),
        "model": title or type(explanation.model).__name__,
        "explained": explanation.attribution.explained,
        "notes": explanation.attribution.notes,
        "measure": measure,
        "value": None if value is None else number_text(value),
        "expected": number_text(float(explanation.expected.mean())),
        "pair": pair,
        "pair_sentences": () if pair is None else pair_in_words(pair),
        "waterfall": () if pair is None else waterfall_of(pair),
        "swaps": () if pair is None else swap_rows(pair)[:MOST_SWAPS],
        "n_more_swaps": 0 if pair is None else max(0, len(swap_rows(pair)) - MOST_SWAPS),
        "documents": [document_row(doc, explanation, other) for doc in documents[:MOST_DOCUMENTS]],
        "n_documents": len(documents),
        "has_ids": explanation.data.doc_ids is not None,
        "described": described,
        "other": other,
        "lines": () if other is None else _lines(documents[:MOST_LINES], explanation, other),
        "shown_lines": min(MOST_LINES, len(documents)),
        "chosen": set() if pair is None else {pair.upper.rank, pair.lower.rank},
    }


def _other_order(
    explanation: Explanation, measure: str, against: Explanation | None, title: str
) -> Against | None:
    if against is not None:
        return Against(title, against.ranks, against.measured(measure)[0])
    labels = explanation.data.y
    if np.isnan(labels).all():
        return None
    # Documents of equal labels stay in the order of the model: no line crosses for nothing.
    order = np.lexsort((explanation.ranks, -np.nan_to_num(labels, nan=-1.0)))
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(1, len(order) + 1)
    return Against("the labels", ranks)


def described(doc: Document) -> str:
    """Return the name, the rank and the grade of a document.

    >>> described(Document(0, 3, "d7", 1.0, 0.5)), described(Document(0, 3, None, None, 0.5))
    ('d7 (rank 3, grade 1)', '#3')
    """
    parts = [] if doc.doc_id is None else [f"rank {doc.rank}"]
    parts += [] if doc.label is None else [f"grade {plain_number(doc.label)}"]
    return f"{doc.name} ({', '.join(parts)})" if parts else doc.name


def pair_in_words(pair: Pair) -> tuple[str, ...]:
    """Return what a pair comes down to, in sentences."""
    sentences = [f"{pair.upper.name} is above {pair.lower.name} by {number_text(pair.difference)}."]
    if pair.difference == 0:
        sentences = [f"{pair.upper.name} and {pair.lower.name} have equal scores."]
    if pair.deciding:
        *others, last = pair.deciding
        names = f"{', '.join(others)} and {last}" if others else last
        verb = "decide" if others else "decides"
        sentences.append(f"{names} {verb}: without, the order would be the other one.")
    if pair.gain is not None:
        word = "gain" if pair.gain >= 0 else "lose"
        amount = number_text(abs(pair.gain))
        change = f"would {word} {amount}" if round(abs(pair.gain), 4) else "would stay as it is"
        sentences.append(f"If both changed places, {pair.measure} {change}.")
    return tuple(sentences)


def waterfall_of(pair: Pair) -> tuple[Bar, ...]:
    """Return the steps from 0 to the difference of a pair, the largest contributions first."""
    shown, rest = pair.contributions[:MOST_BARS], pair.contributions[MOST_BARS:]
    steps = [(row.name, values_text(row), row.amount) for row in shown]
    if rest:
        text = f"{len(rest)} other features" if len(rest) > 1 else "1 other feature"
        steps.append((text, "", sum(row.amount for row in rest)))
    ends = np.concatenate([[0.0], np.cumsum([amount for *_, amount in steps])])
    scale = Scale.around([*ends.tolist(), pair.difference])
    bars = []
    for (label, values, amount), start, end in zip(steps, ends, ends[1:], strict=False):
        bars.append(_bar(scale, label, values, amount, (float(start), float(end))))
    total = _bar(scale, "Difference", "", pair.difference, (0.0, pair.difference))
    return (*bars, Bar(total.label, "", total.amount, total.left, total.width, "total"))


def _bar(scale: Scale, label: str, values: str, amount: float, ends: tuple[float, float]) -> Bar:
    left, right = sorted(scale.place(end) for end in ends)
    kind = "win" if amount >= 0 else "loss"
    return Bar(label, values, signed_text(amount), left, round(right - left, 2), kind)


def values_text(row: Contribution) -> str:
    """Return the values of a feature: that of the upper document, then that of the lower one."""
    return " / ".join(value_text(value) for value in row.values)


def value_text(value: float | str | None) -> str:
    """Return the value of a feature as people read it.

    >>> value_text(None), value_text("red"), value_text(0.123456789), value_text(12.0)
    ('missing', 'red', '0.123457', '12')
    """
    if value is None:
        return "missing"
    return value if isinstance(value, str) else f"{value:.6g}"


def swap_rows(pair: Pair) -> list[tuple[str, str, str, str, str]]:
    """Return the changes that swap a pair: document, feature, from, to, and deviations."""
    names = {"upper": pair.upper.name, "lower": pair.lower.name}
    return [
        (
            names[swap.document],
            swap.feature,
            value_text(swap.present),
            changed_text(swap.present, swap.changed),
            "" if swap.deviations is None else f"{swap.deviations:.2g}",
        )
        for swap in pair.swaps
    ]


def changed_text(present: float | str | None, changed: float | str | None) -> str:
    """Return a changed value with as many digits as tell it from the present one.

    >>> changed_text(0.5, 0.50000006), changed_text(0.5, 2.0), changed_text(1.0, None)
    ('0.5000001', '2', 'missing')
    """
    if changed is None or isinstance(changed, str):
        return value_text(changed)
    # Nine digits tell any two 32-bit numbers apart.
    for digits in (6, 7, 8, 9):
        text = f"{changed:.{digits}g}"
        if not isinstance(present, float) or text != f"{present:.{digits}g}":
            return text
    return repr(changed)


def document_row(
    doc: Document, explanation: Explanation, other: Against | None
) -> Mapping[str, Any]:
    """Return what the table says of a document."""
    return {
        "rank": doc.rank,
        "other_rank": "" if other is None else int(other.ranks[doc.number]),
        "name": doc.name,
        "grade": "" if doc.label is None else plain_number(doc.label),
        "shade": _shade(doc, explanation),
        "score": number_text(doc.score),
        "top": [
            (row.name, values_text(row), signed_text(row.amount), row.amount >= 0)
            for row in doc.contributions
        ],
    }


def _shade(doc: Document, explanation: Explanation) -> float:
    top = explanation.data.top_grade
    return 0.0 if doc.label is None or top <= 0 else round(0.5 * min(doc.label / top, 1.0), 3)


def _lines(
    documents: Sequence[Document], explanation: Explanation, other: Against
) -> tuple[Line, ...]:
    """Return the lines from the places of documents in the other order to those in this one."""
    n = len(documents)
    lines = []
    for doc in documents:
        before = int(other.ranks[doc.number])
        # Documents from further down come in at the lower edge.
        start, end = min(before, n + 0.5), doc.rank
        y = [coordinate(100 * (place - 0.5) / n) for place in (start, end)]
        kind = "up" if before > doc.rank else "down" if before < doc.rank else ""
        lines.append(
            Line(
                doc.name,
                "" if doc.label is None else plain_number(doc.label),
                str(before),
                str(doc.rank),
                f"M0 {y[0]}L100 {y[1]}",
                kind,
            )
        )
    return tuple(lines)
