"""``yarnflow checkpoint JOB``: takes a checkpoint now and returns when it is durable.

Prints where it is on standard output and nothing else.  Flink counterpart: ``flink checkpoint``.
"""

from __future__ import annotations

from pathlib import Path

import click

from yarnflow.cli.cancel import checked_job_id
from yarnflow.cli.checkpoints import duration_text
from yarnflow.cli.common import CONTEXT, cluster_options, existing_cluster, load_configuration, with_target
from yarnflow.cli.state_options import interruptible, note
from yarnflow.client.savepoints import new_request, take
from yarnflow.config.options import client as client_options
from yarnflow.core.checkpoint.messages import CheckpointKind


@click.command("checkpoint", context_settings=CONTEXT)
@click.argument("job")
@cluster_options
def command(
    job: str,
    target: str | None,
    jobmanager: str | None,
    dynamic: tuple[str, ...],
    conf_dir: Path | None,
    verbose: bool,
) -> None:
    """Take a checkpoint of a running job now.

    Returns when the batch that runs is committed and recorded.
    """
    configuration = with_target(load_configuration(conf_dir, dynamic), target, jobmanager)
    job_id = checked_job_id(job)
    with existing_cluster(configuration, job_id) as connection, interruptible(job_id):
        info = take(
            connection.cluster_of(job_id),
            job_id,
            new_request(CheckpointKind.CHECKPOINT),
            timeout_ms=configuration.get(client_options.CLIENT_TIMEOUT_MS),
        )
    took = duration_text(info.end_ms - info.trigger_ms)
    note(f"Checkpoint {info.checkpoint_id} of job {job_id} is complete ({took}).")
    click.echo(info.external_path)
