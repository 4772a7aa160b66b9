"""The dashboard: files of a folder beside this package, sent as they are, to everybody.

They hold nothing of the cluster; a page that was loaded asks for the token that the data need, unless a
cookie lets it in.
"""

from __future__ import annotations

import mimetypes
from functools import cache
from pathlib import Path
from typing import Final

from starlette.responses import Response

from yarnflow.rest.framework.errors import RestError
from yarnflow.rest.framework.route import Call, TextFile
from yarnflow.rest.handlers import parameters as p
from yarnflow.rest.handlers.context import Cluster

FOLDER: Final = Path(__file__).parents[1] / "dashboard"


def index(cluster: Cluster, call: Call) -> Response:
    """The page that loads the others."""
    return Response(_content("index.html"), media_type="text/html; charset=UTF-8")


def file(cluster: Cluster, call: Call) -> TextFile:
    """One file of the dashboard."""
    return _file(call.get(p.DASHBOARD_FILE))


def file_in_folder(cluster: Cluster, call: Call) -> TextFile:
    """One file of one of its folders."""
    return _file(f"{call.get(p.DASHBOARD_FOLDER)}/{call.get(p.DASHBOARD_FILE)}")


def _file(name: str) -> TextFile:
    return TextFile(name, _content(name), media_type=_media_type(name))


@cache
def _names(folder: Path) -> frozenset[str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return frozenset(path.relative_to(folder).as_posix() for path in files)


def _content(name: str) -> bytes:
    if name not in _names(FOLDER):
        raise RestError(404, f"Unable to load requested file /dashboard/{name}.")
    return (FOLDER / name).read_bytes()


def _media_type(name: str) -> str:
    if name.endswith(".js"):
        return "text/javascript; charset=UTF-8"
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return f"{kind}; charset=UTF-8" if kind.startswith("text/") else kind
