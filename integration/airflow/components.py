"""A whole Airflow on this machine: API server, scheduler with its workers, DAG processor and triggerer.

Each is a process of its own that can be killed and started again.  All of it is in one directory.
"""

from __future__ import annotations

import secrets
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

import psutil

from integration.airflow.installation import Installation, foreign_variables
from integration.airflow.rest import AirflowApi, NotFound
from integration.conftest import Commands, Started, wait_until
from integration.processes import kill_tree
from integration.servers import free_port
from tests.patience import PATIENCE

#: component → arguments of ``airflow``; nothing reads logs but the API server, which has the files
COMMANDS: Final = {
    "api-server": ("api-server",),
    "scheduler": ("scheduler", "--skip-serve-logs"),
    "dag-processor": ("dag-processor",),
    "triggerer": ("triggerer", "--skip-serve-logs"),
}
#: as Airflow names them in its answer about its health
_HEALTH: Final = {"scheduler": "scheduler", "dag-processor": "dag_processor", "triggerer": "triggerer"}
#: what they write when they begin to work
_SAYS: Final = {
    "scheduler": "Starting the scheduler",
    "dag-processor": "Checking for new files",
    "triggerer": "Starting the triggerer",
}
#: so that a fault is noticed in seconds, and a busy machine is not taken for one
_QUICK: Final = {
    "CORE__PARALLELISM": "4",
    "CORE__LOAD_EXAMPLES": "False",
    "CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
    # a file that has not been read in time would be an error, and be read again
    "CORE__DAGBAG_IMPORT_TIMEOUT": "240",
    "DAG_PROCESSOR__DAG_FILE_PROCESSOR_TIMEOUT": "300",
    "CORE__MIN_SERIALIZED_DAG_UPDATE_INTERVAL": "0",
    "CORE__KILLED_TASK_CLEANUP_TIME": "15",
    "DAG_PROCESSOR__BUNDLE_REFRESH_CHECK_INTERVAL": "1",
    "DAG_PROCESSOR__REFRESH_INTERVAL": "1",
    "DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "15",
    "DAG_PROCESSOR__PARSING_PROCESSES": "1",
    "SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
    "SCHEDULER__JOB_HEARTBEAT_SEC": "1",
    "SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.25",
    "SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "10",
    "SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "5",
    "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "45",
    "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "2",
    "SCHEDULER__TRIGGER_TIMEOUT_CHECK_INTERVAL": "1",
    "TRIGGERER__JOB_HEARTBEAT_SEC": "1",
    "TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "10",
    "WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
    "WORKERS__EXECUTION_API_TIMEOUT": "60",
    "USAGE_DATA_COLLECTION__ENABLED": "False",
}


