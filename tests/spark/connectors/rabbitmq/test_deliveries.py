"""What of a queue is new, and when it is acknowledged."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from yarnflow.spark.connectors.rabbitmq import deliveries
from yarnflow.spark.connectors.rabbitmq.deliveries import Deliveries, Message


def message(tag: int, body: str = "", correlation_id: str = "") -> Message:
    return Message(tag, (body or f"m{tag}").encode(), correlation_id)


def closed(found: Deliveries) -> tuple[int, list[int]]:
    """Close a part: the last one's number, and tags of what was put into it."""
    tags = [waiting.tag for waiting in found.waiting]
    found.close_part()
    return found.last_part, tags


def test_a_part_is_acknowledged_once_its_batch_is_committed() -> None:
    found = Deliveries(0)
    for tag in (1, 2, 3):
        assert found.receive(message(tag))
    assert closed(found) == (1, [1, 2, 3])
    found.receive(message(4))
    assert closed(found) == (2, [4])
    assert found.due(0) is None
    due = found.due(1)
    assert due is not None and due.tag == 3
    found.acknowledged(due)
    assert found.due(1) is None and found.unacknowledged
    due = found.due(2)
    assert due is not None and due.tag == 4
    found.acknowledged(due)
    assert not found.unacknowledged


def test_nothing_is_acknowledged_twice() -> None:
    """The broker ends a channel for it."""
    found = Deliveries(0)
    found.receive(message(1))
    found.close_part()
    due = found.due(1)
    assert due is not None
    found.acknowledged(due)
    assert closed(found) == (1, [])
    assert found.due(1) is None


def test_an_empty_part_is_none() -> None:
    found = Deliveries(7)
    assert closed(found) == (7, [])
    assert not found.unacknowledged


def test_a_message_that_comes_again_is_left_out_and_acknowledged_behind_its_batch() -> None:
    found = Deliveries(3, True, {"a": 1, "b": 3})
    assert not found.receive(message(1, correlation_id="b"))
    assert closed(found) == (3, [])
    assert found.due(2) is None, "the batch of part 3 is done again first"
    due = found.due(3)
    assert due is not None and (due.tag, due.came_back) == (1, ("b",))
    found.acknowledged(due)
    assert found.returning == {"a": 1}
    assert not found.receive(message(2, correlation_id="b")), "the broker has died, and its memory with it"


def test_acknowledged_messages_are_forgotten_some_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "MAX_ACKNOWLEDGED", 2)
    found = Deliveries(0, True)
    for tag, name in enumerate("abc", 1):
        found.receive(message(tag, correlation_id=name))
    found.close_part()
    due = found.due(1)
    assert due is not None
    found.acknowledged(due)
    found.connection_lost()
    assert [found.receive(message(1, correlation_id=name)) for name in "abc"] == [True, False, False]
    assert found.returning == {"b": 0, "c": 0}


def test_a_message_that_is_published_twice_is_left_out_while_the_first_is_not_acknowledged() -> None:
    found = Deliveries(0, True)
    assert found.receive(message(1, correlation_id="a"))
    assert not found.receive(message(2, correlation_id="a"))
    assert closed(found) == (1, [1])
    assert not found.receive(message(3, correlation_id="a"))
    due = found.due(1)
    assert due is not None and due.tag == 2
    assert closed(found) == (1, [])
    due = found.due(1)
    assert due is not None and due.tag == 3


def test_without_ids_or_use_of_them_nothing_is_known() -> None:
    for use_ids, correlation_id in ((True, ""), (False, "a")):
        found = Deliveries(0, use_ids)
        assert found.receive(message(1, correlation_id=correlation_id))
        assert found.receive(message(2, correlation_id=correlation_id))


def test_a_connection_that_is_lost_takes_what_waits_along() -> None:
    found = Deliveries(0, True)
    found.receive(message(1, correlation_id="in a part"))
    found.close_part()
    found.receive(message(2, correlation_id="waits"))
    found.connection_lost()
    assert not found.waiting and found.waiting_bytes == 0 and found.due(1) is None
    assert found.returning == {"in a part": 1}
    assert not found.receive(message(1, correlation_id="in a part"))
    assert found.receive(message(2, correlation_id="waits"))


