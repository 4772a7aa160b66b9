"""``yarnflow info``: the plan of a program as JSON, without JVM or cluster; or a job's details."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from yarnflow.cli.common import CONTEXT, cluster_options, existing_cluster, load_configuration, with_target
from yarnflow.cli.flink_flags import refused_flags
from yarnflow.client.cluster import job_details
from yarnflow.config.configuration import Configuration
from yarnflow.core.ids import JobId, is_job_id
from yarnflow.core.messages import ProgramKind
from yarnflow.errors import NoExecuteCall

if TYPE_CHECKING:
    from yarnflow.client.program import Program
    from yarnflow.graph.job_graph import JobGraph


@click.command("info", context_settings={**CONTEXT, "allow_interspersed_args": False})
@click.option("-p", "--parallelism", type=click.IntRange(min=1), help="Default parallelism.")
@click.option("-py", "--python", "python_program", metavar="FILE", help="The program, as Flink names it.")
@click.option("-pyfs", "--pyFiles", "py_files", metavar="FILES", help="Comma list of .py, .zip, .egg files.")
@refused_flags
@cluster_options
@click.argument("program", metavar="PROGRAM|JOB", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(
    parallelism: int | None,
    python_program: str | None,
    py_files: str | None,
    target: str | None,
    jobmanager: str | None,
    dynamic: tuple[str, ...],
    conf_dir: Path | None,
    verbose: bool,
    program: str | None,
    arguments: tuple[str, ...],
) -> None:
    """Show the plan of a program, or the details of a job.

    Options after PROGRAM belong to the program.
    """
    if python_program is not None:
        arguments = (*((program,) if program is not None else ()), *arguments)
        program = python_program
    if program is None:
        raise click.UsageError("missing PROGRAM or JOB; usage: yarnflow info PROGRAM [ARGS...]")
    configuration = with_target(load_configuration(conf_dir, dynamic), target, jobmanager)
    if is_job_id(program):
        with existing_cluster(configuration, program) as connection:
            details = job_details(connection.cluster_of(JobId(program)), JobId(program))
        click.echo(json.dumps(plain_values(asdict(details)), indent=2, ensure_ascii=False))
        return
    if parallelism is not None:
        configuration = configuration.with_values({"parallelism.default": str(parallelism)}, source="-p")
    files = tuple(file for file in (py_files or "").split(",") if file)
    click.echo(program_plan(program, arguments, configuration, files))


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
    from yarnflow.client.executor import script_submission
    from yarnflow.client.program import load_program
    from yarnflow.config.options import job
    from yarnflow.graph.codec import job_graph_from_json
    from yarnflow.graph.plan import plan_json

    program = load_program(path, arguments, files)
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
    from yarnflow.client.program import run_main
    from yarnflow.client.program_kind import ScriptFound

    if program.kind is ProgramKind.SCRIPT:
        return None
    collector = GraphCollector()
    try:
        with use_executor(collector, configuration.to_dict()), redirect_stdout(sys.stderr):
            run_main(program, files)
    except ProgramAborted:
        pass
    except ScriptFound:
        return None
    if not collector.graphs:
        raise NoExecuteCall(f"{program.path} ended without calling execute(): there is no plan to show")
    return collector.graphs[0]


def plain_values(node: Any) -> Any:
    """Values of messages as JSON has them."""
    if isinstance(node, dict):
        return {key: plain_values(value) for key, value in node.items()}
    if isinstance(node, (list, tuple)):
        return [plain_values(value) for value in node]
    return node.value if isinstance(node, Enum) else node
