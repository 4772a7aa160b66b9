"""Which paths of the REST interface are kept of a job that has ended.

Flink counterparts: the handlers that are a ``JsonArchivist``.  Flink keeps no metrics.
"""

from __future__ import annotations

from typing import Final

from yarnflow.rest.framework.route import Route
from yarnflow.rest.routes import SECTIONS

_J: Final = "/jobs/:jobid"
_V: Final = f"{_J}/vertices/:vertexid"
_S: Final = f"{_V}/subtasks/:subtaskindex"
_P: Final = "/applications/:applicationid"

#: of the job as a whole
OF_JOBS: Final = (
    _J,
    f"{_J}/status",
    f"{_J}/plan",
    f"{_J}/config",
    f"{_J}/exceptions",
    f"{_J}/execution-result",
    f"{_J}/accumulators",
    f"{_J}/resource-requirements",
    f"{_J}/logs",
    f"{_J}/jobmanager/config",
    f"{_J}/jobmanager/environment",
    f"{_J}/checkpoints",
    f"{_J}/checkpoints/config",
    f"{_J}/metrics",
)
#: what there may be many of, the most important first: the last ones give way in an archive that is too long
OF_PARTS: Final = (
    _V,
    f"{_V}/subtasktimes",
    f"{_V}/taskmanagers",
    f"{_V}/backpressure",
    f"{_V}/watermarks",
    f"{_V}/jm-operator-metrics",
    f"{_J}/checkpoints/details/:checkpointid",
    _S,
    f"{_V}/accumulators",
    f"{_V}/metrics",
    f"{_S}/attempts/:attempt",
    f"{_V}/subtasks/accumulators",
    f"{_S}/attempts/:attempt/accumulators",
)
OF_APPLICATIONS: Final = (_P, f"{_P}/exceptions", f"{_P}/jobmanager/config")
#: their archive has names with values, for whoever asks for either
METRICS: Final = frozenset({f"{_J}/metrics", f"{_V}/metrics", f"{_V}/jm-operator-metrics"})

_BY_PATH: Final = {
    route.path: route for routes in SECTIONS.values() for route in routes if route.method == "GET"
}


def archived_routes(paths: tuple[str, ...]) -> tuple[Route, ...]:
    """The routes of some of these paths."""
    return tuple(_BY_PATH[path] for path in paths)


def filled(path: str, values: dict[str, object]) -> str:
    """A path of a route with values in the places of its parameters."""
    return "/".join(str(values[part[1:]]) if part.startswith(":") else part for part in path.split("/"))
