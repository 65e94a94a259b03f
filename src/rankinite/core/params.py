"""Declaration of parameters: default, constraint, help text and aliases in one place.

A class decorated with `parameter_group` declares the parameters of an estimator::

    @parameter_group
    class TreeParameters:
        n_leaves: int = parameter(default=31, constraint=Whole(2), help="Number of leaves at most.")

Estimators inherit from such classes. Their ``__init__``, constraints, docstrings, flags, file keys
and hints for other tools' names all derive from the declarations, through `parameters_of`. This
module imports nothing heavy: ``--help`` reads the declarations and cannot wait for numba.
"""

from __future__ import annotations

import inspect
import math
import numbers
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, TypeVar, dataclass_transform

from rankinite.core.errors import UsageError

Group = TypeVar("Group", bound=type[Any])


class Constraint(Protocol):
    """What a parameter may be."""

    def allows(self, value: Any) -> bool:
        """Tell whether the constraint allows the value."""

    def __str__(self) -> str:
        """Return the text that follows "must be"."""


# More than any count of documents, rounds or leaves; kernels add to and multiply such numbers.
LARGEST_WHOLE = 2**31 - 1
LARGEST_SEED = 2**128 - 1


@dataclass(frozen=True)
class Whole:
    """A whole number from ``low`` to ``high``, both included."""

    low: int = 0
    high: int = LARGEST_WHOLE

    def allows(self, value: Any) -> bool:
        """Tell whether the value is a whole number in the range (True and False are not)."""
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            return False
        return self.low <= int(value) <= self.high

    def __str__(self) -> str:
        if self.high >= LARGEST_WHOLE:  # `check` says it of those that are larger
            return f"a whole number of at least {self.low}"
        return f"a whole number from {self.low} to {self.high}"


@dataclass(frozen=True)
class Real:
    """A finite number from ``low`` to ``high``; the ends are included unless they are open."""

    low: float = -math.inf
    high: float = math.inf
    low_open: bool = False
    high_open: bool = False

    def allows(self, value: Any) -> bool:
        """Tell whether the value is a finite number in the range."""
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            return False
        try:
            number = float(value)
        except OverflowError:  # a whole number beyond all floats
            return False
        above = number > self.low if self.low_open else number >= self.low
        below = number < self.high if self.high_open else number <= self.high
        return math.isfinite(number) and above and below

    def __str__(self) -> str:
        ends = []
        if math.isfinite(self.low):
            ends.append(f"{'above' if self.low_open else 'at least'} {self.low:g}")
        if math.isfinite(self.high):
            ends.append(f"{'below' if self.high_open else 'at most'} {self.high:g}")
        return "a finite number" + (", " if ends else "") + " and ".join(ends)


@dataclass(frozen=True)
class OneOf:
    """One of a few values."""

    values: Sequence[Any]

    def allows(self, value: Any) -> bool:
        """Tell whether the value is among them; 1, 1.0 and True are different values."""
        # By type as well: for Python, 1 == 1.0 == True.
        return any(type(value) is type(known) and value == known for known in self.values)

    def __str__(self) -> str:
        return "one of " + ", ".join(repr(value) for value in self.values)


LARGEST_BOUND = 1e100
MOST_SHOWN = 200


@dataclass(frozen=True)
class Bounds:
    """Two numbers of at least ``low``, the smaller first."""

    low: float = -LARGEST_BOUND

    def allows(self, value: Any) -> bool:
        """Tell whether the value is a pair of such numbers."""
        try:
            low, high = value
        except (TypeError, ValueError):
            return False
        number = Real(self.low, LARGEST_BOUND)
        return number.allows(low) and number.allows(high) and bool(low < high)

    def __str__(self) -> str:
        least = f" of at least {self.low:g}" if self.low > -LARGEST_BOUND else ""
        return f"two numbers{least}, the smaller first"


@dataclass(frozen=True)
class SourceName:
    """The name of a label source, such as a measure's text can hold."""

    def allows(self, value: Any) -> bool:
        """Tell whether a measure's text can hold the name."""
        if not isinstance(value, str):
            return False
        return value != "" and value == value.strip() and not set(value) & set("[]()>,\n")

    def __str__(self) -> str:
        return "a name without brackets, commas and >, and without spaces around it"


@dataclass(frozen=True)
class Text:
    """A text."""

    def allows(self, value: Any) -> bool:
        """Tell whether the value is a text that is not blank."""
        return isinstance(value, str) and value.strip() != ""

    def __str__(self) -> str:
        return "a text"


@dataclass(frozen=True)
class Either:
    """What either of two constraints allows."""

    first: Constraint
    second: Constraint

    def allows(self, value: Any) -> bool:
        """Tell whether the first or the second allows the value."""
        return self.first.allows(value) or self.second.allows(value)

    def __str__(self) -> str:
        return f"{self.first}, or {self.second}"


