"""The slots of one TaskManager."""

from __future__ import annotations

import pytest

from yarnflow.core.ids import AllocationId, JobId
from yarnflow.core.messages import SlotStatus
from yarnflow.core.resources.slot_table import TaskSlotTable
from yarnflow.errors import SlotUnavailable

J, K = JobId("j" * 32), JobId("k" * 32)
X, Y = AllocationId("x"), AllocationId("y")


def test_a_slot_is_given_accepted_and_taken_back() -> None:
    table = TaskSlotTable.of_size(2).allocate(1, J, X, 5)
    assert table.statuses() == (SlotStatus(0), SlotStatus(1, "x", J))
    assert [slot.index for slot in table.not_accepted(J)] == [1]
    table = table.activate(X, 6)
    assert table.not_accepted(J) == () and [slot.index for slot in table.of_job(J)] == [1]
    assert table.jobs() == (J,)
    assert table.activate(X, 7) == table
    assert table.free(X, 8).statuses() == (SlotStatus(0), SlotStatus(1))


def test_repeated_calls_change_nothing() -> None:
    table = TaskSlotTable.of_size(1).allocate(0, J, X, 5)
    assert table.allocate(0, J, X, 9) == table
    assert table.free(Y, 9) == table
    assert table.find(AllocationId("")) is None


@pytest.mark.parametrize(
    ("index", "job", "allocation", "said"),
    [
        (0, K, Y, f"slot 0 belongs to job {J} .allocation x.; ask for another slot"),
        (1, J, X, "allocation x has slot 0"),
        (0, K, X, "allocation x has slot 0"),
        (2, K, Y, "slot 2 does not exist; this TaskManager has 2"),
        (-1, K, Y, "slot -1 does not exist"),
    ],
)
def test_a_slot_is_never_given_twice(index: int, job: JobId, allocation: AllocationId, said: str) -> None:
    table = TaskSlotTable.of_size(2).allocate(0, J, X, 5)
    with pytest.raises(SlotUnavailable, match=said):
        table.allocate(index, job, allocation, 6)


def test_a_freed_slot_cannot_be_activated() -> None:
    with pytest.raises(SlotUnavailable, match="allocation x is not known here any more"):
        TaskSlotTable.of_size(1).activate(X, 5)
