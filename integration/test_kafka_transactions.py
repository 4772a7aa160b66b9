"""The producers of a part, with a real broker: who is fenced, what is readable, which note counts."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from integration.kafka import KafkaBroker
from yarnflow.errors import JobFailed, ServerError
from yarnflow.spark.connectors.kafka.producer import Message, TransactionalProducer
from yarnflow.spark.connectors.kafka.properties import to_librdkafka
from yarnflow.spark.connectors.kafka.transactions import NO_BATCH, write_part

Open = Callable[[], TransactionalProducer]


@pytest.fixture
def topic(kafka: KafkaBroker) -> str:
    return kafka.create_topic(f"t-{uuid.uuid4().hex[:8]}", 1)


@pytest.fixture
def opened(kafka: KafkaBroker, topic: str) -> Open:
    settings = to_librdkafka({"bootstrap.servers": kafka.servers})
    return lambda: TransactionalProducer(settings, f"{topic}-0", f"{topic}-notes-0", topic)


def message(topic: str, text: str) -> Message:
    return topic, None, text.encode(), None


def texts(kafka: KafkaBroker, topic: str, committed: bool = True) -> list[str]:
    return [(found.value or b"").decode() for found in kafka.read(topic, committed)]


def test_a_producer_that_was_followed_by_another_commits_nothing(
    kafka: KafkaBroker, topic: str, opened: Open
) -> None:
    with closing(opened()) as first:
        first.begin()
        first.produce(message(topic, "first"))
        with closing(opened()) as second:
            assert second.committed_batch() == NO_BATCH
            with pytest.raises(ServerError, match="same transactional id prefix"):
                first.commit(0)
            first.abort()
            second.begin()
            second.produce(message(topic, "second"))
            second.commit(0)
    assert texts(kafka, topic) == ["second"]
    with closing(opened()) as third:
        assert third.committed_batch() == 0


@pytest.mark.gate
def test_a_producer_that_is_followed_is_told_so_whenever_its_message_fails(
    kafka: KafkaBroker, topic: str, opened: Open
) -> None:
    """The client raises that out of a callback, and calls those for messages, too."""
    for _ in range(5):
        with closing(opened()) as first:
            first.begin()
            with closing(opened()):
                first.produce(message(topic, "first"))
                with pytest.raises(ServerError, match="same transactional id prefix"):
                    first.commit(0)
                first.abort()
    assert texts(kafka, topic) == []


@pytest.mark.gate
def test_a_note_counts_when_its_transaction_is_committed(
    kafka: KafkaBroker, topic: str, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker dies between the note and the commit."""
    write_part("g", opened, 6, [message(topic, "six")])
    with closing(opened()) as dying:
        dying.begin()
        dying.produce(message(topic, "half"))
        monkeypatch.setattr(dying, "_repeat", only_the_note(dying))
        dying.commit(7)
        with closing(opened()) as next_one:
            assert next_one.committed_batch() == 6
        assert write_part("g", opened, 7, [message(topic, "seven")]) == 1
    assert texts(kafka, topic) == ["six", "seven"]
    assert "half" in texts(kafka, topic, committed=False), "it has been on its way"


def only_the_note(producer: TransactionalProducer) -> Callable[[str, Callable[[], object]], None]:
    """In place of ``_repeat``: the transaction is not committed."""
    repeat = producer._repeat

    def ask(what: str, request: Callable[[], object]) -> None:
        if what == "does not note the batch":
            repeat(what, request)

    return ask


@pytest.mark.gate
def test_a_batch_is_written_once_and_one_of_another_job_is_refused(
    kafka: KafkaBroker, topic: str, opened: Open
) -> None:
    def failing() -> Iterator[Message]:
        yield message(topic, "broken")
        raise ValueError

    with pytest.raises(ValueError):
        write_part("g", opened, 3, failing())
    assert write_part("g", opened, 3, [message(topic, "a"), message(topic, "b")]) == 2
    assert write_part("g", opened, 3, [message(topic, "c")]) == 0
    with pytest.raises(JobFailed, match="batch 3 already and is to write batch 2"):
        write_part("g", opened, 2, [message(topic, "d")])
    assert texts(kafka, topic) == ["a", "b"]
