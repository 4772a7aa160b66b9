"""Would YARN take this application at all?  Asked before anything is uploaded or submitted.

Decides which errors a queue or a size lead to, and says how full a queue is.  Never refuses what
waiting could cure.  Flink counterpart: ``YarnClusterDescriptor``'s checks of
queue and ``ClusterResourceNotSatisfied``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from yarnflow.core.yarn import ApplicationSpec, ClusterLimits, Queue, YarnCluster
from yarnflow.errors import QueueUnavailable, RequestTooLarge

_QUEUE_OPTION: Final = "yarn.application.queue"


def check_application(spec: ApplicationSpec, cluster: YarnCluster) -> None:
    """Queue and containers of an application are possible.

    Raises
    ------
    QueueUnavailable
        The queue does not exist, is not a leaf or is stopped; the message names those there are.
    RequestTooLarge
        A container is above YARN's maximum, or the queue may never have all masters and a TaskManager at
        the same time; with both numbers.
    """
    queue = find_queue(cluster.queues(), spec.queue)
    limits = cluster.limits()
    if queue is not None:
        check_room(queue, limits, spec.master.memory_mib, spec.task_manager.memory_mib, spec.masters)
    master_options = "jobmanager.memory.process.size and driver.memory.process.size"
    containers = [
        ("ApplicationMaster", master_options, "yarn.appmaster.vcores", spec.master),
        ("TaskManager", "taskmanager.memory.process.size", "yarn.containers.vcores", spec.task_manager),
    ]
    if spec.driver is not None:
        driver_options = "driver.memory.process.size or yarn.driver.memory-overhead"
        containers.append(("driver", driver_options, "yarn.driver.vcores", spec.driver))
    for what, memory_option, vcores_option, container in containers:
        most_mib = _maximum(limits.max_memory_mib, queue, "MiB")
        _check(what, "MiB", container.memory_mib, most_mib, memory_option)
        _check(what, "vcores", container.vcores, _maximum(limits.max_vcores, queue, "vcores"), vcores_option)


def check_room(
    queue: Queue, limits: ClusterLimits, master_mib: int, task_manager_mib: int, masters: int = 1
) -> None:
    """The queue's bound has room for all masters and one TaskManager.

    Raises
    ------
    RequestTooLarge
        It never has, with the nodes there are.
    """
    if not 0 <= queue.max_capacity_percent < 100 or limits.total_memory_mib <= 0:
        return
    room_mib = int(limits.total_memory_mib * queue.max_capacity_percent / 100)
    needed_mib = masters * master_mib + task_manager_mib
    if room_mib < needed_mib:
        several = masters > 1
        who = f"{masters} masters ({master_mib} MiB each)" if several else f"a master ({master_mib} MiB)"
        fewer = ", smaller sizes or fewer masters (high-availability.jobmanagers)"
        raise RequestTooLarge(
            f"queue {queue.path} may use {room_mib} MiB at most, but {who} and one TaskManager "
            f"({task_manager_mib} MiB) need {needed_mib} MiB; choose another queue ({_QUEUE_OPTION})"
            + (fewer if several else " or smaller sizes")
        )


def find_queue(queues: Sequence[Queue], name: str) -> Queue | None:
    """The queue by the last part of its name or its whole path; None = YARN may make it.

    Raises
    ------
    QueueUnavailable
        As above.
    """
    queue = next((queue for queue in queues if name in (queue.path, queue.name)), None)
    if queue is None:
        if any(queue.creates_children for queue in queues):
            return None
        raise QueueUnavailable(f"YARN has no queue {name} ({_QUEUE_OPTION}); there are: {_names(queues)}")
    if not queue.leaf and not queue.creates_children:
        below = [child for child in queues if child.path.startswith(f"{queue.path}.")]
        raise QueueUnavailable(
            f"queue {queue.path} ({_QUEUE_OPTION}) has queues below it, and only those take applications: "
            f"{_names(below)}"
        )
    if queue.state != "RUNNING":
        others = [other for other in queues if other is not queue]
        raise QueueUnavailable(
            f"queue {queue.path} ({_QUEUE_OPTION}) is {queue.state.lower()} and takes no applications; "
            f"others: {_names(others)}"
        )
    return queue


def outlook(queue: Queue, limits: ClusterLimits, memory_mib: int) -> str:
    """Half a sentence on how full a queue is, for people who wait for containers of ``memory_mib``."""
    said = f"queue {queue.path} is at {_percent(queue.used_percent)} of the cluster"
    if queue.capacity_percent >= 0 and queue.max_capacity_percent >= 0:
        guaranteed, most = _percent(queue.capacity_percent), _percent(queue.max_capacity_percent)
        said += f" ({guaranteed} guaranteed, {most} at most)"
    said += f", which has {limits.available_memory_mib} MiB of {limits.total_memory_mib} MiB free"
    if limits.active_nodes == 0:
        return f"{said}: YARN has no running NodeManager"
    bound_mib = int(limits.total_memory_mib * queue.max_capacity_percent / 100)
    if 0 <= bound_mib < memory_mib:
        return (
            f"{said}: one container needs {memory_mib} MiB, and all applications of the queue together may "
            f"have {bound_mib} MiB"
        )
    return said


def _maximum(cluster_wide: int, queue: Queue | None, unit: str) -> tuple[int, str]:
    of_queue = -1 if queue is None else queue.max_memory_mib if unit == "MiB" else queue.max_vcores
    if queue is not None and of_queue > 0 and (cluster_wide < 0 or of_queue < cluster_wide):
        return of_queue, f"queue {queue.path} gives"
    return cluster_wide, "YARN gives"


def _check(what: str, unit: str, asked: int, maximum: tuple[int, str], option: str) -> None:
    largest, giver = maximum
    if 0 < largest < asked:
        raise RequestTooLarge(
            f"a container of {asked} {unit} for the {what} is more than the {largest} {unit} that {giver} at "
            f"most; lower {option}"
        )


def _names(queues: Sequence[Queue]) -> str:
    return ", ".join(queue.path for queue in queues if queue.leaf and queue.state == "RUNNING") or "none"


def _percent(value: float) -> str:
    return "?" if value < 0 else f"{value:.0f} %"
