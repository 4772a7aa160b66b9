"""``yarnflow submit``: runs a program on a cluster and shows it until it ends.

The program's own output is all that goes to standard output; everything yarnflow says goes to
standard error.  Flink counterpart: ``flink run``.
"""

from __future__ import annotations

import signal
import sys
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import click

from yarnflow.cli.common import (
    CLEAN_UP_S,
    Terminated,
    cluster_options,
    exit_on_signal,
    terminate_as_interrupt,
)
from yarnflow.cli.flags.flink_flags import PROGRAM_FLAGS, YARN_FLAGS, flink_flags
from yarnflow.cli.flags.option_flags import SUBMIT, option_flags
from yarnflow.cli.flags.program_flags import python_flags, python_program
from yarnflow.cli.output import CONTEXT, Shown, Verb, answer_alone, is_verbose, wants_json
from yarnflow.cli.restore_options import (
    noting_lost_state,
    restore_options,
    restore_values,
    with_state,
)
from yarnflow.cli.targets import find_target
from yarnflow.cli.view import OutputPump, View, make_view
from yarnflow.client.cluster import NO_PAGE, ClusterConnection, Page, ProgramCluster
from yarnflow.client.executor import ClusterExecutor, script_submission, shipped_options
from yarnflow.client.jars.bring import JarBringer, configuration_with_jars
from yarnflow.client.jars.files import present_jars
from yarnflow.client.jars.script_options import jar_options
from yarnflow.client.programs.job_key import ProgramIdentity
from yarnflow.client.programs.program import Program, load_program, run_main
from yarnflow.client.programs.program_kind import ScriptFound
from yarnflow.client.targets import SubmitSurroundings, Target, refuse_unread_options
from yarnflow.config.configuration import Configuration
from yarnflow.config.options import client, job, yarn
from yarnflow.core.ids import JobId
from yarnflow.core.messages import ClusterOverview, JobDetails, JobSubmission, ProgramKind
from yarnflow.core.states import JobStatus
from yarnflow.errors import (
    ConfigError,
    GraphError,
    InvalidOption,
    NoExecuteCall,
    ProgramError,
    StateIncompatible,
    YarnflowError,
)


@dataclass(frozen=True, slots=True)
class SubmittedJob:
    """A job of the program."""

    job_id: JobId
    name: str
    #: as it was last seen; CREATED where nobody waited
    status: JobStatus
    #: it ran before, under the same job key
    attached_to_existing: bool


@dataclass(frozen=True, slots=True)
class Submission:
    """What a submit led to."""

    jobs: tuple[SubmittedJob, ...]
    #: ``execution.target``
    target: str


@click.command(
    "submit",
    cls=Verb,
    answer=Submission,
    context_settings={**CONTEXT, "allow_interspersed_args": False},
)
# what ``python -m yarnflow`` says, as in PyFlink ``python job.py`` has another default than ``flink run``
@click.option("--default-parallelism", type=click.IntRange(min=1), hidden=True)
# by which an uploaded program's jobs have their keys; else it is the path
@click.option("--program-location", default="", hidden=True)
@restore_options
@click.option(
    "--dry-run", is_flag=True, help="Show what YARN would be asked for, or else the plan; submit nothing."
)
@option_flags(SUBMIT)
@python_flags
@flink_flags(*PROGRAM_FLAGS, *YARN_FLAGS)
@cluster_options
@click.argument("program", required=False, type=click.Path())
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(
    default_parallelism: int | None,
    program_location: str,
    from_savepoint: str | None,
    restore: str | None,
    claim_mode: str | None,
    trust_state: bool,
    allow_non_restored: bool,
    dry_run: bool,
    values: dict[str, str],
    configuration: Configuration,
    program: str | None,
    arguments: tuple[str, ...],
    **flags: str | None,
) -> Shown:
    """Run PROGRAM on a cluster.

    PROGRAM is a Python file: a DataStream program, or any PySpark script.  Options after it
    belong to the program.
    """
    run = python_program(flags, program, arguments)
    if run is None:
        raise click.UsageError("missing PROGRAM; usage: yarnflow submit [OPTIONS] PROGRAM [ARGS...]")
    state = restore_values(from_savepoint, restore, claim_mode, trust_state, allow_non_restored)
    named_by_id = configuration.source_of(yarn.APPLICATION_ID) == "command line"
    if named_by_id and not configuration.is_set(client.TARGET):
        # -yid of Flink
        values[client.TARGET.key] = "yarn-session"
    configuration = configuration.with_values({**state, **values}, source="command line")
    loaded = load_program(run.path, run.arguments, run.files)
    if dry_run:
        check_target(configuration)
        check_jars(loaded, configuration)
        return shown_description(describe_program(loaded, configuration, run.files))
    jobs = _JobsSeen()
    shown = Shown(None)
    with ExitStack() as stack:
        if wants_json():
            # of the program and its jobs, for people
            stack.enter_context(answer_alone())
        configuration = configuration_with_jars(configuration, _say, _own_jars(loaded, configuration))
        try:
            run_program(
                loaded,
                configuration,
                run.files,
                verbose=is_verbose(),
                default_parallelism=default_parallelism,
                location=program_location,
                seen=jobs,
            )
        except YarnflowError as error:
            if not jobs.submitted:
                raise
            shown = replace(shown, error=error)
    target = configuration.get(client.TARGET)
    return replace(shown, document=Submission(tuple(jobs.submitted.values()), target))


