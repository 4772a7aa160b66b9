"""The hook: one Airflow connection, and what tasks and triggers do through it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from airflow.sdk import BaseHook, Connection
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import amask_secret, mask_secret

from yarnflow.airflow.hooks import rest
from yarnflow.airflow.hooks.command import Command
from yarnflow.airflow.hooks.documents import (
    EndedJob,
    FoundJob,
    Submitted,
    ended_job,
    failed_application,
    found_jobs,
    is_gone,
    is_nobody,
    submitted,
)
from yarnflow.airflow.hooks.errors import (
    CommandFailed,
    ConnectionUnusable,
    JobNotSuccessful,
    Refused,
    Unreachable,
)
from yarnflow.airflow.hooks.rest import Access, AsyncRestClient, JobState, RestClient
from yarnflow.airflow.hooks.settings import Settings, read_settings
from yarnflow.config.hadoop_conf import HadoopConf
from yarnflow.config.secrets import is_secret
from yarnflow.errors import YarnUnavailable

_APPLICATION: Final = "yarn.application.id"
#: of one request in a signal handler: Airflow kills the process 5 s after the signal
_HURRIED_S: Final = 2.0
#: between two looks whether a job has ended
_LOOK_AGAIN_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Submit:
    """What is submitted, and how; as the flags of ``yarnflow submit``."""

    application: str
    arguments: Sequence[str] = ()
    #: empty = that of the connection
    target: str = ""
    job_key: str = ""
    on_existing: str = "attach"
    #: ``latest``, ``none`` or a path; empty = ``latest`` if the last job of the key failed
    restore: str = ""
    name: str = ""
    parallelism: int | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    files: Sequence[str] = ()


class YarnflowHook(BaseHook):
    """Submits jobs by the command, finds them again, and asks about them by REST.

    Parameters
    ----------
    yarnflow_conn_id : str
        A connection of the type ``yarnflow``.
    """

    conn_name_attr = "yarnflow_conn_id"
    default_conn_name = "yarnflow_default"
    conn_type = "yarnflow"
    hook_name = "yarnflow"

    def __init__(self, yarnflow_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.yarnflow_conn_id = yarnflow_conn_id
        self._settings: Settings | None = None
        self._command: Command | None = None
        self._access: dict[str, Access] = {}
        #: job → application on YARN, where that is known
        self._applications: dict[str, str] = {}

    # --- the connection ---

    @property
    def settings(self) -> Settings:
        """What the connection says; asked of Airflow once.

        Raises
        ------
        ConnectionUnusable
            There is none of that name, or it cannot be used.
        """
        if self._settings is None:
            try:
                connection = self.get_connection(self.yarnflow_conn_id)
            except AirflowNotFoundException:
                raise self._no_connection() from None
            self._settings, secrets = _settings(self.yarnflow_conn_id, connection)
            for secret in secrets:
                mask_secret(secret)
        return self._settings

    async def load(self) -> Settings:
        """The same in the triggerer."""
        if self._settings is None:
            try:
                connection = await self.aget_connection(self.yarnflow_conn_id)
            except AirflowNotFoundException:
                raise self._no_connection() from None
            self._settings, secrets = _settings(self.yarnflow_conn_id, connection)
            for secret in secrets:
                await amask_secret(secret)
        return self._settings

    def _no_connection(self) -> ConnectionUnusable:
        return ConnectionUnusable(
            f"there is no connection {self.yarnflow_conn_id}; make one of the type yarnflow, or name another "
            "with yarnflow_conn_id"
        )

    @property
    def command(self) -> Command:
        """The command ``yarnflow`` with what the connection says."""
        if self._command is None:
            self._command = Command(self.settings)
        return self._command

    def test_connection(self) -> tuple[bool, str]:
        """For the button of the connection's form: whether the clusters can be listed."""
        try:
            found = self.jobs()
        except Exception as error:
            return False, str(error)
        return True, f"{len(found)} jobs run"

    # --- the command ---

    def submit(self, submit: Submit, *, detached: bool = True) -> Submitted:
        """Submit a program; returns when a cluster has accepted its jobs, or else when they have ended.

        Raises
        ------
        CommandFailed
            Nothing was accepted; or, not detached, a job did not end well.
        """
        target = submit.target or self.settings.target
        arguments = ["-t", target] if target else []
        arguments += ["-d"] if detached else []
        for flag, value in (
            ("--job-key", submit.job_key),
            ("--on-existing", submit.on_existing),
            ("--restore", submit.restore),
            ("--name", submit.name),
            ("-p", submit.parallelism),
            ("-pyfs", ",".join(submit.files)),
        ):
            if value:
                arguments += [flag, str(value)]
        arguments += [submit.application, *submit.arguments]
        return submitted(self.command.run("submit", arguments, self.log.info, submit.options))

    def jobs(self, *, ended: bool = False) -> tuple[FoundJob, ...]:
        """The jobs of all clusters of the user, oldest first.

        Raises
        ------
        CommandFailed
            No cluster answers, or there is none.
        """
        return found_jobs(self.command.run("list", ["--all"] if ended else [], self.log.debug))

    def find(self, *, job_id: str = "", job_key: str = "", ended: bool = False) -> FoundJob | None:
        """The job of an id, or the newest of a key; None = no cluster that answers has it.

        Raises
        ------
        CommandFailed
            See :meth:`jobs`; where there is no cluster at all nothing is raised.
        """
        try:
            jobs = self.jobs(ended=ended)
        except CommandFailed as error:
            if is_nobody(error):
                return None
            raise
        wanted = [job for job in jobs if job.job_id == job_id or (job_key and job.job_key == job_key)]
        return wanted[-1] if wanted else None

    async def afind(self, job_key: str) -> FoundJob | None:
        """As :meth:`find` of a live job, in the triggerer."""
        await self.load()
        try:
            jobs = found_jobs(await self.command.arun("list", []))
        except CommandFailed as error:
            if is_nobody(error):
                return None
            raise
        wanted = [job for job in jobs if job.job_key == job_key]
        return wanted[-1] if wanted else None

    # --- one job ---

    def runs_in(self, job_id: str, application_id: str) -> None:
        """Note the application of a job: it is found at once then, and how it ended when it is gone."""
        if application_id:
            self._applications[job_id] = application_id

    def _asked(self, verb: str, job_id: str) -> dict[str, Any]:
        """The document of a verb about a job."""
        return dict(self.command.run(verb, [job_id], self.log.debug, self._where(job_id)))

    async def _aasked(self, verb: str, job_id: str) -> dict[str, Any]:
        return dict(await self.command.arun(verb, [job_id], self._where(job_id)))

    def _where(self, job_id: str) -> dict[str, str]:
        application_id = self._applications.get(job_id)
        return {_APPLICATION: application_id} if application_id else {}

    def yarn_page(self, application_id: str) -> str:
        """Address of an application's page; empty = Hadoop's configuration does not tell."""
        settings = self.settings
        environ = {**os.environ, **settings.env}
        if settings.hadoop_conf_dir:
            environ["HADOOP_CONF_DIR"] = settings.hadoop_conf_dir
        try:
            first = HadoopConf.load(environ).resource_manager_web_addresses()[0]
        except (YarnUnavailable, IndexError):
            return ""
        return f"{first}/cluster/app/{application_id}"

    def access(self, job_id: str, *, again: bool = False) -> Access:
        """Where the REST interface of a job's cluster is.

        Parameters
        ----------
        again : bool
            What was known before did not help.

        Raises
        ------
        CommandFailed, ConnectionUnusable
            It cannot be found.
        """
        if again or job_id not in self._access:
            document = {} if self.settings.addresses else self._asked("token", job_id)
            access = self._access[job_id] = _access(self.settings, document)
            if access.token:
                mask_secret(access.token)
        return self._access[job_id]

    async def aaccess(self, job_id: str, *, again: bool = False) -> Access:
        """As :meth:`access`, in the triggerer."""
        settings = await self.load()
        if again or job_id not in self._access:
            document = {} if settings.addresses else await self._aasked("token", job_id)
            access = self._access[job_id] = _access(settings, document)
            if access.token:
                await amask_secret(access.token)
        return self._access[job_id]

    def state(self, job_id: str) -> EndedJob:
        """How a job is, or how it ended where its cluster is gone.

        Raises
        ------
        JobNotSuccessful
            Nobody knows.
        Unreachable, CommandFailed
            Whoever knows does not answer now.
        """
        trouble = ""
        for again in (False, True):
            try:
                with RestClient(self.access(job_id, again=again)) as client:
                    found = client.ask(rest.job(job_id))
                    why = client.ask(rest.failure(job_id)) if found.status.globally_terminal else None
                    return EndedJob(job_id, found.name, found.status, why)
            except (Unreachable, Refused, CommandFailed) as error:
                trouble = str(error)
                if self.settings.addresses:
                    break
        ended = self.ended(job_id)
        if ended is None:
            raise JobNotSuccessful(f"job {job_id} is nowhere to be found: {trouble}")
        return ended

    def ended(self, job_id: str) -> EndedJob | None:
        """How a job ended that no cluster knows any more, as far as YARN or a history server know it.

        Raises
        ------
        CommandFailed
            YARN does not answer.
        """
        try:
            return ended_job(job_id, self._asked("info", job_id))
        except CommandFailed as error:
            known = _known_end(job_id, error)
        if known is None and self.settings.history_server:
            with RestClient(Access((self.settings.history_server,))) as client:
                known = _archived(job_id, client)
        return known

    async def aended(self, job_id: str) -> EndedJob | None:
        """As :meth:`ended`, in the triggerer."""
        settings = await self.load()
        try:
            return ended_job(job_id, await self._aasked("info", job_id))
        except CommandFailed as error:
            known = _known_end(job_id, error)
        if known is None and settings.history_server:
            async with AsyncRestClient(Access((settings.history_server,))) as client:
                try:
                    found = await client.ask(rest.job(job_id))
                    why = await client.ask(rest.failure(job_id))
                    known = EndedJob(job_id, found.name, found.status, why)
                except (Unreachable, Refused):
                    pass
        return known

    def cancel(self, job_id: str) -> None:
        """Begin to cancel a job; one that is over already is left.

        Raises
        ------
        Unreachable, Refused, CommandFailed
            Nobody takes the request.
        """
        with RestClient(self.access(job_id)) as client:
            try:
                client.ask(rest.cancel(job_id))
            except Refused:
                if not client.ask(rest.job(job_id)).status.globally_terminal:
                    raise

    def await_end(self, job_id: str) -> EndedJob:
        """Wait until a job that is being ended has ended; raises as :meth:`state`."""
        while True:
            found = self.state(job_id)
            if found.status.globally_terminal:
                return found
            time.sleep(_LOOK_AGAIN_S)

    def terminate(self) -> bool:
        """Tell a command that runs to end; returns whether there is one.  For signal handlers."""
        return self._command is not None and self._command.terminate()

    def cancel_hurriedly(self, job_id: str) -> None:
        """As :meth:`cancel`, with what is known and in little time.

        Raises
        ------
        Unreachable, Refused
            Nobody takes the request.
        """
        access = self._access.get(job_id, Access(()))
        with RestClient(access, timeout_s=_HURRIED_S) as client:
            client.ask(rest.cancel(job_id))

    def begin_cancel(self, job_id: str) -> None:
        """Have a process cancel a job that outlives this one."""
        self.command.start_alone([("cancel", ["-d", job_id])])

    def begin_stop(self, job_id: str, savepoint_dir: str = "") -> None:
        """Have a process stop a job that outlives this one; where that fails, it cancels it."""
        self.command.start_alone(
            [("stop", [*_directory(savepoint_dir), job_id]), ("cancel", ["-d", job_id])]
        )

    def stop(self, job_id: str, savepoint_dir: str = "", *, drain: bool = False) -> str:
        """Stop a job with a savepoint, and wait for its end; returns the savepoint's path.

        Raises
        ------
        CommandFailed
            The savepoint was not taken; the job goes on.
        """
        arguments = [*_directory(savepoint_dir), *(["--drain"] if drain else []), job_id]
        return str(self.command.run("stop", arguments, self.log.info)["savepoint_path"])

    def savepoint(self, job_id: str, savepoint_dir: str = "") -> str:
        """Take a savepoint of a running job; returns its path.

        Raises
        ------
        CommandFailed
            It was not taken.
        """
        arguments = [job_id, *([savepoint_dir] if savepoint_dir else [])]
        return str(self.command.run("savepoint", arguments, self.log.info)["savepoint_path"])

    def drill(self, what: str, job_id: str, recovery_timeout_s: float | None = None) -> dict[str, Any]:
        """Break something that a job needs; returns the report.

        Raises
        ------
        CommandFailed
            The job did not recover, or nothing was broken.
        """
        limit = [] if recovery_timeout_s is None else ["--timeout", f"{recovery_timeout_s:g}"]
        report = self.command.run("drill", ["--yes", *limit, what, job_id], self.log.info)
        return dict(report)


