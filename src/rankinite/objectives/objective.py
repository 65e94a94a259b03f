"""The Objective protocol: an objective is prepared with labels, then gives gradients.

Rankers know objectives by these two classes only, and objectives know no ranker. An `Objective` is
an immutable value; its `prepare` makes `Gradients` of a data set, which hold whatever can be
computed once. Both have defaults for all that is optional, so that an objective of one's own needs
two methods: `Objective.prepare` and `Gradients.gradients`.

Most objectives have a text, ``NAME(measure, option=value)``, which command lines take and model
files store: those of the library are `NamedObjective` classes, registered by `named`.

Conventions: gradients are those of what is to be maximised, so that a positive gradient pushes a
document up; hessians are second derivatives of the cost, at least 0. Scores, gradients and hessians
have one row per output (most objectives have one) and one column per document.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankinite.core.errors import UsageError
from rankinite.core.jit import frozen
from rankinite.core.numerals import number_or_text
from rankinite.core.types import Floats, Integers, Mask
from rankinite.measures.definitions import MEASURES
from rankinite.measures.measure import Form, Measure
from rankinite.measures.scorer import source_of
from rankinite.measures.text import MeasureLike, measure_value, parse_measure
from rankinite.measures.tiers import TieredMeasure, tiers_of
from rankinite.objectives.kernels.arrays import ObjectiveMixture

if TYPE_CHECKING:
    from rankinite.objectives.pairwise import PairGradients

# A mask that selects all queries: an empty one, for which kernels look nothing up.
EVERY_QUERY = np.zeros(0, np.bool_)
# The scores to start from, of objectives with a single output that start from 0.
FROM_ZERO = frozen(np.zeros(1))


@dataclass(frozen=True)
class Targets:
    """What a ranker is to learn: labels, queries and weights.

    Attributes
    ----------
    labels
        The labels of each source; those of the data set itself under None. NaN means that the
        document has no label in this source.
    offsets
        Query q has the documents ``offsets[q]`` to ``offsets[q + 1] - 1``.
    top_grade
        The largest label that the data set can have.
    query_weight, doc_weight
        One weight per query, one per document; all 1 if None.
    seed
        For the order of documents with equal scores.
    position
        Where each document was shown, if labels are clicks that are to be corrected for it.
    """

    labels: Mapping[str | None, Floats]
    offsets: Integers
    top_grade: float
    query_weight: Floats | None = None
    doc_weight: Floats | None = None
    seed: int = 0
    position: Integers | None = None

    @property
    def n_docs(self) -> int:
        """Number of documents."""
        return int(self.offsets[-1])


class Gradients:
    """The gradients of an objective on one data set.

    Only `gradients` is required.

    Attributes
    ----------
    start
        The scores to start from, one per output; by default 0 for a single output.
    no_newton
        Why there is no Newton step; empty if there is one.
    """

    start: Floats = FROM_ZERO
    no_newton: str = ""

    def gradients(
        self, scores: Floats, round: int, out_gradient: Floats, out_hessian: Floats
    ) -> None:
        """Write gradient and hessian of every document at these scores.

        Parameters
        ----------
        scores
            One row per output, one column per document.
        round
            Number of rounds before this one.
        out_gradient
            Positive pushes a document up; it has the shape of the scores.
        out_hessian
            How fast the gradient falls when the document's score rises; at least 0.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define gradients")

    def gradients_of(
        self,
        queries: Mask,
        scores: Floats,
        round: int,
        out_gradient: Floats,
        out_hessian: Floats,
    ) -> None:
        """Write gradients of the documents of some queries, or of all if the mask is empty.

        What is written for other documents has no meaning. Override it where some queries cost
        less than all: nets need it for every step.
        """
        self.gradients(scores, round, out_gradient, out_hessian)

    def mixture(self, round: int) -> ObjectiveMixture | None:
        """Return arrays from which a net's kernel computes the gradients of a query itself.

        They must give the same bits as `gradients`. None, the default, means that there are none,
        and that `gradients_of` is called for every step.
        """
        return None

    @property
    def parts(self) -> Sequence[Gradients]:
        """The gradients of which these are a weighted sum; by default these alone."""
        return (self,)

    @property
    def pairs(self) -> PairGradients | None:
        """These gradients, if they are sums over pairs of documents; otherwise None."""
        return None

    @property
    def checkpoint_arrays(self) -> Sequence[NDArray[Any]]:
        """What gradients depend on that neither data nor parameters of the ranker tell.

        A checkpoint can be resumed only if these are the same.
        """
        return ()

    def to_arrays(self, n_rounds: int) -> Mapping[str, NDArray[Any]]:
        """Return what the gradients have learned themselves in the first rounds.

        A checkpoint holds it. Gradients that change by the round, as a function of those before,
        override this and `restore`; by default there is nothing.
        """
        return {}

    def restore(self, arrays: Mapping[str, NDArray[Any]], n_rounds: int) -> None:
        """Resume after the first rounds of a checkpoint; refuse arrays that do not fit."""


