"""Options that several commands share: single ones as types, groups as dataclasses.

A command asks for a group by the type of a parameter (``loading: Loading``), and `with_groups`
replaces that parameter by the fields of the group. So a flag is declared once, and its values
arrive together, with the methods that use them. `Parameters` is the group of the rankers'
parameters; its flags derive from the declarations in ``rankers/parameters.py``.

`rankinite --help` imports this module, so nothing here may load numpy or numba at the top.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_args, get_origin

import typer
from typer.models import ParameterInfo

from rankinite.cli.files import refuse_narrow_text
from rankinite.cli.pipes import readable
from rankinite.cli.terminal import Terminal
from rankinite.core.errors import DataError, UsageError
from rankinite.core.numerals import parse_number, parse_whole
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
from rankinite.data.formats import FormatName
from rankinite.rankers.parameters import (
    ALL,
    FROM_DTYPE,
    RANKER_PARAMETERS,
    FeatureList,
    LayerSizes,
    file_parameters,
)

if TYPE_CHECKING:
    from rankinite.data.ranking_data import RankingData
    from rankinite.runs.recipe import Recipe

Seed = Annotated[int, typer.Option(help="Seed of the random number generator.", min=0)]
Out = Annotated[Path, typer.Option("--out", "-o", help="The folder for the results.")]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", "-j", min=1, help="Number of models trained at once. (Default: one per core.)"
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
    Literal["refuse", "last"],
    typer.Option(
        help="Documents that a TREC run lacks: refuse the run, or rank them after all others."
    ),
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
        typer.Option(help="The largest possible label. (Default: the largest in the data.)"),
    ] = None
    labels: Annotated[
        str | None,
        typer.Option(
            help="Further label sources, separated by commas: Parquet columns, or "
            "'name = value' in comments."
        ),
    ] = None
    # None, and not False, stands for a flag that was not given: --no-group overrides a TOML file.
    group: Annotated[
        bool | None,
        typer.Option(
            "--group/--no-group",
            help="Bring scattered documents of a query together instead of refusing them.",
            show_default=False,
        ),
    ] = None
    label_column: Annotated[
        str | None, typer.Option(help="The label column in a Parquet file. (Default: label.)")
    ] = None
    qid_column: Annotated[
        str | None, typer.Option(help="The query column in a Parquet file. (Default: qid.)")
    ] = None
    doc_id_column: Annotated[
        str | None, typer.Option(help="The column of document ids in a Parquet file.")
    ] = None
    n_features: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of features of a text file. (Default: the last one in it.)"
        ),
    ] = None
    query_file: Annotated[
        Path | None,
        typer.Option(help="Group sizes of a text file without qid. (Default: FILE.query.)"),
    ] = None
    no_comments: Annotated[
        bool | None,
        typer.Option(
            "--no-comments/--comments",
            help="Skip the comments (after #) of a text file.",
            show_default=False,
        ),
    ] = None

    def load(
        self,
        path: Path,
        terminal: Terminal,
        features: Sequence[str] | None = None,
        categorical: str | Sequence[str] = (),
    ) -> RankingData:
        """Load a data set with these options.

        Of a table only these features; its columns of texts are refused, except those that are
        named as categorical, or with ALL.
        """
        from rankinite.data.formats import format_of, load

        with readable(path) as file:
            options = format_of(file).options
            return load(
                file,
                features=features if "features" in options else None,
                labels=None
                if self.labels is None
                else _names("--labels", self.labels, "clicks,dwell"),
                label=self.label_column,
                qid=self.qid_column,
                doc_id=self.doc_id_column,
                categorical_features=categorical if "categorical_features" in options else (),
                group=bool(self.group),
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

    def refuse_query_file(self, command: str, n_sets: int) -> None:
        """Refuse --query-file where several data sets are read: it has the groups of one."""
        if self.query_file is not None and n_sets > 1:
            raise UsageError(
                f"{command}: --query-file belongs to one data set, and here are several; put the "
                "group sizes of each beside it, as FILE.query"
            )

    def load_like(
        self,
        data: RankingData,
        source: Path,
        path: Path,
        terminal: Terminal,
        categorical: str | Sequence[str] = ALL,
    ) -> RankingData:
        """Load another data set with the top grade of ``data``, loaded from ``source``."""
        # ERR depends on the top grade: two sets measured with different ones could not be compared.
        try:
            return replace(self, top_grade=data.top_grade).load(
                path, terminal, categorical=categorical
            )
        except DataError as problem:
            if "top_grade" not in str(problem):
                raise
            raise DataError(
                f"{path}: has labels above {data.top_grade:g}, the largest of {source}; give the "
                "largest possible label with --top-grade"
            ) from None

    def load_alike(
        self, data: RankingData, source: Path, path: Path, terminal: Terminal
    ) -> RankingData:
        """Load another data set with the top grade and the features of ``data``."""
        other = self.load_like(data, source, path, terminal, list(data.categories))
        # Either of the two may be the narrower one.
        refuse_narrow_text(path, other, data.feature_names)
        refuse_narrow_text(source, data, other.feature_names, f", which {path} has")
        return other


@dataclass(frozen=True, kw_only=True)
class LoadingToWrite(Loading):
    """Options for loading data sets that are written again, with what is known of their features.

    Texts that nobody named stay refused, as in training: written as categories, a column of
    addresses would be a feature of every ranker that is trained on the result.
    """

    categorical_features: Annotated[
        str | None,
        typer.Option(
            metavar="<name[,name]>",
            help="Features that are categorical, separated by commas; all for every Parquet "
            "column of texts. Dictionary columns need not be named.",
        ),
    ] = None

    def load(
        self,
        path: Path,
        terminal: Terminal,
        features: Sequence[str] | None = None,
        categorical: str | Sequence[str] = (),
    ) -> RankingData:
        """Load a data set with these options, in which the named features are categorical."""
        from rankinite.data.categories import with_categories

        named = categorical or self._named()
        data = super().load(path, terminal, features, named)
        # Files of text have no columns of texts; their features are named by number.
        return data if named == ALL else with_categories(str(path), data, named)

    def _named(self) -> str | list[str]:
        text = self.categorical_features
        if text is None or text.lower() == ALL:
            return ALL if text else []
        return _names("--categorical-features", text, "brand,seller")


def _names(flag: str, text: str, example: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise UsageError(f"{flag} {text!r} has an empty name; expected names such as {example}")
    return names


def numbers_of(command: str, flag: str, text: str, example: str) -> list[float]:
    """Return the numbers of a flag's text, separated by commas."""
    try:
        return _reals(text)
    except ValueError:
        raise UsageError(
            f"{command}: {flag} {text!r} are not all numbers; expected numbers such as {example}"
        ) from None


