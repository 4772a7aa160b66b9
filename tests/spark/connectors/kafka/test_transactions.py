"""Messages are readable once, whatever happens to those that write them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

import pytest

from yarnflow.errors import JobFailed
from yarnflow.spark.connectors.kafka.transactions import NO_BATCH, Layout, write_part

ID = "prefix-0"


class Died(Exception):
    """The worker is gone."""


class Fenced(Exception):
    """Another producer of the id has been opened since."""


class Kafka:
    """What brokers know of one part."""

    def __init__(self) -> None:
        self.epoch = 0
        self.readable: list[str] = []
        self.batch = NO_BATCH
        self.opened = 0
        #: called before each step, and after it, with the number of the half-step
        self.watch: Callable[[], None] = lambda: None

    def open(self) -> Producer:
        return Producer(self)


class Producer:
    """Implements PartProducer."""

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka
        self._waiting: list[str] = []
        kafka.watch()
        kafka.epoch += 1
        kafka.opened += 1
        self._epoch = kafka.epoch
        kafka.watch()

    def committed_batch(self) -> int:
        self._kafka.watch()
        found = self._kafka.batch
        self._kafka.watch()
        return found

    def begin(self) -> None:
        self._waiting = []

    def produce(self, message: str) -> None:
        self._kafka.watch()
        self._check()
        self._waiting.append(message)

    def commit(self, batch_id: int) -> None:
        self._kafka.watch()
        self._check()
        self._kafka.readable += self._waiting
        self._kafka.batch = batch_id
        self._kafka.watch()

    def abort(self) -> None:
        self._waiting = []

    def close(self) -> None:
        pass

    def _check(self) -> None:
        if self._epoch != self._kafka.epoch:
            raise Fenced


def at(number: int, action: Callable[[], None]) -> Callable[[], None]:
    """Does something at the half-step of this number, once."""
    steps = iter(range(1000))

    def watch() -> None:
        if next(steps) == number:
            action()

    return watch


def die() -> None:
    raise Died


#: half-steps of writing a part of two messages
HALF_STEPS = range(8)


@pytest.mark.parametrize("step", HALF_STEPS)
def test_a_worker_that_dies_is_followed_by_one_that_writes_what_is_missing(step: int) -> None:
    kafka = Kafka()
    write_part(ID, kafka.open, 0, ["before"])
    kafka.watch = at(step, die)
    with pytest.raises(Died):
        write_part(ID, kafka.open, 1, ["a", "b"])
    kafka.watch = lambda: None
    # other messages: the batch was computed anew, and the functions looked at a clock
    write_part(ID, kafka.open, 1, ["c"])
    assert kafka.readable in (["before", "a", "b"], ["before", "c"])
    write_part(ID, kafka.open, 2, ["after"])
    assert kafka.readable[-1] == "after" and kafka.batch == 2


def test_every_half_step_was_tried() -> None:
    kafka, steps = Kafka(), []
    kafka.watch = lambda: steps.append(1)
    write_part(ID, kafka.open, 1, ["a", "b"])
    assert len(steps) == len(HALF_STEPS)


@pytest.mark.parametrize("step", HALF_STEPS)
@pytest.mark.parametrize("other_batch", [1, 2])
def test_two_workers_at_the_same_time_write_a_batch_once(step: int, other_batch: int) -> None:
    """Another worker does it all while the first is at some step; with batch 2 the first came back late."""
    kafka = Kafka()

    def other() -> None:
        kafka.watch = lambda: None
        for batch in range(1, other_batch + 1):
            write_part(ID, kafka.open, batch, [f"{batch}", f"{batch}b"])

    kafka.watch = at(step, other)
    with suppress(Fenced, JobFailed):
        write_part(ID, kafka.open, 1, ["1", "1b"])
    assert kafka.readable == ["1", "1b", "2", "2b"][: 2 * other_batch]
    assert kafka.batch == other_batch


def test_messages_of_what_is_committed_are_not_read() -> None:
    """Whoever calls has looked at the first, to see whether there is any."""
    kafka = Kafka()
    write_part(ID, kafka.open, 1, ["a"])

    messages = iter(["b", "c"])
    assert write_part(ID, kafka.open, 1, messages) == 0
    assert next(messages) == "b" and kafka.readable == ["a"]


def test_batches_of_another_job_from_the_same_checkpoint_are_not_taken_for_own_ones() -> None:
    kafka = Kafka()
    for batch in (11, 12, 13):
        write_part(ID, kafka.open, batch, [f"B{batch}"])
    with pytest.raises(JobFailed, match="batch 13 already .* write batch 11: another job .* prefix-0 if"):
        write_part(ID, kafka.open, 11, ["C11"])
    assert kafka.readable == ["B11", "B12", "B13"]


def test_an_error_of_the_messages_leaves_nothing_readable() -> None:
    kafka = Kafka()

    def messages() -> Iterator[str]:
        yield "a"
        raise ValueError

    with pytest.raises(ValueError):
        write_part(ID, kafka.open, 1, messages())
    assert kafka.readable == [] and kafka.batch == NO_BATCH


def test_a_batch_has_as_many_parts_whenever_it_is_done() -> None:
    first = Layout().with_parallelism(2, 0)
    assert [first.parts(batch) for batch in (0, 7)] == [2, 2]
    assert first.with_parallelism(2, 7) == first
    # batch 7 may have been begun with two
    second = Layout.from_json(replace(first.with_parallelism(3, 7), note_topic="t").to_json())
    assert [second.parts(batch) for batch in (7, 8)] == [2, 3]
    # a driver that died before batch 8, and one of another parallelism that begins with batch 7 again
    third = second.with_parallelism(4, 7)
    assert third.note_topic == "t"
    assert [third.parts(batch) for batch in (7, 8)] == [2, 4]
    fourth = second.with_parallelism(4, 8)
    assert [fourth.parts(batch) for batch in (7, 8, 9)] == [2, 3, 4]
