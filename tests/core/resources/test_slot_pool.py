"""The slots of one job."""

from __future__ import annotations

from yarnflow.core.ids import AllocationId, JobId, TaskManagerId
from yarnflow.core.messages import SlotOffer
from yarnflow.core.resources.slot_pool import SlotPool


def offer(name: str, index: int, task_manager: str) -> SlotOffer:
    return SlotOffer(AllocationId(name), index, TaskManagerId(task_manager), f"{task_manager}:1")


A0, A1, B0 = offer("x", 0, "tm-a"), offer("y", 1, "tm-a"), offer("z", 0, "tm-b")


def pool(required: int, *offers: SlotOffer) -> SlotPool:
    return SlotPool(JobId("j" * 32), required).offer(offers)[0]


def test_offers_are_accepted_up_to_what_is_required() -> None:
    made, accepted = SlotPool(JobId("j" * 32), 2).offer([A0, B0, A1])
    assert accepted == ("x", "z")
    assert made.is_complete and made.missing == 0
    assert made.task_manager_ids == ("tm-a", "tm-b")


def test_an_offer_made_again_is_accepted_again_and_counted_once() -> None:
    made = pool(1, A0)
    assert made.offer([A0]) == (made, ("x",))


def test_slots_go_with_their_task_manager() -> None:
    made, lost = pool(3, A0, B0, A1).task_manager_lost("tm-a")
    assert (lost, made.slots, made.missing) == ((A0, A1), (B0,), 2)


def test_release() -> None:
    made, released = pool(2, A0, B0).release([AllocationId("z"), AllocationId("unknown")])
    assert (released, made.slots) == ((B0,), (A0,))
