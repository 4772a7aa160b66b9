"""A Spark session for each module; all of them share one JVM."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from integration.spark.shared_jvm import shared_session


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """A local session, without options of a module before."""
    with shared_session() as session:
        yield session
