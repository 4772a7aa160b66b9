"""How long records take from topic to topic, and how long it takes until the first one is there.

A process of its own sends records at a steady rate, each with the time at which it was sent; another one here
receives what an engine makes of them.  Both are on the machine that runs the engine, so clocks are the same.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import confluent_kafka

from integration.bench.pyflink.engines import Command, pyflink_command, yarnflow_command
from integration.bench.stream.engines import flink_kafka_jar, spark_command, spark_kafka
from integration.kafka import KafkaBroker

_ROOT: Final = Path(__file__).resolve().parents[3]
_PROGRAMS: Final = Path(__file__).parent / "programs"
_WARM_UP_S: Final = 15.0
_FIRST_WITHIN_S: Final = 180.0
_AFTER_S: Final = 10.0
_KEYS: Final = 50
_PARTITIONS: Final = 2

PIPELINES: Final = ("pass", "count")


@dataclass
class _Received:
    """Of an engine's results."""

    latencies_us: list[int] = field(default_factory=list)
    #: key → the largest count; of pass-through the sum
    counts: dict[int, int] = field(default_factory=dict)
    first_s: float | None = None


def latency(
    broker: KafkaBroker, pipeline: str, engine: str, rate: int, seconds: float, directory: Path
) -> dict[str, Any]:
    """Latencies of a pipeline on an engine.

    Parameters
    ----------
    pipeline : str
        ``pass``: each record as it is; ``count``: a running count of each of 50 keys.
    rate : int
        Records per second.
    seconds : float
        Measured, after 15 seconds to warm up.
    directory : Path
        For what the engine leaves.

    Returns
    -------
    dict
        ``p50_ms``, ``p99_ms``, ``max_ms``, ``results`` (received while it was measured), ``first_record_s``
        (from the command to the first result), ``sent`` and ``counted`` (records that all results speak of).
    """
    name = f"{pipeline}-{engine}-{rate}"
    topic, out = (broker.create_topic(f"{name}-{end}", _PARTITIONS) for end in ("in", "out"))
    command = ENGINES[engine](pipeline, broker.servers, topic, out, directory)
    words = [sys.executable, "-m", "integration.bench.stream.sender", broker.servers, topic]
    sender = subprocess.Popen(
        [*words, str(rate), str(_KEYS)],
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    began = time.monotonic()
    with open(directory / "stderr", "wb") as said:
        process = subprocess.Popen(
            command.words,
            cwd=command.directory,
            env={k: v for k, v in (os.environ | command.environment).items() if v},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
    found = _Received()
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.servers,
            "group.id": name,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 1,
        }
    )
    consumer.subscribe([out])
    receive = partial(_receive, consumer, found, pipeline, began, process)
    try:
        receive(lambda: found.first_s is not None, _FIRST_WITHIN_S)
        if found.first_s is None:
            return {"error": f"no result within {_FIRST_WITHIN_S:.0f} s; see {directory}", "p50_ms": None}
        receive(lambda: False, _WARM_UP_S)
        found.latencies_us.clear()
        receive(lambda: False, seconds)
        measured = sorted(found.latencies_us)
        sender.send_signal(signal.SIGTERM)
        sent = int(sender.communicate()[0])
        receive(lambda: sum(found.counts.values()) >= sent, _AFTER_S)
    finally:
        sender.kill()
        consumer.close()
        _end(process)
    if not measured:
        return {"error": f"no result while it was measured; see {directory}", "p50_ms": None}
    return {
        "p50_ms": round(measured[len(measured) // 2] / 1000, 1),
        "p99_ms": round(measured[len(measured) * 99 // 100] / 1000, 1),
        "max_ms": round(measured[-1] / 1000, 1),
        "results": len(measured),
        "first_record_s": round(found.first_s, 1),
        "sent": sent,
        "counted": sum(found.counts.values()),
    }


def _receive(
    consumer: Any,
    found: _Received,
    pipeline: str,
    began: float,
    process: subprocess.Popen[bytes],
    enough: Callable[[], bool],
    seconds: float,
) -> None:
    until = time.monotonic() + seconds
    while not enough() and time.monotonic() < until and process.poll() is None:
        # consume(…) would wait for more messages, which adds some milliseconds to each
        message = consumer.poll(0.1)
        now_us = time.time_ns() // 1000
        if message is None or message.error() is not None or message.value() is None:
            continue
        result = json.loads(message.value())
        if found.first_s is None:
            found.first_s = time.monotonic() - began
        found.latencies_us.append(now_us - result["sent_us"])
        key, n = result["k"], result["n"]
        before = found.counts.get(key, 0)
        found.counts[key] = before + n if pipeline == "pass" else max(before, n)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Interrupt an engine as a user does, and kill what does not end by that."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def _yarnflow(mode: str) -> Callable[..., Command]:
    def command(pipeline: str, servers: str, topic: str, out: str, directory: Path) -> Command:
        program = str(_PROGRAMS / "yarnflow_latency.py")
        return yarnflow_command([program, pipeline, servers, topic, out, mode], directory)

    return command


def _flink(timeout_ms: int) -> Callable[..., Command]:
    def command(pipeline: str, servers: str, topic: str, out: str, directory: Path) -> Command:
        program, jar = str(_PROGRAMS / "flink_latency.py"), str(flink_kafka_jar())
        return pyflink_command([program, pipeline, servers, topic, out, jar, str(timeout_ms)], directory)

    return command


def _spark(mode: str) -> Callable[..., Command]:
    def command(pipeline: str, servers: str, topic: str, out: str, directory: Path) -> Command:
        program = str(_PROGRAMS / "spark_latency.py")
        options = [*spark_kafka(), "--conf", "spark.shuffle.streaming.networkBufferMaxWaitTimeMs=1"]
        return spark_command(6, [*options, program, pipeline, servers, topic, out, mode], directory)

    return command


ENGINES: Final[dict[str, Callable[..., Command]]] = {
    "yarnflow": _yarnflow("real-time"),
    "yarnflow-micro-batch": _yarnflow("micro-batch"),
    "flink-sql": _flink(100),
    "flink-sql-buffer-0": _flink(0),
    "spark": _spark("real-time"),
    "spark-micro-batch": _spark("micro-batch"),
}
