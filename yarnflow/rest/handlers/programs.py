"""Uploaded programs: listed, kept, deleted, run and planned."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from yarnflow.rest.answers import programs as answers
from yarnflow.rest.answers.jobs import PlanAnswer, plan_of
from yarnflow.rest.answers.shapes import Empty
from yarnflow.rest.framework.errors import RestError
from yarnflow.rest.framework.route import Call
from yarnflow.rest.framework.uploads import ReceivedFile
from yarnflow.rest.handlers import parameters as p
from yarnflow.rest.handlers.context import Cluster, Programs
from yarnflow.rest.programs import archive
from yarnflow.rest.programs.running import ProgramRun


def overview(cluster: Cluster, call: Call) -> answers.Programs:
    """The uploaded programs, newest first."""
    return answers.programs(
        f"http://{call.headers.get('host', '')}",
        (
            (program.program_id, program.name, program.uploaded_ms, archive.modules(program))
            for program in _programs(cluster).store.all()
        ),
    )


def upload(cluster: Cluster, call: Call, body: ReceivedFile) -> answers.Uploaded:
    """Keep a program."""
    programs = _programs(cluster)

    def save(path: Path) -> None:
        body.save(path)
        if body.name.endswith(".zip"):
            archive.check(path, body.name)

    try:
        return answers.Uploaded(str(programs.store.add(body.name, save).path))
    except OSError as error:
        raise RestError(503, f"the program cannot be kept: {error.strerror} (web.upload.dir)") from None


def delete(cluster: Cluster, call: Call) -> Empty:
    """Delete a program; jobs that run from it go on."""
    _programs(cluster).store.delete(call.get(p.PROGRAM_ID))
    return Empty()


def run(cluster: Cluster, call: Call, body: answers.RunRequest) -> answers.RunAnswer:
    """Run a program; its first job."""
    with _prepared(cluster, call, body) as program:
        return answers.RunAnswer(_programs(cluster).runner.run(program))


def run_application(cluster: Cluster, call: Call, body: answers.RunRequest) -> answers.ApplicationAnswer:
    """The same; each job is an application of its own."""
    return answers.ApplicationAnswer(run(cluster, call, body).jobid)


def plan(cluster: Cluster, call: Call) -> PlanAnswer:
    """What a program would do."""
    return plan_of_body(cluster, call, answers.PlanRequest())


def plan_of_body(cluster: Cluster, call: Call, body: answers.PlanRequest) -> PlanAnswer:
    """The same, asked for in a body."""
    with _prepared(cluster, call, body) as program:
        return PlanAnswer(plan_of(_programs(cluster).runner.plan(program)))


def _programs(cluster: Cluster) -> Programs:
    if cluster.programs is None:
        raise RestError(
            404, "this cluster takes no programs by REST (web.submit.enable); use `yarnflow submit`"
        )
    return cluster.programs


@contextmanager
def _prepared(cluster: Cluster, call: Call, body: answers.PlanRequest) -> Iterator[ProgramRun]:
    """A program's files in a directory of their own, and what was asked for."""
    programs = _programs(cluster)
    if body.job_id is not None:
        raise RestError(
            501,
            "yarnflow gives a job its id; to find it again give it a key (pipeline.job-key in "
            "flinkConfiguration)",
        )
    uploaded = programs.store.get(call.get(p.PROGRAM_ID))
    module = archive.module_of(uploaded, body.entry_class or call.get(p.ENTRY_CLASS))
    arguments = _arguments(call, body)
    options = dict(body.flink_configuration or {})
    parallelism = body.parallelism or call.get(p.PARALLELISM)
    if parallelism:
        options["parallelism.default"] = str(parallelism)
    try:
        directory = programs.store.run_directory()
    except OSError as error:
        raise RestError(503, f"the program cannot be run: {error.strerror} (web.upload.dir)") from None
    try:
        name = "" if uploaded.is_archive else uploaded.name
        asked = ProgramRun(
            directory, uploaded.program_id, name, module, arguments, options, **_state(call, body)
        )
        asked.sources.mkdir(mode=0o700)
        if uploaded.is_archive:
            archive.unpack(uploaded, asked.sources, programs.max_bytes)
        else:
            shutil.copyfile(uploaded.path, asked.sources / name)
        yield asked
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _arguments(call: Call, body: answers.PlanRequest) -> tuple[str, ...]:
    """The body's, else the query's; lists before texts, which are of older clients."""
    if body.program_args_list:
        return tuple(body.program_args_list)
    text = body.program_args
    if not text:
        listed = call.get(p.PROGRAM_ARG)
        if listed:
            return listed
        text = call.get(p.PROGRAM_ARGS)
    try:
        return tuple(shlex.split(text or ""))
    except ValueError as error:
        raise RestError(400, f"programArgs cannot be taken apart: {error}") from None


def _state(call: Call, body: answers.PlanRequest) -> dict[str, Any]:
    """What the job starts from."""
    if not isinstance(body, answers.RunRequest):
        return {}
    allowed = body.allow_non_restored_state
    if allowed is None:
        allowed = call.get(p.ALLOW_NON_RESTORED) == "true"
    # Flink's dashboard puts the program's arguments there when it has no path
    from_query = "" if body.savepoint_path is not None else call.get(p.SAVEPOINT_PATH) or ""
    return {
        "savepoint_path": body.savepoint_path or from_query,
        "claim_mode": body.claim_mode or body.restore_mode or "",
        "allow_non_restored": allowed,
    }
