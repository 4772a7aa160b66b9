"""What is told of errors of librdkafka."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pyarrow as pa
import pytest

from yarnflow.errors import BrokerUnavailable, ServerError, YarnflowError
from yarnflow.spark.connectors.kafka import producer
from yarnflow.spark.connectors.kafka.producer import (
    Produce,
    ProducePart,
    TransactionalProducer,
    _failed,
    look_for_topic,
)
from yarnflow.spark.messages.records import RECORD_ARROW

NOBODY = {"bootstrap.servers": "127.0.0.1:1", "partitioner": "murmur2_random"}


@pytest.mark.parametrize(
    ("code", "kind", "said"),
    [
        (confluent_kafka.KafkaError._TIMED_OUT, BrokerUnavailable, "_TIMED_OUT)"),
        (confluent_kafka.KafkaError._MSG_TIMED_OUT, BrokerUnavailable, "_MSG_TIMED_OUT)"),
        (confluent_kafka.KafkaError.COORDINATOR_NOT_AVAILABLE, BrokerUnavailable, "NOT_AVAILABLE)"),
        (confluent_kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED, ServerError, "FAILED)"),
        (confluent_kafka.KafkaError.UNKNOWN_TOPIC_OR_PART, ServerError, "; create it, or correct its name"),
        (confluent_kafka.KafkaError._FENCED, ServerError, "longer than transaction.timeout.ms, or another"),
        (confluent_kafka.KafkaError.INVALID_PRODUCER_EPOCH, ServerError, "same transactional id prefix"),
    ],
)
def test_an_error_says_what_was_not_done_and_whether_it_may_pass(
    code: int, kind: type[YarnflowError], said: str
) -> None:
    found = _failed("does not commit a transaction", confluent_kafka.KafkaError(code))
    assert type(found) is kind
    assert found.message.startswith("Kafka does not commit a transaction of the Kafka sink: ")
    assert found.message.endswith(said) or said in found.message


def test_brokers_that_are_away_are_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer, "_TRY_S", 0.05)
    monkeypatch.setattr(producer, "_TRIES", 3)
    with pytest.raises(BrokerUnavailable, match="Kafka does not begin transactions of the Kafka sink"):
        TransactionalProducer(NOBODY, "id", "group", "topic")


def test_brokers_that_are_away_have_no_topics_to_look_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who writes waits for them."""
    monkeypatch.setattr(producer, "_TRY_S", 0.05)
    look_for_topic(NOBODY, "t")


def messages(*values: str) -> pa.RecordBatch:
    rows = [{"topic": "t", "key": None, "value": value.encode(), "timestamp": None} for value in values]
    return pa.RecordBatch.from_pylist(rows, RECORD_ARROW)


def test_a_message_that_brokers_did_not_take_in_time_may_be_taken_later() -> None:
    """The job restarts and writes its batch again, as AT_LEAST_ONCE says."""
    write = Produce({**NOBODY, "message.timeout.ms": "50"})
    with pytest.raises(BrokerUnavailable, match="does not take a message to topic t .*_MSG_TIMED_OUT"):
        list(write([messages("a")]))