class _JobsSeen:
    """The jobs of a program, as a view is told of them."""

    def __init__(self) -> None:
        self.submitted: dict[JobId, SubmittedJob] = {}

    def watching(self, view: View) -> View:
        """A view that is told all that this is told."""
        return _Watched(view, self)


class _Watched:
    """A view, and who remembers the jobs."""

    def __init__(self, view: View, seen: _JobsSeen) -> None:
        self._view = view
        self._seen = seen.submitted

    @property
    def live(self) -> bool:
        return self._view.live

    def submitted(self, job_id: JobId, name: str, attached_to_existing: bool, page: Page = NO_PAGE) -> None:
        self._seen[job_id] = SubmittedJob(job_id, name, JobStatus.CREATED, attached_to_existing)
        self._view.submitted(job_id, name, attached_to_existing, page)

    def begin(self, details: JobDetails) -> None:
        self._view.begin(details)

    def changed(self, details: JobDetails, overview: ClusterOverview | None) -> None:
        job_id = details.overview.job_id
        if job_id in self._seen:
            self._seen[job_id] = replace(self._seen[job_id], status=details.overview.status)
        self._view.changed(details, overview)

    def note(self, text: str) -> None:
        self._view.note(text)

    def close(self) -> None:
        self._view.close()


def shown_description(text: str) -> Shown:
    """What YARN would be asked for."""
    from yarnflow.config.conf_file import read_yaml

    return Shown(read_yaml(text) if wants_json() else None, text)


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
    location: str = "",
    seen: _JobsSeen | None = None,
) -> None:
    """Run a checked program on the configured target; every job FINISHED (detached: was accepted).

    Parameters
    ----------
    default_parallelism : int, optional
        Parallelism where neither the configuration nor the program say one; None = the option's default.
    location : str, optional
        See :meth:`yarnflow.client.programs.job_key.ProgramIdentity.of_file`.
    seen : _JobsSeen, optional
        Told of the program's jobs.

    Raises
    ------
    YarnflowError
        Anything else.
    """
    target = check_target(configuration)
    configuration, check_graph = with_state(configuration, target.name)
    terminate_as_interrupt()
    view = make_view(refresh_ms=configuration.get(client.VIEW_REFRESH_MS), verbose=verbose)
    if seen is not None:
        view = seen.watching(view)
    if target.owned:
        check_graph = noting_lost_state(check_graph, configuration, view.note)
    pump = OutputPump() if (view.live or wants_json()) and target.owned else None
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
        identity = ProgramIdentity.of_file(
            Path(program.path), program.content, program.arguments, files, location
        )
        executor = ClusterExecutor.configured(connection, configuration, view, check_graph, identity)
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
        exit_on_signal(143 if isinstance(interrupt, Terminated) else 130, 0.0 if target.owned else CLEAN_UP_S)
        raise
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        kept = connection.stop(forced=forced, failed=failed) if connection is not None else ""
        if pump is not None:
            pump.close()
        view.close()
        if kept:
            click.echo(f"Logs are in {kept}", err=True)


def check_target(configuration: Configuration) -> Target:
    """The configured target, which can do what the options ask for.

    Raises
    ------
    InvalidOption
        There is no such target, or it cannot.
    """
    target = find_target(configuration.get(client.TARGET))
    if target.owned and not configuration.get(client.ATTACHED):
        raise InvalidOption(
            f"a {target.name} cluster ends with its command, so its jobs cannot be detached; "
            "leave -d out, or submit to a standalone cluster with -m host:port"
        )
    refuse_unread_options(target, configuration)
    return target


def describe_program(program: Program, configuration: Configuration, files: tuple[str, ...]) -> str:
    """What a submit would ask of YARN, as YAML; the plan where it asks nothing, as JSON.

    The program's ``main()`` runs up to its first ``execute()``, unless it would run in a cluster.
    """
    target = find_target(configuration.get(client.TARGET))
    if target.mode is None or not target.deploys_on_yarn:
        from yarnflow.cli.info import plan_of

        return plan_of(program, configuration, files)
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
    key = executor.keys.next(name)
    slots = configuration.get(job.PARALLELISM_DEFAULT)
    answer = executor.settled(
        lambda: cluster.submit_program(name, program.arguments, slots, key), key.key, name
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
            'call env.execute("name") at the end of the program'
        )
