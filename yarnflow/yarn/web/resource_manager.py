"""What YARN's ResourceManager tells over HTTP: applications, containers, queues, limits.

Decides how its JSON becomes the values of :mod:`yarnflow.core.yarn`, whichever scheduler it runs.
Never starts a JVM and never repeats a call.  Flink counterpart: the uses of ``YarnClient`` in
``YarnClusterDescriptor``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from yarnflow.core.yarn import (
    Application,
    ApplicationState,
    ClusterLimits,
    FinalStatus,
    Queue,
    YarnContainer,
)
from yarnflow.errors import ApplicationNotFound, YarnError
from yarnflow.yarn.web.http import RemoteFailure, WebServices

_APPLICATION_ID: Final = re.compile(r"application_\d+_\d+")
_CLUSTER: Final = "/ws/v1/cluster"
#: statuses of YARN that mean "you may not"
_DENIED: Final = (401, 403)
#: of YARN's ``LogAggregationStatus``, those that are followed by others
_COLLECTING: Final = ("NOT_START", "RUNNING", "RUNNING_WITH_FAILURE")


class ResourceManagerRest:
    """:class:`yarnflow.core.yarn.YarnCluster` over the ResourceManager's web services.

    Parameters
    ----------
    addresses : sequence of str
        ``host:port`` or ``http(s)://host:port`` of every ResourceManager; the active one is found.
    user : str
        Who asks, where there is no Kerberos.
    timeout_ms : int
        To wait for each answer.
    """

    def __init__(self, addresses: Sequence[str], user: str, *, timeout_ms: int = 10_000) -> None:
        self._services = WebServices(
            addresses,
            user,
            what="YARN's ResourceManager",
            advice="start YARN, or correct yarn.resourcemanager.webapp.address in HADOOP_CONF_DIR",
            timeout_ms=timeout_ms,
        )

    def application(self, application_id: str) -> Application:
        """Report of one application.  Raises ApplicationNotFound."""
        return _application(self._about(application_id, "")["app"])

    def applications(
        self, *, tag: str = "", user: str = "", states: Sequence[ApplicationState] = ()
    ) -> Sequence[Application]:
        """Reports of the applications that have all that is asked for, oldest first."""
        parameters = {"applicationTags": tag, "user": user, "states": ",".join(s.value for s in states)}
        answer = self._services.get(f"{_CLUSTER}/apps", **{k: v for k, v in parameters.items() if v})
        found = [_application(app) for app in _entries(answer.get("apps"), "app")]
        return sorted(found, key=lambda application: (application.started_ms, application.application_id))

    def queues(self) -> Sequence[Queue]:
        info = self._services.get(f"{_CLUSTER}/scheduler")["scheduler"]["schedulerInfo"]
        match str(info.get("type", "")):
            case "capacityScheduler":
                return list(_capacity_queues(info, "", 1.0))
            case "fairScheduler":
                return list(_fair_queues(info["rootQueue"], _memory(info["rootQueue"], "clusterResources")))
            case _:
                return [_fifo_queue(info)]

    def limits(self) -> ClusterLimits:
        """The largest container that can ever be had, and the state of the cluster.

        No container is larger than the largest node, whatever the scheduler's maximum is; -1 = YARN
        does not say.
        """
        metrics = self._services.get(f"{_CLUSTER}/metrics")["clusterMetrics"]
        nodes = _entries(self._services.get(f"{_CLUSTER}/nodes", states="RUNNING").get("nodes"), "node")
        info = self._services.get(f"{_CLUSTER}/scheduler")["scheduler"]["schedulerInfo"]
        maximum = info.get("maximumAllocation")
        memory = [_integer(n, "usedMemoryMB") + _integer(n, "availMemoryMB") for n in nodes]
        vcores = [_integer(n, "usedVirtualCores") + _integer(n, "availableVirtualCores") for n in nodes]
        bounds = [(max(memory, default=-1), max(vcores, default=-1))]
        if isinstance(maximum, dict):
            bounds.append((_integer(maximum, "memory"), _integer(maximum, "vCores")))
        return ClusterLimits(
            max_memory_mib=min((mib for mib, _ in bounds if mib > 0), default=-1),
            max_vcores=min((cores for _, cores in bounds if cores > 0), default=-1),
            total_memory_mib=_integer(metrics, "totalMB"),
            available_memory_mib=_integer(metrics, "availableMB"),
            total_vcores=_integer(metrics, "totalVirtualCores"),
            available_vcores=_integer(metrics, "availableVirtualCores"),
            active_nodes=_integer(metrics, "activeNodes"),
        )

    def containers(self, application_id: str) -> Sequence[YarnContainer]:
        """Live containers of the application's newest attempt; none before its begin and after its end."""
        attempts = _entries(self._about(application_id, "/appattempts").get("appAttempts"), "appAttempt")
        if not attempts:
            return []
        newest = max(attempts, key=lambda attempt: _integer(attempt, "id"))
        attempt_id = str(newest.get("appAttemptId", ""))
        try:
            answer = self._about(application_id, f"/appattempts/{attempt_id}/containers")
        except ApplicationNotFound:
            # the attempt ended just now
            return []
        return [_container(entry) for entry in _entries(answer, "container")]

    def set_priority(self, application_id: str, priority: int) -> None:
        """Priority among the applications of the queue."""
        self._change(application_id, "priority", {"priority": priority})

    def kill(self, application_id: str) -> None:
        """End an application by force.  Idempotent; raises ApplicationNotFound."""
        self._change(application_id, "state", {"state": ApplicationState.KILLED.value})

    def close(self) -> None:
        self._services.close()

    def _about(self, application_id: str, rest: str) -> Mapping[str, Any]:
        _check_id(application_id)
        try:
            return self._services.get(f"{_CLUSTER}/apps/{application_id}{rest}")
        except RemoteFailure as error:
            raise _translated(error, application_id) from error

    def _change(self, application_id: str, what: str, body: Mapping[str, Any]) -> None:
        _check_id(application_id)
        try:
            self._services.put(f"{_CLUSTER}/apps/{application_id}/{what}", body)
        except RemoteFailure as error:
            raise _translated(error, application_id) from error


