"""``yarnflow info``: the plan of a program as JSON, without JVM or cluster; or a job's details."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from yarnflow.cli.common import cluster_options, existing_cluster
from yarnflow.cli.completion_values import job_ids_and_files
from yarnflow.cli.flags.flink_flags import INFO_FLAGS, flink_flags
from yarnflow.cli.flags.program_flags import python_flags, python_program
from yarnflow.cli.output import CONTEXT, Shown, Verb, answer_alone, json_text
from yarnflow.client.cluster import job_details
from yarnflow.config.configuration import Configuration
from yarnflow.core.ids import JobId, is_job_id
from yarnflow.core.messages import JobDetails, ProgramKind
from yarnflow.errors import ApplicationNotFound, JobNotFound, NoExecuteCall

if TYPE_CHECKING:
    from yarnflow.client.programs.program import Program
    from yarnflow.graph.job_graph import JobGraph


@click.command(
    "info",
    cls=Verb,
    answer="Of a job: all that the JobManager knows (`overview`, `vertices`, `queries`, `failures`, "
    "`milestones_ms` …).  Of a program: its plan.  Both are JSON without the flag, too.",
    context_settings={**CONTEXT, "allow_interspersed_args": False},
)
@click.option("-p", "--parallelism", type=click.IntRange(min=1), metavar="N", help="Default parallelism.")
@python_flags
@flink_flags(*INFO_FLAGS)
@cluster_options
@click.argument("program", metavar="PROGRAM|JOB", required=False, shell_complete=job_ids_and_files)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(
    parallelism: int | None,
    configuration: Configuration,
    program: str | None,
    arguments: tuple[str, ...],
    **flags: str | None,
) -> Shown:
    """Show the plan of a program, or the details of a job.

    Options after PROGRAM belong to the program.
    """
    run = python_program(flags, program, arguments)
    if run is None:
        raise click.UsageError("missing PROGRAM or JOB; usage: yarnflow info PROGRAM [ARGS...]")
    if is_job_id(run.path):
        details = _details(configuration, JobId(run.path))
        return Shown(details, lambda: json_text(details))
    if parallelism is not None:
        configuration = configuration.with_values({"parallelism.default": str(parallelism)}, source="-p")
    plan = program_plan(run.path, run.arguments, configuration, run.files)
    return Shown(json.loads(plan), plan)


def _details(configuration: Configuration, job_id: JobId) -> JobDetails:
    """What a job's cluster says of it, or YARN where that has ended with it."""
    try:
        with existing_cluster(configuration, job_id) as connection:
            return job_details(connection.cluster_of(job_id), job_id)
    except (JobNotFound, ApplicationNotFound):
        from yarnflow.client.discovery.ended import ended_details

        details = ended_details(configuration, job_id)
        if details is None:
            raise
        return details


def program_plan(
    path: str, arguments: tuple[str, ...], configuration: Configuration, files: tuple[str, ...] = ()
) -> str:
    """Plan of a program up to its first ``execute``, as JSON text.

    Parameters
    ----------
    files : tuple of str
        Modules, directories and archives that it may import from as well (``-pyfs``).

    Raises
    ------
    NoExecuteCall
        It ended without one.
    """
    from yarnflow.client.programs.program import load_program

    return plan_of(load_program(path, arguments, files), configuration, files)


def plan_of(program: Program, configuration: Configuration, files: tuple[str, ...] = ()) -> str:
    """The same of a program that was loaded."""
    from yarnflow.client.executor import script_submission
    from yarnflow.config.options import job
    from yarnflow.graph.codec import job_graph_from_json
    from yarnflow.graph.plan import plan_json

    graph = first_graph(program, configuration, files)
    if graph is None:
        submission = script_submission(
            program, configuration={}, parallelism=configuration.get(job.PARALLELISM_DEFAULT)
        )
        return plan_json(job_graph_from_json(submission.job_graph_json))
    return plan_json(graph)


def first_graph(
    program: Program, configuration: Configuration, files: tuple[str, ...] = ()
) -> JobGraph | None:
    """The job graph of a DataStream program's first ``execute``; nothing is submitted.

    What the program prints goes to standard error, since standard output is for what is asked of the command.

    Returns
    -------
    JobGraph or None
        None: the program is a PySpark script.

    Raises
    ------
    NoExecuteCall
        It ended without one.
    """
    from yarnflow.api.executor import GraphCollector, ProgramAborted, use_executor
    from yarnflow.client.programs.program import run_main
    from yarnflow.client.programs.program_kind import ScriptFound

    if program.kind is ProgramKind.SCRIPT:
        return None
    collector = GraphCollector()
    try:
        with use_executor(collector, configuration.to_dict()), answer_alone():
            run_main(program, files)
    except ProgramAborted:
        pass
    except ScriptFound:
        return None
    if not collector.graphs:
        raise NoExecuteCall(f"{program.path} ended without calling execute(): there is no plan to show")
    return collector.graphs[0]
