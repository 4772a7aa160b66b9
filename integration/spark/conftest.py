"""A Spark session for each module; all of them share one JVM."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from integration.kafka import KafkaBroker
from integration.spark.kafka_programs import Program
from integration.spark.shared_jvm import shared_session


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """A local session, without options of a module before."""
    with shared_session() as session:
        yield session


@pytest.fixture
def topic(kafka: KafkaBroker) -> str:
    """A topic of two partitions."""
    return kafka.create_topic(f"t-{uuid.uuid4().hex[:8]}")


@pytest.fixture
def program(spark: SparkSession, tmp_path: Path) -> Program:
    return Program(spark, tmp_path)
