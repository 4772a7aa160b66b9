"""Finding and killing the processes of a running cluster."""

from __future__ import annotations

import signal
from contextlib import suppress

import psutil

from integration.conftest import marked_processes, wait_until

EXECUTOR = "CoarseGrainedExecutorBackend"
DRIVER = "yarnflow.entrypoint.driver.main"
#: the JVM of a driver, while the driver lives
DRIVER_JVM = "org.apache.spark.api.python.PythonGatewayServer"
TASK_MANAGER = "yarnflow.entrypoint.taskmanager.main"
JOB_MANAGER = "yarnflow.entrypoint.master.main"


def processes(mark: str, what: str) -> list[psutil.Process]:
    """Processes of a test whose command line names ``what``, oldest first."""
    found = []
    for process in marked_processes(mark):
        try:
            if any(what in word for word in process.cmdline()):
                found.append((process.create_time(), process))
        except psutil.Error:
            continue
    return [process for _time, process in sorted(found, key=lambda pair: pair[0])]


def none_is_left(mark: str, what: str) -> bool:
    """Whether no such process runs."""
    return not processes(mark, what)


def lives(process: psutil.Process) -> bool:
    """Whether something of a process still runs."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        # between the two questions
        return False


def kill(process: psutil.Process) -> None:
    """``kill -9`` and wait until it is gone."""
    process.send_signal(signal.SIGKILL)
    wait_until(lambda: not lives(process), f"{process} to die")


def kill_one(mark: str, what: str) -> int:
    """``kill -9`` the oldest such process and wait until it is gone; returns its pid."""
    victim = wait_until(lambda: processes(mark, what), f"a process of {what}")[0]
    kill(victim)
    return int(victim.pid)


def driver_with_a_job(mark: str) -> psutil.Process | None:
    """The driver that has executors dialled in, not a warm spare."""
    for executor in processes(mark, EXECUTOR):
        try:
            words = executor.cmdline()
            port = int(words[words.index("--driver-url") + 1].rsplit(":", 1)[1])
        except (psutil.Error, ValueError):
            # it ends
            continue
        for driver in processes(mark, DRIVER):
            if any(_listens(process, port) for process in tree(driver)):
                return driver
    return None


def kill_tree(process: psutil.Process) -> None:
    """``kill -9`` of a process and all below it, and wait until they are gone.

    Halted first, so that none of them starts another one meanwhile.
    """
    family: list[psutil.Process] = []
    waiting = [process]
    while waiting:
        with suppress(psutil.NoSuchProcess):
            (one := waiting.pop()).suspend()
            family.append(one)
            waiting += one.children()
    for one in family:
        with suppress(psutil.NoSuchProcess):
            # it ends with its parent
            one.kill()
    wait_until(lambda: not any(lives(one) for one in family), f"the end of {process}")


def tree(process: psutil.Process) -> list[psutil.Process]:
    """The process and all below it."""
    try:
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _listens(process: psutil.Process, port: int) -> bool:
    try:
        return any(c.status == "LISTEN" and c.laddr.port == port for c in process.net_connections())
    except psutil.Error:
        return False


def kill_driver(mark: str) -> psutil.Process:
    """``kill -9`` the driver of the running job and wait until it is gone."""
    driver = driver_with_a_job(mark)
    assert driver is not None, "no executor has dialled a driver"
    kill(driver)
    return driver


def replace_executor(mark: str) -> None:
    """``kill -9`` an executor and wait for another one."""
    pid = kill_one(mark, EXECUTOR)
    wait_until(lambda: [p for p in processes(mark, EXECUTOR) if p.pid != pid], "another executor")