def _check_id(application_id: str) -> None:
    if not _APPLICATION_ID.fullmatch(application_id):
        raise ApplicationNotFound(
            f"{application_id!r} is not an application's id; ids look like application_1700000000000_0001"
        )


def _translated(error: RemoteFailure, application_id: str) -> YarnError:
    if error.status in (400, 404) and "not found" in error.reason.lower():
        return ApplicationNotFound(
            f"YARN does not know {application_id} (any more); `yarnflow list` shows those there are"
        )
    if error.status in _DENIED:
        return YarnError(
            f"you may not do this with {application_id}: {error.reason or 'access denied'}; ask its owner "
            "or have yarn.modify.acls name you"
        )
    return error


def _application(app: Mapping[str, Any]) -> Application:
    tags = str(app.get("applicationTags") or "")
    return Application(
        application_id=str(app["id"]),
        name=str(app.get("name", "")),
        user=str(app.get("user", "")),
        queue=str(app.get("queue", "")),
        state=ApplicationState(app["state"]),
        final_status=_final_status(str(app.get("finalStatus", ""))),
        tags=tuple(sorted(tag for tag in tags.split(",") if tag)),
        diagnostics=str(app.get("diagnostics") or "").strip(),
        tracking_url=str(app.get("trackingUrl") or ""),
        progress=float(app.get("progress", 0.0)) / 100,
        started_ms=_time_ms(app, "startedTime"),
        finished_ms=_time_ms(app, "finishedTime"),
        running_containers=max(0, _integer(app, "runningContainers")),
        master_node=str(app.get("amHostHttpAddress") or ""),
        attempt_id=str(app.get("currentAppAttemptId") or ""),
        collecting_logs=app["logAggregationStatus"] in _COLLECTING if "logAggregationStatus" in app else None,
    )


def _final_status(text: str) -> FinalStatus:
    try:
        return FinalStatus(text)
    except ValueError:
        return FinalStatus.UNDEFINED


