"""Sessions in the one JVM of a worker, which starts with the jars of Spark's connector for Kafka.

Jars get onto the class path of a JVM only when it starts, so it has them whichever test comes first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from pyspark.sql import SparkSession

from integration.spark.translate_support import make_session
from yarnflow.client.jars.bring import JarBringer
from yarnflow.core.jars.request import jars_of
from yarnflow.errors import JarError


@contextmanager
def shared_session(master: str = "local[2]") -> Iterator[SparkSession]:
    """Start a session without options of the one before; a JVM starts with the first of a process.

    Where the jars cannot be had, the JVM starts without them: most tests need none.
    """
    found = _kafka_jars()
    session = make_session(master, "" if isinstance(found, JarError) else found)
    try:
        yield session
    finally:
        session.stop()


@contextmanager
def kafka_session(master: str = "local[2]") -> Iterator[SparkSession]:
    """Start a session as :func:`shared_session` does, for tests that need the jars.

    Raises
    ------
    JarError
        The jars could not be had when the JVM started.
    """
    found = _kafka_jars()
    if isinstance(found, JarError):
        raise found
    with shared_session(master) as session:
        yield session


@cache
def _kafka_jars() -> str | JarError:
    """Return the jars, with commas between them, or why there are none: as it was when the JVM started."""
    try:
        return ",".join(jars_of(JarBringer(print).bring({}, ["kafka"])))
    except JarError as error:
        return error
