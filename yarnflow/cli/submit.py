"""``yarnflow submit``: runs a program on a cluster and shows it until it ends.

The program's own output is all that goes to standard output; everything yarnflow says goes to
standard error.  Flink counterpart: ``flink run``.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from yarnflow.cli.common import (
    CLEAN_UP_S,
    CONTEXT,
    Terminated,
    cluster_options,
    exit_on_signal,
    load_configuration,
    terminate_as_interrupt,
    with_target,
)
from yarnflow.cli.flink_flags import refused_flags
from yarnflow.cli.restore_options import (
    noting_lost_state,
    restore_options,
    restore_values,
    with_state,
)
from yarnflow.cli.targets import find_target
from yarnflow.cli.view import OutputPump, View, make_view
from yarnflow.client.cluster import ClusterConnection, ProgramCluster
from yarnflow.client.executor import ClusterExecutor, script_submission, shipped_options
from yarnflow.client.jars.bring import JarBringer, configuration_with_jars
from yarnflow.client.jars.files import present_jars
from yarnflow.client.jars.script_options import jar_options
from yarnflow.client.program import Program, load_program, run_main
from yarnflow.client.program_kind import ScriptFound
from yarnflow.client.targets import SubmitSurroundings, refuse_unread_options
from yarnflow.config.configuration import Configuration
from yarnflow.config.option import AnyOption
from yarnflow.config.options import client, cluster, job, memory, yarn
from yarnflow.core.jars.request import EXCLUDES, PACKAGES, REPOSITORIES, SPARK_JARS
from yarnflow.core.messages import JobSubmission, ProgramKind
from yarnflow.errors import (
    ConfigError,
    GraphError,
    InvalidOption,
    NoExecuteCall,
    ProgramError,
    StateIncompatible,
)

F = TypeVar("F", bound=Callable[..., Any])

#: flag of Flink's YARN command line → the option it stands for
_YARN_FLAGS: Final[dict[tuple[str, str], AnyOption]] = {
    ("-yid", "--yarnapplicationId"): yarn.APPLICATION_ID,
    ("-ynm", "--yarnname"): yarn.APPLICATION_NAME,
    ("-yqu", "--yarnqueue"): yarn.APPLICATION_QUEUE,
    ("-yjm", "--yarnjobManagerMemory"): memory.JOBMANAGER_PROCESS_SIZE_MIB,
    ("-ytm", "--yarntaskManagerMemory"): memory.TASKMANAGER_PROCESS_SIZE_MIB,
    ("-ys", "--yarnslots"): cluster.TASKMANAGER_SLOTS,
}
#: flag of ``spark-submit`` → the option it stands for, what it is
_JAR_FLAGS: Final[dict[str, tuple[str, str]]] = {
    "--jars": (SPARK_JARS, "Comma list of jars for driver and executors: paths or URIs."),
    "--packages": (PACKAGES, "Comma list of Maven packages for them: group:artifact:version."),
    "--repositories": (REPOSITORIES, "Comma list of repositories, beside Maven Central."),
    "--exclude-packages": (EXCLUDES, "Comma list of group:artifact that packages are not to bring."),
}


def _jar_options(function: F) -> F:
    # Flink's words; left out of the help
    function = click.option("-j", "--jarfile", "jarfile", hidden=True)(function)
    function = click.option("-C", "--classpath", "class_paths", multiple=True, hidden=True)(function)
    for flag, (_, text) in reversed(_JAR_FLAGS.items()):
        function = click.option(flag, flag.lstrip("-").replace("-", "_"), metavar="LIST", help=text)(function)
    return function


def _yarn_options(function: F) -> F:
    """Habits of Flink's users; left out of the help, which names the options themselves."""
    for flags, option in _YARN_FLAGS.items():
        function = click.option(*flags, flags[0].lstrip("-"), hidden=True, help=option.key)(function)
    return click.option("-yD", "yarn_dynamic", multiple=True, hidden=True)(function)


