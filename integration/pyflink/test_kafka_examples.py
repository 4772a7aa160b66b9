"""The examples of Kafka in Apache PyFlink's wheel run unmodified, jars of Flink and all."""

from __future__ import annotations

import re
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.conftest import KEEP_DRIVER, Commands, wait_until
from integration.kafka import KafkaBroker

#: where the examples look for it
PORT = 9092
GREETINGS = Counter(["+I[1,hi]", "+I[2,hello]", "+I[3,hi]", "+I[4,hello]", "+I[5,hi]", "+I[6,hello]"])
GREETINGS["+I[6,hello]"] = 2


@pytest.fixture(scope="module")
def kafka_of_examples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    broker = KafkaBroker.start(tmp_path_factory.mktemp("kafka") / "broker", PORT)
    yield broker
    broker.stop()


# they differ in the format alone, which is tried without a cluster
@pytest.mark.parametrize(
    "kind", ["json", *(pytest.param(kind, marks=pytest.mark.drill) for kind in ("csv", "avro"))]
)
def test_rows_are_written_and_read(
    kind: str, yarnflow: Commands, wheel: Path, kafka_of_examples: KafkaBroker
) -> None:
    kafka_of_examples.create_topic(f"test_{kind}_topic")
    example = wheel / "examples" / "datastream" / "connectors" / f"kafka_{kind}_format.py"
    # it has two jobs
    started = yarnflow.start("submit", KEEP_DRIVER, example)

    def printed() -> Counter[str]:
        assert started.process.poll() is None, started.stderr
        return Counter(re.findall(r"\+I\[.*?\]", started.stdout))

    wait_until(lambda: printed() == GREETINGS, "all greetings")
    # the job that reads has no end
    started.process.send_signal(signal.SIGINT)
    started.wait()
    assert started.stderr.count("flink-sql-connector-kafka-1.15.0.jar is a jar of Flink") == 2, "once a job"


def test_keys_and_values_are_fields_of_rows(
    yarnflow: Commands, wheel: Path, kafka_of_examples: KafkaBroker
) -> None:
    kafka_of_examples.create_topic("row-extractor-example")
    example = wheel / "examples" / "datastream" / "connectors" / "kafka_row_field_extractor_example.py"
    assert yarnflow.run("submit", example).process.returncode == 0
    messages = kafka_of_examples.read("row-extractor-example")
    assert Counter(message.key for message in messages) == {b"user-001": 2, b"user-002": 1, b"user-003": 1}
    assert sum(b"purchase" in (message.value or b"") for message in messages) == 2
