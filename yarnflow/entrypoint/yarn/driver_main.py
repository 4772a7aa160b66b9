"""Main of a driver's container (``driver.placement: container``): the supervisor of one driver.

The driver's process is started at once, with its JVM; meanwhile a helper process takes the assignment from
skein's key-value store, so that skein's libraries take no memory of the container.  Nothing is
restarted here: the container ends as its driver does, which its master is told by YARN.  A driver without
a leader ends by its lease.  Flink has no counterpart.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from yarnflow.config.options import cluster
from yarnflow.core.ids import DriverId
from yarnflow.core.json_codec import from_json
from yarnflow.core.messages import DriverAssignment
from yarnflow.core.yarn import DRIVER_KEY_ENVIRONMENT, DRIVER_MEMORY_ENVIRONMENT
from yarnflow.entrypoint.ha_services import session_closer
from yarnflow.entrypoint.yarn.container import (
    Container,
    append_output,
    enter,
    rotate_output,
    when_parent_ends,
)
from yarnflow.errors import ConfigError, ResourceError, YarnflowError
from yarnflow.process.commands import ProcessCommands, module_command
from yarnflow.process.dirs import ClusterDirectory, write_json
from yarnflow.process.leftovers import MARK_ENVIRONMENT, await_nothing_left
from yarnflow.process.logs import log_settings, set_up_logging
from yarnflow.process.pools import DriverPool
from yarnflow.process.spawn import ProcessSpec, spawn
from yarnflow.process.supervisor import Child, Supervisor
from yarnflow.runtime.job_dirs import work_dir

_TAKE: Final = "--take-assignment"
_NICE: Final = 10
_ASSIGNMENT_FILE: Final = "assignment.json"
#: a shell's status of a process that was ended by signal 0
_SIGNALED: Final = 128
#: exit status when YARN takes the container away
_TOLD_TO_END_STATUS: Final = 143


class DriverContainer:
    """The supervisor of the one driver of a container.

    Parameters
    ----------
    directory : ClusterDirectory
        This container's own.
    commands : ProcessCommands
        The driver's command line.
    close_session : callable
        Ends the ZooKeeper session that a process has left, given its pid: the next driver of the job then
        need not wait for the lease.
    supervisor : Supervisor
    """

    def __init__(
        self,
        directory: ClusterDirectory,
        commands: ProcessCommands,
        close_session: Callable[[int], None],
        supervisor: Supervisor,
    ) -> None:
        self._directory = directory
        self._close_session = close_session
        self._supervisor = supervisor
        self._over = threading.Event()
        self._status = _TOLD_TO_END_STATUS
        self._output_tail = ""
        self._drivers = DriverPool(
            supervisor,
            commands,
            directory.logs,
            directory.scratch,
            self._driver_exited,
            on_process_ended=self._process_ended,
        )

    def warm_up(self, memory_mib: int) -> None:
        """Start the driver's process, which waits for its assignment."""
        self._drivers.start_spare(memory_mib)

    def launch(self, assignment: DriverAssignment, memory_mib: int) -> None:
        """Give the driver its job."""
        own = replace(assignment, work_dir=str(work_dir(self._directory.path, assignment.job_id)))
        self._drivers.launch(own, memory_mib)

    def end(self) -> None:
        """YARN takes the container away."""
        self._over.set()

    def run(self) -> int:
        """Wait for the driver's end; returns the exit status, as a shell has it."""
        self._over.wait()
        self._supervisor.stop(0.0)
        if self._output_tail:
            # where YARN's NodeManager finds why
            print(self._output_tail, file=sys.stderr, flush=True)
        return self._status if self._status >= 0 else _SIGNALED - self._status

    def _driver_exited(self, driver_id: DriverId, exit_status: int, output_tail: str) -> None:
        self._status, self._output_tail = exit_status, output_tail
        self._over.set()

    def _process_ended(self, child: Child) -> None:
        mark = f"{MARK_ENVIRONMENT}={child.spec.environment[MARK_ENVIRONMENT]}"
        if await_nothing_left(child.pid, mark):
            self._close_session(child.pid)


def main() -> int:
    """Run the driver of this container; returns the exit status."""
    try:
        if sys.argv[1:2] == [_TAKE]:
            return _take_assignment(sys.argv[2], sys.argv[3])
        return _run(enter())
    except YarnflowError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return error.exit_code


def _run(container: Container) -> int:
    append_output()
    rotate_output()
    try:
        memory_mib = int(os.environ[DRIVER_MEMORY_ENVIRONMENT])
        key = os.environ[DRIVER_KEY_ENVIRONMENT]
    except (KeyError, ValueError) as error:
        raise ConfigError(f"this is not the container of a driver: {error}") from error
    # a driver serves where its container is
    configuration = container.configuration({cluster.JOBMANAGER_RPC_ADDRESS.key: container.host})
    set_up_logging(container.output, log_settings(configuration))
    directory = container.open_directory()
    write_json(directory.conf_file, configuration.to_dict())
    supervisor = Supervisor()
    driver = DriverContainer(
        directory,
        ProcessCommands(directory.path, directory.conf_file, container.secret_file),
        session_closer(configuration, directory.path),
        supervisor,
    )
    signal.signal(signal.SIGTERM, lambda _signal, _frame: driver.end())
    when_parent_ends(driver.end)
    driver.warm_up(memory_mib)
    assignment = _await_assignment(key, directory.path / _ASSIGNMENT_FILE, container.output)
    if assignment is None:
        supervisor.stop(0.0)
        print("Its driver is not wanted any more, or runs in another container.", file=sys.stderr, flush=True)
        return 0
    driver.launch(assignment, memory_mib)
    return driver.run()


def _await_assignment(key: str, file: Path, log_file: Path) -> DriverAssignment | None:
    helper = spawn(
        ProcessSpec(
            name="take-assignment",
            command=module_command(__spec__.name, _TAKE, key, str(file)),
            log_file=log_file,
        )
    )
    status = helper.wait()
    try:
        text = file.read_text("ascii")
    except FileNotFoundError:
        if status == 0:
            return None
        raise ResourceError(
            f"the ApplicationMaster did not hand over the driver's assignment (status {status}): "
            f"{helper.output_tail(1)}"
        ) from None
    # it may hold secrets of the job
    file.unlink()
    return from_json(DriverAssignment, text)


def _take_assignment(key: str, file: str) -> int:
    """Take the assignment, which only one container gets, and write it to a file only its owner can read."""
    # the driver starts beside it, and is not ready before
    os.nice(_NICE)
    from yarnflow.yarn.application import YarnApplication

    content = YarnApplication.from_current().take_value(key)
    if content is not None:
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as stream:
            stream.write(content)
    return 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # threads of libraries must not hold the container up
    os._exit(status)
