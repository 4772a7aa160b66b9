"""kill -9 of executor, driver and broker while a job copies a topic; every number must be readable once."""

from __future__ import annotations

import uuid
from collections import Counter
from pathlib import Path

import pytest

from integration.conftest import Commands, wait_until
from integration.kafka import KafkaBroker
from integration.processes import EXECUTOR, kill_driver, kill_one
from tests.patience import PATIENCE

#: fifteen batches: results and faults are in the first half of them
NUMBERS = 1500
#: of the sink
OPERATOR = "0123456789abcdef" * 2
#: which of the sink's subtasks gets a number is another one whenever it is computed
_PROGRAM = """
import random
from yarnflow.api import StreamExecutionEnvironment
from yarnflow.api.common import SimpleStringSchema, Types, WatermarkStrategy
from yarnflow.api.datastream.connectors import DeliveryGuarantee
from yarnflow.api.datastream.connectors.kafka import (
    KafkaOffsetsInitializer, KafkaRecordSerializationSchema, KafkaSink, KafkaSource
)

env = StreamExecutionEnvironment.get_execution_environment()
source = (
    KafkaSource.builder()
    .set_bootstrap_servers({servers!r})
    .set_topics({numbers!r})
    .set_bounded(KafkaOffsetsInitializer.latest())
    .set_value_only_deserializer(SimpleStringSchema())
    .set_option("maxOffsetsPerTrigger", 100)
    .build()
)
record = KafkaRecordSerializationSchema.builder().set_topic({topic!r})
record.set_value_serialization_schema(SimpleStringSchema())
sink = (
    KafkaSink.builder()
    .set_bootstrap_servers({servers!r})
    .set_record_serializer(record.build())
    .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    .set_transactional_id_prefix({topic!r})
    .build()
)
numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
added = numbers.map(lambda text: str(int(text) + 1), Types.STRING())
divided = added.partition_custom(lambda text, subtasks: random.randrange(subtasks), lambda text: text)
divided.sink_to(sink).set_uid_hash({operator!r})
env.execute("Kafka to Kafka")
"""


def readable(kafka: KafkaBroker, topic: str) -> Counter[int]:
    return Counter(int(message.value or b"") for message in kafka.read(topic))


@pytest.mark.drill
@pytest.mark.parametrize("parallelism", [1, 2])
def test_each_number_is_readable_once(
    yarnflow: Commands, kafka: KafkaBroker, tmp_path: Path, parallelism: int
) -> None:
    topic = kafka.create_topic(f"faults-{uuid.uuid4().hex[:8]}")
    program = tmp_path / "to_kafka.py"
    numbers = kafka.create_topic(f"{topic}-in")
    kafka.send_texts(numbers, [str(number) for number in range(NUMBERS)])
    program.write_text(
        _PROGRAM.format(numbers=numbers, topic=topic, servers=kafka.servers, operator=OPERATOR)
    )
    options = ("-p", str(parallelism), "-Dexecution.micro-batch.interval=500 ms")
    started = yarnflow.start("submit", *options, program)

    def more_than(count: int) -> None:
        def reached() -> bool:
            assert started.process.poll() is None, "the job ended before the fault"
            return len(readable(kafka, topic)) > count

        wait_until(reached, f"more than {count} numbers", pause_s=0.3)

    more_than(100)
    kill_one(yarnflow.mark, EXECUTOR)
    more_than(len(readable(kafka, topic)) + 100)
    kill_driver(yarnflow.mark)
    assert started.wait(PATIENCE.job_s) == 0
    assert "to RESTARTING" in started.stderr
    assert readable(kafka, topic) == Counter(range(1, NUMBERS + 1))


@pytest.mark.drill
def test_each_number_is_readable_once_when_one_part_of_a_batch_is_written_and_the_other_is_not(
    yarnflow: Commands, kafka: KafkaBroker, tmp_path: Path
) -> None:
    """The new attempt may not divide the batch anew: what changed parts would be there twice or never."""
    topic = kafka.create_topic(f"faults-{uuid.uuid4().hex[:8]}")
    numbers = kafka.create_topic(f"{topic}-in")
    kafka.send_texts(numbers, [str(number) for number in range(NUMBERS)])
    program = tmp_path / "to_kafka.py"
    program.write_text(
        _PROGRAM.format(numbers=numbers, topic=topic, servers=kafka.servers, operator=OPERATOR)
    )
    # a task that is fenced would come through at its next try
    options = ("-p", "2", "-Dexecution.micro-batch.interval=500 ms", "-Dspark.task.maxFailures=1")
    started = yarnflow.start("submit", *options, program)

    def some() -> bool:
        assert started.process.poll() is None, "the job ended before the fault"
        return len(readable(kafka, topic)) > 100

    def has_restarted_while_part_1_is_fenced() -> bool:
        assert started.process.poll() is None, "the job ended before the fault"
        kafka.fence(f"{topic}-{OPERATOR[:8]}-1")
        return started.stderr.count("to RESTARTING") >= 2

    wait_until(some, "more than 100 numbers")
    wait_until(has_restarted_while_part_1_is_fenced, "two attempts to fail", pause_s=0.01)
    assert started.wait(PATIENCE.job_s) == 0
    assert readable(kafka, topic) == Counter(range(1, NUMBERS + 1))


@pytest.mark.drill
@pytest.mark.parametrize("parallelism", [1, 2])
def test_each_number_is_readable_once_when_the_broker_is_killed(
    yarnflow: Commands, own_kafka: KafkaBroker, tmp_path: Path, parallelism: int
) -> None:
    topic, numbers = own_kafka.create_topic("out"), own_kafka.create_topic("in")
    own_kafka.send_texts(numbers, [str(number) for number in range(NUMBERS)])
    program = tmp_path / "to_kafka.py"
    program.write_text(
        _PROGRAM.format(numbers=numbers, topic=topic, servers=own_kafka.servers, operator=OPERATOR)
    )
    options = ("-p", str(parallelism), "-Dexecution.micro-batch.interval=500 ms")
    started = yarnflow.start("submit", *options, program)

    def some() -> bool:
        assert started.process.poll() is None, "the job ended before the fault"
        return len(readable(own_kafka, topic)) > 100

    wait_until(some, "more than 100 numbers")
    own_kafka.kill()
    own_kafka.restart()
    assert len(readable(own_kafka, topic)) < NUMBERS, "the job had ended before the fault"
    assert started.wait(PATIENCE.job_s) == 0
    assert readable(own_kafka, topic) == Counter(range(1, NUMBERS + 1))
