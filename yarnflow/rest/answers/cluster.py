"""The cluster and its JobManager in the shapes of Flink's REST answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from yarnflow.core.ha.ports import Leadership
from yarnflow.core.messages import ClusterOverview
from yarnflow.core.resources.diagnostics import LogFile, ThreadInfo
from yarnflow.rest.answers.shapes import Camel, Kebab


class Overview(Kebab):
    """``GET /overview``."""

    taskmanagers: int
    slots_total: int
    slots_available: int
    jobs_running: int
    jobs_finished: int
    jobs_cancelled: int
    jobs_failed: int
    #: yarnflow's own: clients of Flink's REST interface look for it
    flink_version: str
    flink_commit: str


class Features(Kebab):
    """What the dashboard offers."""

    web_submit: bool
    web_cancel: bool
    web_rescale: bool
    web_history: bool


class DashboardConfiguration(Kebab):
    """``GET /config``."""

    refresh_interval: int
    timezone_name: str
    timezone_offset: int
    flink_version: str
    flink_revision: str
    features: Features


class ConfigurationEntry(msgspec.Struct):
    """One option."""

    key: str
    value: str


class Runtime(msgspec.Struct):
    """What runs the JobManager: Python."""

    version: str
    arch: str
    options: list[str]


class Environment(msgspec.Struct):
    """``GET /jobmanager/environment``."""

    #: Flink's name; the JobManager has no JVM
    jvm: Runtime
    classpath: list[str]


class LeadingMaster(Kebab):
    """The master that leads."""

    #: of this leadership
    id: str
    #: Thrift, ``host:port``
    address: str
    #: empty = it has none
    web_address: str
    #: number of the leadership; each is higher than those before
    epoch: int
    #: when it was granted
    since: int


class StandbyMaster(Kebab):
    """A master that stands by."""

    #: new for every process
    id: str
    address: str
    web_address: str
    host: str
    pid: int
    #: of YARN; empty elsewhere
    application_id: str


class LeadershipAnswer(msgspec.Struct):
    """``GET /jobmanager/leadership``."""

    leader: LeadingMaster
    #: the one that leads next first
    standbys: list[StandbyMaster]


class Log(msgspec.Struct):
    """One file."""

    name: str
    size: int
    mtime: int


class LogList(msgspec.Struct):
    """Files of a process."""

    logs: list[Log]


class Thread(Camel):
    """One thread."""

    thread_name: str
    stringified_thread_info: str


class ThreadDump(Camel):
    """All threads of a process."""

    thread_infos: list[Thread]


def overview(cluster: ClusterOverview, commit: str = "") -> Overview:
    """``GET /overview``."""
    return Overview(
        taskmanagers=cluster.task_managers,
        slots_total=cluster.slots_total,
        slots_available=cluster.slots_available,
        jobs_running=cluster.jobs_running,
        jobs_finished=cluster.jobs_finished,
        jobs_cancelled=cluster.jobs_canceled,
        jobs_failed=cluster.jobs_failed,
        flink_version=cluster.version,
        flink_commit=commit,
    )


def dashboard_configuration(
    refresh_interval_ms: int, version: str, revision: str, now: datetime, features: Features
) -> DashboardConfiguration:
    """``GET /config``.

    Parameters
    ----------
    now : datetime
        With the time zone of this machine.
    """
    offset = now.utcoffset()
    return DashboardConfiguration(
        refresh_interval=refresh_interval_ms,
        timezone_name=now.tzname() or "",
        timezone_offset=0 if offset is None else int(offset.total_seconds() * 1000),
        flink_version=version,
        flink_revision=revision,
        features=features,
    )


def configuration(options: Mapping[str, str]) -> list[ConfigurationEntry]:
    """Options, secrets hidden already, by key."""
    return [ConfigurationEntry(key, value) for key, value in sorted(options.items())]


def leadership(masters: Leadership) -> LeadershipAnswer:
    """``GET /jobmanager/leadership``."""
    leader = masters.leader
    return LeadershipAnswer(
        LeadingMaster(
            id=leader.fence.leader_id,
            address=leader.address,
            web_address=leader.web_address,
            epoch=leader.fence.epoch,
            since=masters.since_ms,
        ),
        [
            StandbyMaster(
                id=master.master_id,
                address=master.address,
                web_address=master.web_address,
                host=master.host,
                pid=master.pid,
                application_id=master.application_id,
            )
            for master in masters.standbys
        ],
    )


def log_list(files: Iterable[LogFile]) -> LogList:
    """Files of a process."""
    return LogList([Log(file.name, file.size_bytes, file.modified_ms) for file in files])


def thread_dump(threads: Sequence[ThreadInfo]) -> ThreadDump:
    """All threads of a process."""
    return ThreadDump(
        thread_infos=[
            Thread(thread_name=thread.name, stringified_thread_info=thread.stack) for thread in threads
        ]
    )
