"""Export of rankers to the formats of other tools: `export`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from rankinite.core.errors import UsageError
from rankinite.core.files import atomic_write
from rankinite.interop.exporter import (
    Exported,
    Order,
    check_model_name,
    mapped_names,
)
from rankinite.interop.nets import plain_net
from rankinite.interop.sum_of_trees import SumOfTrees, sum_of_trees
from rankinite.rankers.lambdarank import LambdaRank
from rankinite.rankers.ranker import Ranker
from rankinite.trees.forest import Forest

NAME = "model"


@dataclass(frozen=True)
class Format:
    """A format of another tool.

    Attributes
    ----------
    module, function
        What writes it: takes an `Order` and returns the contents of files by what is behind the
        name of the first, which has nothing behind it.
    what
        What it is.
    second
        What is behind the name of the second file, if there is one.
    holds_nets, holds_hidden_layers
        Whether it holds linear nets, and those with hidden layers.
    """

    module: str
    function: str
    what: str
    second: str = ""
    holds_nets: bool = False
    holds_hidden_layers: bool = False

    @property
    def writer(self) -> Callable[[Order], dict[str, bytes]]:
        """The function that writes it."""
        writer: Callable[[Order], dict[str, bytes]] = getattr(self._imported, self.function)
        return writer

    @property
    def precision(self) -> str:
        """In how many bits the other tool adds up scores."""
        precision: str = self._imported.PRECISION
        return precision

    @property
    def _imported(self) -> Any:
        return import_module(f"rankinite.interop.formats.{self.module}")


FEATURE_SET, FEATURE_STORE = ".featureset.json", ".features.json"
FORMATS: dict[str, Format] = {
    "lightgbm": Format("lightgbm", "write", "LightGBM's text, for Booster(model_file=...)"),
    "xgboost": Format("xgboost", "write", "XGBoost's JSON, for Booster.load_model"),
    "xgboost-dump": Format("search_engines", "write_dump", "the trees as XGBoost dumps them"),
    "onnx": Format(
        "onnx",
        "write",
        "ONNX, opset ai.onnx.ml 3, with features of 64 bits",
        holds_nets=True,
        holds_hidden_layers=True,
    ),
    "opensearch": Format(
        "search_engines", "write_plugin", "OpenSearch's plugin", FEATURE_SET, holds_nets=True
    ),
    "elasticsearch": Format(
        "search_engines", "write_plugin", "Elasticsearch's plugin", FEATURE_SET, holds_nets=True
    ),
    "ranklib": Format(
        "search_engines", "write_ranklib", "the plugins, in RankLib's XML", FEATURE_SET
    ),
    "solr": Format("search_engines", "write_solr", "Solr", FEATURE_STORE, holds_nets=True),
    "vespa": Format(
        "vespa", "write", "Vespa: as LightGBM dumps it, and a rank profile", ".profile"
    ),
    "treelite": Format("treelite", "write", "a checkpoint of treelite"),
    "c": Format("c", "write", "C99: a source without dependencies, and its header", ".h"),
    "python": Format("python", "write", "Python: one file that needs numpy only"),
}


def export(
    model: Ranker,
    path: str | Path,
    to: str,
    *,
    name: str = NAME,
    names: Mapping[str, str] | None = None,
    allow: bool = False,
) -> Exported:
    """Write a ranker in the format of another tool.

    Any ranker of trees, with or without a base, and weighted sums of such rankers (`Average`,
    `Interpolation`, `BestMix`) are one sum of trees. Thresholds are rewritten for the comparison of
    the other tool, so that every document takes the same path.

    Parameters
    ----------
    model
        A fitted ranker.
    path
        File to write. Some formats consist of two files; the second has the same name with another
        ending.
    to
        The format: lightgbm, xgboost, xgboost-dump, onnx, opensearch, elasticsearch, ranklib, solr,
        vespa, treelite, c or python.
    name
        Name of the model in the other tool: letters, digits and underscores.
    names
        Names in the other tool of features that have other names there, by their names here.
    allow
        Write the model also if the other tool will score some documents differently, such as those
        with missing values in Solr.

    Examples
    --------
    >>> import rankinite as rk
    >>> data = rk.polynomials(20, n_features=3)
    >>> model = rk.LambdaMART(n_trees=2).fit(data)
    >>> [path.name for path in rk.export(model, "model.c", to="c").files]
    ['model.c', 'model.h']
    """
    target = Path(path)
    contents, order = contents_of(model, to, name=name, names=names, allow=allow)
    files = files_of(target, to)
    for file, content in zip(files, contents, strict=True):
        with atomic_write(file) as opened:
            opened.write(content)
    return Exported(files, FORMATS[to].precision, tuple(order.notes))


def contents_of(
    model: Ranker,
    to: str,
    *,
    name: str = NAME,
    names: Mapping[str, str] | None = None,
    allow: bool = False,
) -> tuple[list[bytes], Order]:
    """Return the contents of the files of an export, and what was noted; see `export`."""
    if to not in FORMATS:
        raise UsageError(f"export: the format is {to!r}; expected one of {', '.join(FORMATS)}")
    if not isinstance(model, Ranker):
        raise UsageError(
            f"export: the model is a {type(model).__name__}; expected a fitted ranker, such as "
            "load_model returns"
        )
    if not model.is_fitted:
        raise UsageError(f"export: the {type(model).__name__} is not fitted yet; fit it first")
    check_model_name(name)
    net = None
    if isinstance(model, LambdaRank) and FORMATS[to].holds_nets:
        net = plain_net(model, to, linear=not FORMATS[to].holds_hidden_layers)
        total = SumOfTrees(net.feature_names, Forest((), np.zeros(1), len(net.feature_names)))
    else:
        total = sum_of_trees(model)
    order = Order(total, mapped_names(total.feature_names, names), name, to, allow, net)
    if total.note:
        order.notes.append(total.note)
    return list(FORMATS[to].writer(order).values()), order


def files_of(path: Path, to: str) -> tuple[Path, ...]:
    """Return the files that an export writes."""
    second = FORMATS[to].second
    if second and path.name.endswith(second):
        raise UsageError(
            f"export: {path} is the name of the second file of {to}, which ends in {second}; name "
            "the model otherwise"
        )
    return (path, path.with_suffix(second)) if second else (path,)