YES_OR_NO = OneOf([False, True])
SEED = Whole(0, LARGEST_SEED)


def or_none(constraint: Constraint) -> Either:
    """Return a constraint that allows None as well."""
    return Either(constraint, OneOf([None]))


def check(owner: str, name: str, value: Any, constraint: Constraint) -> None:
    """Raise a `UsageError` unless the constraint allows the value.

    Parameters
    ----------
    owner
        Class or function that has the parameter: ``LambdaMART``, ``split``.
    name, value
        Name and value of the parameter.
    constraint
        What it may be.
    """
    if constraint.allows(value):
        return
    high = _largest(constraint)
    # Other bounds are part of what is expected.
    is_large = high is not None and high >= LARGEST_WHOLE and _is_above(value, high)
    largest = f", more than {high:,}" if is_large else ""
    raise UsageError(f"{owner}: {name} must be {constraint}; got {_shown(value)}{largest}")


def _largest(constraint: Constraint) -> int | None:
    """Return the largest whole number that a constraint allows; None if it is of others."""
    if isinstance(constraint, Either):
        return _largest(constraint.first)
    return constraint.high if isinstance(constraint, Whole) else None


def _is_above(value: Any, high: int) -> bool:
    return isinstance(value, numbers.Integral) and int(value) > high


def _shown(value: Any) -> str:
    """Return a value as a message has room for it."""
    try:
        text = repr(value)
    # Objects may do anything here, and Python refuses to write the longest numbers.
    except Exception:
        return f"a {type(value).__name__}"
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """Declaration of a parameter.

    Attributes
    ----------
    name, default, annotation
        Its name, its default value, and its type as the declaration writes it.
    constraint
        What it may be; None if the estimator checks it when it is used.
    file_constraint
        What a file or a flag can set it to, where Python allows other objects, too. Without any
        constraint it cannot be set there.
    help
        What it means, in one sentence.
    details
        Further sentences for the documentation: what values mean, and what to choose.
    type_name
        What the documentation calls its type; the annotation if empty.
    aliases
        What other tools call it.
    flags
        Further names of its flag, such as ``-m``.
    is_positional
        Whether it can be given without its name.
    """

    name: str = ""
    default: Any = None
    annotation: str = ""
    constraint: Constraint | None = None
    file_constraint: Constraint | None = None
    help: str = ""
    details: str = ""
    type_name: str = ""
    aliases: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    is_positional: bool = False

    def overriding(self, inherited: Parameter) -> Parameter:
        """Return the inherited declaration with the default and all that this one says anew."""
        said = {field.name: getattr(self, field.name) for field in fields(self)}
        new = {name: value for name, value in said.items() if value or name == "default"}
        return replace(inherited, **new)


def parameter(
    *,
    default: Any,
    constraint: Constraint | None = None,
    file_constraint: Constraint | None = None,
    help: str = "",
    details: str = "",
    type_name: str = "",
    aliases: str = "",
    flags: tuple[str, ...] = (),
    kw_only: bool = True,
) -> Any:
    """Declare a parameter of a `parameter_group`; see `Parameter` for what each argument means.

    Aliases are separated by spaces. A group that inherits a parameter overrides its default by a
    plain value, as in ``n_leaves: int = 20``, and more by another `parameter`; what that leaves
    out is inherited. ``kw_only`` has the name that type checkers know from dataclasses.
    """
    return Parameter(
        default=default,
        constraint=constraint,
        file_constraint=file_constraint or constraint,
        help=help,
        details=details,
        type_name=type_name,
        aliases=tuple(aliases.split()),
        flags=flags,
        is_positional=not kw_only,
    )


# Where a group keeps its declarations: those of its body, and those with all that it inherits.
_BODY, _ALL = "_declarations_of_body", "_declarations"


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(parameter,))
def parameter_group(group: Group) -> Group:
    """Turn the annotated attributes of a class into parameters of its ``__init__``.

    Positional parameters come first; then the order is that of the classes in the method
    resolution order, where an overridden parameter keeps its place. ``__init__`` only stores
    values, as scikit-learn requires.

    A group may have ``presets``, which are other defaults by name; ``__init__`` then also takes the
    name of one as ``preset``.
    """
    body = {}
    for name, annotation in inspect.get_annotations(group).items():
        if str(annotation).startswith("ClassVar"):
            continue
        if str(annotation).startswith("InitVar"):
            delattr(group, name)  # it is there for type checkers: see `_initialiser`
            continue
        value = vars(group)[name]
        declared = value if isinstance(value, Parameter) else Parameter(default=value)
        body[name] = replace(declared, name=name, annotation=str(annotation))
        # As a class attribute the default would hide that an object was never initialised.
        delattr(group, name)
    setattr(group, _BODY, body)
    parameters = _with_inherited(group)
    setattr(group, _ALL, parameters)
    group.constraints = {
        name: declared.constraint
        for name, declared in parameters.items()
        if declared.constraint is not None
    }
    group.__init__ = _initialiser(group, list(parameters.values()))
    return group


