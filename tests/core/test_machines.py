"""What must hold of every state machine, read off its table, and a long random walk over each."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any

import pytest

from yarnflow.core.fsm import Machine
from yarnflow.core.ids import JobId, TaskManagerId, VertexId
from yarnflow.core.job import execution, job
from yarnflow.core.job_run import spare_life
from yarnflow.core.messages import ErrorInfo
from yarnflow.core.states import ExecutionState, JobStatus
from yarnflow.errors import InvalidTransition

ERROR = ErrorInfo("USER_CODE", "ValueError: bad row")


@dataclass(frozen=True)
class Subject:
    machine: Machine[Any, Any, Any]
    create: Callable[[int], Any]
    #: each change of the state is an effect, too
    tells_changes: bool = True

    def event(self, event_type: type, at_ms: int) -> Any:
        """An event of a type, its fields filled by name."""
        values = {"at_ms": at_ms, "error": ERROR, "task_manager_id": TaskManagerId("tm-1")}
        return event_type(**{field.name: values[field.name] for field in fields(event_type)})


SUBJECTS = [
    pytest.param(
        Subject(job.MACHINE, lambda at_ms: job.JobModel.create(JobId("a" * 32), at_ms)),
        id="job",
    ),
    pytest.param(
        Subject(
            execution.MACHINE,
            lambda at_ms: execution.Execution.create(VertexId("v1"), 0, at_ms),
        ),
        id="execution",
    ),
    pytest.param(
        Subject(
            spare_life.MACHINE,
            lambda at_ms: spare_life.SpareLife.create(JobId("a" * 32), at_ms),
            tells_changes=False,
        ),
        id="hot spare",
    ),
]
every_machine = pytest.mark.parametrize("subject", SUBJECTS)


@every_machine
def test_every_state_has_rows_or_is_terminal(subject: Subject) -> None:
    with_rows = {state for state, _ in subject.machine.table}
    assert with_rows | subject.machine.terminal == set(subject.machine.states)


@every_machine
def test_nothing_leads_out_of_a_terminal_state(subject: Subject) -> None:
    assert not {state for state, _ in subject.machine.table} & subject.machine.terminal


def reachable(machine: Machine[Any, Any, Any], start: Enum) -> set[Enum]:
    found, todo = {start}, [start]
    while todo:
        here = todo.pop()
        for (state, _), edge in machine.table.items():
            if state is here:
                todo.extend(target for target in edge.targets if target not in found)
                found.update(edge.targets)
    return found


@every_machine
def test_every_state_is_reached_and_reaches_a_terminal_one(subject: Subject) -> None:
    assert reachable(subject.machine, subject.machine.initial) == set(subject.machine.states)
    for state in subject.machine.states:
        assert reachable(subject.machine, state) & subject.machine.terminal, state


@every_machine
def test_every_edge_says_why(subject: Subject) -> None:
    assert [key for key, edge in subject.machine.table.items() if not edge.note] == []


@every_machine
def test_random_walk_keeps_the_invariants_and_illegal_events_change_nothing(subject: Subject) -> None:
    machine, rng = subject.machine, random.Random(20_26)
    model, refused = subject.create(0), 0
    taken: set[tuple[Enum, type]] = set()
    for at_ms in range(1, 10_001):
        if model.state in machine.terminal and rng.random() < 0.5:
            model = subject.create(at_ms)
        event = subject.event(rng.choice(machine.events), at_ms)
        state, before = model.state, repr(model)
        if machine.accepts(state, type(event)):
            model, effects = machine.step(model, event)
            taken.add((state, type(event)))
            assert (model.state is not state and subject.tells_changes) == bool(effects)
            assert all((effect.old, effect.new) == (state, model.state) for effect in effects)
        else:
            with pytest.raises(InvalidTransition):
                machine.step(model, event)
            assert repr(model) == before
            refused += 1
        machine.check(model)
    assert taken == set(machine.table), "the walk did not take every edge"
    assert refused


@every_machine
def test_documentation_names_every_edge(subject: Subject) -> None:
    table, diagram = subject.machine.markdown(), subject.machine.mermaid()
    for (state, event), edge in subject.machine.table.items():
        assert f"| {state.name} | {event.__name__} |" in table
        for target in edge.targets:
            line = next(line for line in diagram.splitlines() if f" {state.name} --> {target.name}:" in line)
            assert event.__name__ in line


def test_refusal_tells_machine_id_state_event_and_story() -> None:
    model, _ = job.MACHINE.step(job.JobModel.create(JobId("b" * 32), 10), job.JobInitialized(20))
    with pytest.raises(InvalidTransition) as caught:
        job.MACHINE.step(model, job.AllExecutionsFinished(30))
    assert str(caught.value) == (
        f"Job {'b' * 32}: AllExecutionsFinished is not legal in state CREATED; "
        "story: INITIALIZING@10 → CREATED@20"
    )


#: Flink's moves between job states (flink-runtime, release 1.20) and the ones explained in core/job/job.py
JOB_MOVES = {
    "INITIALIZING": "CREATED CANCELLING RECONCILING RECOVERY_FAILED",
    "RECOVERY_FAILED": "INITIALIZING CANCELLING",
    "CREATED": "RUNNING RESTARTING FAILING CANCELLING",
    "RUNNING": "RESTARTING FAILING CANCELLING FINISHED",
    "RESTARTING": "RESTARTING RUNNING FAILING CANCELLING",
    "FAILING": "FAILING FAILED CANCELLING",
    "CANCELLING": "CANCELLING CANCELED",
    "RECONCILING": "RUNNING RESTARTING FAILING CANCELLING",
}
EXECUTION_MOVES = {
    "CREATED": "SCHEDULED RECONCILING CANCELED FAILED",
    "SCHEDULED": "DEPLOYING CANCELED FAILED",
    "DEPLOYING": "INITIALIZING RUNNING FINISHED CANCELING FAILED",
    "INITIALIZING": "RUNNING FINISHED CANCELING FAILED",
    "RUNNING": "FINISHED CANCELING FAILED",
    "CANCELING": "CANCELING CANCELED",
    "RECONCILING": "RUNNING FINISHED CANCELING FAILED",
}


@pytest.mark.parametrize(
    ("machine", "moves"),
    [(job.MACHINE, JOB_MOVES), (execution.MACHINE, EXECUTION_MOVES)],
    ids=["job", "execution"],
)
def test_moves_are_the_written_ones(machine: Machine[Any, Any, Any], moves: dict[str, str]) -> None:
    found: dict[str, set[str]] = {}
    for (state, _), edge in machine.table.items():
        found.setdefault(state.name, set()).update(target.name for target in edge.targets)
    assert found == {state: set(targets.split()) for state, targets in moves.items()}


def run(model: job.JobModel, *events: job.JobEvent) -> job.JobModel:
    for event in events:
        model, _ = job.MACHINE.step(model, event)
    return model


def test_a_job_that_restarts_and_finishes() -> None:
    """1. runs 2. fails and restarts 3. runs again 4. finishes: times are those of the last entry."""
    model = run(
        job.JobModel.create(JobId("c" * 32), 1),
        job.JobInitialized(2),
        job.ExecutionsRunning(3),
        job.RestartBegan(4, ERROR),
    )
    assert (model.state, model.error) == (JobStatus.RESTARTING, ERROR)
    model = run(model, job.ExecutionsRunning(5), job.AllExecutionsFinished(6))
    assert (model.state, model.error) == (JobStatus.FINISHED, None)
    assert model.timestamps_ms() == {
        "INITIALIZING": 1, "CREATED": 2, "RESTARTING": 4, "RUNNING": 5, "FINISHED": 6
    }  # fmt: skip


def test_the_first_cause_of_a_failing_job_is_kept() -> None:
    later = ErrorInfo("EXECUTOR_LOST", "executor 1 exited while the job was torn down")
    model = run(
        job.JobModel.create(JobId("d" * 32), 1),
        job.JobInitialized(2),
        job.FailureUnrecoverable(3, ERROR),
        job.FailureUnrecoverable(4, later),
        job.AllExecutionsTerminal(5),
    )
    assert (model.state, model.error) == (JobStatus.FAILED, ERROR)


def test_cancel_overrides_failing_and_leaves_no_cause() -> None:
    model = run(
        job.JobModel.create(JobId("e" * 32), 1),
        job.JobInitialized(2),
        job.FailureUnrecoverable(3, ERROR),
        job.CancelRequested(4),
        job.ExecutionsRunning(5),
        job.AllExecutionsTerminal(6),
    )
    assert (model.state, model.error) == (JobStatus.CANCELED, None)


def test_a_failure_while_canceling_completes_the_cancellation() -> None:
    model = execution.Execution.create(VertexId("v1"), 2, 0)
    for event in (
        execution.Scheduled(1),
        execution.SlotAssigned(2, TaskManagerId("tm-1")),
        execution.CancelRequested(3),
        execution.SwitchedToRunning(4),
        execution.Failed(5, ERROR),
    ):
        model, _ = execution.MACHINE.step(model, event)
    assert (model.state, model.error) == (ExecutionState.CANCELED, None)
    assert model.info().timestamps_ms == {
        "CREATED": 0, "SCHEDULED": 1, "DEPLOYING": 2, "CANCELING": 3, "CANCELED": 5
    }  # fmt: skip