class GradientsByQuery(Gradients):
    """Gradients of which those of some queries cost less than those of all.

    A subclass defines `gradients_of`; the gradients of all documents are those of every query.
    """

    def gradients(
        self, scores: Floats, round: int, out_gradient: Floats, out_hessian: Floats
    ) -> None:
        """Write gradient and hessian of every document at these scores."""
        self.gradients_of(EVERY_QUERY, scores, round, out_gradient, out_hessian)


class Objective:
    """What a ranker is to improve.

    Only `prepare` is required. The text of an objective, which a model file stores, is its ``str``,
    or the name of its class if it does not define one.

    Attributes
    ----------
    measure
        The measure that is improved, by which validation sets are measured by default; None if
        there is none.
    no_newton
        Why there is no Newton step; empty if there is one.
    is_of_lambdas
        Whether gradients are lambdas of pairs, to which a ranker may add a regression term.
    """

    measure: Measure | TieredMeasure | None = None
    no_newton: str = ""
    is_of_lambdas: ClassVar[bool] = False

    def prepare(self, targets: Targets) -> Gradients:
        """Check the labels and compute what stays the same while scores change."""
        raise NotImplementedError(f"{type(self).__name__} does not define prepare")

    def with_options(self, *, truncation: int | None, normalise: str) -> Self:
        """Return the objective with the options of a ranker; see `Lambdas`.

        By default they are ignored.
        """
        return self

    @property
    def source(self) -> str | None:
        """The label source of the first measure; None for the data set's own labels."""
        return None if self.measure is None else tiers_of(self.measure)[0].source

    def compared(self, gradients: Gradients, targets: Targets) -> Mapping[str, PairGradients]:
        """Return by name what diagnostics compare with the first of the gradients' parts.

        Parameters
        ----------
        gradients
            What `prepare` returned.
        targets
            What it was prepared with.
        """
        return {}


class NamedObjective(Objective):
    """An objective with a text ``NAME(measure, option=value)``.

    Attributes
    ----------
    text_options
        The options that its text may have.
    text_example
        A measure for the error message if there is none.
    """

    text_options: ClassVar[tuple[str, ...]] = ()
    text_example: ClassVar[str] = "NDCG@10"

    @classmethod
    def from_call(cls, call: Call, *, truncation: int | None, normalise: str) -> Objective:
        """Return the objective of a text, with the options of a ranker."""
        measure = call.measure(cls.__name__, cls.text_example)
        options = call.options(cls.__name__, 1, cls.text_options)
        make: Callable[..., Objective] = cls
        return make(measure, **options).with_options(truncation=truncation, normalise=normalise)


Named = TypeVar("Named", bound=type[NamedObjective])

# All classes of objectives with a text, by name.
OBJECTIVES: dict[str, type[NamedObjective]] = {}


def named(kind: Named) -> Named:
    """Register a class of objectives by its name; a class decorator."""
    OBJECTIVES[kind.__name__] = kind
    return kind


CALL = re.compile(r"(?P<name>[A-Za-z_]+)\s*(?:\((?P<inside>.*)\))?", re.DOTALL)
# Equal signs inside of parentheses are not those of an option.
OPTION = re.compile(r"(?P<name>\w+)\s*=(?P<value>.*)", re.DOTALL)


@dataclass(frozen=True)
class Call:
    """A name with arguments in parentheses.

    Attributes
    ----------
    text
        The whole text.
    name
        The name, as it was written.
    inside
        The text in the parentheses; None if there are none.
    arguments
        The parts of it that commas separate.
    """

    text: str
    name: str
    inside: str | None
    arguments: Sequence[str]

    def options(self, owner: str, first: int, known: Sequence[str]) -> Mapping[str, Any]:
        """Return the arguments from the first one on as options, with numbers or texts as values.

        Parameters
        ----------
        owner
            Whose options they are, for the error message.
        first
            The number of arguments before them.
        known
            The names of options.
        """
        options: dict[str, Any] = {}
        for argument in self.arguments[first:]:
            match = OPTION.fullmatch(argument)
            name = match["name"] if match else argument
            if name not in known or name in options:
                expected = " or ".join(f"{option}=value" for option in known)
                raise UsageError(
                    f"{self.text!r}: {argument!r} is not an option of {owner}; "
                    + (f"expected {expected}, once" if known else "it has none, leave it")
                )
            options[name] = value_of(match["value"].strip() if match else "")
        return options

    def measure(self, owner: str, example: str = "NDCG@10") -> Measure | TieredMeasure:
        """Return the first argument as a measure."""
        # The whole text stands in front of each message, for the measure is only a part of it.
        if not self.arguments or not self.arguments[0]:
            raise UsageError(f"{self.text!r}: {owner} needs a measure; write {owner}({example})")
        try:
            return parse_measure(self.arguments[0])
        except UsageError as problem:
            raise UsageError(
                f"{self.text!r}: {owner} needs a measure in its parentheses; {problem}"
            ) from None


