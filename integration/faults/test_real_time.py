"""kill -9 of an executor while a job runs in real time: the query starts again in the same driver."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

from integration.conftest import Commands, wait_until
from integration.kafka import KafkaBroker
from integration.processes import EXECUTOR, driver_with_a_job, kill_one

_PROGRAM = """
from yarnflow.api import StreamExecutionEnvironment
from yarnflow.api.common import Types
from yarnflow.api.datastream.connectors import DeliveryGuarantee
from yarnflow.api.datastream.connectors.kafka import (
    KafkaOffsetsInitializer, KafkaRecordSerializationSchema, KafkaSink, KafkaSource
)
from yarnflow.api.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema

ROW = Types.ROW_NAMED(["k", "n"], [Types.STRING(), Types.LONG()])
TOTAL = Types.ROW_NAMED(["k", "total"], [Types.STRING(), Types.LONG()])
env = StreamExecutionEnvironment.get_execution_environment()
source = (
    KafkaSource.builder()
    .set_bootstrap_servers({servers!r})
    .set_topics({numbers!r})
    .set_starting_offsets(KafkaOffsetsInitializer.earliest())
    .set_value_only_deserializer(JsonRowDeserializationSchema.builder().type_info(ROW).build())
    .build()
)
record = KafkaRecordSerializationSchema.builder().set_topic({totals!r})
record.set_value_serialization_schema(JsonRowSerializationSchema.builder().with_type_info(TOTAL).build())
sink = (
    KafkaSink.builder()
    .set_bootstrap_servers({servers!r})
    .set_record_serializer(record.build())
    .set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE)
    .build()
)
env.from_source(source).select("k", "n").key_by("k").aggregate("sum(n) AS total").sink_to(sink)
env.execute("totals")
"""


def totals(kafka: KafkaBroker, topic: str) -> list[int]:
    return [json.loads(message.value or b"")["total"] for message in kafka.read(topic)]


@pytest.mark.drill
def test_an_executor_that_dies_is_replaced(yarnflow: Commands, kafka: KafkaBroker, tmp_path: Path) -> None:
    numbers = kafka.create_topic(f"faults-{uuid.uuid4().hex[:8]}")
    written = kafka.create_topic(f"{numbers}-totals", 1)
    program = tmp_path / "totals.py"
    program.write_text(_PROGRAM.format(numbers=numbers, totals=written, servers=kafka.servers))
    options = ("-Dpipeline.execution-mode=real-time", "-Dexecution.checkpointing.interval=5 s")
    started = yarnflow.start("submit", "-p", "2", *options, program)

    def add(count: int) -> None:
        kafka.send_texts(numbers, [json.dumps({"k": "a", "n": 1})] * count)

    def await_total(total: int) -> None:
        def reached() -> bool:
            assert started.process.poll() is None, started.stderr
            return total in totals(kafka, written)

        wait_until(reached, f"a total of {total}")

    add(10)
    await_total(10)
    driver = driver_with_a_job(yarnflow.mark)
    assert driver is not None
    kill_one(yarnflow.mark, EXECUTOR)
    add(10)
    await_total(20)
    again = driver_with_a_job(yarnflow.mark)
    assert again is not None and again.pid == driver.pid, "the query was started again in another driver"
    # each record is one part of the total, whatever was written twice
    assert max(totals(kafka, written)) == 20
    assert "to RESTARTING" in started.stderr
