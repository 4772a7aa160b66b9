"""PyFlink's bridge to Java; there is none here."""

from typing import Any

from yarnflow.graph.compatibility import NO_JVM, refused


@refused(NO_JVM, "env.sql(…), or a PySpark script with Spark's own gateway")
def get_gateway() -> Any:
    """The gateway to Java."""
