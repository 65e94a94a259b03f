"""``rankinite warm-up``."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import as_completed
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankinite.cli.terminal import Terminal
from rankinite.core.errors import RankiniteError

if TYPE_CHECKING:
    from rankinite.data.ranking_data import RankingData

# What most models are; `--all` is for the others.
USUAL = "LambdaMART"
MEASURES = "NDCG@10,ERR,MAP"  # as evaluate has them by default
QUERIES, DOCUMENTS, FEATURES = 100, 40, 5
ROUNDS = ("n_trees", "n_epochs")
# More than 64 leaves are scored by other kernels than fewer.
LARGE_TREES = {"n_leaves": 100, "min_docs_in_leaf": 1}
# What reads requests.
SERVICE = "rankinite.serve.kernels:compile_reader"
# What takes longest is begun first, so that no core is left alone with it in the end.
LONGEST = ("rankinite.trees.grower:compile_growth", "rankinite.nets.epochs:compile_training")


def warm_up(
    everything: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Compile for every ranker, each choice of its parameters, and every measure; this "
            "takes minutes. (Default: LambdaMART and the usual measures.)",
        ),
    ] = False,
    *,
    terminal: Terminal,
) -> None:
    """Compile ahead of time what training, scoring and evaluation need, as in a container's build.

    Small models are trained on simulated data, on all cores. Kernels are kept in the folder of the
    environment variable RANKINITE_CACHE_DIR, or else in the user's cache; they serve the same
    version of rankinite on the same kind of processor. What is there already is not compiled again.
    """
    from rankinite.core.kernel_cache import cache_directory
    from rankinite.core.threads import n_threads
    from rankinite.runs.workers import InProcess, Processes

    folder = cache_directory()
    if folder is None:
        raise RankiniteError(
            "warm-up: no folder can be written that would keep the kernels; name one in the "
            "environment variable RANKINITE_CACHE_DIR"
        )
    fits = list(_fits(everything))
    tasks: list[tuple[Callable[..., None], tuple[Any, ...]]]
    tasks = [(_compile, (place,)) for place in LONGEST[: None if everything else 1]]
    tasks += [(_use, (*fit, everything)) for fit in fits]
    tasks.append((_compile, (SERVICE,)))
    workers = Processes(n_threads(), 1) if n_threads() > 1 else InProcess()
    compiled = []
    try:
        with terminal.progress(lines=True).start("warming up", len(tasks), "models") as bar:
            for done in as_completed([workers.submit(_counted, *task) for task in tasks]):
                compiled.append(done.result())
                bar.advance(1)
    finally:
        workers.close(kill=len(compiled) < len(tasks))
    n_kernels, seconds = (sum(column) for column in zip(*compiled, strict=True))
    if terminal.json:
        rankers = list(dict.fromkeys(name for name, _ in fits))
        values = {"rankers": rankers, "compiled": n_kernels, "seconds": seconds}
        terminal.show_json({**values, "cache": str(folder)})
        return
    terminal.say(f"compiled {n_kernels:,} kernels in {seconds:.0f} s; they are kept in {folder}")


def _counted(function: Callable[..., None], arguments: tuple[Any, ...]) -> tuple[int, float]:
    """Call a function; return how many kernels were compiled for it, and the seconds it took."""
    from rankinite.core.compilation import compilations

    n_before, seconds_before = compilations.n_kernels, compilations.seconds
    function(*arguments)
    return compilations.n_kernels - n_before, compilations.seconds - seconds_before


def _compile(place: str) -> None:
    """Call a function that compiles a kernel, by its module and name."""
    module, name = place.split(":")
    getattr(import_module(module), name)()


def _fits(everything: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Iterate over rankers and the parameters that they are trained with."""
    from rankinite.core.params import file_parameters_of
    from rankinite.models import RANKERS

    for name in RANKERS if everything else [USUAL]:
        declared = file_parameters_of(RANKERS[name])
        rounds = {key: 2 for key in ROUNDS if key in declared}
        yield name, rounds
        if not everything:
            continue
        if LARGE_TREES.keys() <= declared.keys():
            yield name, {**rounds, **LARGE_TREES}
        for key, parameter in declared.items():
            for value in getattr(parameter.constraint, "values", ()):
                if value != parameter.default:
                    yield name, {**rounds, key: value}


@cache
def _loaded_data() -> tuple[RankingData, RankingData]:
    """Return simulated data that were read from files, which takes kernels, too."""
    from rankinite.data.formats import load, save
    from rankinite.data.simulate.polynomials import polynomials

    with tempfile.TemporaryDirectory(prefix="rankinite-") as folder:
        sets = []
        for part in ("train", "valid"):
            path = Path(folder) / f"{part}.txt"
            made = polynomials(QUERIES, part=part, n_docs=DOCUMENTS, n_features=FEATURES)
            save(made, path)
            sets.append(load(path, top_grade=made.top_grade))
    return sets[0], sets[1]


def _use(name: str, parameters: dict[str, Any], everything: bool) -> None:
    """Train, score and evaluate with a ranker."""
    from rankinite.core.errors import UsageError
    from rankinite.evaluation.evaluate import evaluate
    from rankinite.measures.definitions import MEASURES as ALL_MEASURES
    from rankinite.measures.text import parse_measures
    from rankinite.models import RANKERS

    train, valid = _loaded_data()
    try:
        ranker: Any = RANKERS[name](**parameters).fit(train, valid=valid)
    except UsageError:
        return  # a choice that needs another parameter beside it
    # CNDCG is of click rates, which these data do not have.
    measures = ",".join(m for m in ALL_MEASURES if m != "CNDCG") if everything else MEASURES
    evaluate(ranker.predict(valid), valid, parse_measures(measures))
    if everything:
        from rankinite.explanation.explain import explain

        explain(ranker, valid)
