"""librdkafka's producers, in workers.  The only importer of confluent_kafka."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NoReturn

import confluent_kafka
import pyarrow as pa
from pyspark import TaskContext

from yarnflow.errors import BrokerUnavailable, ServerError, YarnflowError
from yarnflow.spark.connectors.kafka.transactions import NO_BATCH, write_part

COUNT_DDL: Final = "count bigint"
#: a transaction of a batch lasts as long as it takes to write its messages
_TRANSACTION_TIMEOUT_MS: Final = 300_000
_ANSWER_TIMEOUT_S: Final = 60.0
#: brokers that make topics when they are asked for them say at first that there is none
_LOOKS: Final = 6
_LOOK_EVERY_S: Final = 0.5
#: how long and how often brokers are waited for; in between it is looked at what the client says of them
_TRY_S: Final = 5.0
_TRIES: Final = 60
#: between two looks at what brokers have said, messages
_POLL_EVERY: Final = 500
_FULL_WAIT_S: Final = 0.1
_TRANSACTION_TIMEOUT: Final = "transaction.timeout.ms"
_TRANSACTIONAL_ID: Final = "transactional.id"
#: what ends a transaction, for people
_ENDED: Final = (
    f"; the transaction lasted longer than {_TRANSACTION_TIMEOUT}, or another job writes with the same "
    "transactional id prefix"
)

_Error: Final = confluent_kafka.KafkaError
_TRANSACTION_ENDED: Final = frozenset({
    _Error._FENCED, _Error.INVALID_PRODUCER_EPOCH, _Error.PRODUCER_FENCED, _Error.INVALID_TXN_STATE,
})  # fmt: skip
_NO_TOPIC: Final = frozenset({_Error.UNKNOWN_TOPIC_OR_PART, _Error._UNKNOWN_TOPIC})
_NO_MESSAGES: Final = "does not take messages"
_MISSING: Final = "; create it, or correct its name"
#: the same may succeed later
_NO_ANSWER: Final = frozenset({
    _Error._TIMED_OUT, _Error._MSG_TIMED_OUT, _Error._TRANSPORT, _Error._ALL_BROKERS_DOWN, _Error._RESOLVE,
    _Error.COORDINATOR_LOAD_IN_PROGRESS, _Error.COORDINATOR_NOT_AVAILABLE, _Error.NOT_COORDINATOR,
    _Error.BROKER_NOT_AVAILABLE, _Error.REQUEST_TIMED_OUT,
})  # fmt: skip

#: topic, key, value, time
Message = tuple[str, bytes | None, bytes | None, int | None]


def make_client(settings: Mapping[str, str], in_transactions: bool) -> object:
    """A producer that connects to nobody, to see whether settings are such."""
    found = _transactional(settings, "none") if in_transactions else {**_idempotence(settings), **settings}
    return confluent_kafka.Producer({**found, "bootstrap.servers": ""})


def look_for_topic(settings: Mapping[str, str], topic: str) -> None:
    """Have brokers make a topic, if they do that, so that nobody waits for it with messages at hand.

    Brokers that do not answer are no error: who writes waits for them.

    Raises
    ------
    ServerError
        There is none.
    """
    client = confluent_kafka.Producer({**settings, "log_level": "0", "error_cb": lambda error: None})
    for _ in range(_LOOKS):
        try:
            error = client.list_topics(topic, _TRY_S).topics[topic].error
        except confluent_kafka.KafkaException:
            return
        if error is None or error.code() not in _NO_TOPIC:
            return
        time.sleep(_LOOK_EVERY_S)
    raise _failed(f"has no topic {topic}", error)


def _transactional(settings: Mapping[str, str], transactional_id: str) -> dict[str, str]:
    return {
        _TRANSACTION_TIMEOUT: str(_TRANSACTION_TIMEOUT_MS),
        **settings,
        _TRANSACTIONAL_ID: transactional_id,
    }


def _idempotence(settings: Mapping[str, str]) -> dict[str, str]:
    """No message is there twice because the client sent it again; as in Java, unless settings exclude it."""
    excluded = settings.get("acks", "all") not in ("all", "-1") or settings.get("retries") == "0"
    return {} if excluded else {"enable.idempotence": "true"}


class Produce:
    """Writes the messages of a partition and waits for the brokers; for ``mapInArrow``.

    Parameters
    ----------
    settings : mapping
        Of librdkafka.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = dict(settings)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        producer = _Producer({**_idempotence(self._settings), **self._settings})
        count = 0
        for message in messages_of(batches):
            producer.produce(message)
            count += 1
        if count:
            producer.flush()
        yield _count(count)