def parameters_of(estimator: type[Any]) -> dict[str, Parameter]:
    """Return the declared parameters of an estimator by name; none if it declares none."""
    return dict(getattr(estimator, _ALL, {}))


def preset_of(estimator: type[Any], name: str | None) -> Mapping[str, Any]:
    """Return what a preset of an estimator sets, by the name of the preset; nothing if None."""
    if name is None:
        return {}
    presets: Mapping[str, Mapping[str, Any]] = getattr(estimator, "presets", {})
    check(estimator.__name__.removesuffix("Parameters"), "preset", name, OneOf(list(presets)))
    return presets[name]


def file_parameters_of(estimator: type[Any]) -> dict[str, Parameter]:
    """Return the parameters that files and flags can set, by name; a base is none of them."""
    return {
        name: declared
        for name, declared in parameters_of(estimator).items()
        if declared.file_constraint is not None
    }


def _with_inherited(group: type[Any]) -> dict[str, Parameter]:
    lineage = [base for base in group.__mro__ if _BODY in vars(base)]
    # From the most distant class on, so that each overrides what those before it declared.
    parameters: dict[str, Parameter] = {}
    place: dict[str, int] = {}
    for distance, base in reversed(list(enumerate(lineage))):
        for name, declared in vars(base)[_BODY].items():
            place.setdefault(name, distance)
            inherited = parameters.get(name)
            parameters[name] = declared if inherited is None else declared.overriding(inherited)
    # Python wants positional parameters first. Sorting is stable: within a class the order is that
    # of its body.
    order = sorted(parameters, key=lambda name: (not parameters[name].is_positional, place[name]))
    return {name: parameters[name] for name in order}


def _initialiser(group: type[Any], parameters: Sequence[Parameter]) -> Callable[..., None]:
    own_object = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    signature = inspect.Signature([own_object, *map(_argument, parameters)])

    def __init__(self: Any, *values: Any, **named: Any) -> None:  # noqa: N807
        # No parameter of its own: a clone gets the values that came from it, and so does a file.
        preset = preset_of(group, named.pop("preset", None))
        bound = signature.bind(self, *values, **named)
        bound.arguments = {**preset, **bound.arguments}
        bound.apply_defaults()
        # As they are: scikit-learn's clone compares them by identity, so fit does the checking.
        for name, value in list(bound.arguments.items())[1:]:
            setattr(self, name, value)

    # scikit-learn reads the names of parameters from here.
    __init__.__signature__ = signature  # type: ignore[attr-defined]
    __init__.__qualname__ = f"{group.__qualname__}.__init__"
    return __init__


def _argument(declared: Parameter) -> inspect.Parameter:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(
        declared.name,
        kind if declared.is_positional else inspect.Parameter.KEYWORD_ONLY,
        default=declared.default,
        annotation=declared.annotation,
    )


# Sections of numpydoc, in its order: parameters stand before the first of the others.
_SECTION = re.compile(
    r"^(Parameters|Attributes|Methods|Notes|References|Examples)\n-+$", re.MULTILINE
)
_DOC_WIDTH = 96


def with_parameters(docstring: str, parameters: Mapping[str, Parameter]) -> str:
    """Return the docstring of a class with a section Parameters, unless it has one already."""
    text = inspect.cleandoc(docstring)
    other = _SECTION.search(text)
    if not parameters or (other is not None and other[1] == "Parameters"):
        return docstring
    section = "\n".join(["Parameters", "----------", *map(_documented, parameters.values())])
    end = len(text) if other is None else other.start()
    return f"{text[:end].rstrip()}\n\n{section}\n\n{text[end:]}".rstrip() + "\n"


def _documented(declared: Parameter) -> str:
    text = " ".join(f"{declared.help} {declared.details}".split())
    lines = textwrap.wrap(text, _DOC_WIDTH, break_on_hyphens=False, break_long_words=False)
    head = f"{declared.name} : {_type_name(declared)}, default={declared.default!r}"
    return "\n    ".join([head, *lines])


def _type_name(declared: Parameter) -> str:
    constraint = declared.constraint
    if isinstance(constraint, OneOf) and constraint != YES_OR_NO:
        return "{" + ", ".join(map(repr, constraint.values)) + "}"
    return declared.type_name or declared.annotation.replace(" | ", " or ")