def _access(settings: Settings, document: Mapping[str, Any]) -> Access:
    """Where the REST interface is, by the connection or else by the document of ``token``."""
    address = document.get("address", "")
    addresses = settings.addresses or ((address,) if address else ())
    return Access(addresses, settings.token or document.get("write_token", ""))


def _directory(savepoint_dir: str) -> list[str]:
    return ["-p", savepoint_dir] if savepoint_dir else []


def _settings(conn_id: str, connection: Connection) -> tuple[Settings, list[Any]]:
    """The settings of a connection, and what is not to be seen in logs."""
    if connection.conn_type not in ("yarnflow", "generic", None, ""):
        raise ConnectionUnusable(
            f"connection {conn_id} is of the type {connection.conn_type}, and not of the type yarnflow"
        )
    try:
        extra = json.loads(connection.extra or "{}")
    except ValueError:
        extra = None
    if not isinstance(extra, dict):
        raise ConnectionUnusable(f"connection {conn_id}: its extra is not a JSON object")
    settings = read_settings(conn_id, connection.host, connection.port, connection.password, extra)
    secrets = [value for key, value in {**settings.options, **settings.env}.items() if is_secret(key)]
    return settings, [secret for secret in (settings.token, *secrets) if secret]


def _known_end(job_id: str, error: CommandFailed) -> EndedJob | None:
    """What an error of ``info`` means; raises it where it means nothing."""
    if is_gone(error):
        return None
    found = failed_application(job_id, error)
    if found is None:
        raise error
    return found


def _archived(job_id: str, client: RestClient) -> EndedJob | None:
    try:
        found: JobState = client.ask(rest.job(job_id))
        return EndedJob(job_id, found.name, found.status, client.ask(rest.failure(job_id)))
    except (Unreachable, Refused):
        return None


__all__ = ["EndedJob", "FoundJob", "Submit", "Submitted", "YarnflowHook"]