class ProducePart:
    """Writes one part of a micro-batch in a transaction; for ``mapInArrow``.

    Parameters
    ----------
    settings : mapping
        Of librdkafka.
    transactional_id, group : str
        The parts'; each has its number behind them.
    note_topic : str
        Where it is noted which batch was written.
    batch_id : int
        Number of the micro-batch.
    part : int or None
        Number of the part; None = that of the partition.
    """

    def __init__(
        self,
        settings: Mapping[str, str],
        transactional_id: str,
        group: str,
        note_topic: str,
        batch_id: int,
        part: int | None = None,
    ) -> None:
        self._settings = dict(settings)
        self._transactional_id = transactional_id
        self._group = group
        self._note_topic = note_topic
        self._batch_id = batch_id
        self._part = part

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = iter(messages_of(batches))
        first = next(found, None)
        if first is None:
            yield _count(0)
            return
        part = self._part
        if part is None:
            context = TaskContext.get()
            part = 0 if context is None else context.partitionId()

        def all_messages() -> Iterator[Message]:
            assert first is not None, "looked at above"
            yield first
            yield from found

        group = f"{self._group}-{part}"

        def open_producer() -> TransactionalProducer:
            return TransactionalProducer(
                self._settings, f"{self._transactional_id}-{part}", group, self._note_topic
            )

        yield _count(write_part(group, open_producer, self._batch_id, all_messages()))


def messages_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Message]:
    """The messages of a partition."""
    for batch in batches:
        names = ("topic", "key", "value", "timestamp")
        yield from zip(*(batch.column(name).to_pylist() for name in names), strict=True)


def _count(count: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"count": pa.array([count], pa.int64())})


class _Heard:
    """What a client says in its callbacks. Does not know the client, which would never be freed then."""

    def __init__(self) -> None:
        #: what was not done, and why; an exception would know who raised it, and so the client
        self.failure: tuple[str, Any] | None = None

    def error(self, error: Any) -> None:
        # the client tries again for ever, and whoever waits is told of a timeout only
        if error.code() == _Error._AUTHENTICATION and self.failure is None:
            self.failure = "does not let in the client", error

    def delivery(self, error: Any, message: Any) -> None:
        if error is not None and self.failure is None:
            self.failure = f"does not take a message to topic {message.topic()}", error


