from __future__ import annotations

from typing import Any

import pytest

from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.json_codec import from_json
from yarnflow.core.messages import DriverAssignment, Fence
from yarnflow.core.yarn import DRIVER_KEY_ENVIRONMENT, DRIVER_MEMORY_ENVIRONMENT
from yarnflow.errors import InvalidMemory, YarnUnavailable, error_from_exit
from yarnflow.testing.skein_clients import FakeSkeinApplication
from yarnflow.yarn.container_exit import ContainerExit
from yarnflow.yarn.drivers import YarnDrivers

D1, D2 = DriverId("driver-1"), DriverId("driver-2")


def assignment(driver_id: DriverId) -> DriverAssignment:
    return DriverAssignment(
        JobId("0" * 32), driver_id, "m:1", Fence("l", 1), "hdfs:///c", "/w", configuration={"password": "p"}
    )


class FakeNodes:
    def exit(self, node: str, container_id: str, log_name: str) -> ContainerExit:
        return ContainerExit(7, f"status 7 on {node}, {log_name}")


class Watched:
    """Drivers stepped by hand, with a clock of their own; the thread ends at once."""

    def __init__(self) -> None:
        self.client = FakeSkeinApplication()
        self.now_s = 100.0
        self.exits: list[tuple[DriverId, int, str]] = []
        self.waits: list[tuple[DriverId, bool]] = []
        self.drivers = YarnDrivers(
            1600,
            lambda *end: self.exits.append(end),
            lambda *wait: self.waits.append(wait),
            monotonic=lambda: self.now_s,
        )
        self.drivers.close()
        self.drivers.attach(self.client, FakeNodes())

    def step(self, seconds: float = 0.25) -> float | None:
        self.now_s += seconds
        return self.drivers.step()

    def launch(self, driver_id: DriverId, memory_mib: int = 1600) -> None:
        self.drivers.launch(assignment(driver_id), memory_mib)

    def calls(self, name: str) -> list[tuple[Any, ...]]:
        return [call for call in self.client.calls if call[0] == name]


def test_each_driver_has_a_container_that_finds_its_assignment() -> None:
    w = Watched()
    assert w.step() is None and not w.client.calls, "nobody is asked while there is no driver"
    w.launch(D1)
    w.launch(D2, 1000)
    w.launch(D1)
    assert w.step() == 0.25, "until YARN grants them"
    assert [c.service_name for c in w.client.containers] == ["driver", "driver"]
    first, second = (c.env for c in w.client.containers)
    taken = from_json(DriverAssignment, w.client.kv[first[DRIVER_KEY_ENVIRONMENT]].decode())
    assert taken == assignment(D1)
    assert "password" not in str(first), "YARN shows a container's environment"
    assert first[DRIVER_MEMORY_ENVIRONMENT] == "1600" and second[DRIVER_MEMORY_ENVIRONMENT] == "1000"
    w.client.grant(0)
    w.client.grant(1)
    assert w.step() == 1.0
    w.launch(D1)
    w.step()
    assert len(w.client.containers) == 2 and w.drivers.running() == [D1, D2]


@pytest.mark.parametrize(
    ("state", "message", "status", "said"),
    [
        ("SUCCEEDED", "", 0, ""),
        ("FAILED", "Container failed during execution, see logs for more information.", 7, "driver.log"),
        ("FAILED", "Container released on a *lost* node", -100, "lost"),
        ("KILLED", "Killed by user request.", -9, "killed"),
    ],
)
def test_the_end_of_a_container_is_that_of_its_driver(
    state: str, message: str, status: int, said: str
) -> None:
    w = Watched()
    w.launch(D1)
    w.step()
    w.client.grant(0)
    w.step()
    w.client.end(0, state, message)
    w.step()
    ((driver_id, exit_status, output),) = w.exits
    assert (driver_id, exit_status) == (D1, status) and said in output
    assert w.drivers.running() == []
    w.step()
    assert len(w.exits) == 1 and len(w.client.containers) == 1, "it is never started again"
    assert w.step() is None and not w.client.kv


def test_a_killed_driver_gives_its_container_back() -> None:
    w = Watched()
    w.launch(D1)
    w.step()
    w.client.grant(0)
    w.step()
    w.drivers.kill(DriverId("driver-unknown"))
    w.drivers.kill(D1, grace_ms=5000)
    w.step(2.0)
    assert not w.calls("kill") and not w.exits, "it may still end by itself"
    w.drivers.kill(D1, grace_ms=60_000)
    w.step(4.0)
    assert w.calls("kill") == [("kill", "driver_0")], "a later order does not make it longer"
    w.step()
    assert [end[:2] for end in w.exits] == [(D1, -9)]
    w.step()
    assert len(w.calls("kill")) == 1


def test_a_driver_that_is_killed_before_it_has_a_container() -> None:
    w = Watched()
    w.launch(D1)
    w.drivers.kill(D1)
    w.step()
    assert not w.client.containers and [end[:2] for end in w.exits] == [(D1, -9)]
    w.launch(D2)
    w.step()
    w.drivers.kill_all()
    w.step()
    assert w.client.states() == ["KILLED"], "also one that YARN has not granted"
    w.step()
    w.step()
    assert [end[0] for end in w.exits] == [D1, D2] and not w.client.kv


def test_it_is_told_when_a_container_is_asked_for_and_when_it_is_granted() -> None:
    w = Watched()
    w.launch(D1)
    assert w.waits == [(D1, True)], "before YARN could grant it"
    w.launch(D2)
    w.step()
    w.step(400.0)
    w.launch(D1)
    assert w.waits == [(D1, True), (D2, True)]
    w.client.grant(0)
    w.step()
    w.step()
    assert w.waits[2:] == [(D1, False)], "once, and only of the one that was granted"
    w.drivers.kill(D2)
    w.step()
    assert w.client.states() == ["RUNNING", "KILLED"], "a request that was given up is withdrawn"
    w.step()
    assert w.drivers.running() == [D1] and w.waits[3:] == []


def test_a_request_that_fails_is_made_again_and_no_second_container_runs_the_driver() -> None:
    w = Watched()
    failing = [True]

    def fail(call: tuple[Any, ...]) -> None:
        if call[0] == "add" and failing.pop():
            # the request was made, but its answer is lost
            w.client.before = lambda call: None
            w.client.add_container("driver", dict(w.client.containers[-1].env) if w.client.containers else {})
            raise YarnUnavailable("connection lost")

    w.client.before = fail
    w.launch(D1)
    assert w.step() == 1.0
    (lost,) = w.client.kv
    assert w.drivers.running() == [D1] and not w.exits
    w.step()
    assert lost not in w.client.kv, "what the first container would have taken"
    assert w.client.states() == ["KILLED", "REQUESTED"]
    w.client.grant(1)
    w.step()
    assert w.drivers.running() == [D1] and not w.exits and len(w.client.containers) == 2


def test_a_driver_larger_than_its_container_is_refused() -> None:
    w = Watched()
    w.launch(D1, 1601)
    ((driver_id, status, output),) = w.exits
    error = error_from_exit(status, output)
    assert driver_id == D1 and isinstance(error, InvalidMemory) and "1601 MiB" in str(error)
    w.step()
    assert not w.client.containers and w.drivers.running() == []
