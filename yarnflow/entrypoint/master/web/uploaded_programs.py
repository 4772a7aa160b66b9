"""Runs uploaded programs: ``yarnflow submit`` and ``yarnflow info`` in processes of their own.

They are children of the JobManager, so that none is left when it ends.  Flink counterparts: ``JarRunHandler``
and ``JarPlanHandler``, which run main() in the JobManager itself.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from yarnflow.config.configuration import ENVIRONMENT_PREFIX, Configuration
from yarnflow.core.ids import JobId, VertexId
from yarnflow.core.job.description import JobDescription, PlanInput, PlanNode
from yarnflow.entrypoint.client_program import client_command, options_of_client, write_options
from yarnflow.errors import ProgramError, YarnflowError, error_from_code
from yarnflow.process.spawn import ProcessSpec, spawn
from yarnflow.process.supervisor import Child
from yarnflow.rest.framework.errors import RestError
from yarnflow.rest.programs.running import ProgramRun

logger: Final = logging.getLogger(__name__)

_NAME: Final = "uploaded-program"
#: standbys wait no longer for an answer either
_LONGEST_MS: Final = 600_000
#: of what a program has said, where it says no more itself
_LAST_LINES: Final = 20
#: of the answer of a command
_MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024


class UploadedPrograms:
    """Implements :class:`~yarnflow.rest.programs.running.ProgramRunner`.

    Parameters
    ----------
    configuration : Configuration
        The cluster's.
    address : callable
        Where this JobManager serves.
    timeout_ms : int
        ``web.submit.timeout``.
    launch : callable
        Replaced in tests.
    """

    def __init__(
        self,
        configuration: Configuration,
        address: Callable[[], str],
        timeout_ms: int,
        launch: Callable[[ProcessSpec], Child] = spawn,
    ) -> None:
        self._configuration = configuration
        self._address = address
        self._timeout_ms = min(timeout_ms, _LONGEST_MS)
        self._launch = launch
        self._lock = threading.Lock()
        self._running: set[Child] = set()
        self._stopped = False

    def run(self, program: ProgramRun) -> JobId:
        """Submit the program's jobs; the first one."""
        # the directory is of this run alone, and jobs of the same upload have the same keys
        flags = ["--json", "-d", "--program-location", f"upload:{program.program_id}:{program.module}"]
        if program.savepoint_path:
            # in one word: it may begin with a hyphen
            flags.append(f"--from-savepoint={program.savepoint_path}")
        if program.claim_mode:
            flags += ["--claim-mode", program.claim_mode]
        if program.allow_non_restored:
            flags.append("--allow-non-restored-state")
        jobs = self._answer("submit", program, flags)["jobs"]
        if not jobs:
            raise ProgramError("the program has submitted no job")
        job_id = JobId(jobs[0]["job_id"])
        logger.info("Program %s was run by REST; its first job is %s.", program.module, job_id)
        return job_id

    def plan(self, program: ProgramRun) -> JobDescription:
        """The program's first job."""
        return described(self._answer("info", program, ["--json"]))

    def stop(self) -> None:
        """End the programs that run."""
        with self._lock:
            self._stopped = True
            running = list(self._running)
        for child in running:
            child.kill_group()

    def _answer(self, verb: str, program: ProgramRun, flags: Sequence[str]) -> dict[str, Any]:
        """The document that a command prints; raises what it says went wrong."""
        own = self._configuration.with_values(program.options, source="flinkConfiguration")
        options = program.directory / "conf"
        write_options(options_of_client(own, self._address(), attached=False), options)
        said = program.directory / "answer.json"
        # they are among its options already, and would be stronger than those asked for
        environment = {
            key: value for key, value in os.environ.items() if not key.startswith(ENVIRONMENT_PREFIX)
        }
        with open(said, "xb") as stdout:
            child = self._start(
                ProcessSpec(
                    name=_NAME,
                    command=client_command(verb, options, *flags, *_named(program)),
                    log_file=program.directory / "output.log",
                    inherit_stdout=True,
                    stdout_fd=stdout.fileno(),
                    environment=environment,
                    whole_environment=True,
                    cwd=program.sources,
                )
            )
        try:
            status = child.wait(self._timeout_ms / 1000)
            if status is None:
                child.kill_group()
                child.wait()
                raise RestError(
                    504,
                    f"the program did not end within {self._timeout_ms} ms (web.submit.timeout) and was "
                    "ended; jobs that it had submitted by then go on",
                    child.output_tail(_LAST_LINES),
                )
        finally:
            with self._lock:
                self._running.discard(child)
        if status != 0:
            raise self._failure(child, status)
        with open(said, "rb") as answer:
            return dict(json.loads(answer.read(_MAX_ANSWER_BYTES)))

    def _start(self, spec: ProcessSpec) -> Child:
        with self._lock:
            if self._stopped:
                raise RestError(503, "this JobManager is about to end")
            child = self._launch(spec)
            self._running.add(child)
            return child

    def _failure(self, child: Child, status: int) -> YarnflowError | RestError:
        if self._stopped:
            return RestError(503, "this JobManager is about to end")
        output = child.output_tail(_LAST_LINES)
        with suppress(ValueError, KeyError, TypeError, IndexError):
            error: Mapping[str, Any] = json.loads(output.splitlines()[-1])["error"]
            return error_from_code(error["code"], error["message"], error.get("details", ""))
        how = f"exit status {status}" if status >= 0 else f"signal {-status}"
        return RestError(400, f"the program ended with {how} before it had submitted a job", output)


def described(plan: Mapping[str, Any]) -> JobDescription:
    """The plan that ``yarnflow info`` prints, as jobs of the cluster are described."""
    operators = {node["id"]: f"{node['operator']}: {node['description']}" for node in plan["nodes"]}
    return JobDescription(
        JobId(plan["jid"]),
        plan["name"],
        batch=plan["type"] == "BATCH",
        nodes=tuple(
            PlanNode(
                VertexId(vertex["id"]),
                vertex["parallelism"],
                tuple(operators[number] for number in vertex["operators"] if number in operators)
                or (vertex["name"],),
                tuple(PlanInput(VertexId(each["id"]), each["ship_strategy"]) for each in vertex["inputs"]),
            )
            for vertex in reversed(plan["vertices"])
        ),
    )


def _named(program: ProgramRun) -> Sequence[str]:
    """What a command is told of the program; its arguments are none of the command's."""
    if program.file_name:
        return (str(program.sources / program.file_name), *program.arguments)
    return ("-pyfs", str(program.sources), "-pym", program.module, "--", *program.arguments)


def upload_directory(configured: str, cluster_dir: Path) -> Path:
    """Where uploaded programs are kept.

    Parameters
    ----------
    configured : str
        ``web.upload.dir``.
    """
    if not configured:
        return cluster_dir / "uploads"
    # Flink's name of the folder, so that nothing else in the directory is touched
    return Path(configured).expanduser().absolute() / "flink-web-upload"
