"""Options of the JobManager's REST interface and dashboard."""

from __future__ import annotations

from typing import Final

from yarnflow.config import declare
from yarnflow.config.option import ConfigOption, Scope

_CLUSTER = Scope.CLUSTER

REST_PORT: Final[ConfigOption[int]] = declare.integer(
    "rest.port",
    8081,
    _CLUSTER,
    "Port of the JobManager's REST interface and dashboard, unless rest.bind-port is set; 0 = any free port, "
    "-1 = there is no REST interface. A local cluster takes any free port unless one of the two is set, and "
    "so does a cluster on YARN, where the interface is always on and is reached through YARN's own web page.",
    at_least=-1,
    at_most=65535,
    deprecated_keys=("web.port", "jobmanager.web.port"),
)
REST_BIND_PORT: Final[ConfigOption[str]] = declare.ports(
    "rest.bind-port",
    "8081-8180",
    _CLUSTER,
    "Port that the REST interface listens on; a range is tried in order. If it is not set and rest.port is, "
    "that port is taken or none.",
)
REST_ADDRESS: Final[ConfigOption[str]] = declare.string(
    "rest.address",
    "",
    _CLUSTER,
    "Host name or address under which browsers and clients reach the REST interface; empty = that of "
    "jobmanager.rpc.address.",
)
REST_BIND_ADDRESS: Final[ConfigOption[str]] = declare.string(
    "rest.bind-address",
    "",
    _CLUSTER,
    "Local address the REST interface is served at; empty = that of jobmanager.bind-host.",
    deprecated_keys=("web.address", "jobmanager.web.address"),
)
REST_AUTHENTICATION: Final[ConfigOption[bool]] = declare.boolean(
    "rest.authentication.enabled",
    True,
    _CLUSTER,
    "Requests need a token of the cluster: one that may only read, or one that may change something. Both "
    "follow from the cluster's secret; the JobManager writes them to the file rest-tokens.json in the "
    "cluster's directory, which only its owner can read, and yarnflow token prints them. Browsers are let in "
    "by the link that yarnflow dashboard prints. Who comes through YARN's web proxy, which knows its users, "
    "may read without one; so may, in this release and where the cluster is not on YARN, whoever asks from "
    "the JobManager's own machine. With false everybody who can connect may read and change everything.",
)
REST_ALLOWED_HOSTS: Final[ConfigOption[str]] = declare.string(
    "rest.allowed-hosts",
    "",
    _CLUSTER,
    "Further host names, separated by commas, by which the REST interface and the history server may be "
    "asked for, such as that of a gateway or ingress; .example.com stands for all names that end so, * for "
    "all names. Requests by others are refused, as pages of other sites could be shown by them: addresses, "
    "localhost, rest.address, jobmanager.rpc.address and the machine's own names are always taken.",
)
REST_THREADS: Final[ConfigOption[int]] = declare.integer(
    "rest.server.numThreads",
    4,
    _CLUSTER,
    "Requests that are worked on at the same time; further ones wait. As many more may wait for an answer of "
    "TaskManagers and drivers.",
    at_least=1,
    at_most=64,
)
REST_STORE_DURATION_MS: Final[ConfigOption[int]] = declare.duration(
    "rest.async.store-duration",
    "5 min",
    _CLUSTER,
    "How long the outcome of a savepoint, checkpoint or disposal that was begun by REST can be asked for.",
)
WEB_REFRESH_INTERVAL_MS: Final[ConfigOption[int]] = declare.duration(
    "web.refresh-interval",
    "3 s",
    _CLUSTER,
    "Time after which a dashboard asks again for what it is not told by itself.",
    at_least="100 ms",
)
WEB_SUBMIT_ENABLE: Final[ConfigOption[bool]] = declare.boolean(
    "web.submit.enable",
    False,
    _CLUSTER,
    "Programs can be uploaded to the REST interface and run there. Whoever may write to it then runs any "
    "code as the user of the JobManager. Default: true where requests need a token "
    "(rest.authentication.enabled). Clusters that live for one job or program take no others.",
    deprecated_keys=("jobmanager.web.submit.enable",),
)
WEB_SUBMIT_TIMEOUT_MS: Final[ConfigOption[int]] = declare.duration(
    "web.submit.timeout",
    "2 min",
    _CLUSTER,
    "How long the main() of an uploaded program may take until its jobs are submitted; then it is ended. "
    "10 minutes are the most.",
    at_least="1 s",
)
WEB_UPLOAD_DIR: Final[ConfigOption[str]] = declare.string(
    "web.upload.dir",
    "",
    _CLUSTER,
    "Directory of the JobManager's machine in which uploaded programs are kept; empty = in the cluster's own "
    "directory.",
    deprecated_keys=("jobmanager.web.upload.dir",),
)
WEB_UPLOAD_MAX_BYTES: Final[ConfigOption[int]] = declare.size(
    "web.upload.max-size",
    "32 mb",
    _CLUSTER,
    "Size of the largest program that can be uploaded; unpacked it may have four times as much.",
)
