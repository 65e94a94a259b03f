"""Options that several commands share, as groups that a command asks for by type."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast

import typer

from rankinite.cli.terminal import Terminal
from rankinite.core.errors import DataError, FileFormatError, UsageError
from rankinite.core.format import some_of
from rankinite.core.params import (
    YES_OR_NO,
    Bounds,
    Constraint,
    Either,
    OneOf,
    Parameter,
    Real,
    Whole,
)
from rankinite.data.formats import FormatName, format_of
from rankinite.rankers.parameters import RANKER_PARAMETERS, LayerSizes, file_parameters

# The declarations of one parameter, by ranker.
Declarations = Mapping[str, Parameter]


def _whole(text: str) -> int | str:
    """Return a whole number if the text is one; the ranker checks other texts."""
    try:
        return int(text)
    except ValueError:
        return text


def _wholes(text: str) -> int | list[int] | str:
    """Return a whole number, or several that commas separate; the ranker checks other texts."""
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        return text
    return numbers[0] if len(numbers) == 1 else numbers


def _numbers(text: str) -> list[float] | str:
    """Return numbers that commas separate; the ranker checks other texts."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        return text


def _value_type(constraint: Constraint | None) -> tuple[Any, dict[str, Any]]:
    """Return the type of a flag's value, and how to parse it where typer does not know."""
    if isinstance(constraint, LayerSizes):
        return Any, {"parser": _wholes, "metavar": "<int[,int]>"}
    if isinstance(constraint, Bounds):
        return Any, {"parser": _numbers, "metavar": "<float,float>"}
    if isinstance(constraint, Either) and isinstance(constraint.first, Whole):
        other = str(constraint.second).removeprefix("one of ").strip("'").lower()
        return Any, {"parser": _whole, "metavar": f"<int|{other}>"}
    if isinstance(constraint, Whole):
        return int | None, {}
    if isinstance(constraint, Real):
        return float | None, {}
    return (bool if constraint == YES_OR_NO else str) | None, {}


def _option(name: str, declarations: Declarations) -> inspect.Parameter:
    """Return the flag of a parameter as an argument of a command."""
    first = next(iter(declarations.values()))
    value_type, settings = _value_type(first.file_constraint)
    # With further names typer does not make the first by itself.
    names = [f"--{name.replace('_', '-')}", *first.flags] if first.flags else []
    # Brackets would be markup.
    text = _help(declarations).replace("[", "\\[")
    option = typer.Option(*names, rich_help_panel=_panel(declarations), help=text, **settings)
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=None, annotation=Annotated[value_type, option])


def _panel(declarations: Declarations) -> str:
    if len(declarations) == len(RANKER_PARAMETERS):
        return "Parameters of all rankers"
    *others, last = declarations
    return "Parameters of " + (f"{', '.join(others)} and {last}" if others else last)


def _help(declarations: Declarations) -> str:
    """Return what a parameter means, which values it has, and its defaults."""
    meanings: dict[str, list[str]] = {}
    choices: dict[str, None] = {}
    for ranker, declared in declarations.items():
        meanings.setdefault(declared.help, []).append(ranker)
        choices |= dict.fromkeys(_choices(declared.constraint))
    sentences = list(meanings)
    if len(meanings) > 1:
        sentences = [f"{', '.join(rankers)}: {text}" for text, rankers in meanings.items()]
    if choices:
        sentences.append(f"One of {', '.join(choices)}.")
    return " ".join([*sentences, _defaults(declarations)])


def _choices(constraint: Constraint | None) -> Sequence[str]:
    is_choice = isinstance(constraint, OneOf) and constraint != YES_OR_NO
    return constraint.values if isinstance(constraint, OneOf) and is_choice else ()


def _defaults(declarations: Declarations) -> str:
    """Return the default of the first ranker, and those of others where they differ."""
    rankers: dict[str, list[str]] = {}
    for ranker, declared in declarations.items():
        rankers.setdefault(_as_typed(declared.default), []).append(ranker)
    (first, _), *others = rankers.items()
    parts = [first, *(f"{', '.join(names)}: {default}" for default, names in others)]
    return f"(Default: {'; '.join(parts)}.)"


