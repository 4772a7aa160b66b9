"""``yarnflow drill``: breaks something a running job needs, for real, and shows how it recovers.

The timeline goes to standard output, everything else to standard error.  Exit status 0 = the job runs
again and commits.  Flink has no counterpart.
"""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from typing import Final

import click

from yarnflow.cli.checkpoints import duration_text
from yarnflow.cli.common import (
    checked_job_id,
    cluster_options,
    existing_cluster,
    job_argument,
    terminate_as_interrupt,
)
from yarnflow.cli.output import Shown, Verb, plain_values
from yarnflow.cli.state_options import note, open_file_systems
from yarnflow.client.drill.commits import Gaps
from yarnflow.client.drill.hdfs import SafeModeFault
from yarnflow.client.drill.report import DrillKind, DrillReport
from yarnflow.client.drill.run import ClusterFault, Drill, Fault, log_reader
from yarnflow.config.configuration import Configuration
from yarnflow.core.ids import JobId
from yarnflow.core.ports import DispatcherGateway
from yarnflow.errors import DrillFailed, InvalidOption, JobError
from yarnflow.process.clock import SystemClock

_DEFAULT_FOR_S: Final = 20.0


@click.command(
    "drill",
    cls=Verb,
    answer="The report: `kind`, `victim`, `events` (each with `at_ms` and `after_fault_ms`), `gaps`, "
    "`replay`, `verdict`, `passed`.",
)
@click.argument("kind", type=click.Choice([kind.value for kind in DrillKind]), metavar="WHAT")
@job_argument(required=False)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--for",
    "for_s",
    type=click.FloatRange(min=1, max=600),
    metavar="SECONDS",
    help=f"hdfs: how long it is read-only.  [default: {_DEFAULT_FOR_S:.0f}]",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=1),
    default=180.0,
    show_default=True,
    metavar="SECONDS",
    help="How long the job may take to recover.",
)
@cluster_options
def command(
    kind: str,
    job: str | None,
    yes: bool,
    for_s: float | None,
    timeout_s: float,
    configuration: Configuration,
) -> Shown:
    """Break something a running job needs, and show how it recovers.

    WHAT is leader, driver, taskmanager, application, zookeeper or hdfs.  JOB may be left out where only
    one runs.
    """
    terminate_as_interrupt()
    what = DrillKind(kind)
    if for_s is not None and what is not DrillKind.HDFS:
        raise click.UsageError("--for goes with hdfs only: every other fault is over at once")
    typed = checked_job_id(job) if job is not None else None
    with existing_cluster(configuration, typed or "") as connection:
        job_id = typed or _only_job(connection.gateway())
        cluster = connection.cluster_of(job_id)
        clock = SystemClock()
        fault: Fault
        if what is DrillKind.HDFS:
            fault = SafeModeFault(clock, round((for_s or _DEFAULT_FOR_S) * 1000))
        else:
            fault = ClusterFault(cluster.gateway(), what, job_id)
        logs = log_reader(open_file_systems())
        drill = Drill(cluster, job_id, what, fault, clock, time.sleep, logs, round(timeout_s * 1000))
        _confirm(drill.check(), job_id, yes)
        note(f"Watching job {job_id} before the fault.")
        drill.watch_before()
        note("Now.")
        report = drill.run()
    failure = None if report.passed else DrillFailed(f"drill {kind} of job {job_id}: {report.verdict}")
    return Shown(report_json(report), format_report(report), error=failure)


def _only_job(gateway: DispatcherGateway) -> JobId:
    live = [job for job in gateway.list_jobs() if not job.status.terminal]
    if len(live) == 1:
        return live[0].job_id
    if not live:
        raise JobError("no job runs on this cluster; a drill needs one that does")
    names = ", ".join(f"{job.job_id} ({job.name})" for job in live)
    raise JobError(f"several jobs run on this cluster; name one of them: {names}")


def _confirm(victim: str, job_id: JobId, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidOption(f"--yes is needed for a drill that nobody is asked about; it would hit {victim}")
    click.confirm(f"Hit {victim}, under job {job_id}, for real?", abort=True, err=True)


def report_json(report: DrillReport) -> dict[str, object]:
    """The report as JSON has it; times of events also relative to the fault."""
    found: dict[str, object] = plain_values(asdict(report))
    found["events"] = [
        {**asdict(event), "after_fault_ms": event.at_ms - report.fault_ms} for event in report.events
    ]
    return found


def format_report(report: DrillReport) -> str:
    """The report as text."""
    lines = [f"Drill {report.kind.value} of job {report.job_name} ({report.job_id})"]
    for event in report.events:
        after_s = (event.at_ms - report.fault_ms) / 1000
        lines.append(f"{after_s:8.2f} s  {event.name:<9} {' '.join(event.note.split())}".rstrip())
    lines.append(f"Gaps between commits: {_gaps_text(report.gaps)}")
    replay = report.replay
    records = "not known" if replay.records is None else f"{replay.records:,}"
    lines.append(f"Records processed again: {records} ({replay.basis})")
    if replay.offsets:
        lines.append(f"Source offsets: {replay.offsets}")
    lines.append(f"Verdict: {'passed' if report.passed else 'FAILED'}, {report.verdict}")
    return "\n".join(lines)


def _gaps_text(gaps: Gaps) -> str:
    if gaps.largest_ms < 0 or gaps.usual_ms < 0:
        return "not known"
    most = "" if gaps.exact else "at most "
    times = f", {gaps.largest_ms / gaps.usual_ms:.1f} times as long" if gaps.usual_ms else ""
    return f"largest {most}{duration_text(gaps.largest_ms)}, usually {duration_text(gaps.usual_ms)}{times}"
