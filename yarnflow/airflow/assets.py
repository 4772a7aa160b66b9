"""Assets that are updated by the checkpoints of a job: DAGs scheduled by them run when data are there.

A task has outlet events only when it ends, which a stream's never does; so the asset has a watcher, which
runs in the triggerer (Airflow's event-driven scheduling).
"""

from __future__ import annotations

from airflow.sdk import Asset, AssetWatcher

from yarnflow.airflow.hooks.yarnflow import YarnflowHook
from yarnflow.airflow.triggers.checkpoint import YarnflowCheckpointTrigger


def checkpoint_asset(
    name: str, job_key: str, *, every: int = 1, yarnflow_conn_id: str = YarnflowHook.default_conn_name
) -> Asset:
    """An asset with an event at each n-th complete checkpoint of the job that has a key.

    Parameters
    ----------
    every : int
        Checkpoints from one event to the next.
    """
    trigger = YarnflowCheckpointTrigger(
        job_key=job_key, every=every, asset=name, yarnflow_conn_id=yarnflow_conn_id
    )
    return Asset(name, watchers=[AssetWatcher(name=f"checkpoints of {job_key}", trigger=trigger)])
