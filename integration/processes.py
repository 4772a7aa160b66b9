"""Finding and killing the processes of a running cluster."""

from __future__ import annotations

import signal

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


def kill_one(mark: str, what: str) -> int:
    """``kill -9`` the oldest such process and wait until it is gone; returns its pid."""
    victim = wait_until(lambda: processes(mark, what), f"a process of {what}")[0]
    victim.send_signal(signal.SIGKILL)
    wait_until(lambda: not victim.is_running() or victim.status() == psutil.STATUS_ZOMBIE, f"{victim} to die")
    return int(victim.pid)


def driver_with_a_job(mark: str) -> psutil.Process | None:
    """The driver that has executors dialled in, not a warm spare."""
    for executor in processes(mark, EXECUTOR):
        words = executor.cmdline()
        port = int(words[words.index("--driver-url") + 1].rsplit(":", 1)[1])
        for driver in processes(mark, DRIVER):
            for process in (driver, *driver.children(recursive=True)):
                try:
                    if any(c.status == "LISTEN" and c.laddr.port == port for c in process.net_connections()):
                        return driver
                except psutil.Error:
                    continue
    return None


def kill_driver(mark: str) -> psutil.Process:
    """``kill -9`` the driver of the running job and wait until it is gone."""
    driver = driver_with_a_job(mark)
    assert driver is not None, "no executor has dialled a driver"
    driver.send_signal(signal.SIGKILL)
    wait_until(lambda: not driver.is_running() or driver.status() == psutil.STATUS_ZOMBIE, f"{driver} to die")
    return driver


def replace_executor(mark: str) -> None:
    """``kill -9`` an executor and wait for another one."""
    pid = kill_one(mark, EXECUTOR)
    wait_until(lambda: [p for p in processes(mark, EXECUTOR) if p.pid != pid], "another executor")