@dataclass(frozen=True, kw_only=True)
class LabelledData:
    """The data set that rankers are compared on, and how files with their scores are read."""

    source: Annotated[
        Path,
        typer.Option(
            "--data",
            "-d",
            help="The data set with the labels; no ranker should have been trained on it.",
            show_default=False,
        ),
    ]
    missing: Missing = "refuse"

    def load(self, command: str, loading: Loading, terminal: Terminal) -> RankingData:
        """Load the data set; refuse samples of queries, which paired tests would count again."""
        from rankinite.data.checks import require_labels
        from rankinite.data.splits import refuse_dependent_queries

        # Rankers take what they know by name, and measures look at no features.
        data = loading.load(self.source, terminal, categorical=ALL)
        require_labels(command, data)
        refuse_dependent_queries(command, data.qids)
        return data


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


@dataclass(frozen=True, kw_only=True)
class Workers:
    """Where tasks run: in processes of this machine, or on a Dask cluster."""

    jobs: Jobs = None
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="<address>",
            help="Train on a Dask cluster: the scheduler's address, or local:4. Its workers must "
            "see the folder that is written to.",
        ),
    ] = None

    def check(self, command: str) -> None:
        """Refuse --jobs together with --cluster, and a cluster that cannot be used."""
        from rankinite.runs.workers import check_cluster

        if self.cluster is None:
            return
        if self.jobs is not None:
            raise UsageError(
                f"{command}: --jobs is for this machine, --cluster for others; give only one of "
                "them"
            )
        check_cluster(self.cluster)


# The declarations of one parameter, by ranker.
Declarations = Mapping[str, Parameter]


def or_text(convert: Callable[[str], Any], choices: Sequence[str] = ()) -> Callable[[str], Any]:
    """Return a parser that leaves a text as it is if it is no choice and cannot be converted.

    The ranker refuses the text then, in the same sentence as in Python and in TOML files.
    """
    names = {choice.lower(): choice for choice in choices}

    def parse(text: str) -> Any:
        # On a command line, unlike in Python, upper and lower case are the same.
        if text.lower() in names:
            return names[text.lower()]
        try:
            return convert(text)
        except ValueError:
            return text

    return parse


def _wholes(text: str) -> int | list[int]:
    numbers = [parse_whole(part.strip()) for part in text.split(",")]
    return numbers[0] if len(numbers) == 1 else numbers


