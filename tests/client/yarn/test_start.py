"""Waiting for an application: what is said, when it ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.client.yarn.yarn_fakes import World, job_id
from yarnflow.client.yarn.aggregated_logs import CollectedLine
from yarnflow.client.yarn.applications import connect_application
from yarnflow.client.yarn.start import MASTER_LOG, QUEUE_REPORT_S, StartWatch, log_tail
from yarnflow.core.states import JobStatus
from yarnflow.core.yarn import ApplicationState, DeploymentMode, FinalStatus
from yarnflow.errors import ApplicationFailed, JobNotFound, YarnUnavailable
from yarnflow.testing.gateways.dispatcher import details

S, F = ApplicationState, FinalStatus
ONE = "1" * 16
JOB = job_id(7)


class Waiting:
    """A wait in which time passes by sleeping, and things happen at times."""

    def __init__(self, world: World, state: ApplicationState = S.ACCEPTED, **options: str) -> None:
        self.world = world
        world.add("application_1_1", ONE, state, mode=DeploymentMode.PER_JOB, name="flights")
        world.folder(ONE).create()
        world.folder(ONE).write_secret("ab" * 32)
        services = world.services(**options)
        cluster = connect_application(services, world.yarn.application("application_1_1"))
        self.now_s = 0.0
        self.notes: list[str] = []
        self.plans: list[tuple[float, Callable[[], object]]] = []
        self.watch = StartWatch(
            services, cluster, self.notes.append, 2240, sleep=self.sleep, now=lambda: self.now_s
        )

    def sleep(self, seconds: float) -> None:
        assert seconds <= 0.1
        self.now_s += seconds
        assert self.now_s < 10_000, "waits for ever"
        while self.plans and self.plans[0][0] <= self.now_s:
            self.plans.pop(0)[1]()

    def at(self, seconds: float, what: Callable[[], object]) -> None:
        self.plans.append((seconds, what))

    def change(self, **values: object) -> Callable[[], None]:
        return lambda: self.world.yarn.change("application_1_1", **values)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_ready_at_once_asks_yarn_nothing(world: World) -> None:
    waiting = Waiting(world)
    world.serve("application_1_1", ONE)
    asked = world.yarn.looks
    waiting.watch.await_ready()
    assert world.yarn.looks == asked and waiting.notes == []


def test_the_address_is_seen_within_a_tenth_of_a_second_and_yarn_asked_less_often(world: World) -> None:
    waiting = Waiting(world)
    waiting.at(1.0, waiting.change(state=S.RUNNING))
    waiting.at(2.0, lambda: world.serve("application_1_1", ONE))
    asked = world.yarn.looks
    waiting.watch.await_ready()
    assert waiting.now_s < 2.15 and world.yarn.looks - asked <= 5


def test_a_full_queue_is_said_and_waited_for_without_end(world: World) -> None:
    waiting = Waiting(world)
    diagnostics = "[Sat] Application is added\n to the scheduler and is not yet activated."
    waiting.change(diagnostics=diagnostics)()
    waiting.at(5_000.0, lambda: world.serve("application_1_1", ONE))
    waiting.watch.await_ready()
    (note,) = waiting.notes
    assert "application_1_1 is ACCEPTED and waits" in note and "queue root.default" in note
    assert "YARN says: [Sat] Application is added to the scheduler" in note


def test_a_queue_that_changes_is_reported_again_but_not_all_the_time(world: World) -> None:
    waiting = Waiting(world)
    for second in range(1, 100):
        waiting.at(float(second), waiting.change(diagnostics=f"text {second}"))
    waiting.at(100.0, lambda: world.serve("application_1_1", ONE))
    waiting.watch.await_ready()
    assert 2 <= len(waiting.notes) <= 100 / QUEUE_REPORT_S + 1


def test_a_container_that_starts_is_no_wait_in_the_queue(world: World) -> None:
    waiting = Waiting(world)
    waiting.change(running_containers=1)()
    waiting.at(60.0, lambda: world.serve("application_1_1", ONE))
    waiting.watch.await_ready()
    assert waiting.notes == []


def test_early_death_has_yarns_diagnostics(world: World) -> None:
    waiting = Waiting(world)
    end = waiting.change(state=S.FAILED, diagnostics="AM Container exited\nwith exitCode: 1")
    waiting.at(1.0, end)
    said = "flights. ended FAILED: AM Container exited with exitCode: 1"
    with pytest.raises(ApplicationFailed, match=said):
        waiting.watch.await_ready()
    assert waiting.now_s < 2


def test_a_result_between_two_looks_is_no_failure(world: World) -> None:
    waiting = Waiting(world)
    done = details(JOB, 3, JobStatus.FINISHED)
    waiting.at(1.0, lambda: world.end("application_1_1", ONE, F.SUCCEEDED, done))
    waiting.watch.await_ready()
    waiting.watch.await_job(JOB)


@pytest.mark.parametrize("final", [F.SUCCEEDED, F.KILLED])
def test_an_end_that_left_nothing_but_yarns_word_is_no_failure(world: World, final: FinalStatus) -> None:
    waiting = Waiting(world)
    world.end("application_1_1", ONE, final, written=False)
    world.folder(ONE).delete()
    waiting.watch.await_ready()
    waiting.watch.await_job(JOB)


def test_a_job_manager_that_never_comes_up(world: World) -> None:
    waiting = Waiting(world, client_timeout="20 s")
    waiting.at(100.0, waiting.change(state=S.RUNNING))
    with pytest.raises(ApplicationFailed, match="has not come up within 20 s"):
        waiting.watch.await_ready()
    assert 120 <= waiting.now_s < 122


def test_yarn_may_be_away_for_a_while(world: World) -> None:
    waiting = Waiting(world, client_timeout="20 s")
    waiting.at(1.0, lambda: setattr(world.yarn, "error", YarnUnavailable("away")))
    waiting.at(15.0, lambda: setattr(world.yarn, "error", None))
    waiting.at(30.0, lambda: world.serve("application_1_1", ONE))
    waiting.watch.await_ready()


def test_but_not_for_ever(world: World) -> None:
    waiting = Waiting(world, client_timeout="20 s")
    waiting.at(1.0, lambda: setattr(world.yarn, "error", YarnUnavailable("away")))
    with pytest.raises(YarnUnavailable):
        waiting.watch.await_ready()
    assert 20 <= waiting.now_s < 23


def test_the_job_may_be_accepted_a_moment_after_the_address(world: World) -> None:
    waiting = Waiting(world, S.RUNNING)
    dispatcher = world.serve("application_1_1", ONE)
    known = details(JOB, 1, JobStatus.CREATED)
    looked: list[str] = []

    def job_details(job: str) -> object:
        looked.append(job)
        if len(looked) < 5:
            raise JobNotFound("not yet")
        return known

    dispatcher.job_details = job_details  # type: ignore[method-assign,assignment]
    waiting.watch.await_job(JOB)
    assert len(looked) == 5


def test_a_job_that_is_never_accepted(world: World) -> None:
    waiting = Waiting(world, S.RUNNING, client_timeout="20 s")
    world.serve("application_1_1", ONE)
    with pytest.raises(JobNotFound):
        waiting.watch.await_job(JOB)


def test_a_master_that_dies_before_the_job_is_seen(world: World) -> None:
    waiting = Waiting(world, S.RUNNING)
    world.serve("application_1_1", ONE)
    world.end("application_1_1", ONE, F.FAILED, diagnostics="no room for a driver")
    with pytest.raises(ApplicationFailed, match="no room for a driver"):
        waiting.watch.await_job(JOB)


def test_log_tail_is_of_the_masters_script() -> None:
    lines = [CollectedLine("container_2", "taskmanager.log", "not this\n")]
    lines.append(CollectedLine("container_1", "application.master.log", "nor this\n"))
    lines += [CollectedLine("container_1", MASTER_LOG, f"line {number}\n") for number in range(100)]
    tail = log_tail(lines)
    assert tail.splitlines()[0] == "Last lines of application.driver.log of container_1:"
    assert tail.splitlines()[-1] == "  line 99" and "line 80" in tail and "line 79" not in tail
    assert log_tail([]) == "" and log_tail([CollectedLine("container_1", "stdout", "x\n")]) == ""
