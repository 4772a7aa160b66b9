"""The OpenAPI document and the page for people, made from the table of routes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NoReturn, get_args

import msgspec
from starlette.responses import Response

from yarnflow.rest.framework.errors import ErrorAnswer
from yarnflow.rest.framework.parameters import Parameter
from yarnflow.rest.framework.route import EventStream, Route, TextFile
from yarnflow.rest.framework.uploads import ReceivedFile

_REFERENCE: Final = "#/components/schemas/{name}"
_ERRORS: Final = {
    "308": "This way to stop is not supported any more",
    "400": "A parameter or the body is not what is expected",
    "401": "A token is needed",
    "403": "The token may not do this",
    "404": "There is nothing of this name",
    "408": "The body did not come in time",
    "409": "It cannot be done in this state",
    "413": "The body is too long",
    "416": "The range is not in the file",
    "501": "yarnflow has no counterpart; the answer says why",
    "502": "Another process of the cluster has not answered well",
    "503": "It cannot be done at the moment",
    "504": "Another process of the cluster has not answered in time",
}
#: Flink's name of the field
_FILE: Final = {
    "type": "object",
    "properties": {"jarfile": {"type": "string", "contentMediaType": "application/octet-stream"}},
    "required": ["jarfile"],
}
_TABLE_HEAD: Final = "| Method and path | What | Parameters | Body | Answer |\n|---|---|---|---|---|\n"
_PAGE_HEAD: Final = """\
<!-- Written by scripts/gen-docs from yarnflow/rest/routes.py; do not edit. -->
# REST interface

{introduction}
"""


def document(routes: Sequence[Route], title: str, version: str, description: str) -> dict[str, Any]:
    """OpenAPI 3.1."""
    bodies = [route.body for route in routes if route.body is not ReceivedFile]
    types = [_json_type(route) for route in routes] + bodies + [ErrorAnswer]
    known = [each for each in types if each is not None]
    schemas, components = msgspec.json.schema_components(known, ref_template=_REFERENCE)
    schema_of = {repr(each): schema for each, schema in zip(known, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.template, {})[route.method.lower()] = _operation(route, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version, "description": description},
        "paths": paths,
        "components": {
            "schemas": components,
            "responses": {
                status: {
                    "description": text,
                    "content": {"application/json": {"schema": schema_of[repr(ErrorAnswer)]}},
                }
                for status, text in _ERRORS.items()
            },
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "header": {"type": "apiKey", "in": "header", "name": "X-Yarnflow-Token"},
            },
        },
        "security": [{}, {"bearer": []}, {"header": []}],
    }


def page(sections: Mapping[str, Sequence[Route]], introduction: str) -> str:
    """Markdown: one table per section."""
    parts = [_PAGE_HEAD.format(introduction=introduction.strip())]
    for title, routes in sections.items():
        parts.append(f"\n## {title}\n\n{_TABLE_HEAD}")
        parts.extend(_row(route) for route in routes)
    return "".join(parts)


def _operation(route: Route, schema_of: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "summary": route.summary,
        "operationId": _operation_id(route),
        "parameters": [
            *(_parameter(each, "path") for each in route.path_parameters),
            *(_parameter(each, "query") for each in route.query_parameters),
        ],
        "responses": {
            **({} if route.answer is NoReturn else {str(route.status): _success(route, schema_of)}),
            **{status: {"$ref": f"#/components/responses/{status}"} for status in _errors(route)},
        },
    }
    if route.writes:
        made["security"] = [{}, {"bearer": []}, {"header": []}]
    if route.body is ReceivedFile:
        made["requestBody"] = {"required": True, "content": {"multipart/form-data": {"schema": _FILE}}}
    elif route.body is not None:
        made["requestBody"] = {"content": {"application/json": {"schema": schema_of[repr(route.body)]}}}
    return made


def _errors(route: Route) -> Iterable[str]:
    """Statuses that it may be answered with."""
    some = {
        "308": route.method == "PATCH",
        "408": route.body is not None,
        "413": route.body is not None,
        "416": route.answer is TextFile,
    }
    return [status for status in _ERRORS if some.get(status, True)]


def _success(route: Route, schema_of: Mapping[str, Any]) -> dict[str, Any]:
    if route.answer is TextFile:
        return {"description": "The file", "content": {"*/*": {"schema": {"type": "string"}}}}
    if route.answer is EventStream:
        return {"description": "Events", "content": {"text/event-stream": {"schema": {"type": "string"}}}}
    if _json_type(route) is None:
        return {"description": "A page", "content": {"text/html": {"schema": {"type": "string"}}}}
    return {
        "description": "The answer",
        "content": {"application/json": {"schema": schema_of[repr(_json_type(route))]}},
    }


def _json_type(route: Route) -> Any:
    """None = the answer is no JSON."""
    if route.answer in (TextFile, EventStream, NoReturn, Response):
        return None
    return route.answer


def _parameter(parameter: Parameter[Any], place: str) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": parameter.name,
        "in": place,
        "required": place == "path",
        "description": parameter.description,
        "schema": dict(parameter.schema),
    }
    if parameter.is_list:
        made |= {"style": "form", "explode": False}
    return made


def _operation_id(route: Route) -> str:
    words = [word.lstrip(":") for word in re.split(r"[/-]", route.path) if word]
    return "_".join([route.method.lower(), *(words or ["index"])])


def _row(route: Route) -> str:
    parameters = ", ".join(
        [f"`{each.name}`" for each in route.path_parameters]
        + [f"`?{each.name}`" for each in route.query_parameters]
    )
    notes = [route.summary]
    if route.writes:
        notes.append("Changes something.")
    if route.ours:
        notes.append("Not in Flink.")
    return (
        f"| `{route.method} {route.path}` | {' '.join(_sentence(note) for note in notes)} | {parameters} "
        f"| {_type_name(route.body)} | {_answer_name(route)} |\n"
    )


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def _answer_name(route: Route) -> str:
    if route.answer is NoReturn:
        return "501"
    names = {TextFile: "text", EventStream: "events", Response: "HTML"}
    return f"{route.status} {names.get(route.answer) or _type_name(route.answer)}"


def _type_name(each: Any) -> str:
    if each is None:
        return ""
    if each is ReceivedFile:
        return "a file, as multipart/form-data"
    arguments = [argument for argument in get_args(each) if isinstance(argument, type)]
    if getattr(each, "__origin__", None) is list:
        return f"list of {_type_name(arguments[0])}"
    if getattr(each, "__origin__", None) is dict:
        return f"name → {_type_name(arguments[-1])}"
    if arguments or get_args(each):
        return " or ".join(_type_name(argument) for argument in get_args(each))
    return f"`{each.__name__}`"
