"""The dashboard: files of a folder beside this package, sent as they are."""

from __future__ import annotations

import mimetypes
from functools import cache
from pathlib import Path
from typing import Final

from starlette.responses import Response

from yarnflow.core.checkpoint.messages import JobCheckpoints
from yarnflow.core.ids import JobId
from yarnflow.errors import YarnflowError
from yarnflow.rest.framework.errors import RestError
from yarnflow.rest.framework.route import Call, TextFile
from yarnflow.rest.handlers import parameters as p
from yarnflow.rest.handlers.context import Cluster
from yarnflow.rest.handlers.page import overview_page

FOLDER: Final = Path(__file__).parents[1] / "dashboard"
_INDEX: Final = "index.html"


def index(cluster: Cluster, call: Call) -> Response:
    """The dashboard; without its files, one page."""
    if (FOLDER / _INDEX).is_file():
        return Response(_content(_INDEX), media_type="text/html; charset=UTF-8")
    if not call.may_read:
        raise RestError(401, "a token of the cluster is needed")
    jobs = cluster.view.jobs()
    checkpoints: dict[JobId, JobCheckpoints] = {}
    for details in jobs:
        try:
            checkpoints[details.overview.job_id] = cluster.view.job_checkpoints(details.overview.job_id)
        except YarnflowError:
            pass  # a job that is just going; the page is good without them
    text = overview_page(
        cluster.view.cluster_overview(), jobs, cluster.view.task_managers(), cluster.now_ms(), checkpoints
    )
    made = Response(text, media_type="text/html; charset=UTF-8")
    made.headers["content-security-policy"] = "default-src 'none'; style-src 'unsafe-inline'"
    return made


def file(cluster: Cluster, call: Call) -> TextFile:
    """One file of the dashboard."""
    name = call.get(p.DASHBOARD_FILE)
    try:
        content = _content(name)
    except OSError:
        raise RestError(404, f"Unable to load requested file /dashboard/{name}.") from None
    return TextFile(name, content, media_type=_media_type(name))


@cache
def _names(folder: Path) -> frozenset[str]:
    return frozenset(entry.name for entry in folder.iterdir() if entry.is_file())


def _content(name: str) -> bytes:
    if name not in _names(FOLDER):
        raise FileNotFoundError(name)
    return (FOLDER / name).read_bytes()


def _media_type(name: str) -> str:
    if name.endswith(".js"):
        return "text/javascript; charset=UTF-8"
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return f"{kind}; charset=UTF-8" if kind.startswith("text/") else kind
