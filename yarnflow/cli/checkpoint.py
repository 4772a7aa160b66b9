"""``yarnflow checkpoint JOB``: takes a checkpoint now and returns when it is durable.

Prints where it is on standard output and nothing else.  Flink counterpart: ``flink checkpoint``.
"""

from __future__ import annotations

import click

from yarnflow.cli.checkpoints import duration_text
from yarnflow.cli.common import checked_job_id, cluster_options, existing_cluster, job_argument
from yarnflow.cli.flags.flink_flags import CHECKPOINT_FLAGS, flink_flags
from yarnflow.cli.output import Shown, Verb
from yarnflow.cli.state_options import interruptible, note
from yarnflow.client.savepoints import new_request, take
from yarnflow.config.configuration import Configuration
from yarnflow.config.options import client as client_options
from yarnflow.core.checkpoint.messages import CheckpointInfo, CheckpointKind


@click.command("checkpoint", cls=Verb, answer=CheckpointInfo)
@job_argument()
@flink_flags(*CHECKPOINT_FLAGS)
@cluster_options
def command(job: str, configuration: Configuration) -> Shown:
    """Take a checkpoint of a running job now.

    Returns when the batch that runs is committed and recorded.
    """
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
    return Shown(info, info.external_path)
