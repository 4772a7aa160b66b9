"""All current executions of a job, as one value.

Holds for each vertex one current attempt per subtask, moves many of them with one event, and
says where subtasks go when the slots are known.  It never talks to anybody and never decides
that a job fails or restarts.

Slot sharing: one slot holds subtask *i* of every vertex of a slot sharing group, so a job
needs the largest parallelism of each group, summed over the groups.

Flink counterparts: ``ExecutionGraph``, ``SlotSharingExecutionSlotAllocator``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from yarnflow.core.ids import TaskManagerId, VertexId
from yarnflow.core.job.execution import (
    MACHINE,
    Adopted,
    Execution,
    ExecutionChanged,
    ExecutionEvent,
    Scheduled,
    SlotAssigned,
)
from yarnflow.core.messages import VertexInfo
from yarnflow.core.states import ExecutionState
from yarnflow.errors import InvariantViolated

Select = Callable[[Execution], bool]
#: makes the event for one execution
EventFactory = Callable[[Execution], ExecutionEvent]
#: (slot sharing group, subtask index): what one slot holds
_Place = tuple[str, int]


def on_task_manager(task_manager_id: str) -> Select:
    """Selects the executions that are alive on one TaskManager."""
    return lambda execution: execution.occupies_slot and execution.task_manager_id == task_manager_id


def in_state(*states: ExecutionState) -> Select:
    """Selects executions by state."""
    return lambda execution: execution.state in states


def not_terminal(execution: Execution) -> bool:
    """Selects the executions that have not ended."""
    return not execution.state.terminal


@dataclass(frozen=True, slots=True)
class ExecutionVertex:
    """One vertex with the current attempt of each of its subtasks."""

    vertex_id: VertexId
    name: str
    parallelism: int
    max_parallelism: int
    slot_sharing_group: str
    executions: tuple[Execution, ...]

    def info(self) -> VertexInfo:
        return VertexInfo(
            self.vertex_id,
            self.name,
            self.parallelism,
            self.max_parallelism,
            self.slot_sharing_group,
            tuple(execution.info() for execution in self.executions),
        )


@dataclass(frozen=True, slots=True)
class ExecutionGraph:
    """The vertices of a job; every method returns a new graph."""

    vertices: tuple[ExecutionVertex, ...]

    @classmethod
    def create(cls, vertices: Iterable[tuple[VertexId, str, int, int, str]], at_ms: int) -> ExecutionGraph:
        """A graph of first attempts, all CREATED.

        Parameters
        ----------
        vertices : iterable
            ``(vertex id, name, parallelism, max parallelism, slot sharing group)``.
        at_ms : int
            Time of creation.
        """
        return cls(
            tuple(
                ExecutionVertex(
                    vertex_id,
                    name,
                    parallelism,
                    max_parallelism,
                    group,
                    tuple(Execution.create(vertex_id, index, at_ms) for index in range(parallelism)),
                )
                for vertex_id, name, parallelism, max_parallelism, group in vertices
            )
        )

    # --- reading ------------------------------------------------------------

    def __iter__(self) -> Iterator[Execution]:
        return (execution for vertex in self.vertices for execution in vertex.executions)

    @property
    def slots_required(self) -> int:
        """Slots the whole job needs."""
        return len(self._places())

    def counts(self) -> dict[ExecutionState, int]:
        """Executions per state, all ten states present."""
        found = Counter(execution.state for execution in self)
        return {state: found[state] for state in ExecutionState}

    def infos(self) -> tuple[VertexInfo, ...]:
        return tuple(vertex.info() for vertex in self.vertices)

    # --- moving -------------------------------------------------------------

    def apply_with_effects(
        self, event: EventFactory | ExecutionEvent, select: Select | None = None
    ) -> tuple[ExecutionGraph, tuple[ExecutionChanged, ...]]:
        """Apply an event to the selected executions.

        Parameters
        ----------
        event : event or callable
            One event for all, or a function making one per execution.
        select : callable, optional
            Which executions; None = those whose state takes such an event.

        Returns
        -------
        tuple
            The new graph and the changes in order of vertex and subtask.

        Raises
        ------
        InvalidTransition
            A selected execution cannot take the event; the graph is unchanged.
        """
        changes: list[ExecutionChanged] = []

        def move(execution: Execution) -> Execution:
            if select is not None and not select(execution):
                return execution
            made = event(execution) if callable(event) else event
            if select is None and not MACHINE.accepts(execution.state, type(made)):
                return execution
            after, effects = MACHINE.step(execution, made)
            changes.extend(effects)
            return after

        return self._map(move), tuple(changes)

    def apply(self, event: EventFactory | ExecutionEvent, select: Select | None = None) -> ExecutionGraph:
        """:meth:`apply_with_effects` without the effects."""
        return self.apply_with_effects(event, select)[0]

    def new_attempts(self, at_ms: int, select: Select | None = None) -> ExecutionGraph:
        """Replace the selected terminal executions by their next attempt, CREATED.

        Parameters
        ----------
        at_ms : int
            Time of creation of the new attempts.
        select : callable, optional
            Which executions; None = all terminal ones.

        Raises
        ------
        InvariantViolated
            A selected execution is still alive.
        """

        def again(execution: Execution) -> Execution:
            if not (execution.state.terminal if select is None else select(execution)):
                return execution
            if not execution.state.terminal:
                raise InvariantViolated(
                    f"Execution {execution.vertex_id}[{execution.subtask_index}]#{execution.attempt} is "
                    f"{execution.state.name}; only a terminal attempt can be replaced"
                )
            following = execution.attempt + 1
            return Execution.create(execution.vertex_id, execution.subtask_index, at_ms, following)

        return self._map(again)

    def scheduled(self, at_ms: int) -> ExecutionGraph:
        """All CREATED executions wait for a slot now."""
        return self.apply(Scheduled(at_ms), in_state(ExecutionState.CREATED))

    def assign_slots(self, slots: Sequence[TaskManagerId], at_ms: int) -> ExecutionGraph:
        """Give SCHEDULED executions a slot, as far as slots go; they become DEPLOYING.

        Those without one stay SCHEDULED: Spark runs their tasks in other executions' slots.

        Parameters
        ----------
        slots : sequence of TaskManagerId
            The TaskManager of each slot the job has, occupied ones included, in any order.
        at_ms : int
            Time of the assignment.
        """
        held = self._matched(slots)
        place_of = {(e.vertex_id, e.subtask_index): place for place, e in self._placed()}
        return self.apply(
            lambda e: SlotAssigned(at_ms, held[place_of[e.vertex_id, e.subtask_index]]),
            lambda e: e.state is ExecutionState.SCHEDULED and place_of[e.vertex_id, e.subtask_index] in held,
        )

    def adopt_slots(self, slots: Sequence[TaskManagerId], at_ms: int) -> ExecutionGraph:
        """As :meth:`assign_slots`, of CREATED executions that an earlier master deployed: RECONCILING."""
        held = self._matched(slots)
        place_of = {(e.vertex_id, e.subtask_index): place for place, e in self._placed()}
        return self.apply(
            lambda e: Adopted(at_ms, held[place_of[e.vertex_id, e.subtask_index]]),
            lambda e: e.state is ExecutionState.CREATED and place_of[e.vertex_id, e.subtask_index] in held,
        )

    # --- helpers ------------------------------------------------------------

    def _matched(self, slots: Sequence[TaskManagerId]) -> dict[_Place, TaskManagerId]:
        """Which TaskManager each place has or gets."""
        available = list(slots)
        held: dict[_Place, TaskManagerId] = {}
        for place, execution in self._placed():
            if execution.occupies_slot and place not in held:
                held[place] = execution.task_manager_id
                if execution.task_manager_id in available:
                    available.remove(execution.task_manager_id)
        for place in self._places():
            if place not in held and available:
                held[place] = available.pop(0)
        return held

    def _map(self, function: Callable[[Execution], Execution]) -> ExecutionGraph:
        return ExecutionGraph(
            tuple(
                replace(vertex, executions=tuple(function(execution) for execution in vertex.executions))
                for vertex in self.vertices
            )
        )

    def _placed(self) -> Iterator[tuple[_Place, Execution]]:
        for vertex in self.vertices:
            for execution in vertex.executions:
                yield (vertex.slot_sharing_group, execution.subtask_index), execution

    def _places(self) -> tuple[_Place, ...]:
        """All places, group by group in order of first mention, then by subtask."""
        widest: dict[str, int] = {}
        for vertex in self.vertices:
            group = vertex.slot_sharing_group
            widest[group] = max(widest.get(group, 0), vertex.parallelism)
        return tuple((group, index) for group, width in widest.items() for index in range(width))