class Airflow:
    """One Airflow; make one with :func:`running_airflow`.

    Parameters
    ----------
    installation : Installation
    commands : Commands
        Starts its processes; ends them with the test.
    environment : mapping of str
        Variables for all of its processes, such as those of a Hadoop.
    """

    def __init__(
        self, installation: Installation, commands: Commands, environment: Mapping[str, str]
    ) -> None:
        self.installation = installation
        self.home = commands.directory / "airflow"
        self.dags = self.home / "dags"
        self.dags.mkdir(parents=True)
        self._commands = commands
        self._running: dict[str, Started] = {}
        address = f"http://127.0.0.1:{(port := free_port())}"
        self.api = AirflowApi(address)
        options = {
            **_QUICK,
            "API__HOST": "127.0.0.1",
            "API__PORT": str(port),
            "API__BASE_URL": address,
            "API__SECRET_KEY": secrets.token_hex(16),
            "API_AUTH__JWT_SECRET": secrets.token_hex(32),
            "CORE__DAGS_FOLDER": str(self.dags),
            "CORE__EXECUTOR": "LocalExecutor",
            "CORE__EXECUTION_API_SERVER_URL": f"{address}/execution/",
            "CORE__FERNET_KEY": urlsafe_b64encode(secrets.token_bytes(32)).decode(),
            "CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{self.home}/airflow.sqlite?timeout=60",
        }
        #: of its processes, without that of the test
        self.environment: Final = {
            "AIRFLOW_HOME": str(self.home),
            # no proxy of the machine's stands between its processes
            "no_proxy": "127.0.0.1,localhost",
            "NO_PROXY": "127.0.0.1,localhost",
            **{f"AIRFLOW__{name}": value for name, value in options.items()},
            **environment,
        }

    # --- components ---

    def start(self, *components: str) -> None:
        """Start components, all of them unless some are named, and wait until they work."""
        if not (self.home / "airflow.sqlite").exists():
            self.installation.new_database(self.home / "airflow.sqlite", self.environment)
        # what is set here replaces what the tests were started with
        foreign = sorted(foreign_variables() - self.environment.keys())
        for name in components or COMMANDS:
            assert name not in self._running, f"{name} runs"
            self._running[name] = self._commands.start_command(
                ["env", *(f"--unset={each}" for each in foreign), self.installation.airflow, *COMMANDS[name]],
                environment=self.environment,
            )
        for name in components or COMMANDS:
            wait_until(lambda: self._works(name), f"{name} to work", PATIENCE.server_s, 0.25)
        if "api-server" in (components or COMMANDS):
            self.api.warm_up()

    def kill(self, component: str) -> None:
        """``kill -9`` of a component and all that it has started, as where its host goes down."""
        started = self._running.pop(component)
        kill_tree(psutil.Process(started.process.pid))
        started.process.wait(PATIENCE.process_s)

    def restart(self, component: str) -> None:
        """Kill it, start it again, and wait until it works."""
        self.kill(component)
        self.start(component)

    def log(self, component: str) -> str:
        """What a component that runs has written."""
        started = self._running[component]
        return started.stdout + started.stderr

    def processes(self, component: str) -> list[psutil.Process]:
        """A component's process and all below it."""
        main = psutil.Process(self._running[component].process.pid)
        return [main, *main.children(recursive=True)]

    def _works(self, component: str) -> bool:
        started = self._running[component]
        said = f"{component} ended: {started.stdout[-3000:]}{started.stderr[-3000:]}"
        assert started.process.poll() is None, said
        health = self.api.health()
        if component not in _HEALTH:
            return bool(health)
        # the newest heartbeat may be that of one that was killed
        return _SAYS[component] in self.log(component) and health.get(_HEALTH[component]) == "healthy"

    # --- workers ---

    def await_worker(self, dag_id: str, run_id: str, task_id: str) -> psutil.Process:
        """The worker that runs a task, once there is one."""
        found = partial(self._worker_of, dag_id, run_id, task_id)
        return wait_until(found, f"a worker of {task_id}")

    def _worker_of(self, dag_id: str, run_id: str, task_id: str) -> psutil.Process | None:
        try:
            instance = self.api.task(dag_id, run_id, task_id)["id"]
        except NotFound:
            return None  # of its run no task is there yet
        for process in self.processes("scheduler"):
            with suppress(psutil.Error):
                title = " ".join(process.cmdline())
                if title.startswith("airflow worker -- LocalExecutor") and instance in title:
                    return process
        return None

    # --- DAGs ---

    def add_dags(self, file: Path | str, *dag_ids: str, source: str | None = None) -> None:
        """Put a file among the DAGs, and wait until Airflow has read it.

        Parameters
        ----------
        file
            A file that is copied; with ``source`` a name for a new one.
        """
        text = Path(file).read_text(encoding="utf-8") if source is None else source
        unfinished = self.home / "new-dag"
        unfinished.write_text(text, encoding="utf-8")
        unfinished.rename(self.dags / Path(file).name)
        for dag_id in dag_ids:
            self.api.await_dag(dag_id, Path(file).name)
            # an earlier test may have had it, and left it so that nothing begins
            self.api.pause(dag_id, paused=False)

    def memory_mib(self) -> dict[str, float]:
        """Component → memory of all its processes, shared pages counted in part (PSS)."""
        return {
            name: sum(process.memory_full_info().pss for process in self.processes(name)) / 2**20
            for name in self._running
        }


@contextmanager
def running_airflow(commands: Commands, environment: Mapping[str, str] | None = None) -> Iterator[Airflow]:
    """A new Airflow, all of which runs; the end of ``commands`` ends it."""
    airflow = Airflow(Installation.find(), commands, environment or {})
    try:
        airflow.start()
        yield airflow
    finally:
        for name in list(airflow._running):
            # in order it would wait for tasks that run
            airflow.kill(name)
