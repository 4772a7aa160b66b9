"""Has all processes of a cluster change the level of a logger: masters, TaskManagers and drivers.

Those that do not answer in time are named in the result; nothing is tried again.  Supervisors are not
asked: what they log is seldom of use.  Flink has no counterpart.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Final, Protocol

from yarnflow.core.messages import (
    DriverRegistration,
    LogLevel,
    LogLevelAnswer,
    LogLevelResult,
    TaskManagerRegistration,
)
from yarnflow.core.ports import GatewayFactory
from yarnflow.errors import YarnflowError
from yarnflow.runtime.log_levels import set_log_level

logger: Final = logging.getLogger(__name__)

_AT_ONCE: Final = 32
#: a client waits for the answer of all; what is not here by then is not waited for
_OF_TIMEOUT: Final = 0.8


class Process(Protocol):
    """Any process of the cluster."""

    def set_log_level(self, level: LogLevel) -> None: ...


class ClusterLogLevels:
    """Implements ``change_log_level`` of a leader.

    Parameters
    ----------
    gateways : GatewayFactory
    standbys, task_managers, drivers : callable
        Who is there now.
    timeout_ms : int
        Of a call (``rpc.ask.timeout``).
    set_here : callable
        Changes this process's own.
    """

    def __init__(
        self,
        gateways: GatewayFactory,
        standbys: Callable[[], Sequence[str]],
        task_managers: Callable[[], Sequence[TaskManagerRegistration]],
        drivers: Callable[[], Sequence[DriverRegistration]],
        timeout_ms: int,
        set_here: Callable[[LogLevel], None] = set_log_level,
    ) -> None:
        self._gateways = gateways
        self._standbys = standbys
        self._task_managers = task_managers
        self._drivers = drivers
        self._timeout_s = timeout_ms / 1000 * _OF_TIMEOUT
        self._set_here = set_here

    def change(self, level: LogLevel) -> LogLevelResult:
        """Change it everywhere.

        Raises
        ------
        InvalidOption
            There is no such level; nothing was changed.
        """
        self._set_here(level)
        own = LogLevelAnswer("JobManager")
        calls = dict(self._calls(level))
        if not calls:
            return LogLevelResult((own,))
        pool = ThreadPoolExecutor(min(_AT_ONCE, len(calls)), thread_name_prefix="log-level")
        try:
            futures = {name: pool.submit(_answer, name, call) for name, call in calls.items()}
            wait(futures.values(), self._timeout_s)
            late = f"no answer within {self._timeout_s:g} s"
            answers = (
                future.result() if future.done() else LogLevelAnswer(name, late)
                for name, future in futures.items()
            )
            return LogLevelResult((own, *answers))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _calls(self, level: LogLevel) -> Iterator[tuple[str, Callable[[], None]]]:
        def call(process: Process) -> Callable[[], None]:
            return lambda: process.set_log_level(level)

        for address in self._standbys():
            yield f"standby {address}", call(self._gateways.master(address))
        for worker in self._task_managers():
            name = f"TaskManager {worker.task_manager_id} ({worker.address})"
            yield name, call(self._gateways.task_executor(worker.address))
        for registration in self._drivers():
            name = f"driver {registration.driver_id} of job {registration.job_id} ({registration.address})"
            yield name, call(self._gateways.driver(registration.address))


def _answer(process: str, call: Callable[[], None]) -> LogLevelAnswer:
    try:
        call()
    except YarnflowError as error:
        logger.info("The level of a logger was not changed in %s: %s", process, error)
        return LogLevelAnswer(process, " ".join(str(error).split()))
    return LogLevelAnswer(process)


__all__ = ["ClusterLogLevels"]