def test_a_client_that_is_not_let_in_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be so for ever: the client itself only goes on trying."""
    told = confluent_kafka.KafkaError(confluent_kafka.KafkaError._AUTHENTICATION, "Invalid username")
    made = confluent_kafka.Producer

    def refusing(settings: dict[str, Any]) -> Any:
        client = made(settings)
        settings["error_cb"](told)
        return client

    monkeypatch.setattr(confluent_kafka, "Producer", refusing)
    monkeypatch.setattr(producer, "_TRY_S", 0.05)
    said = "Kafka does not let in the client of the Kafka sink: Invalid username"
    with pytest.raises(ServerError, match=said):
        TransactionalProducer(NOBODY, "id", "group", "topic")
    with pytest.raises(ServerError, match=said):
        list(Produce(NOBODY)([messages("a")]))


FENCED = confluent_kafka.KafkaException(
    confluent_kafka.KafkaError(confluent_kafka.KafkaError._FENCED, None, True)
)
OTHER = confluent_kafka.KafkaException(confluent_kafka.KafkaError(confluent_kafka.KafkaError._NOT_CONFIGURED))


class Ended:
    """A client that raises what ended it out of its callbacks; asked for transactions it says it again."""

    def __init__(self, raised: BaseException, again: BaseException) -> None:
        self._raised = raised
        self._again = again

    def produce(self, *arguments: Any, **settings: Any) -> None:
        """Takes it."""

    def flush(self, timeout_s: float) -> int:
        raise self._raised

    poll = flush

    def init_transactions(self, timeout_s: float) -> None:
        raise self._again


def run_into(error: BaseException, callbacks: int) -> BaseException:
    """What is raised when callbacks that were due run into an error."""
    for number in range(callbacks):
        behind, error = error, SystemError(f"callback {number} returned a result with an exception set")
        error.__cause__ = behind
    return error


@pytest.mark.parametrize(
    "raised",
    [*(run_into(FENCED, count) for count in (0, 1, 3)), SystemError("returned NULL without an exception")],
)
def test_what_ends_a_producer_is_told(monkeypatch: pytest.MonkeyPatch, raised: BaseException) -> None:
    """The client raises that, whoever else wants to hear of errors; callbacks that were due run into it."""
    monkeypatch.setattr(confluent_kafka, "Producer", lambda settings: Ended(raised, FENCED))
    said = "Kafka does not take messages of the Kafka sink: .*same transactional id prefix$"
    with pytest.raises(ServerError, match=said):
        list(Produce(NOBODY)([messages("a")]))
    with pytest.raises(ServerError, match=said):
        producer._Producer(NOBODY).check()


def test_a_producer_without_transactions_that_ended_and_does_not_say_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(confluent_kafka, "Producer", lambda settings: Ended(SystemError(), OTHER))
    ended = producer._Producer(NOBODY)
    with pytest.raises(ServerError, match="Kafka does not take messages of the Kafka sink: .*_FATAL"):
        ended.flush()
    refused = confluent_kafka.KafkaError(confluent_kafka.KafkaError.MSG_SIZE_TOO_LARGE)
    ended._heard.delivery(refused, Sent())
    with pytest.raises(ServerError, match="does not take a message to topic t .*MSG_SIZE_TOO_LARGE"):
        ended.flush()


class Sent:
    """A message that has been sent."""

    def topic(self) -> str:
        return "t"


@pytest.mark.parametrize("use", ["none", "retries", "failure"])
def test_a_client_is_freed_with_its_producer(monkeypatch: pytest.MonkeyPatch, use: str) -> None:
    """Each has threads and sockets, and some 1,000 may be in a process: a collection may be too late."""
    monkeypatch.setattr(producer, "_TRY_S", 0.05)
    monkeypatch.setattr(producer, "_TRIES", 2)
    gc.collect()
    gc.disable()
    try:
        before = clients()
        if use == "retries":
            with pytest.raises(BrokerUnavailable):
                TransactionalProducer(NOBODY, "id", "group", "topic")
        elif use == "failure":
            with pytest.raises(BrokerUnavailable):
                list(Produce({**NOBODY, "message.timeout.ms": "50"})([messages("a")]))
        else:
            producer._Producer(NOBODY)
        assert clients() == before
    finally:
        gc.enable()


def clients() -> int:
    return sum(type(found) is confluent_kafka.Producer for found in gc.get_objects())


class Committed:
    """Implements PartProducer: the batch is there."""

    def __init__(self, *arguments: Any) -> None:
        self.closed = False

    def committed_batch(self) -> int:
        return 7

    def close(self) -> None:
        self.closed = True


def test_of_a_batch_that_is_there_no_more_is_read_than_tells_that_there_is_something(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(producer, "TransactionalProducer", Committed)

    def batches() -> Iterator[pa.RecordBatch]:
        yield messages()
        yield messages("a", "b")
        raise AssertionError("the second batch of messages was computed")

    (count,) = ProducePart(NOBODY, "id", "group", "t", 7, 0)(batches())
    assert count.to_pydict() == {"count": [0]}


def test_a_part_without_messages_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer, "TransactionalProducer", None)
    (count,) = ProducePart(NOBODY, "id", "group", "t", 7, 0)([messages()])
    assert count.to_pydict() == {"count": [0]}
