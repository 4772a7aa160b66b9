"""Options of the command line and other clients."""

from __future__ import annotations

from typing import Final

from yarnflow.config import declare
from yarnflow.config.option import ConfigOption, Scope

TARGET: Final[ConfigOption[str]] = declare.string(
    "execution.target",
    "local",
    Scope.CLIENT,
    "Where a job is submitted: local = a cluster of its own on this machine, remote = the cluster at "
    "jobmanager.rpc.address.",
)
ATTACHED: Final[ConfigOption[bool]] = declare.boolean(
    "execution.attached",
    True,
    Scope.CLIENT,
    "Whether a submit shows the job until it ends; else it returns once the job is accepted.",
)
CLIENT_TIMEOUT_MS: Final[ConfigOption[int]] = declare.duration(
    "client.timeout",
    "60 s",
    Scope.CLIENT,
    "How long a client waits for an answer of the cluster before it gives up.",
)
VIEW_REFRESH_MS: Final[ConfigOption[int]] = declare.duration(
    "client.view.refresh-interval",
    "500 ms",
    Scope.CLIENT,
    "Time between two updates of the view of a running job.",
)
