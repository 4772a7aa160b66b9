"""Assets that are updated by the checkpoints of a job."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from airflow.triggers.base import BaseEventTrigger

from tests.airflow.surroundings import JOB, OTHER, Connections, listed, token
from yarnflow.airflow.assets import checkpoint_asset
from yarnflow.airflow.triggers.checkpoint import YarnflowCheckpointTrigger
from yarnflow.core.states import JobStatus
from yarnflow.testing.outside.command import FakeCommand
from yarnflow.testing.outside.rest_server import RestServer


class AssetStore:
    """What Airflow gives the triggers of an asset."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    async def aget(self, key: str, default: Any = None) -> Any:
        return self.values.get(key, default)

    async def aset(self, key: str, value: Any) -> None:
        self.values[key] = value


@pytest.fixture
def cluster(connections: Connections, command: FakeCommand, server: RestServer) -> RestServer:
    """One with a job of the key k."""
    connections.add(command=str(command.path))
    command.answers("list", listed(JOB, web_address=server.address, job_key="k"))
    command.answers("token", token(server.address))
    command.answers("info", error=("JOB_NOT_FOUND", "no job"))
    server.add(JOB, JobStatus.RUNNING)
    return server


def fired(trigger: YarnflowCheckpointTrigger, number: int) -> list[int]:
    """The checkpoints of the first events; then the triggerer ends."""

    async def run() -> list[int]:
        found: list[int] = []
        events = trigger.run()
        async for event in events:
            found.append(event.payload["checkpoint_id"])
            if len(found) == number:
                break
        await events.aclose()  # type: ignore[attr-defined]
        return found

    return asyncio.run(run())


def test_each_nth_checkpoint(cluster: RestServer) -> None:
    for number in range(1, 8):
        cluster.completes(JOB, number)
    assert fired(YarnflowCheckpointTrigger(job_key="k", every=3), 2) == [3, 6]


def test_after_a_restart_of_the_triggerer_nothing_is_told_twice(cluster: RestServer) -> None:
    store = AssetStore()
    for number in range(1, 4):
        cluster.completes(JOB, number)
    for expected in ([1, 2], [2, 3]):
        trigger = YarnflowCheckpointTrigger(job_key="k")
        trigger.asset_state_store = store
        # the last event of the first one was told before it could be noted
        assert fired(trigger, 2) == expected


def test_the_next_job_of_the_key_is_followed(cluster: RestServer, command: FakeCommand) -> None:
    cluster.completes(JOB, 1)
    cluster.becomes(JOB, JobStatus.FINISHED)
    command.answers("list", listed(OTHER, web_address=cluster.address, job_key="k"))
    cluster.add(OTHER, JobStatus.RUNNING)
    cluster.completes(OTHER, 2)
    assert fired(YarnflowCheckpointTrigger(job_key="k", poll_interval=0.01), 2) == [1, 2]


def test_a_connection_that_was_changed_meanwhile(
    cluster: RestServer, command: FakeCommand, connections: Connections
) -> None:
    """Such a trigger runs as long as the triggerer."""
    cluster.completes(JOB, 1)
    connections.add(command="/there/is/none")
    trigger = YarnflowCheckpointTrigger(job_key="k", poll_interval=0.01)

    async def run() -> Any:
        events = trigger.run()
        first = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0.1)
        connections.add(command=str(command.path))
        event = await first
        await events.aclose()  # type: ignore[attr-defined]
        return event.payload["checkpoint_id"]

    assert asyncio.run(run()) == 1


def test_checkpoints_are_counted_from_one() -> None:
    with pytest.raises(ValueError, match="every=0 of an asset's checkpoints: expected 1 or more"):
        checkpoint_asset("flights", "k", every=0)


def test_an_asset_that_is_watched() -> None:
    asset = checkpoint_asset("flights", "k", every=5, yarnflow_conn_id="c")
    (watcher,) = asset.watchers
    assert watcher.trigger.serialize()[1] == {
        "job_key": "k",
        "every": 5,
        "asset": "flights",
        "yarnflow_conn_id": "c",
        "poll_interval": 30.0,
    }
    # or Airflow makes one trigger of both, which can note nothing
    (other,) = checkpoint_asset("others", "k", every=5, yarnflow_conn_id="c").watchers
    assert BaseEventTrigger.hash(*watcher.trigger.serialize()) != BaseEventTrigger.hash(
        *other.trigger.serialize()
    )