@click.command("submit", context_settings={**CONTEXT, "allow_interspersed_args": False})
@click.option("-d", "--detached", is_flag=True, help="Return once the cluster has accepted the job.")
@click.option("-p", "--parallelism", type=click.IntRange(min=1), help="Default parallelism.")
# what ``python -m yarnflow`` says, as in PyFlink ``python job.py`` has another default than ``flink run``
@click.option("--default-parallelism", type=click.IntRange(min=1), hidden=True)
@click.option("--job-key", metavar="KEY", help="At most one live job has it; default: the job's name.")
@click.option(
    "--on-existing",
    type=click.Choice(["attach", "fail", "replace"]),
    help="What to do when a live job has the key; default: attach.",
)
@click.option("--name", metavar="NAME", help="Name of the job.")
@restore_options
@click.option("--dry-run", is_flag=True, help="Show what YARN would be asked for, and submit nothing.")
@click.option(
    "-sae", "--shutdownOnAttachedExit", "shutdown_on_exit", is_flag=True, help="An interrupt cancels the job."
)
@click.option("-py", "--python", "python_program", metavar="FILE", help="The program, as Flink names it.")
@click.option("-pyfs", "--pyFiles", "py_files", metavar="FILES", help="Comma list of .py, .zip, .egg files.")
@click.option(
    "-pyarch", "--pyArchives", "py_archives", metavar="FILES", help="Comma list of archives (path#directory)."
)
@_jar_options
@_yarn_options
@refused_flags
@cluster_options
@click.argument("program", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(
    detached: bool,
    parallelism: int | None,
    default_parallelism: int | None,
    job_key: str | None,
    on_existing: str | None,
    name: str | None,
    from_savepoint: str | None,
    restore: str | None,
    claim_mode: str | None,
    trust_state: bool,
    allow_non_restored: bool,
    dry_run: bool,
    shutdown_on_exit: bool,
    python_program: str | None,
    py_files: str | None,
    py_archives: str | None,
    class_paths: tuple[str, ...],
    yarn_dynamic: tuple[str, ...],
    target: str | None,
    jobmanager: str | None,
    dynamic: tuple[str, ...],
    conf_dir: Path | None,
    verbose: bool,
    program: str | None,
    arguments: tuple[str, ...],
    **flags: str | None,
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
    values = restore_values(from_savepoint, restore, claim_mode, trust_state, allow_non_restored)
    if parallelism is not None:
        values[job.PARALLELISM_DEFAULT.key] = str(parallelism)
    if job_key:
        values[job.JOB_KEY.key] = job_key
    if on_existing:
        values[client.ON_EXISTING.key] = on_existing
    if name:
        values[job.PIPELINE_NAME.key] = name
    if detached:
        values[client.ATTACHED.key] = "false"
    if shutdown_on_exit:
        values[client.SHUTDOWN_ON_ATTACHED_EXIT.key] = "true"
    if py_archives:
        values[yarn.SHIP_ARCHIVES.key] = py_archives
    for names, option in _YARN_FLAGS.items():
        text = flags[names[0].lstrip("-")]
        if text is not None:
            values[option.key] = text
    for flag, (key, _) in _JAR_FLAGS.items():
        text = flags[flag.lstrip("-").replace("-", "_")]
        if text is not None:
            values[key] = text
    if flags["jarfile"]:
        values[job.PIPELINE_JARS.key] = flags["jarfile"]
    if class_paths:
        values[job.PIPELINE_CLASSPATHS.key] = ";".join(class_paths)
    if flags["yid"] and target is None:
        target = "yarn-session"
    configuration = with_target(load_configuration(conf_dir, (*dynamic, *yarn_dynamic)), target, jobmanager)
    configuration = configuration.with_values(values, source="command line")
    files = tuple(file for file in (py_files or "").split(",") if file)
    loaded = load_program(program, arguments, files)
    if dry_run:
        check_jars(loaded, configuration)
        click.echo(describe_program(loaded, configuration, files), nl=False)
        return 0
    configuration = configuration_with_jars(configuration, _say, _own_jars(loaded, configuration))
    return run_program(
        loaded, configuration, files, verbose=verbose, default_parallelism=default_parallelism
    )


def check_jars(program: Program, configuration: Configuration) -> None:
    """Refuse jars and packages that can be seen to be wrong: no JVM is started, nothing is downloaded.

    Raises
    ------
    JarError
        See :meth:`yarnflow.client.jars.bring.JarBringer.bring`.
    """
    JarBringer(_say).check(configuration.to_dict(), _own_jars(program, configuration))


def _own_jars(program: Program, configuration: Configuration) -> dict[str, str]:
    """What the program's text asks for and the program itself cannot say here."""
    if program.kind is ProgramKind.SCRIPT:
        return jar_options(program.content)
    if not find_target(configuration.get(client.TARGET)).runs_programs:
        return {}
    # it runs in a container, where this machine's files are not; others may be there
    return present_jars(jar_options(program.content))


def run_program(
    program: Program,
    configuration: Configuration,
    files: tuple[str, ...],
    *,
    verbose: bool,
    default_parallelism: int | None = None,
) -> int:
    """Run a checked program on the configured target.

    Parameters
    ----------
    default_parallelism : int, optional
        Parallelism where neither the configuration nor the program say one; None = the option's default.

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
    refuse_unread_options(target, configuration)
    configuration, check_graph = with_state(configuration, target.name)
    terminate_as_interrupt()
    view = make_view(refresh_ms=configuration.get(client.VIEW_REFRESH_MS), verbose=verbose)
    if target.owned:
        check_graph = noting_lost_state(check_graph, configuration, view.note)
    pump = OutputPump() if view.live and target.owned else None
    connection: ClusterConnection | None = None
    executor: ClusterExecutor | None = None
    forced, failed = False, False
    try:
        connection = target.connect(
            configuration,
            SubmitSurroundings(
                driver_stdout_fd=pump.write_fd if pump is not None else None,
                note=view.note,
                program_files=(program.path, *files) if target.runs_programs else (),
            ),
        )
        executor = ClusterExecutor.configured(connection, configuration, view, check_graph)
        _execute(program, configuration, files, connection, executor, view, default_parallelism)
    except (ConfigError, GraphError, ProgramError, StateIncompatible):
        # said completely by its message, unless a job ran before
        failed = executor is not None and bool(executor.clients)
        raise
    except Exception:
        failed = True
        raise
    except KeyboardInterrupt as interrupt:
        # nobody waits for the logs of what he ended himself
        forced = True
        exit_on_signal(
            143 if isinstance(interrupt, Terminated) else 130, 0.0 if target.owned else CLEAN_UP_S
        )
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


def describe_program(program: Program, configuration: Configuration, files: tuple[str, ...]) -> str:
    """What a submit would ask of YARN, as YAML.

    Raises
    ------
    InvalidOption
        The target asks nothing of YARN.
    """
    target = find_target(configuration.get(client.TARGET))
    if target.mode is None or not target.deploys_on_yarn:
        raise InvalidOption(
            f"--dry-run shows the application that a submit makes on YARN; target {target.name} makes none"
        )
    from yarnflow.client.yarn.deployer import describe_submit
    from yarnflow.client.yarn.submission import Request

    if target.runs_programs:
        request = Request(
            program_name(program, configuration),
            configuration.get(job.PARALLELISM_DEFAULT),
            program_argv=(program.name, *program.arguments),
        )
        return describe_submit(configuration, target.mode, request, _say, (program.path, *files))
    from yarnflow.cli.info import first_graph
    from yarnflow.client.executor import graph_submission

    graph = first_graph(program, configuration, files)
    if graph is None:
        submission, slots = _script(program, configuration, files)
    else:
        submission = graph_submission(graph, configuration=shipped_options(configuration))
        slots = graph.required_slots()
    return describe_submit(
        configuration, target.mode, Request(submission.name, slots, submission=submission), _say
    )


def program_name(program: Program, configuration: Configuration) -> str:
    """Name of a program's application: its job's, as far as it is known before it runs."""
    return configuration.get(job.PIPELINE_NAME) or Path(program.name).stem


def _say(text: str) -> None:
    click.echo(text, err=True)


def _execute(
    program: Program,
    configuration: Configuration,
    files: tuple[str, ...],
    connection: ClusterConnection,
    executor: ClusterExecutor,
    view: View,
    default_parallelism: int | None,
) -> None:
    attached = configuration.get(client.ATTACHED)
    if connection.programs is not None:
        _run_there(program, configuration, connection.programs, executor, view)
    elif program.kind is ProgramKind.SCRIPT:
        executor.submit_script(*_script(program, configuration, files, default_parallelism))
    else:
        try:
            _run_main(program, configuration, files, executor, default_parallelism)
        except ScriptFound:
            executor.submit_script(*_script(program, configuration, files, default_parallelism))
    if attached:
        executor.await_all()
    else:
        executor.stop_collecting()


def _script(
    program: Program,
    configuration: Configuration,
    files: tuple[str, ...],
    default_parallelism: int | None = None,
) -> tuple[JobSubmission, int]:
    """A PySpark script as a submission, and the slots it wants."""
    if default_parallelism is not None and not configuration.is_set(job.PARALLELISM_DEFAULT):
        values = {job.PARALLELISM_DEFAULT.key: str(default_parallelism)}
        configuration = configuration.with_values(values, source="the number of processors")
    parallelism = configuration.get(job.PARALLELISM_DEFAULT)
    submission = script_submission(
        program,
        configuration=shipped_options(configuration),
        parallelism=parallelism,
        name=configuration.get(job.PIPELINE_NAME),
        files=files,
    )
    return submission, parallelism


def _run_there(
    program: Program,
    configuration: Configuration,
    cluster: ProgramCluster,
    executor: ClusterExecutor,
    view: View,
) -> None:
    """Have the program run beside the JobManager, and follow all of its jobs."""
    name = program_name(program, configuration)
    key = executor.key_for(name)
    slots = configuration.get(job.PARALLELISM_DEFAULT)
    answer = executor.settled(
        lambda: cluster.submit_program(name, program.arguments, slots, key), key, name
    )
    if answer.attached_to_existing or not configuration.get(client.ATTACHED):
        executor.watch(answer, name)
        return
    cluster.follow(answer.job_id, view, configuration.get(client.CLIENT_TIMEOUT_MS))


def _run_main(
    program: Program,
    configuration: Configuration,
    files: tuple[str, ...],
    executor: ClusterExecutor,
    default_parallelism: int | None,
) -> None:
    from yarnflow.api.executor import use_executor

    executor.ship_python_files(files)
    try:
        with use_executor(executor, configuration.to_dict(), default_parallelism):
            run_main(program, files)
    except SystemExit as end:
        # sys.exit(main()) is how many programs end; only another status says that the program failed
        if end.code not in (None, 0) or {"-h", "--help"} & set(program.arguments):
            raise
    finally:
        sys.stdout.flush()
    if not executor.clients:
        raise NoExecuteCall(
            f"{program.path} ended without calling execute(): no job was submitted; "
            "call env.execute(\"name\") at the end of the program"
        )
