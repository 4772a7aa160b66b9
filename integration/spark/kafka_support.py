"""A session that reads Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from pyspark import SparkContext
from pyspark.sql import SparkSession

from integration.spark.translate_support import make_session
from yarnflow.client.jars.bring import JarBringer
from yarnflow.core.jars.request import jars_of

#: the gateway of the JVM that has them, once there is one
_WITH_JARS: Final[list[Any]] = []


@contextmanager
def kafka_session(master: str = "local[2]") -> Iterator[SparkSession]:
    """A session in a JVM that has begun with the jars: only then they get onto its class path."""
    jars = ",".join(jars_of(JarBringer(print).bring({}, ["kafka"])))
    if SparkContext._gateway not in _WITH_JARS:
        _end_jvm()
    session = make_session(master, jars)
    _WITH_JARS[:] = [SparkContext._gateway]
    yield session
    session.stop()


def _end_jvm() -> None:
    gateway = SparkContext._gateway
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(60)
        SparkContext._gateway = SparkContext._jvm = None
