"""The description of the service: as an OpenAPI document, and as a page for people."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jinja2
import msgspec
from markupsafe import Markup

from rankinite.core import __version__
from rankinite.serve.batches import RequestError

JSON = "application/json"
PATH_PARAMETERS = {
    "name": "Name of a model.",
    "version": "Version of a model.",
}
STATUSES = {
    400: "The request is not as expected.",
    401: "The token is missing or wrong.",
    404: "There is no such model.",
    408: "The body did not arrive in time.",
    413: "The body is too long, or has too many documents.",
    429: "The client has too many requests under way.",
    503: "The service is busy, or the answer took too long.",
}
OF_SCORING = (400, 404, 408, 413, 429, 503)


class Problem(msgspec.Struct):
    """Why a request was refused."""

    error: str


@dataclass(frozen=True)
class Operation:
    """What a route of the service does.

    Attributes
    ----------
    method, path
        The route.
    summary
        What it is for.
    asks, answers
        The types of the bodies; None for no body, a media type for one that is no JSON.
    example
        A body.
    statuses
        How it may be refused.
    is_open
        Whether it needs no token.
    """

    method: str
    path: str
    summary: str
    asks: Any = None
    answers: Any = None
    example: Any = None
    statuses: Sequence[int] = field(default_factory=tuple)
    is_open: bool = False


def document(operations: Sequence[Operation]) -> dict[str, Any]:
    """Return the OpenAPI document of a service."""
    types = [kind for o in operations for kind in (o.asks, o.answers) if _is_type(kind)]
    kinds = list(dict.fromkeys([*types, Problem]))
    schemas, components = msgspec.json.schema_components(
        kinds, ref_template="#/components/schemas/{name}"
    )
    of_kind = dict(zip(kinds, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        described = _described(operation, of_kind)
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "rankinite",
            "version": __version__,
            "description": "Ranks documents of queries with trained models.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        # The token is optional: a service that was started without one asks for none.
        "security": [{}, {"token": []}],
    }


def _described(operation: Operation, of_kind: dict[Any, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "summary": operation.summary,
        "operationId": re.sub(r"\W+", "_", f"{operation.method.lower()}{operation.path}"),
        "responses": {"200": _response("Done.", operation.answers, of_kind)},
    }
    names = re.findall(r"{(\w+)}", operation.path)
    if names:
        described["parameters"] = [
            {
                "name": name,
                "in": "path",
                "required": True,
                "description": PATH_PARAMETERS[name],
                "schema": {"type": "string"},
            }
            for name in names
        ]
    if operation.asks is not None:
        content: dict[str, Any] = {"schema": of_kind[operation.asks]}
        if operation.example is not None:
            content["example"] = operation.example
        described["requestBody"] = {"required": True, "content": {JSON: content}}
    statuses = operation.statuses if operation.is_open else (401, *operation.statuses)
    for status in statuses:
        described["responses"][str(status)] = _response(STATUSES[status], Problem, of_kind)
    if operation.is_open:
        described["security"] = []
    return described


def _response(text: str, answers: Any, of_kind: dict[Any, Any]) -> dict[str, Any]:
    if answers is None:
        return {"description": text}
    if isinstance(answers, str):
        return {"description": text, "content": {answers: {"schema": {"type": "string"}}}}
    return {"description": text, "content": {JSON: {"schema": of_kind[answers]}}}


def _is_type(kind: Any) -> bool:
    return kind is not None and not isinstance(kind, str)


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>rankinite serve</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 56rem; padding: 0 1rem;
  color: #222; background: #fff; }
code, pre { font: 14px/1.4 ui-monospace, monospace; background: #f3f4f6; }
pre { padding: .7rem; overflow: auto; }
section { border-top: 1px solid #ddd; padding: .3rem 0 .8rem; }
h2 { font-size: 1.05rem; margin: .5rem 0 .2rem; } h2 b { color: #0b5cad; }
td, th { text-align: left; vertical-align: top; padding: .15rem .8rem .15rem 0; }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #16181c; }
  code, pre { background: #24272d; } section { border-color: #444; } h2 b { color: #7ab8f5; } }
</style></head><body>
<h1>rankinite {{ info.version }}</h1>
<p>{{ info.description }} The same as <a href="openapi.json">OpenAPI document</a>.</p>
{% for path, methods in paths.items() %}{% for method, operation in methods.items() %}
<section><h2><b>{{ method.upper() }}</b> <code>{{ path }}</code></h2>
<p>{{ operation.summary }}</p>
{% if operation.requestBody %}{% set body = operation.requestBody.content["application/json"] %}
{% if body.example %}<pre>{{ body.example | tojson(indent=2) }}</pre>{% endif %}
<p>Body: {{ named(body.schema) }}</p>{% endif %}
<p>{% for status, response in operation.responses.items() %}{% if response.content %}
<code>{{ status }}</code> {{ response.description }}
{%- for kind, content in response.content.items() %} {{ named(content.schema) or kind }}{% endfor %}
<br>{% endif %}{% endfor %}</p></section>
{% endfor %}{% endfor %}
<h1>Bodies</h1>
{% for name, schema in components.schemas.items() %}
<section id="{{ name }}"><h2><code>{{ name }}</code></h2><p>{{ schema.description }}</p>
<table>{% for field, value in schema.properties.items() %}
<tr><th><code>{{ field }}</code></th>
<td>{{ kind(value) }}{{ "" if field in schema.required else ", optional" }}</td>
<td>{{ value.description }}</td></tr>{% endfor %}</table></section>
{% endfor %}</body></html>
"""


def page(described: dict[str, Any]) -> str:
    """Return the description as a page, which loads nothing from elsewhere."""
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.globals |= {"named": _named, "kind": _kind}
    return environment.from_string(PAGE).render(described)


def _named(schema: dict[str, Any]) -> Markup | str:
    if "$ref" not in schema:
        return ""
    name = schema["$ref"].rpartition("/")[2]
    return Markup("<a href='#{0}'><code>{0}</code></a>").format(name)


def _kind(schema: dict[str, Any]) -> Any:
    """Return the type of a value in a word or two."""
    if "$ref" in schema:
        return _named(schema)
    if "anyOf" in schema:
        kinds = [_kind(part) for part in schema["anyOf"] if part != {"type": "null"}]
        return Markup(" or ").join(dict.fromkeys(kinds))
    if schema.get("type") == "array":
        return Markup("list of {}").format(_kind(schema.get("items", {})))
    if schema.get("type") == "object":
        return "object"
    if isinstance(schema.get("type"), list):
        return " or ".join(schema["type"])
    return schema.get("type", json.dumps(schema) if schema else "any")


def error_body(problem: RequestError) -> bytes:
    """Return the body of a refusal."""
    return msgspec.json.encode(Problem(problem.reason))
