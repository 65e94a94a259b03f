"""Pages from templates: those of the report, which others build on, and those of a package."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

SHARED = "rankinite.experiments.report"


def page_of(package: str, template: str, content: Mapping[str, Any]) -> str:
    """Return a template of a package, filled in.

    Parameters
    ----------
    package
        The package that the template stands in.
    template
        The name of its file.
    content
        The values by name; a name that is missing is an error.
    """
    return _environment(package).get_template(template).render(content)


@cache
def _environment(package: str) -> Environment:
    return Environment(
        loader=ChoiceLoader([PackageLoader(name, ".") for name in (package, SHARED)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