def test_ids_that_never_come_back_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "MAX_RETURNING", 2)
    found = Deliveries(0, True, {"a": 0, "b": 0})
    found.receive(message(1, correlation_id="c"))
    found.close_part()
    found.connection_lost()
    assert found.returning == {"b": 0, "c": 1}
    assert found.receive(message(1, correlation_id="a"))


def test_a_message_of_a_part_that_no_batch_has_is_read_when_it_comes_again() -> None:
    """The part was removed with the driver that had received it."""
    found = Deliveries(3, True, {"read": 3, "not read": 4})
    assert not found.receive(message(1, correlation_id="read"))
    assert found.receive(message(2, correlation_id="not read"))


class Broker:
    """A queue that delivers again what was not acknowledged, in its place or behind all others."""

    def __init__(self, count: int, chance: random.Random) -> None:
        self._chance = chance
        self.ready = [f"id-{n}" for n in range(count)]
        self._unacknowledged: dict[int, str] = {}
        self._in_memory: list[str] = []
        self._tag = 0

    def deliver(self, count: int) -> list[Message]:
        found = []
        for _ in range(min(count, len(self.ready))):
            self._tag += 1
            name = self.ready.pop(0)
            self._unacknowledged[self._tag] = name
            found.append(message(self._tag, name, name))
        return found

    def acknowledge(self, tag: int) -> None:
        assert tag in self._unacknowledged, "a channel ends for it"
        done = [known for known in self._unacknowledged if known <= tag]
        self._in_memory = [self._unacknowledged.pop(known) for known in done]

    def die(self) -> None:
        """The last acknowledgement was in memory alone."""
        self.ready = self._in_memory + self.ready
        self._in_memory = []
        self.disconnect()

    def disconnect(self) -> None:
        back = list(self._unacknowledged.values())
        self.ready = back + self.ready if self._chance.random() < 0.7 else self.ready + back
        self._unacknowledged.clear()
        self._tag = 0

    @property
    def empty(self) -> bool:
        return not self.ready and not self._unacknowledged


@pytest.mark.parametrize("use_ids", [True, False])
@pytest.mark.parametrize("seed", range(60))
def test_each_message_is_read_once_whatever_happens(seed: int, use_ids: bool) -> None:
    """Drivers die at any point, connections break, acknowledgements are lost on their way back."""
    chance = random.Random(seed)
    broker = Broker(60, chance)
    #: what is on disk
    parts: dict[int, list[str]] = {}
    returning: dict[str, int] = {}
    planned = committed = 0
    read: Counter[str] = Counter()
    found = Deliveries(0, use_ids)
    for _ in range(3_000):
        what = chance.random()
        if what < 0.35:
            for one in broker.deliver(chance.randrange(1, 8)):
                found.receive(one)
        elif what < 0.55:
            if found.waiting:
                parts[found.last_part + 1] = [m.correlation_id for m in found.waiting]
            found.close_part()
        elif what < 0.65:
            planned = found.last_part
        elif what < 0.75:
            for number in range(committed + 1, planned + 1):
                read.update(parts[number])
            committed = planned
        elif what < 0.95:
            due = found.due(committed)
            if due is not None:
                broker.acknowledge(due.tag)
                if chance.random() < 0.1:
                    # the answer is lost, and the connection with it
                    broker.disconnect()
                    found.connection_lost()
                    returning = found.returning
                else:
                    found.acknowledged(due)
                    if chance.random() < 0.1:
                        broker.die()
                        found.connection_lost()
                        returning = found.returning
            returning = found.returning
            for number in [number for number in parts if number <= committed]:
                del parts[number]
        elif what < 0.97:
            broker.disconnect()
            found.connection_lost()
            returning = found.returning
        else:
            # the driver dies; the next one sees what is on disk
            broker.disconnect()
            for number in [number for number in parts if number > planned]:
                del parts[number]
            if use_ids:
                returning |= {name: number for number, names in parts.items() for name in names}
            found = Deliveries(planned, use_ids, returning)
            # before it receives anything: numbers of parts that no batch has are used again
            returning = found.returning
        if broker.empty and committed == planned == found.last_part and not found.waiting:
            break
    else:
        pytest.fail("not done after 3,000 steps")
    assert set(read) == {f"id-{n}" for n in range(60)}, "none is lost"
    if use_ids:
        assert set(read.values()) == {1}
