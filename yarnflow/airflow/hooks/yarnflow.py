"""The hook: one Airflow connection, and what tasks and triggers do through it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from airflow.sdk import BaseHook, Connection
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import amask_secret, mask_secret

from yarnflow.airflow.hooks import questions
from yarnflow.airflow.hooks.command import Command
from yarnflow.airflow.hooks.documents import (
    EndedJob,
    FoundJob,
    Submitted,
    check_nobody_has_it,
    chosen,
    ended_job,
    failed_application,
    found_jobs,
    is_gone,
    submitted,
)
from yarnflow.airflow.hooks.errors import (
    CommandFailed,
    ConnectionUnusable,
    JobNotSuccessful,
    Refused,
    Unreachable,
    YarnflowTaskError,
)
from yarnflow.airflow.hooks.questions import Failure, JobState
from yarnflow.airflow.hooks.rest import Access, AsyncRestClient, RestClient
from yarnflow.airflow.hooks.settings import Settings, connection_settings
from yarnflow.airflow.hooks.submission import Submit, submit_arguments
from yarnflow.config.hadoop.conf import HadoopConf
from yarnflow.config.options.client import TARGET
from yarnflow.core.states import JobStatus
from yarnflow.errors import ApplicationNotFound, RpcUnavailable, YarnUnavailable

_APPLICATION: Final = "yarn.application.id"
#: target that starts a cluster for each job → what `list` says where there is none
_NO_CLUSTER_FIRST: Final = {
    "yarn-per-job": (ApplicationNotFound.code,),
    "yarn-application": (ApplicationNotFound.code,),
    "local": (ApplicationNotFound.code, RpcUnavailable.code),
}
_CLUSTER_PER_JOB: Final = frozenset({"yarn-per-job", "yarn-application"})
#: the id of none
_NO_JOB: Final = "0" * 32
#: of one request in a signal handler: Airflow kills the process 5 s after the signal
_HURRIED_S: Final = 2.0
#: between two looks whether a job has ended
_LOOK_AGAIN_S: Final = 1.0


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
            self._settings, secrets = connection_settings(self.yarnflow_conn_id, connection)
            for secret in secrets:
                mask_secret(secret)
        return self._settings

    async def load(self) -> Settings:
        """The same in the triggerer."""
        if self._settings is None:
            try:
                connection = await self._awaited_connection()
            except AirflowNotFoundException:
                raise self._no_connection() from None
            self._settings, secrets = connection_settings(self.yarnflow_conn_id, connection)
            for secret in secrets:
                await amask_secret(secret)
        return self._settings

    async def _awaited_connection(self) -> Connection:
        try:
            return await self.aget_connection(self.yarnflow_conn_id)
        except AirflowNotFoundException:
            # in `airflow dags test` a trigger has no other way to ask (Airflow 3.3)
            return await asyncio.to_thread(self.get_connection, self.yarnflow_conn_id)

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
        """For the button of the connection's form: whether the clusters can be listed, and REST answers."""
        try:
            self._check_directories()
            found = self._live_jobs()
            self.check_access(self.target())
        except Exception as error:
            return False, str(error)
        return True, f"{len(found)} jobs run" if found else "no job runs now"

    def _check_directories(self) -> None:
        settings = self.settings
        for name in ("conf_dir", "hadoop_conf_dir"):
            directory = getattr(settings, name)
            if directory and not Path(directory).is_dir():
                raise ConnectionUnusable(
                    f"connection {self.yarnflow_conn_id}: {name} {directory} is no directory here"
                )

    def _live_jobs(self) -> tuple[FoundJob, ...]:
        try:
            return found_jobs(self._listed(ended=False))
        except CommandFailed as error:
            # each job starts a cluster of its own: that there is none now is as it should be
            if error.code in _NO_CLUSTER_FIRST.get(self.target(), ()):
                return ()
            raise

    def target(self, given: str = "", options: Mapping[str, str] = {}) -> str:
        """``execution.target`` of a submit, by the task, the connection or the configuration on this worker.

        Parameters
        ----------
        given : str
            The task's; empty = it says none.
        options : mapping
            The task's.
        """
        # as the command: a flag is stronger than an option
        said = given or self.settings.target or options.get(TARGET.key)
        return said or self.command.configured_target()

    def check_access(self, target: str) -> None:
        """Ask the addresses of the connection, if there are any, by which a job is followed.

        Parameters
        ----------
        target : str
            Where jobs are submitted to.

        Raises
        ------
        ConnectionUnusable
            They do not accept its token, or not for what ends a job; or the job will be elsewhere.
        Unreachable, Refused
            None of them answers, or something else is there.
        """
        settings = self.settings
        if not settings.addresses:
            return
        if target in _CLUSTER_PER_JOB:
            raise ConnectionUnusable(
                f"connection {self.yarnflow_conn_id} has REST addresses, and target {target} starts a "
                "cluster for each job, which has others; leave them out, or use another connection"
            )
        with RestClient(Access(settings.addresses, settings.token)) as client:
            try:
                client.ask(questions.overview())
            except Refused as error:
                raise self._token_trouble(error) from None
            try:
                client.ask(questions.cancel(_NO_JOB))
            except Refused as error:
                # it may cancel, and there is no such job
                if error.status != HTTPStatus.NOT_FOUND:
                    raise self._token_trouble(error) from None

    def _token_trouble(self, error: Refused) -> YarnflowTaskError:
        """What an answer says of the connection's token; other answers stay as they are."""
        has_token = bool(self.settings.token)
        if error.status == HTTPStatus.FORBIDDEN and has_token:
            why = "its REST token may only read, and a task has to be able to end its job"
        elif error.status == HTTPStatus.UNAUTHORIZED:
            why = "its REST token is not accepted" if has_token else "it has no REST token"
        else:
            return error
        return ConnectionUnusable(
            f"connection {self.yarnflow_conn_id}: {why}; what `yarnflow token` prints belongs into the field "
            f"REST token ({error})"
        )

    # --- the command ---

    def submit(self, submit: Submit, *, detached: bool = True) -> Submitted:
        """Submit a program; returns when a cluster has accepted its jobs, or else when they have ended.

        Raises
        ------
        CommandFailed
            Nothing was accepted; or, not detached, a job did not end well.
        """
        arguments = submit_arguments(submit, self.settings.target, detached=detached)
        return submitted(self.command.run("submit", arguments, self.log.info, submit.options))

    def check_program(self, submit: Submit) -> None:
        """Have the command look at a submit, without one.

        The program's ``main()`` runs up to its first ``execute()``, unless it would run in the cluster.

        Raises
        ------
        CommandFailed
            It would be refused: the target, a flag, an option, an argument, or the program itself.
        """
        arguments = submit_arguments(submit, self.settings.target, detached=True)
        self.command.run("submit", ["--dry-run", *arguments], self.log.debug, submit.options)

    def _listed(self, ended: bool) -> dict[str, Any]:
        return dict(self.command.run("list", ["--all"] if ended else [], self.log.debug))

    def find(self, *, job_id: str = "", job_key: str = "", ended: bool = False) -> FoundJob | None:
        """The job of an id, or the newest of a key; None = all clusters have answered, and none has it.

        Raises
        ------
        CommandFailed
            A cluster may have it that does not answer.
        """
        try:
            document = self._listed(ended)
        except CommandFailed as error:
            check_nobody_has_it(error, job_id, job_key)
            return None
        return chosen(document, job_id, job_key)

    async def afind(self, job_key: str) -> FoundJob | None:
        """As :meth:`find` of a live job, in the triggerer."""
        await self.load()
        try:
            document = await self.command.arun("list", [])
        except CommandFailed as error:
            check_nobody_has_it(error, "", job_key)
            return None
        return chosen(document, "", job_key)

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
        trouble: YarnflowTaskError | None = None
        for again in (False, True):
            try:
                with RestClient(self.access(job_id, again=again)) as client:
                    found = client.ask(questions.job(job_id))
                    why = client.ask(questions.failure(job_id)) if found.status.globally_terminal else None
                    return _ended(found, why)
            except (Unreachable, Refused, CommandFailed) as error:
                trouble = error
                if self.settings.addresses:
                    break
        ended = self.ended(job_id)
        if ended is None and trouble is not None and not is_gone(trouble):
            # its cluster is known, and only does not answer
            raise trouble
        if ended is None:
            raise JobNotSuccessful(f"job {job_id} is nowhere to be found: {trouble}")
        return ended

    def has_checkpoint(self, job_id: str) -> bool:
        """Whether a job that lives has a complete checkpoint; raises as a client's ``ask``."""
        with RestClient(self.access(job_id)) as client:
            return bool(client.ask(questions.checkpoints(job_id)))

    def ended(self, job_id: str) -> EndedJob | None:
        """How a job ended that no cluster knows any more, as far as YARN or a history server know it.

        Raises
        ------
        CommandFailed
            YARN does not answer.
        Unreachable, Refused
            The history server does not.
        """
        try:
            return ended_job(job_id, self._asked("info", job_id))
        except CommandFailed as error:
            known = _known_end(job_id, error)
        if known is None and self.settings.history_server:
            with RestClient(Access((self.settings.history_server,))) as client:
                try:
                    found = client.ask(questions.job(job_id))
                    known = _ended(found, client.ask(questions.failure(job_id)))
                except Refused as error:
                    _check_unknown(error)
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
                    found = await client.ask(questions.job(job_id))
                    known = _ended(found, await client.ask(questions.failure(job_id)))
                except Refused as error:
                    _check_unknown(error)
        return known

    def cancel(self, job_id: str) -> JobStatus | None:
        """Begin to cancel a job; of one that is over already the status is returned.

        Raises
        ------
        Unreachable, Refused, CommandFailed
            Nobody takes the request.
        """
        try:
            return _cancel(job_id, self.access(job_id))
        except Unreachable:
            # another master may lead by now
            return _cancel(job_id, self.access(job_id, again=True))

    def await_end(self, job_id: str) -> EndedJob:
        """Wait until a job that is being ended has ended; raises as :meth:`state`."""
        while True:
            found = self.state(job_id)
            if found.over:
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
        access = self._access.get(job_id)
        if access is None and self._settings is not None:
            # what the connection says is known without asking anybody
            access = _access(self._settings, {})
        with RestClient(access or Access(()), timeout_s=_HURRIED_S) as client:
            client.ask(questions.cancel(job_id))

    def begin_cancel(self, job_id: str) -> subprocess.Popen[bytes]:
        """Have a process cancel a job that outlives this one, where the machine does; returns it."""
        return self.command.start_alone([("cancel", ["-d", job_id])])

    def begin_stop(self, job_id: str, request_id: str, savepoint_dir: str = "") -> subprocess.Popen[bytes]:
        """As :meth:`begin_cancel`, with a savepoint; where that fails, the job is canceled."""
        arguments = ["--request-id", request_id, *_directory(savepoint_dir), job_id]
        return self.command.start_alone([("stop", arguments), ("cancel", ["-d", job_id])])

    def stop(
        self, job_id: str, savepoint_dir: str = "", *, drain: bool = False, request_id: str = ""
    ) -> str:
        """Stop a job with a savepoint, and wait for its end; returns the savepoint's path.

        Parameters
        ----------
        request_id : str
            32 hexadecimal digits: the same again waits for the same stop; empty = this is another one.

        Raises
        ------
        CommandFailed
            The savepoint was not taken; the job goes on.
        """
        known = ["--request-id", request_id] if request_id else []
        arguments = [*known, *_directory(savepoint_dir), *(["--drain"] if drain else []), job_id]
        try:
            document = self.command.run("stop", arguments, self.log.info)
        except CommandFailed as error:
            document = error.document
            if not document.get("savepoint_path"):
                raise
            # it is complete, and only the job's end was not seen
            self.log.warning("%s", error)
            self._await_end_of_stopped(job_id)
        return str(document["savepoint_path"])

    def _await_end_of_stopped(self, job_id: str) -> None:
        try:
            self.await_end(job_id)
        except YarnflowTaskError as error:
            self.log.warning("Whether job %s has ended is not known: %s", job_id, error)

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


def _cancel(job_id: str, access: Access) -> JobStatus | None:
    with RestClient(access) as client:
        try:
            client.ask(questions.cancel(job_id))
        except Refused:
            status = client.ask(questions.job(job_id)).status
            if not status.globally_terminal:
                raise
            return status
    return None


def _directory(savepoint_dir: str) -> list[str]:
    return ["-p", savepoint_dir] if savepoint_dir else []


def _known_end(job_id: str, error: CommandFailed) -> EndedJob | None:
    """What an error of ``info`` means; raises it where it means nothing."""
    if is_gone(error):
        return None
    found = failed_application(job_id, error)
    if found is None:
        raise error
    return found


def _ended(found: JobState, why: Failure | None) -> EndedJob:
    return EndedJob(found.job_id, found.name, found.status, why, found.stop, found.committed)


def _check_unknown(error: Refused) -> None:
    """Raise an answer of the history server, unless it is that it does not know the job."""
    if not is_gone(error):
        raise error


__all__ = ["EndedJob", "FoundJob", "Submit", "Submitted", "YarnflowHook"]