def _as_typed(value: Any) -> str:
    """Return a value as one would type it behind its flag."""
    if value is None or isinstance(value, bool):
        return {None: "none", False: "no", True: "yes"}[value]
    if isinstance(value, (list, tuple)):
        return ",".join(map(_as_typed, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _options() -> list[inspect.Parameter]:
    """Return the flags of all parameters, those of the same rankers together."""
    parameters = file_parameters()
    panels = list(dict.fromkeys(_panel(declarations) for declarations in parameters.values()))
    return sorted(
        (_option(name, declarations) for name, declarations in parameters.items()),
        key=lambda option: panels.index(_panel(parameters[option.name])),
    )


class Parameters:
    """Values of the rankers' parameters that flags were given for, by name.

    The signature has one argument for each parameter of any ranker.
    """

    __signature__: ClassVar[inspect.Signature] = inspect.Signature(_options())

    def __init__(self, **values: Any) -> None:
        self.values = {name: value for name, value in values.items() if value is not None}


if TYPE_CHECKING:
    from rankinite.data.ranking_data import RankingData
    from rankinite.ensembles.ensemble import Ensemble
    from rankinite.models import TrainedRanker
    from rankinite.runs.recipe import Recipe

Seed = Annotated[int, typer.Option(help="Seed of the random number generator.", min=0)]
Out = Annotated[Path, typer.Option("--out", "-o", help="The folder for the results.")]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", "-j", min=1, help="Number of models trained at once. (Default: one per core.)"
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="<address>",
        help="Train on a Dask cluster: the scheduler's address, or local:4. Its workers must see "
        "the folder that is written to.",
    ),
]
RecipeName = Annotated[
    str,
    typer.Argument(
        metavar="RECIPE",
        help="winner, winner-small, winner-tiny, or a TOML file.",
        show_default=False,
    ),
]
TrainFile = Annotated[Path, typer.Option("--train", help="The training data.", show_default=False)]
Measures = Annotated[
    str, typer.Option("--measures", "--measure", "-m", help="Measures, separated by commas.")
]
Missing = Annotated[
    Literal["refuse", "last"], typer.Option(help="What to do with documents that a TREC run lacks.")
]
SameFormat = Annotated[
    FormatName | None,
    typer.Option("--format", help="The file format. (Default: that of the data set.)"),
]
DropSingleLabel = Annotated[
    bool,
    typer.Option(
        "--drop-single-label", help="Leave out queries whose documents all have one label."
    ),
]


@dataclass(frozen=True, kw_only=True)
class Loading:
    """Options for loading data sets."""

    top_grade: Annotated[
        float | None,
        typer.Option(help="The largest label there can be. (Default: the largest seen.)"),
    ] = None
    labels: Annotated[
        str | None,
        typer.Option(
            help="Further label sources, separated by commas: Parquet columns, or "
            "'name = value' in comments."
        ),
    ] = None
    group: Annotated[
        bool, typer.Option("--group", help="Group the documents of each query together.")
    ] = False
    label_column: Annotated[
        str | None, typer.Option(help="The label column of a Parquet file. (Default: label.)")
    ] = None
    qid_column: Annotated[
        str | None, typer.Option(help="The query column of a Parquet file. (Default: qid.)")
    ] = None
    doc_id_column: Annotated[
        str | None, typer.Option(help="The column of document ids of a Parquet file.")
    ] = None
    n_features: Annotated[
        int | None, typer.Option(min=1, help="Number of features of a text file.")
    ] = None
    query_file: Annotated[
        Path | None,
        typer.Option(help="Group sizes of a text file without qid. (Default: FILE.query.)"),
    ] = None
    no_comments: Annotated[
        bool, typer.Option("--no-comments", help="Skip the comments (after #) of a text file.")
    ] = False

    def load(self, path: Path, terminal: Terminal) -> RankingData:
        """Load a data set with these options."""
        from rankinite.data.formats import load

        return load(
            path,
            labels=None if self.labels is None else _names(self.labels),
            label=self.label_column,
            qid=self.qid_column,
            doc_id=self.doc_id_column,
            group=self.group,
            top_grade=self.top_grade,
            n_features=self.n_features,
            query_file=self.query_file,
            comments=not self.no_comments,
            progress=terminal.progress(),
        )

    def with_grade_of(self, command: str, recipe: Recipe) -> Loading:
        """Return the options with the recipe's top grade, which --top-grade may not contradict."""
        if recipe.top_grade is None:
            return self
        if self.top_grade not in (None, recipe.top_grade):
            raise UsageError(
                f"{command}: --top-grade is {self.top_grade:g}, and the recipe says "
                f"{recipe.top_grade:g}; leave out the flag, or change top_grade in [data] of the "
                "recipe"
            )
        return replace(self, top_grade=recipe.top_grade)

    def load_like(
        self, data: RankingData, source: Path, path: Path, terminal: Terminal
    ) -> RankingData:
        """Load another data set with the top grade of ``data``, loaded from ``source``."""
        try:
            return replace(self, top_grade=data.top_grade).load(path, terminal)
        except DataError as problem:
            if "top_grade" not in str(problem):
                raise
            raise DataError(
                f"{path}: has labels above {data.top_grade:g}, the largest of {source}; say with "
                "--top-grade how large labels can be"
            ) from None

    def load_alike(
        self, data: RankingData, source: Path, path: Path, terminal: Terminal
    ) -> RankingData:
        """Load another data set with the top grade and the features of ``data``."""
        other = self.load_like(data, source, path, terminal)
        refuse_narrow_text(path, other, data.feature_names)
        refuse_narrow_text(source, data, other.feature_names, f", which {path} has")
        return other


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise UsageError(
            f"--labels {text!r} has an empty name; expected names such as clicks,dwell"
        )
    return names


