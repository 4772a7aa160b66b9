"""``yarnflow submit``: runs a program on a cluster and shows it until it ends.

The program's own output is all that goes to standard output; everything yarnflow says goes to
standard error.  Flink counterpart: ``flink run``.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import click

from yarnflow.cli.common import (
    CONTEXT,
    Terminated,
    cluster_options,
    exit_on_signal,
    load_configuration,
    terminate_as_interrupt,
    with_target,
)
from yarnflow.cli.view import OutputPump, make_view
from yarnflow.client.cluster import ClusterConnection
from yarnflow.client.executor import ClusterExecutor, script_submission, shipped_options
from yarnflow.client.program import Program, load_program, run_main
from yarnflow.client.targets import find_target, refuse_cluster_options
from yarnflow.config.configuration import Configuration
from yarnflow.config.options import client, job
from yarnflow.core.messages import ProgramKind
from yarnflow.errors import ConfigError, GraphError, InvalidOption, NoExecuteCall, ProgramError


@click.command("submit", context_settings={**CONTEXT, "allow_interspersed_args": False})
@click.option("-d", "--detached", is_flag=True, help="Return once the cluster has accepted the job.")
@click.option("-p", "--parallelism", type=click.IntRange(min=1), help="Default parallelism.")
@click.option("--job-key", metavar="KEY", help="At most one live job has it; a second submit attaches to it.")
@click.option("--name", metavar="NAME", help="Name of the job.")
@click.option("-py", "--python", "python_program", metavar="FILE", help="The program, as Flink names it.")
@click.option("-pyfs", "--pyFiles", "py_files", metavar="FILES", help="Comma list of .py, .zip, .egg files.")
@cluster_options
@click.argument("program", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(
    detached: bool,
    parallelism: int | None,
    job_key: str | None,
    name: str | None,
    python_program: str | None,
    py_files: str | None,
    target: str | None,
    jobmanager: str | None,
    dynamic: tuple[str, ...],
    conf_dir: Path | None,
    verbose: bool,
    program: str | None,
    arguments: tuple[str, ...],
) -> int:
    """Run PROGRAM on a cluster.

    PROGRAM is a Python file: a DataStream program, or any PySpark script.  Options after it
    belong to the program.
    """
    if python_program is not None:
        arguments = (*((program,) if program is not None else ()), *arguments)
        program = python_program
    if program is None:
        raise click.UsageError("missing PROGRAM; usage: yarnflow submit [OPTIONS] PROGRAM [ARGS...]")
    values: dict[str, str] = {}
    if parallelism is not None:
        values[job.PARALLELISM_DEFAULT.key] = str(parallelism)
    if job_key:
        values[job.JOB_KEY.key] = job_key
    if name:
        values[job.PIPELINE_NAME.key] = name
    if detached:
        values[client.ATTACHED.key] = "false"
    configuration = with_target(load_configuration(conf_dir, dynamic), target, jobmanager)
    configuration = configuration.with_values(values, source="command line")
    files = tuple(file for file in (py_files or "").split(",") if file)
    return run_program(load_program(program, arguments), configuration, files, verbose=verbose)


def run_program(
    program: Program, configuration: Configuration, files: tuple[str, ...], *, verbose: bool
) -> int:
    """Run a checked program on the configured target.

    Returns
    -------
    int
        0 when every job FINISHED (detached: was accepted).

    Raises
    ------
    YarnflowError
        Anything else.
    """
    target = find_target(configuration.get(client.TARGET))
    attached = configuration.get(client.ATTACHED)
    if target.owned and not attached:
        raise InvalidOption(
            f"a {target.name} cluster ends with its command, so its jobs cannot be detached; "
            "leave -d out, or submit to a standalone cluster with -m host:port"
        )
    if not target.owned:
        refuse_cluster_options(configuration)
    terminate_as_interrupt()
    view = make_view(refresh_ms=configuration.get(client.VIEW_REFRESH_MS), verbose=verbose)
    pump = OutputPump() if view.live and target.owned else None
    connection: ClusterConnection | None = None
    executor: ClusterExecutor | None = None
    forced, failed = False, False
    try:
        connection = target.connect(configuration, pump.write_fd if pump is not None else None)
        executor = ClusterExecutor(
            connection,
            shipped_options(configuration),
            view,
            attached=attached,
            job_key=configuration.get(job.JOB_KEY),
            timeout_ms=configuration.get(client.CLIENT_TIMEOUT_MS),
        )
        _execute(program, configuration, files, executor, attached)
    except (ConfigError, GraphError, ProgramError):
        # said completely by its message, unless a job ran before
        failed = executor is not None and bool(executor.clients)
        raise
    except Exception:
        failed = True
        raise
    except KeyboardInterrupt as interrupt:
        # nobody waits for the logs of what he ended himself
        forced = True
        exit_on_signal(143 if isinstance(interrupt, Terminated) else 130)
        raise
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        kept = connection.stop(forced=forced, failed=failed) if connection is not None else ""
        if pump is not None:
            pump.close()
        view.close()
        if kept:
            click.echo(f"Logs are in {kept}", err=True)
    return 0


def _execute(
    program: Program,
    configuration: Configuration,
    files: tuple[str, ...],
    executor: ClusterExecutor,
    attached: bool,
) -> None:
    if program.kind is ProgramKind.SCRIPT:
        parallelism = configuration.get(job.PARALLELISM_DEFAULT)
        submission = script_submission(
            program,
            configuration=shipped_options(configuration),
            parallelism=parallelism,
            name=configuration.get(job.PIPELINE_NAME),
            job_key=configuration.get(job.JOB_KEY),
            files=files,
        )
        executor.submit_job(submission, parallelism)
    else:
        _run_main(program, configuration, files, executor)
    if attached:
        executor.await_all()


def _run_main(
    program: Program, configuration: Configuration, files: tuple[str, ...], executor: ClusterExecutor
) -> None:
    from yarnflow.api.executor import use_executor

    try:
        with use_executor(executor, configuration.to_dict()):
            run_main(program, files)
    except SystemExit as end:
        # sys.exit(main()) is how many programs end; only a status of its own is the program's last word
        if end.code not in (None, 0) or {"-h", "--help"} & set(program.arguments):
            raise
    finally:
        sys.stdout.flush()
    if not executor.clients:
        raise NoExecuteCall(
            f"{program.path} ended without calling execute(): no job was submitted; "
            "call env.execute(\"name\") at the end of the program"
        )
