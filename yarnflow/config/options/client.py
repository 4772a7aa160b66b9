"""Options of the command line and other clients."""

from __future__ import annotations

from typing import Final

from yarnflow.config import declare
from yarnflow.config.option import ConfigOption, Scope

TARGET: Final[ConfigOption[str]] = declare.string(
    "execution.target",
    "local",
    Scope.CLIENT,
    "Where a job is submitted: local = a new cluster for this job on this machine, remote = the cluster at "
    "jobmanager.rpc.address, yarn-per-job and yarn-application = a new cluster on YARN (main() runs on the "
    "client or in the master's container), yarn-session = a running session on YARN.",
)
ATTACHED: Final[ConfigOption[bool]] = declare.boolean(
    "execution.attached",
    True,
    Scope.CLIENT,
    "Whether a submit shows the job until it ends; else it returns when the job is accepted.",
)
CLIENT_TIMEOUT_MS: Final[ConfigOption[int]] = declare.duration(
    "client.timeout",
    "60 s",
    Scope.CLIENT,
    "How long a client waits for an answer of the cluster before it fails.",
    deprecated_keys=("akka.client.timeout",),
)
DISCOVERY_TIMEOUT_MS: Final[ConfigOption[int]] = declare.duration(
    "client.discovery.timeout",
    "5 s",
    Scope.CLIENT,
    "How long a command that looks for clusters (list, or a command about a job that names no cluster) "
    "waits for each of them, and for YARN.",
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
    "Whether interrupting an attached submit cancels a job on a cluster that continues after the command "
    "has ended.",
)
