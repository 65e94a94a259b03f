"""Numbers and names as the tables of a run write them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rankinite.evaluation.evaluate import Evaluation

NOTHING = "-"


def number(value: float) -> str:
    """Return a mean as a text; a dash if there is none."""
    return NOTHING if value != value else f"{value:.4f}"


def p_text(p: float | None) -> str:
    """Return a p-value as a text; nothing if there is none.

    >>> p_text(0.0123), p_text(1e-9), p_text(None)
    ('0.012', '<0.001', '')
    """
    if p is None:
        return ""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def p_in_words(p: float) -> str:
    """Return a p-value as part of a sentence.

    >>> p_in_words(0.0123), p_in_words(1e-9)
    ('p = 0.012', 'p < 0.001')
    """
    text = p_text(p)
    return f"p < {text[1:]}" if text.startswith("<") else f"p = {text}"


def means_of(one: Evaluation, measures: Sequence[str]) -> tuple[str, ...]:
    """Return the means of measures as texts; a dash where no query counts."""
    return tuple(number(one.mean.get(measure, float("nan"))) for measure in measures)


def short_form(names: Sequence[str]) -> str:
    """Return names with ranges for three and more that are numbered one after the other.

    >>> short_form(["M1", "M2", "M3", "M4", "M11", "M12", "net"])
    'M1-M4, M11, M12, net'
    """
    shown = []
    for run in _runs(names):
        shown += [f"{run[0]}-{run[-1]}"] if len(run) > 2 else run
    return ", ".join(shown)


def _runs(names: Sequence[str]) -> Iterator[list[str]]:
    """Go through runs of names that end in numbers one after the other."""
    run: list[str] = []
    for name in names:
        if run and not _follows(run[-1], name):
            yield run
            run = []
        run.append(name)
    if run:
        yield run


def _follows(name: str, other: str) -> bool:
    found = re.fullmatch(r"(.*?)(0|[1-9][0-9]*)", name)
    return found is not None and other == f"{found[1]}{int(found[2]) + 1}"
