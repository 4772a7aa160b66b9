"""Programs that read topics of Kafka's up to their ends."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from integration.kafka import KafkaBroker
from integration.spark.test_elements import program_of
from yarnflow.api import StreamExecutionEnvironment
from yarnflow.api.common import SimpleStringSchema, Types
from yarnflow.api.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource, KafkaSourceBuilder
from yarnflow.api.datastream.formats.json import JsonRowDeserializationSchema

LATEST: Final = KafkaOffsetsInitializer.latest()
NUMBERED: Final = Types.ROW_NAMED(["n", "who"], [Types.INT(), Types.STRING()])


class Program:
    """Runs programs whose checkpoint and output are a test's own."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self._spark = spark
        self._directory = directory

    def run(self, env: StreamExecutionEnvironment, checkpoint: str = "checkpoint") -> None:
        program = program_of(self._spark, env, self._directory / checkpoint)
        program.start()
        program.await_end()


def source(kafka: KafkaBroker, topic: str = "") -> KafkaSourceBuilder:
    """Return a source of a topic's texts up to its end."""
    builder = KafkaSource.builder().set_bootstrap_servers(kafka.servers).set_bounded(LATEST)
    builder.set_value_only_deserializer(SimpleStringSchema())
    return builder.set_topics(topic) if topic else builder


def json_source(kafka: KafkaBroker, topic: str, ignore: bool = False) -> KafkaSourceBuilder:
    """Return a source of the rows of JSON in a topic up to its end."""
    schema = JsonRowDeserializationSchema.builder().type_info(NUMBERED)
    form = (schema.ignore_parse_errors() if ignore else schema).build()
    return source(kafka, topic).set_value_only_deserializer(form)
