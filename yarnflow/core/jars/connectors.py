"""Packages that yarnflow's own connectors need; what their operators are called is all they have to say.

Spark publishes its connectors apart from PySpark, and not always at the same time.
"""

from __future__ import annotations

from typing import Final

from yarnflow.core.jars.coordinates import MavenCoordinate

#: connector → what to try, best first; ``{spark}`` is the version of the installed Spark
_PACKAGES: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    "kafka": (
        ("org.apache.spark:spark-sql-kafka-0-10_2.13:{spark}",),
        # the last one known to run on this line of Spark
        (
            "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
            "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.2.0",
        ),
    ),
}


def connector_packages(connector: str, spark_version: str) -> tuple[tuple[MavenCoordinate, ...], ...]:
    """What a connector can be made of, best first; empty = Spark has it.

    Parameters
    ----------
    connector : str
        As its operators name it.
    spark_version : str
        ``4.3.0``.
    """
    return tuple(
        tuple(MavenCoordinate.parse(text.format(spark=spark_version)) for text in texts)
        for texts in _PACKAGES.get(connector, ())
    )