def _container(entry: Mapping[str, Any]) -> YarnContainer:
    live = str(entry.get("containerState", "")) != "COMPLETE"
    return YarnContainer(
        container_id=str(entry.get("containerId", "")),
        node=_host_port(str(entry.get("nodeHttpAddress") or "")),
        state=str(entry.get("containerState") or ""),
        started_ms=_time_ms(entry, "startedTime"),
        memory_mib=_integer(entry, "allocatedMB"),
        diagnostics=str(entry.get("diagnosticsInfo") or "").strip(),
        exit_status=None if live else _integer(entry, "containerExitStatus"),
    )


def _host_port(address: str) -> str:
    return address.removeprefix("http://").removeprefix("https://").rstrip("/")


def _capacity_queues(info: Mapping[str, Any], parent: str, share: float) -> Iterator[Queue]:
    """A queue and those below it; ``share`` of the cluster is the parent's at most."""
    name = str(info.get("queueName", "root"))
    path = str(info.get("queuePath") or (f"{parent}.{name}" if parent else name))
    children = _entries(info.get("queues"), "queue")
    largest = share * _number(info, "maxCapacity", 100.0) / 100
    absolute = _number(info, "absoluteCapacity", _number(info, "capacity"))
    maximum = info.get("maximumAllocation")
    bounds = maximum if isinstance(maximum, dict) else {}
    yield Queue(
        name=name,
        path=path,
        state=str(info.get("state") or "RUNNING"),
        capacity_percent=absolute,
        max_capacity_percent=_number(info, "absoluteMaxCapacity", largest * 100),
        used_percent=_number(info, "absoluteUsedCapacity", _number(info, "usedCapacity")),
        pending_containers=_integer(info, "pendingContainers", 0),
        leaf=not children and info.get("queueType", "leaf") != "parent",
        max_memory_mib=_integer(bounds, "memory"),
        max_vcores=_integer(bounds, "vCores"),
        creates_children=bool(info.get("autoCreateChildQueueEnabled"))
        or str(info.get("autoCreationEligibility", "off")) != "off",
    )
    for child in children:
        yield from _capacity_queues(child, path, largest)


def _fair_queues(info: Mapping[str, Any], cluster_mib: int) -> Iterator[Queue]:
    path = str(info.get("queueName", "root"))
    children = _entries(info.get("childQueues"), "queue")

    def percent(key: str) -> float:
        memory_mib = _memory(info, key)
        return 100.0 * memory_mib / cluster_mib if memory_mib >= 0 and cluster_mib > 0 else -1.0

    maximum = info.get("maxContainerAllocation")
    bounds = maximum if isinstance(maximum, dict) else {}
    yield Queue(
        name=path.rpartition(".")[2],
        path=path,
        capacity_percent=percent("steadyFairResources"),
        max_capacity_percent=min(100.0, percent("maxResources")),
        used_percent=percent("usedResources"),
        pending_containers=_integer(info, "pendingContainers", 0),
        leaf=not children,
        max_memory_mib=_integer(bounds, "memory"),
        max_vcores=_integer(bounds, "vCores"),
        # unless allow-undeclared-pools is off, which nothing tells
        creates_children=True,
    )
    for child in children:
        yield from _fair_queues(child, cluster_mib)


def _fifo_queue(info: Mapping[str, Any]) -> Queue:
    return Queue(
        name="default",
        path="root.default",
        state=str(info.get("qstate") or "RUNNING"),
        capacity_percent=100.0,
        max_capacity_percent=100.0,
        used_percent=100 * _number(info, "usedCapacity", -0.01),
    )


def _entries(value: Any, key: str) -> list[Mapping[str, Any]]:
    """A list that YARN leaves out, or sends as null or as a single object, when it is short."""
    found = value.get(key) if isinstance(value, dict) else None
    if found is None:
        return []
    return [found] if isinstance(found, dict) else list(found)


def _integer(entry: Mapping[str, Any], key: str, default: int = -1) -> int:
    value = entry.get(key)
    return default if value is None else int(value)


def _number(entry: Mapping[str, Any], key: str, default: float = -1.0) -> float:
    value = entry.get(key)
    return default if value is None else float(value)


def _memory(info: Mapping[str, Any], key: str) -> int:
    resource = info.get(key)
    return _integer(resource, "memory") if isinstance(resource, dict) else -1


def _time_ms(entry: Mapping[str, Any], key: str) -> int:
    """YARN says 0 for what has not happened."""
    return _integer(entry, key) or -1
