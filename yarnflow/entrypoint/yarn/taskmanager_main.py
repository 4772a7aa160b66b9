"""Main of a TaskManager's container: a TaskManager that learns from skein where its master is.

The wait is left to a helper process that ends once it knows, so that skein's libraries take no
memory of the container; meanwhile the TaskManager imports and sets up what it needs.  With high
availability the leader is found in ZooKeeper, and may be in another application.  There is no
restart in the container: it ends as its TaskManager does, and the ResourceManager asks for another.
Flink counterpart: ``YarnTaskExecutorRunner``.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Final

from yarnflow.entrypoint.yarn.container import (
    JOB_MANAGER_KEY,
    Container,
    append_output,
    enter,
    rotate_output,
    when_parent_ends,
)
from yarnflow.errors import ResourceError, YarnflowError
from yarnflow.process.commands import module_command
from yarnflow.process.logs import log_settings, set_up_logging
from yarnflow.process.secret import read_secret
from yarnflow.process.spawn import ChildProcess, ProcessSpec, spawn

_FIND_MASTER: Final = "--find-master"
_NICE: Final = 10
_ADDRESS_FILE: Final = "jobmanager.address"


def main() -> int:
    """Run the TaskManager of this container; returns the exit status."""
    try:
        if sys.argv[1:2] == [_FIND_MASTER]:
            return _find_master(sys.argv[2])
        return _run(enter())
    except YarnflowError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return error.exit_code


def _run(container: Container) -> int:
    append_output()
    rotate_output()
    configuration = container.configuration()
    set_up_logging(container.output, log_settings(configuration))
    directory = container.open_directory()
    highly_available = container.deployment.highly_available
    address_file = directory.path / _ADDRESS_FILE
    helper = None if highly_available else _start_helper(address_file, container.output)
    # imports, while the helper waits
    from yarnflow.entrypoint.ha_services import services_of
    from yarnflow.entrypoint.taskmanager.executors import ExecutorPlaces
    from yarnflow.entrypoint.taskmanager.main import TaskManager, gateways_of
    from yarnflow.entrypoint.taskmanager.single_master import MasterAt
    from yarnflow.rpc import descriptors

    descriptors.raise_limit()
    secret = read_secret(container.secret_file).encode("ascii")
    places = ExecutorPlaces(
        logs=container.logs,
        log_prefix="",
        scratch=tuple(disk / "executors" for disk in container.disks),
        shared=container.shared_files(),
    )
    task_manager_id = f"{container.host}:{container.container_id}"
    gateways = gateways_of(configuration, secret, task_manager_id)
    # with high availability ZooKeeper says who leads
    master = None if helper is None else MasterAt(_await_master(helper, address_file), gateways.dispatcher)
    # nobody waits for the end of its session: it holds nothing there
    services = services_of(configuration, secret, None, master)
    task_manager = TaskManager(
        configuration,
        directory.path,
        task_manager_id,
        container.worker_name,
        secret,
        gateways,
        services.retrieval,
        places,
        one_job=container.deployment.one_job,
    )
    signal.signal(signal.SIGTERM, lambda _signal, _frame: task_manager.ended.set())
    when_parent_ends(task_manager.ended.set)
    try:
        task_manager.run()
    finally:
        services.close()
    return 0


def _start_helper(address_file: Path, log_file: Path) -> ChildProcess:
    return spawn(
        ProcessSpec(
            name="find-master",
            command=module_command(__spec__.name, _FIND_MASTER, str(address_file)),
            log_file=log_file,
        )
    )


def _await_master(helper: ChildProcess, address_file: Path) -> str:
    status = helper.wait()
    try:
        return address_file.read_text("ascii")
    except OSError:
        raise ResourceError(
            f"the ApplicationMaster did not say where the JobManager serves (status {status}): "
            f"{helper.output_tail(1)}"
        ) from None


def _find_master(address_file: str) -> int:
    """Wait until the master has published its address, and write it to a file."""
    # others start beside it, and the answer is not needed before a driver is up
    os.nice(_NICE)
    from yarnflow.yarn.application import YarnApplication

    address = YarnApplication.from_current().await_value(JOB_MANAGER_KEY)
    temporary = Path(f"{address_file}.new")
    temporary.write_bytes(address)
    temporary.rename(address_file)
    return 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # threads of libraries must not hold the container up
    os._exit(status)
