"""The whole REST interface as one ASGI application, and what describes it."""

from __future__ import annotations

from functools import cache
from typing import Final

import msgspec
from starlette.responses import Response
from starlette.types import ASGIApp

from yarnflow import __version__
from yarnflow.rest.framework.application import Application, HandlerPool
from yarnflow.rest.framework.authentication import Authentication
from yarnflow.rest.framework.errors import JSON
from yarnflow.rest.framework.openapi import document, page
from yarnflow.rest.framework.route import Call, Route
from yarnflow.rest.handlers.context import Cluster
from yarnflow.rest.routes import SECTIONS

_TITLE: Final = "yarnflow REST interface"
_INTRODUCTION: Final = """\
The JobManager's interface for programs, with Flink's paths, JSON keys and status codes wherever yarnflow has the
thing. Each path is also below `/v1`. Errors have Flink's shape, `{"errors": ["…"]}`. Numbers are measured; what
nobody has measured is null, left out, or said to be incomplete. `GET /openapi.json` is the same as an OpenAPI
document.
"""


def _openapi(cluster: Cluster, call: Call) -> Response:
    """This interface as an OpenAPI document."""
    return Response(openapi_json(), media_type=JSON)


ROUTES: Final[tuple[Route, ...]] = (
    *(route for routes in SECTIONS.values() for route in routes),
    Route("GET", "/openapi.json", _openapi, "This interface as an OpenAPI document", ours=True),
)


@cache
def openapi_json() -> bytes:
    """The OpenAPI document."""
    return msgspec.json.encode(document(ROUTES, _TITLE, __version__, _INTRODUCTION))


def rest_markdown() -> str:
    """``docs/api/rest.md``."""
    return page(SECTIONS, _INTRODUCTION)


def application(cluster: Cluster, authentication: Authentication, pool: HandlerPool) -> ASGIApp:
    """The REST interface of a leading JobManager."""
    return Application(ROUTES, cluster, authentication, pool)
