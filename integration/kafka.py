"""A real Kafka for tests: the broker that ``scripts/kafka`` starts, and a hand on its topics."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import confluent_kafka
import confluent_kafka.admin

from tests.patience import PATIENCE

_SCRIPT: Final = Path(__file__).resolve().parents[1] / "scripts/kafka"
#: the time of texts that are sent, since the epoch
FIRST_MS: Final = 1_700_000_000_000


@dataclass(frozen=True)
class Message:
    """A message as a consumer sees it."""

    value: bytes | None
    key: bytes | None = None
    partition: int = 0
    offset: int = -1
    #: since the epoch; 0 = now
    timestamp_ms: int = 0
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass
class KafkaBroker:
    """A broker that runs."""

    folder: Path
    servers: str = ""
    #: what its clients need to be let in, as librdkafka names it
    client: dict[str, str] = field(default_factory=dict)
    _admin: Any = field(default=None, repr=False)

    @classmethod
    def start(cls, folder: Path, port: int = 0, settings: Mapping[str, str] | None = None) -> KafkaBroker:
        """Start one in a folder of its own; port 0 = any."""
        more = [word for key, value in (settings or {}).items() for word in ("--set", f"{key}={value}")]
        cls(folder)._run("start", "--timeout", "300", "--port", str(port), *more)
        return cls.running(folder)

    @classmethod
    def running(cls, folder: Path) -> KafkaBroker:
        """The one that runs in a folder."""
        broker = cls(folder)
        broker.servers = json.loads(broker._run("env", "--json"))["KAFKA_BOOTSTRAP_SERVERS"]
        return broker

    def stop(self) -> None:
        """End it and remove its folder."""
        self._run("stop")

    def kill(self) -> None:
        """Kill it; :meth:`restart` brings it back with its data."""
        self._run("kill")

    def restart(self) -> None:
        """Start one that was killed."""
        self._run("start", "--timeout", "300")

    def create_topic(self, name: str, partitions: int = 2) -> str:
        """Make a topic; returns its name."""
        wanted = confluent_kafka.admin.NewTopic(name, num_partitions=partitions, replication_factor=1)
        for made in self._administrator().create_topics([wanted]).values():
            made.result(PATIENCE.answer_s)
        return name

    def send(self, topic: str, messages: Iterable[Message]) -> None:
        """Write messages to the partitions they name."""
        producer = self._producer({})
        failures: list[str] = []

        def delivered(error: Any, _: Any) -> None:
            if error is not None:
                failures.append(str(error))

        for message in messages:
            producer.produce(
                topic,
                message.value,
                message.key,
                partition=message.partition,
                on_delivery=delivered,
                timestamp=message.timestamp_ms,
                headers=list(message.headers),
            )
            producer.poll(0)
        assert producer.flush(PATIENCE.answer_s) == 0 and not failures, failures

    def send_texts(self, topic: str, texts: Sequence[str], partitions: int = 2) -> None:
        """Write texts to the partitions in turn, each a millisecond later, the first at FIRST_MS."""
        self.send(
            topic,
            [
                Message(text.encode(), partition=number % partitions, timestamp_ms=FIRST_MS + number)
                for number, text in enumerate(texts)
            ],
        )

    @contextmanager
    def writing(self, topic: str, text: Callable[[int], str], per_second: int) -> Iterator[Writer]:
        """A producer that goes on and on, until it is stopped or left."""
        # it writes each message once, however often a broker that was killed is asked again
        writer = Writer(self._producer({"enable.idempotence": True}), topic, text, per_second)
        try:
            yield writer
        finally:
            writer.stop()

    def commit(self, group: str, topic: str, offsets: dict[int, int]) -> None:
        """Commit offsets of a group."""
        consumer = self._consumer({"group.id": group})
        places = [confluent_kafka.TopicPartition(topic, number, at) for number, at in offsets.items()]
        consumer.commit(offsets=places, asynchronous=False)
        consumer.close()

    def fence(self, transactional_id: str) -> None:
        """End what producers of the id are doing: they commit no more."""
        self._producer({"transactional.id": transactional_id}).init_transactions(PATIENCE.answer_s)

    def delete_topic(self, name: str) -> None:
        """Delete a topic and its messages."""
        for done in self._administrator().delete_topics([name]).values():
            done.result(PATIENCE.answer_s)

    def delete_before(self, topic: str, offsets: dict[int, int]) -> None:
        """Delete the messages before these offsets, as retention does."""
        places = [confluent_kafka.TopicPartition(topic, number, at) for number, at in offsets.items()]
        for done in self._administrator().delete_records(places).values():
            done.result(PATIENCE.answer_s)

    def read(self, topic: str, committed: bool = True) -> list[Message]:
        """All messages of a topic, partition by partition; without those of transactions still open."""
        isolation = "read_committed" if committed else "read_uncommitted"
        consumer = self._consumer({"group.id": "tests", "isolation.level": isolation})
        try:
            described = consumer.list_topics(topic, PATIENCE.answer_s).topics[topic]
            found: list[Message] = []
            for number in sorted(described.partitions):
                found += self._read_partition(consumer, topic, number)
            return found
        finally:
            consumer.close()

    @staticmethod
    def _read_partition(consumer: Any, topic: str, number: int) -> list[Message]:
        place = confluent_kafka.TopicPartition(topic, number, confluent_kafka.OFFSET_BEGINNING)
        consumer.assign([place])
        found: list[Message] = []
        while True:
            message = consumer.poll(PATIENCE.answer_s)
            assert message is not None, f"the end of {topic}-{number} did not come"
            error = message.error()
            if error is None:
                _, time_ms = message.timestamp()
                headers = tuple(message.headers() or ())
                found.append(
                    Message(message.value(), message.key(), number, message.offset(), time_ms, headers)
                )
            elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                return found
            else:
                raise AssertionError(str(error))

    def _administrator(self) -> Any:
        if self._admin is None:
            settings = {"bootstrap.servers": self.servers, **self.client}
            self._admin = confluent_kafka.admin.AdminClient(settings)
        return self._admin

    def _producer(self, settings: dict[str, Any]) -> Any:
        return confluent_kafka.Producer({"bootstrap.servers": self.servers, **self.client, **settings})

    def _consumer(self, settings: dict[str, Any]) -> Any:
        return confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.servers,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                **self.client,
                **settings,
            }
        )

    def _run(self, verb: str, *arguments: str) -> str:
        command = [sys.executable, str(_SCRIPT), verb, "--dir", str(self.folder), *arguments]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE.download_s
        )
        said = f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr[-8000:]}"
        assert done.returncode == 0, said
        return done.stdout


class Writer:
    """Writes numbered messages at a steady rate, to two partitions in turn."""

    def __init__(self, producer: Any, topic: str, text: Callable[[int], str], per_second: int) -> None:
        self._producer = producer
        self._topic = topic
        self._text = text
        self._pause_s = 1 / per_second
        self._stopped = threading.Event()
        self._failures: list[str] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        #: messages that were given to the producer so far
        self.sent = 0
        self._thread.start()

    def stop(self) -> int:
        """Write no more; returns how many messages are in the topic, with numbers from 0."""
        self._stopped.set()
        self._thread.join()
        # a broker that comes back takes what was kept for it
        assert self._producer.flush(PATIENCE.answer_s) == 0 and not self._failures, self._failures
        return self.sent

    def _run(self) -> None:
        while not self._stopped.wait(self._pause_s):
            text = self._text(self.sent).encode()
            self._producer.produce(
                self._topic, text, partition=self.sent % 2, on_delivery=self._delivered
            )
            self.sent += 1
            self._producer.poll(0)

    def _delivered(self, error: Any, _: Any) -> None:
        if error is not None:
            self._failures.append(str(error))
