"""Many executions moved together, and where subtasks go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarnflow.core.ids import TaskManagerId, VertexId
from yarnflow.core.job import execution as ex
from yarnflow.core.job.execution_graph import ExecutionGraph, in_state, on_task_manager
from yarnflow.core.messages import ErrorInfo
from yarnflow.core.states import ExecutionState as S
from yarnflow.errors import InvalidTransition, InvariantViolated

A, B = TaskManagerId("tm-a"), TaskManagerId("tm-b")
LOST = ErrorInfo("TASK_MANAGER_LOST", "tm-a is gone")


def graph() -> ExecutionGraph:
    """Source (2) and map (4) share slots, the sink (1) has its own group: 5 slots."""
    return ExecutionGraph.create(
        [
            (VertexId("src"), "Source", 2, 128, "default"),
            (VertexId("map"), "Map", 4, 128, "default"),
            (VertexId("out"), "Sink", 1, 128, "sinks"),
        ],
        at_ms=1,
    )


def running() -> ExecutionGraph:
    return graph().scheduled(2).assign_slots([A, A, A, B, B], 3).apply(ex.SwitchedToRunning(4))


def places(made: ExecutionGraph) -> dict[tuple[str, int], str]:
    return {(execution.vertex_id, execution.subtask_index): execution.task_manager_id for execution in made}


def test_slots_required_is_the_widest_vertex_of_each_group() -> None:
    assert graph().slots_required == 5


def test_one_slot_holds_the_same_subtask_of_each_vertex_of_a_group() -> None:
    made = graph().scheduled(2).assign_slots([A, A, A, B, B], 3)
    assert places(made) == {
        ("src", 0): A, ("src", 1): A,
        ("map", 0): A, ("map", 1): A, ("map", 2): A, ("map", 3): B,
        ("out", 0): B,
    }  # fmt: skip
    assert made.counts()[S.DEPLOYING] == 7


def test_what_gets_no_slot_stays_scheduled_until_there_is_one() -> None:
    made = graph().scheduled(2).assign_slots([A, A, B], 3)
    assert (made.counts()[S.DEPLOYING], made.counts()[S.SCHEDULED]) == (5, 2)
    assert places(made)["map", 3] == places(made)["out", 0] == ""
    made = made.assign_slots([A, A, B, B, B], 5)
    assert (made.counts()[S.DEPLOYING], made.counts()[S.SCHEDULED]) == (7, 0)
    assert places(made)["map", 3] == places(made)["out", 0] == B


def test_a_lost_task_manager_gets_new_attempts_on_what_is_left() -> None:
    """1. tm-a is lost 2. its subtasks fail 3. new attempts take new slots, the others stay."""
    made, changes = running().apply_with_effects(ex.Failed(5, LOST), on_task_manager(A))
    assert {change.new for change in changes} == {S.FAILED} and len(changes) == 5
    made = made.new_attempts(6).scheduled(7).assign_slots([B] * 5, 8).apply(ex.SwitchedToRunning(9))
    assert made.counts()[S.RUNNING] == 7
    assert set(places(made).values()) == {B}
    attempts = {(str(e.vertex_id), e.subtask_index): e.attempt for e in made}
    assert attempts["src", 0] == 1 and attempts["map", 3] == 0 and attempts["out", 0] == 0


def test_without_a_selection_only_those_move_that_can() -> None:
    made = running().apply(ex.Finished(5), lambda e: e.vertex_id == "src").apply(ex.CancelRequested(6))
    assert {state: n for state, n in made.counts().items() if n} == {S.FINISHED: 2, S.CANCELING: 5}


def test_with_a_selection_an_illegal_event_is_refused() -> None:
    with pytest.raises(InvalidTransition):
        graph().apply(ex.Finished(2), in_state(S.CREATED))


def test_a_living_attempt_is_not_replaced() -> None:
    with pytest.raises(InvariantViolated, match="only a terminal attempt can be replaced"):
        running().new_attempts(5, on_task_manager(A))


def test_infos() -> None:
    info = running().infos()[1]
    assert (info.vertex_id, info.parallelism, info.slot_sharing_group) == ("map", 4, "default")
    assert info.executions[3].task_manager_id == B
    assert info.executions[3].timestamps_ms == {"CREATED": 1, "SCHEDULED": 2, "DEPLOYING": 3, "RUNNING": 4}


@given(
    widths=st.lists(st.tuples(st.integers(1, 5), st.sampled_from("gh")), min_size=1, max_size=4),
    lost=st.integers(0, 3),
    data=st.data(),
)
def test_no_slot_ever_holds_two_places(
    widths: list[tuple[int, str]], lost: int, data: st.DataObject
) -> None:
    """Per TaskManager, at most as many (group, subtask) places as it gave slots; also after a loss."""
    made = ExecutionGraph.create(
        [(VertexId(str(i)), str(i), width, 128, group) for i, (width, group) in enumerate(widths)], 0
    ).scheduled(1)
    names = [TaskManagerId(f"tm-{i}") for i in range(4)]
    slots = data.draw(st.lists(st.sampled_from(names), min_size=made.slots_required, max_size=12))

    def check(given_slots: list[TaskManagerId]) -> None:
        group_of = {vertex.vertex_id: vertex.slot_sharing_group for vertex in made.vertices}
        for name in names:
            held = {(group_of[e.vertex_id], e.subtask_index) for e in made if e.task_manager_id == name}
            assert len(held) <= given_slots.count(name)

    made = made.assign_slots(slots, 2)
    check(slots)
    gone = names[lost]
    made = made.apply(ex.Failed(3, LOST), on_task_manager(gone)).new_attempts(4).scheduled(5)
    replaced = [name for name in slots if name != gone] + [TaskManagerId("tm-new")] * slots.count(gone)
    names.append(TaskManagerId("tm-new"))
    shuffled = data.draw(st.permutations(replaced))
    made = made.assign_slots(shuffled, 6)
    check(shuffled)
