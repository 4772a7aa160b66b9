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
    "jobmanager.rpc.address, yarn-per-job and yarn-application = a cluster of its own on YARN (with main() "
    "on the client or beside the JobManager), yarn-session = a running session on YARN.",
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
ON_EXISTING: Final[ConfigOption[str]] = declare.choice(
    "client.on-existing",
    "attach",
    ("attach", "fail", "replace"),
    Scope.CLIENT,
    "What a submit does when a live job has its key: attach = follow that job, fail = end with an error, "
    "replace = cancel it and submit.",
)
SHUTDOWN_ON_ATTACHED_EXIT: Final[ConfigOption[bool]] = declare.boolean(
    "execution.shutdown-on-attached-exit",
    False,
    Scope.CLIENT,
    "Whether interrupting an attached submit cancels a job whose cluster outlives the command.",
)
