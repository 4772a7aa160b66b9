"""Sends records to a topic at a steady rate until SIGTERM, then prints how many:  SERVERS TOPIC RATE KEYS."""

from __future__ import annotations

import signal
import sys
import threading
import time
from typing import Final

import confluent_kafka

_PARTITIONS: Final = 2
_TICK_S: Final = 0.002


def main(servers: str, topic: str, rate: int, keys: int) -> None:
    """Send until told to end."""
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: ended.set())
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "linger.ms": 0})
    began, sent = time.monotonic(), 0
    while not ended.is_set():
        due = int((time.monotonic() - began) * rate)
        while sent < due:
            value = f'{{"k":{sent % keys},"sent_us":{time.time_ns() // 1000}}}'
            producer.produce(topic, value, partition=sent % _PARTITIONS)
            sent += 1
        producer.poll(0)
        time.sleep(_TICK_S)
    producer.flush(30)
    print(sent)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
