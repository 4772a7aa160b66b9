"""The whole REST interface as one ASGI application, and what describes it."""

from __future__ import annotations

from functools import cache
from typing import Final

import msgspec
from starlette.types import ASGIApp

from yarnflow import __version__
from yarnflow.rest.framework.application import Application, HandlerPool
from yarnflow.rest.framework.authentication import Authentication
from yarnflow.rest.framework.openapi import document, page
from yarnflow.rest.framework.route import Call, Route
from yarnflow.rest.framework.sign_in import SignIn
from yarnflow.rest.framework.uploads import Uploads
from yarnflow.rest.handlers.context import Cluster
from yarnflow.rest.routes import SECTIONS

_TITLE: Final = "yarnflow REST interface"
_INTRODUCTION: Final = """\
The JobManager's interface for programs, with Flink's paths, JSON keys and status codes wherever yarnflow
has the thing. Each path is also below `/v1`. Errors have Flink's shape, `{"errors": ["…"]}`. Numbers are
measured; what nobody has measured is null, left out, or said to be incomplete. `GET /openapi.json` is the
same as an OpenAPI document.

**Where.** `rest.port`, by default the first free port from 8081; on YARN the tracking URL of the
application leads there. A master that stands by passes each request on to the leader.

**Tokens.** Unless `rest.authentication.enabled` is false, a request needs `Authorization: Bearer TOKEN` or
`X-Yarnflow-Token: TOKEN`; one token of the cluster may only read. Browsers are let in by the link of
`yarnflow dashboard`. How each client sends a token, and by which host names a request may come, stands in
[Reaching the REST interface](../rest-access.md).
YARN's web proxy passes on neither header, and no method but GET and PUT: through it everybody it lets in
may read, and `yarn-cancel` and `yarn-stop` take the token in the body of a PUT, `{"token": "…"}`, or in the
query of a GET, which ends up in logs.

**Operations.** What takes long is begun by a request, which is answered with 202 and a `request-id`. The id
is asked for the outcome: `IN_PROGRESS`, or `COMPLETED` with `operation.location` or `operation.failure-
cause`. An outcome is kept for `rest.async.store-duration` and does not outlive the leader: another one
answers 404. A client that chooses its own `triggerId` may ask again without a second savepoint.

**Savepoints** have one format, yarnflow's. `formatType` may be either of Flink's two and changes nothing;
with `cancel-job` nothing is read after the savepoint, and the job ends FINISHED.

**Events.** `GET /jobs/:jobid/events` is a stream of server-sent events: `state` and `checkpoint` as they
happen, `progress` once a second at most. It ends with the job. `Last-Event-ID` goes on behind that event.

**Programs.** `/jars` takes Python files and .zip archives where `web.submit.enable` is on, which it is by
default unless `rest.authentication.enabled` is false. Whoever may write runs any code there as the user of
the JobManager. main()
of a program runs in a process of its own beside the JobManager, for `web.submit.timeout` at most, and
submits its jobs as `yarnflow submit -d` does; the answer names the first one. A job of the same name that
runs already is answered again, unless `client.on-existing` in `flinkConfiguration` says otherwise.
`entryClass` names the module of an archive that is run; without it that is `__main__.py`, or the only module
there. Files are on the machine of the leader: another leader does not have them, unless `web.upload.dir` is
a directory that all masters share.

**Files.** Logs are sent as a whole up to 4 MiB, else their end; `Range: bytes=…` gives any part.
"""


def _openapi(cluster: Cluster, call: Call) -> msgspec.Raw:
    """This interface as an OpenAPI document."""
    return msgspec.Raw(openapi_json())


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
    programs = cluster.programs
    uploads = None if programs is None else Uploads(programs.store.new_body, programs.max_bytes)
    return SignIn(Application(ROUTES, cluster, authentication, pool, uploads), authentication)