class _Producer:
    """A producer whose failures are errors."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._heard = _Heard()
        self._count = 0
        own = {"log_level": "0", "error_cb": self._heard.error}
        client = _asked("does not make a producer", lambda: confluent_kafka.Producer({**settings, **own}))
        self._client = self.client = client

    def produce(self, message: Message) -> None:
        """Hand a message to the client, waiting while it has too many."""
        topic, key, value, time_ms = message
        while True:
            try:
                # 0 = now
                told = self._heard.delivery
                self._client.produce(topic, value, key, on_delivery=told, timestamp=time_ms or 0)
                break
            except BufferError:
                self._poll(_FULL_WAIT_S)
            except confluent_kafka.KafkaException as error:
                # of what ended it this says only that something did
                self.check()
                raise _failed(f"does not take a message to topic {topic}", error.args[0]) from None
            self._check()
        self._count += 1
        if self._count % _POLL_EVERY == 0:
            self.check()

    def flush(self) -> None:
        """Wait until the brokers have all messages; how long they may take is delivery.timeout.ms."""
        while self._asked(lambda: self._client.flush(_TRY_S)):
            self._check()
        self._check()

    def check(self) -> None:
        """Raise what the client has noticed meanwhile."""
        self._poll(0)
        self._check()

    def call(self, ask: Callable[[], Any]) -> Any:
        """Call the client; what it raises is its own error.

        It raises what ends a producer out of its callbacks, whoever wants to hear of errors,
        and goes on calling those that are due; each of them runs into that error. Python says
        so instead of the error, or, where a callback got over it, that there is none.
        """
        try:
            return ask()
        except SystemError as error:
            self._raise_what_ended_it(error)

    def _raise_what_ended_it(self, error: SystemError) -> NoReturn:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, confluent_kafka.KafkaException):
                raise cause from None
            cause = cause.__cause__
        try:
            # a client that has ended says why; to another one this is said too late, and changes nothing
            self._client.init_transactions(_TRY_S)
        except confluent_kafka.KafkaException as said:
            if said.args[0].fatal():
                raise said from None
        # one without transactions does not say why
        self._check()
        raise confluent_kafka.KafkaException(_Error(_Error._FATAL)) from None

    def _poll(self, timeout_s: float) -> None:
        self._asked(lambda: self._client.poll(timeout_s))

    def _asked(self, ask: Callable[[], Any]) -> Any:
        return _asked(_NO_MESSAGES, lambda: self.call(ask))

    def _check(self) -> None:
        if self._heard.failure is not None:
            raise _failed(*self._heard.failure)


class TransactionalProducer:
    """Implements :class:`~yarnflow.spark.connectors.kafka.transactions.PartProducer`.

    Parameters
    ----------
    settings : mapping
        Of librdkafka.
    transactional_id, group : str
        The part's own.
    topic : str
        The batch's number is noted as an offset of its partition 0: always the same
        topic, and one that there is.
    """

    def __init__(self, settings: Mapping[str, str], transactional_id: str, group: str, topic: str) -> None:
        self._producer = _Producer(_transactional(settings, transactional_id))
        self._client = self._producer.client
        self._open = False
        self._topic = topic
        # joins no group and reads nothing: it knows of offsets, those alone that a transaction has committed.
        # It has all settings, for any may be needed to get to the brokers; a producer's have no effect
        reading = {"group.id": group, "isolation.level": "read_committed", "log_level": "0"}
        self._consumer = _asked(
            "does not make a consumer", lambda: confluent_kafka.Consumer({**settings, **reading})
        )
        self._repeat(
            "does not begin transactions", lambda: self._client.init_transactions(_TRY_S)
        )

    def committed_batch(self) -> int:
        place = [confluent_kafka.TopicPartition(self._topic, 0)]
        what = "does not tell the last batch"
        (found,) = _asked(what, lambda: self._consumer.committed(place, _ANSWER_TIMEOUT_S))
        if found.error is not None:
            raise _failed(what, found.error)
        # where there is none, it is a negative number
        return int(found.offset) - 1 if found.offset > 0 else NO_BATCH

    def begin(self) -> None:
        _asked("does not begin a transaction", lambda: self._producer.call(self._client.begin_transaction))
        self._open = True

    def produce(self, message: Message) -> None:
        self._producer.produce(message)

    def commit(self, batch_id: int) -> None:
        group = self._consumer.consumer_group_metadata()
        note = [confluent_kafka.TopicPartition(self._topic, 0, batch_id + 1)]
        self._producer.flush()
        self._repeat(
            "does not note the batch",
            lambda: self._client.send_offsets_to_transaction(note, group, _TRY_S),
        )
        self._repeat(
            "does not commit a transaction", lambda: self._client.commit_transaction(_TRY_S)
        )
        self._open = False

    def abort(self) -> None:
        if self._open:
            try:
                self._client.purge()
                self._producer.call(lambda: self._client.abort_transaction(_ANSWER_TIMEOUT_S))
            except (confluent_kafka.KafkaException, YarnflowError):
                # the next producer of this id, or the transaction's timeout, ends it
                pass

    def close(self) -> None:
        # what was not written belongs to no transaction any more
        self._client.purge()
        self._consumer.close()

    def _repeat(self, what: str, ask: Callable[[], Any]) -> None:
        """Ask again as long as librdkafka says that it can help."""
        for _ in range(_TRIES):
            try:
                self._producer.call(ask)
                return
            except confluent_kafka.KafkaException as error:
                failure = error.args[0]
                self._producer.check()
                if not failure.retriable():
                    break
        raise _failed(what, failure) from None


def _asked(what: str, ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except confluent_kafka.KafkaException as error:
        raise _failed(what, error.args[0]) from None


def _failed(what: str, error: Any) -> ServerError | BrokerUnavailable:
    more = _ENDED if error.code() in _TRANSACTION_ENDED else _MISSING if error.code() in _NO_TOPIC else ""
    said = f"Kafka {what} of the Kafka sink: {error.str()} ({error.name()}){more}"
    return BrokerUnavailable(said) if error.code() in _NO_ANSWER else ServerError(said)