def parse_call(text: str) -> Call | None:
    """Read a name with or without parentheses; None if the text is something else."""
    match = CALL.fullmatch(text.strip())
    if match is None:
        return None
    inside = match["inside"]
    return Call(text, match["name"], inside, split(inside) if inside and inside.strip() else ())


def split(text: str) -> list[str]:
    """Return the parts of a text between commas that are not inside of parentheses.

    Examples
    --------
    >>> split("NDCG(gain=linear, empty=0)@3 > ERR, weights=(0.1, 0.2)")
    ['NDCG(gain=linear, empty=0)@3 > ERR', 'weights=(0.1, 0.2)']
    """
    parts, begin, depth = [], 0, 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append(text[begin:place].strip())
            begin = place + 1
    return [*parts, text[begin:].strip()]


def value_of(text: str) -> Any:
    """Return a number, a tuple of numbers in parentheses, or the text itself."""
    if text.startswith("(") and text.endswith(")"):
        return tuple(value_of(part) for part in split(text[1:-1]) if part)
    return number_or_text(text)


def single_measure(owner: str, measure: MeasureLike) -> Measure:
    """Return a measure that has no tiers.

    Parameters
    ----------
    owner
        Start of the error message.
    measure
        A measure as a text, a value, a class or a function of ranked labels.
    """
    try:
        value = measure_value(measure)
    except UsageError:
        if isinstance(measure, str):  # the message about a text tells more
            raise
        raise UsageError(
            f"{owner}: {measure!r} is not a measure; give one, such as 'NDCG@10'"
        ) from None
    if isinstance(value, TieredMeasure):
        raise UsageError(
            f"{owner}: {value} has several tiers; give one measure, such as {value.tiers[0]}, or "
            f"use Tiered({value}), whose lambdas are those of all tiers"
        )
    if not value.is_of_grades:
        raise UsageError(
            f"{owner}: {value} counts labels, whatever their grades, so that there is nothing to "
            "learn from it; train on another measure, such as NDCG@10"
        )
    return value


def compiled_measure(owner: str, measure: MeasureLike) -> Measure:
    """Return a measure that has a form and no tiers; see `single_measure`."""
    value = single_measure(owner, measure)
    if value.form == Form.FUNCTION:
        raise UsageError(
            f"{owner}: {value} is a function of ranked labels, of which there are only the usual "
            f"lambda gradients; give it without {owner}, or give one of the measures "
            f"{', '.join(MEASURES)}"
        )
    return value


def labels_of(owner: str, source: str | None, targets: Targets) -> Floats:
    """Return the labels of a source.

    Parameters
    ----------
    owner
        Start of the error message if there is no such source.
    source
        The name of the source; None for the data set's own labels.
    targets
        What is to be learned.
    """
    return source_of(owner, source, targets.labels)


def pair_labels(owner: str, source: str | None, targets: Targets) -> Floats:
    """Return the labels of a source for pairs: none, which is NaN, for documents of weight 0.

    So a document without weight is to pairs what a document without a label is: it keeps its
    rank, at which it is worth nothing, and makes no pairs.
    """
    labels = labels_of(owner, source, targets)
    if targets.doc_weight is None or targets.doc_weight.all():
        return labels
    return np.where(targets.doc_weight > 0.0, labels, np.nan)


def doc_weights(targets: Targets) -> Floats:
    """Return one weight per document: that of the document times that of its query."""
    weight = np.ones(targets.n_docs) if targets.doc_weight is None else targets.doc_weight
    if targets.query_weight is None:
        return weight
    return weight * np.repeat(targets.query_weight, np.diff(targets.offsets))


def read_only(array: ArrayLike, dtype: Any = np.float64) -> NDArray[Any]:
    """Return a contiguous read-only view: kernels are compiled for one kind of array."""
    return frozen(np.ascontiguousarray(array, dtype=dtype))