def check_place(command: str, jobs: int | None, cluster: str | None) -> None:
    """Refuse --jobs together with --cluster, and a cluster that cannot be used."""
    from rankinite.runs.workers import check_cluster

    if cluster is None:
        return
    if jobs is not None:
        raise UsageError(f"{command}: --jobs is for this machine, --cluster for others; say one")
    check_cluster(cluster)


def load_ranker(path: Path) -> TrainedRanker | Ensemble:
    """Load a model file."""
    from rankinite.models import load_model

    if not path.is_file():
        is_folder = "this is a directory; expected a model file"
        raise FileFormatError(path, is_folder if path.is_dir() else "there is no such file")
    return cast("TrainedRanker | Ensemble", load_model(path))


def refuse_narrow_text(
    path: Path, data: RankingData, expected: Sequence[str], known: str = ""
) -> None:
    """Explain what to do with a text file that lacks the last features: they may be all 0."""
    names = data.feature_names
    may_lack = "n_features" in format_of(path).options
    if may_lack and tuple(expected[: len(names)]) == names != tuple(expected):
        raise DataError(
            f"{path}: lacks the features {some_of(expected[len(names) :])}{known}; if they are 0 "
            f"all over and were left out, say --n-features {len(expected)}"
        )


@dataclass(frozen=True, kw_only=True)
class Testing:
    """Options of significance tests between systems."""

    test: Annotated[
        Literal["t", "randomisation"],
        typer.Option(help="The paired t-test, or Fisher's randomisation test."),
    ] = "t"
    correction: Annotated[
        Literal["holm", "none"], typer.Option(help="Correct p-values for the number of pairs.")
    ] = "holm"
    level: Annotated[
        float, typer.Option(help="A difference with a p-value up to this is significant.")
    ] = 0.05
    permutations: Annotated[
        int, typer.Option(min=1, help="Number of sign patterns of the randomisation test.")
    ] = 100_000
    resamples: Annotated[
        int, typer.Option(min=1, help="Number of bootstrap resamples of the queries.")
    ] = 10_000
    seed: Seed = 0
    drop_single_label: DropSingleLabel = False


def with_groups(function: Callable[..., None]) -> Callable[..., None]:
    """Expand the parameters of a command whose type is a group of options into its fields."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[type[Any], list[str]]] = {}
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        group: type[Any] = parameter.annotation
        if not (is_dataclass(group) or group is Parameters):
            parameters.append(parameter)
            continue
        fields = inspect.signature(group, eval_str=True).parameters
        groups[parameter.name] = (group, list(fields))
        parameters.extend(fields.values())

    @wraps(function)
    def command(**values: Any) -> None:
        for name, (group, fields) in groups.items():
            values[name] = group(**{field: values.pop(field) for field in fields})
        function(**values)

    keyword = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    command.__signature__ = inspect.Signature(keyword)  # type: ignore[attr-defined]
    command.__annotations__ = {}
    return command
