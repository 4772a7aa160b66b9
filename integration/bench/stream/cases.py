"""What is measured: pipelines, where their records come from, and what runs them on each engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: names of engines
YARNFLOW: Final = "yarnflow"
FLINK_SQL: Final = "flink-sql"
FLINK_PANDAS: Final = "flink-sql-pandas"
PROCESS: Final = "pyflink-process"
THREAD: Final = "pyflink-thread"
SPARK: Final = "spark"
SPARK_ARROW: Final = "spark-arrow"

ENGINES: Final = (YARNFLOW, FLINK_SQL, FLINK_PANDAS, PROCESS, THREAD, SPARK, SPARK_ARROW)


@dataclass(frozen=True)
class Case:
    """One pipeline.

    Attributes
    ----------
    name : str
    pipeline : str
        What programs do: ``filter``, ``windows``, ``udf``, ``rows``.
    kafka : bool
        Whether records come from a topic instead of files.
    programs : dict
        Engine → file in ``programs/``.
    """

    name: str
    pipeline: str
    kafka: bool
    programs: dict[str, str]


_NATIVE: Final = {YARNFLOW: "yarnflow_native.py", FLINK_SQL: "flink_sql.py", SPARK: "spark_sql.py"}

CASES: Final = (
    Case("file-filter", "filter", False, _NATIVE),
    Case("kafka-filter", "filter", True, _NATIVE),
    Case("kafka-windows", "windows", True, _NATIVE),
    Case(
        "python-udf",
        "udf",
        False,
        {**_NATIVE, FLINK_PANDAS: "flink_sql.py", SPARK_ARROW: "spark_sql.py"},
    ),
    Case(
        "python-rows",
        "rows",
        False,
        {YARNFLOW: "rows.py", PROCESS: "rows.py", THREAD: "rows.py", SPARK: "spark_sql.py"},
    ),
)