def _features(text: str) -> str | list[str]:
    # Names only: features of a text file are called 1, 2 and so on, which are not columns from 0.
    return text if text == FROM_DTYPE else text.split(",")


def _reals(text: str) -> list[float]:
    return [parse_number(part.strip()) for part in text.split(",")]


def _value_type(constraint: Constraint | None) -> tuple[Any, dict[str, Any]]:
    """Return the type of a flag's value, and how to parse it where typer does not know."""
    if isinstance(constraint, LayerSizes):
        return Any, {"parser": or_text(_wholes), "metavar": "<int[,int]>"}
    if isinstance(constraint, Bounds):
        return Any, {"parser": or_text(_reals), "metavar": "<float,float>"}
    if isinstance(constraint, Either) and isinstance(constraint.second, FeatureList):
        return Any, {"parser": _features, "metavar": "<name[,name]>"}
    if isinstance(constraint, Either) and isinstance(constraint.first, Whole):
        other = str(constraint.second).removeprefix("one of ").strip("'").lower()
        parser = or_text(int, _choices(constraint))
        return Any, {"parser": parser, "metavar": f"<int|{other}>"}
    if isinstance(constraint, Whole):
        return int | None, {}
    if isinstance(constraint, Real):
        return float | None, {}
    if constraint == YES_OR_NO:
        return bool | None, {}
    if _choices(constraint):
        return Any, {"parser": or_text(str, _choices(constraint)), "metavar": "<name>"}
    return str | None, {}


def _option(name: str, declarations: Declarations) -> inspect.Parameter:
    """Return the flag of a parameter as an argument of a command."""
    # Rankers that share a name differ in its choices and defaults, not in the type of its values.
    first = next(iter(declarations.values()))
    value_type, settings = _value_type(first.file_constraint)
    # If names are given, typer does not derive one from the parameter.
    names = [f"--{name.replace('_', '-')}", *first.flags] if first.flags else []
    # Rich would take brackets, as in CNDCG@3[clicks], for markup.
    text = _help(declarations).replace("[", "\\[")
    option = typer.Option(*names, rich_help_panel=_panel(declarations), help=text, **settings)
    # None stands for a flag that was not given: defaults differ between rankers.
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
        if isinstance(declared.constraint, OneOf):
            choices |= dict.fromkeys(_choices(declared.constraint))
    sentences = list(meanings)
    if len(meanings) > 1:
        sentences = [f"{', '.join(rankers)}: {text}" for text, rankers in meanings.items()]
    if choices:
        sentences.append(f"One of {', '.join(choices)}.")
    return " ".join([*sentences, _defaults(declarations)])


def _choices(constraint: Constraint | None) -> list[str]:
    """Return the words among the values of a constraint."""
    if isinstance(constraint, Either):
        return [*_choices(constraint.first), *_choices(constraint.second)]
    if isinstance(constraint, OneOf):
        return [value for value in constraint.values if isinstance(value, str)]
    return []


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

    # `with_groups` reads the signature of a group; here there is no dataclass to have one.
    __signature__: ClassVar[inspect.Signature] = inspect.Signature(_options())

    def __init__(self, **values: Any) -> None:
        self.values = {name: value for name, value in values.items() if value is not None}


def _set_conventions(annotation: Any) -> None:
    """Let a choice be typed in upper or lower case, and a flag have no value in the help."""
    kind, *infos = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    is_flag = kind is bool or bool in get_args(kind)
    for info in infos:
        if isinstance(info, ParameterInfo):
            info.case_sensitive = False
            info.metavar = "" if is_flag else info.metavar


def with_groups(function: Callable[..., None]) -> Callable[..., None]:
    """Expand the parameters of a command whose type is a group of options into its fields."""
    parameters: list[inspect.Parameter] = []
    # The parameter of each group: the group, and the names of its fields.
    groups: dict[str, tuple[type[Any], list[str]]] = {}
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        group: type[Any] = parameter.annotation
        if not (is_dataclass(group) or group is Parameters):
            parameters.append(parameter)
            continue
        fields = inspect.signature(group, eval_str=True).parameters
        groups[parameter.name] = (group, list(fields))
        parameters.extend(fields.values())
    for parameter in parameters:
        _set_conventions(parameter.annotation)

    @wraps(function)
    def command(**values: Any) -> None:
        for name, (group, fields) in groups.items():
            values[name] = group(**{field: values.pop(field) for field in fields})
        function(**values)

    # By keyword, an option without a default may follow one with a default.
    keyword = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    command.__signature__ = inspect.Signature(keyword)  # type: ignore[attr-defined]
    # `wraps` copied the annotations, which typer would prefer to those of the signature.
    command.__annotations__ = {}
    return command
