"""Command lines of yarnflow's own processes, declared once for all who start them.

The secret's path stands in the options file (``security.cluster-secret-file``) and the path of a
process's log in the environment variable ``YARNFLOW_LOG_FILE`` (:mod:`yarnflow.process.logs`);
drivers, which start before they know their job, get both as arguments as well.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path


def module_command(module: str, *arguments: str, python: str = "") -> tuple[str, ...]:
    """Return the command that runs a module of yarnflow's.

    It loads no modules of the folder it is started in, which others may write into; a program's own folder
    is added by whoever runs the program.

    Parameters
    ----------
    python : str
        Interpreter; empty = this one.
    """
    return (python or sys.executable, "-P", "-m", module, *arguments)


@dataclass(frozen=True, slots=True)
class ProcessCommands:
    """Builds the command lines of one cluster.

    Attributes
    ----------
    cluster_dir, conf_file, secret_file : Path
        Where the processes find their cluster.
    python : str
        Interpreter; empty = this one.
    """

    cluster_dir: Path
    conf_file: Path
    secret_file: Path
    python: str = ""

    def job_manager(self, channel_fd: int, workers: int = 0) -> tuple[str, ...]:
        """JobManager.

        Parameters
        ----------
        channel_fd : int
            Its end of the supervisor's channel.
        workers : int
            TaskManagers the supervisor runs for it; 0 = they come from elsewhere.
        """
        return (
            *self._module("master.main"),
            *("--cluster-dir", str(self.cluster_dir)),
            *("--conf-json", str(self.conf_file)),
            *("--channel-fd", str(channel_fd)),
            *("--workers", str(workers)),
        )

    def task_manager(self, task_manager_id: str, worker_id: str = "") -> tuple[str, ...]:
        """TaskManager; ``worker_id`` is empty for standalone ones."""
        worker = ("--worker-id", worker_id) if worker_id else ()
        return (
            *self._module("taskmanager.main"),
            *("--cluster-dir", str(self.cluster_dir)),
            *("--conf-json", str(self.conf_file)),
            *("--task-manager-id", task_manager_id),
            *worker,
        )

    def driver(self, memory_mib: int, log_file: Path, scratch: Path) -> tuple[str, ...]:
        """Driver; it reads its assignment from standard input."""
        return (
            *self._module("driver.main"),
            *("--memory-mib", str(memory_mib)),
            *("--secret-file", str(self.secret_file)),
            *("--cluster-dir", str(self.cluster_dir)),
            *("--log-file", str(log_file)),
            *("--scratch-dir", str(scratch)),
            *("--conf-json", str(self.conf_file)),
        )

    def _module(self, name: str) -> tuple[str, ...]:
        return module_command(f"yarnflow.entrypoint.{name}", python=self.python)
