"""Bids as JSON: made once for each number of records, the same bytes every time."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import confluent_kafka

from integration.kafka import KafkaBroker

#: of files and of a topic; one for each of two subtasks
PARTS: Final = 2
_START_MS: Final = 1_700_000_000_000
_AUCTIONS: Final = 100
_QUEUED_MESSAGES: Final = 1_000_000


@dataclass(frozen=True)
class Bids:
    """Where the records are.

    Attributes
    ----------
    records : int
    directory : Path
    servers, topic : str
        Empty: they are in no topic.
    """

    records: int
    directory: Path
    servers: str = ""
    topic: str = ""

    @property
    def arguments(self) -> list[str]:
        """As programs take them."""
        return ["kafka", self.servers, self.topic] if self.topic else ["file", str(self.directory), ""]


def make_files(scratch: Path, records: int) -> Bids:
    """Write files, unless they are there; record i is in file i mod PARTS, times rise by 1 ms."""
    directory, complete = scratch / f"bids-{records}", scratch / f"bids-{records}.complete"
    if not complete.exists():
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        files = [open(directory / f"part-{part}.json", "w", encoding="ascii") for part in range(PARTS)]
        for number, line in enumerate(_bids(records)):
            files[number % PARTS].write(line + "\n")
        for file in files:
            file.close()
        complete.touch()
    return Bids(records, directory)


def make_topic(broker: KafkaBroker, bids: Bids) -> Bids:
    """Write the records of files to a topic, file by file to a partition of its own."""
    topic = broker.create_topic(bids.directory.name, PARTS)
    producer = confluent_kafka.Producer(
        {
            **broker.client,
            "bootstrap.servers": broker.servers,
            "linger.ms": 50,
            "queue.buffering.max.messages": _QUEUED_MESSAGES,
        }
    )
    for part in range(PARTS):
        with open(bids.directory / f"part-{part}.json", "rb") as lines:
            for line in lines:
                while True:
                    try:
                        producer.produce(topic, line.rstrip(b"\n"), partition=part)
                        break
                    except BufferError:
                        producer.poll(0.1)
                producer.poll(0)
    assert producer.flush(60) == 0, "the broker took all"
    return Bids(bids.records, bids.directory, broker.servers, topic)


def _bids(records: int) -> Iterator[str]:
    numbers = random.Random(records)
    for number in range(records):
        yield (
            f'{{"auction":{numbers.randrange(_AUCTIONS)},"bidder":{numbers.randrange(10_000)},'
            f'"price":{numbers.randrange(1_000)},"channel":"channel-{numbers.randrange(4)}",'
            f'"time_ms":{_START_MS + number},"extra":"{numbers.getrandbits(160):040x}"}}'
        )
