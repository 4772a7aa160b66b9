"""Jars and packages on the class path of drivers and executors, with real ones from Maven Central.

What was resolved once is in the user's cache, so only the first run on a machine needs the network.
"""

from __future__ import annotations

import signal
import zipfile
from collections import Counter
from pathlib import Path

import pyarrow.dataset as ds

from integration.conftest import POSTGRES, Commands, wait_until
from integration.processes import driver_with_a_job
from yarnflow.api import RateSource, StreamExecutionEnvironment
from yarnflow.api.streams.stream_base import CloseableIterator
from yarnflow.client.jars.bring import JarBringer
from yarnflow.core.jars.request import jars_of

#: made for Spark 4.1: on this one it writes tables, and does not read them
DELTA = "io.delta:delta-spark_4.1_2.13:4.4.0"
#: evaluated by executors: the rows are spread first
ON_EXECUTORS = "reflect('org.postgresql.Driver', 'isRegistered')"

SCRIPT = f"""
from pyspark.sql import SparkSession

spark = SparkSession.builder.config("spark.jars.packages", "{POSTGRES}").getOrCreate()


def failure(read):
    try:
        read()
    except Exception as error:
        return str(error)


url = "jdbc:postgresql://127.0.0.1:1/x"
said = failure(lambda: spark.read.jdbc(url, "t", properties={{"driver": "org.postgresql.Driver"}}))
print("driver:", "FAILED_JDBC.CONNECTION" in said, said[:200])
rows = spark.range(8).repartition(2).selectExpr("{ON_EXECUTORS} AS found").collect()
print("executors:", {{row.found for row in rows}})
options = {{"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.default.api.timeout.ms": "1000"}}
options |= {{"kafka.request.timeout.ms": "900", "subscribe": "t"}}
stream = spark.readStream.format("kafka").options(**options).load()
query = stream.writeStream.format("noop").option("checkpointLocation", "{{checkpoints}}").start()
said = failure(lambda: query.awaitTermination(60))
print("kafka:", "TimeoutException" in said, said[:200])
write = {{"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.max.block.ms": "1000", "topic": "t"}}
values = spark.range(1).selectExpr("cast(id AS string) AS value")
said = failure(lambda: values.write.format("kafka").options(**write).save())
print("kafka in executors:", "TimeoutException" in said, said[:200])
"""

LAKE = """
import sys
from pyspark.sql import SparkSession

package, extension, table = sys.argv[1:]
spark = (
    SparkSession.builder.config("spark.jars.packages", package)
    .config("spark.sql.extensions", extension)
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .getOrCreate()
)
rows = spark.range(10).repartition(2).selectExpr("id", "cast(id % 2 AS string) AS part")
rows.write.format("delta").partitionBy("part").save(table)
"""

PROGRAM = f"""
import sys
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.add_jars(*sys.argv[1:])
rows = env.from_collection([(1,), (2,)], schema="a INT")
rows.select("{ON_EXECUTORS} AS found").print()
env.execute("jars")
"""


def test_packages_of_a_script_and_of_a_connector(yarnflow: Commands, tmp_path: Path) -> None:
    kafka = jars_of(JarBringer(print).bring({}, ["kafka"]))
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace("{checkpoints}", str(tmp_path / "checkpoints")))
    done = yarnflow.run("submit", "--jars", ",".join(kafka), script)
    assert done.process.returncode == 43, "nobody is there to answer the query"
    lines = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)
    assert lines["driver"].startswith("True"), lines
    assert lines["executors"] in ("{'true'}", "{'false'}"), lines
    assert lines["kafka"].startswith("True"), lines
    assert lines["kafka in executors"].startswith("True"), lines


def test_packages_and_extensions_that_a_script_computes(yarnflow: Commands, tmp_path: Path) -> None:
    """Its text tells nothing: the driver finds them when the script asks for its session.

    Delta refuses to write in a session without its extension.
    """
    script, table = tmp_path / "lake.py", tmp_path / "table"
    script.write_text(LAKE)
    done = yarnflow.run("submit", script, DELTA, "io.delta.sql.DeltaSparkSessionExtension", table)
    assert done.process.returncode == 0
    assert [path.name for path in (table / "_delta_log").glob("*.json")] == [f"{0:020}.json"]
    rows = ds.dataset(table, format="parquet", ignore_prefixes=["_", "."])
    assert Counter(rows.to_table()["part"].to_pylist()) == {"0": 5, "1": 5}


def test_jars_of_a_program_of_pyflink(yarnflow: Commands, postgres: str, tmp_path: Path) -> None:
    flink = tmp_path / "flink-sql-connector-kafka-4.0.1-2.0.jar"
    with zipfile.ZipFile(flink, "w") as made:
        made.writestr("org/apache/flink/connector/kafka/X.class", b"")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = yarnflow.run("submit", program, f"file://{flink}", postgres)
    assert done.process.returncode == 0
    assert done.stderr.count("flink-sql-connector-kafka-4.0.1-2.0.jar is a jar of Flink") == 1
    assert done.stdout.split() in (["true", "true"], ["+I[true]", "+I[true]"])


def test_the_successor_of_a_driver_has_its_jars(own_cluster: str, postgres: str) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.add_jars(postgres)
    numbers = env.from_source(RateSource(rows_per_second=50, count=1_000))
    found = numbers.select("value", f"{ON_EXECUTORS} AS found").execute_and_collect("jars")
    assert isinstance(found, CloseableIterator)
    with found:
        rows = [next(found) for _ in range(100)]
        driver = wait_until(lambda: driver_with_a_job(own_cluster), "the driver")
        driver.send_signal(signal.SIGKILL)
        rows += found
    assert [row.value for row in rows] == list(range(1_000))
    assert {row.found for row in rows} <= {"true", "false"}


def test_the_second_submit_resolves_nothing(yarnflow: Commands, tmp_path: Path) -> None:
    """Packages of a folder in Maven's layout, without network; another cache than the user's."""
    folder = tmp_path / "repository" / "org" / "own" / "thing" / "1.0"
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "thing-1.0.jar", "w") as made:
        made.writestr("own/words.txt", "from the jar")
    project = "<groupId>org.own</groupId><artifactId>thing</artifactId><version>1.0</version>"
    (folder / "thing-1.0.pom").write_text(
        f"<project><modelVersion>4.0.0</modelVersion>{project}</project>"
    )
    script = tmp_path / "script.py"
    script.write_text(
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.getOrCreate()\n"
        "loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()\n"
        "print(loader.getResource('own/words.txt').toString())\n"
    )
    repository = (tmp_path / "repository").as_uri()
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "DEFAULT_ARTIFACT_REPOSITORY": repository}
    submit = ("submit", "--packages", "org.own:thing:1.0", script)
    first = yarnflow.run(*submit, environment=environment)
    assert first.process.returncode == 0
    assert "Resolving org.own:thing:1.0." in first.stderr and "own/words.txt" in first.stdout
    second = yarnflow.run(*submit, environment={**environment, "DEFAULT_ARTIFACT_REPOSITORY": "file:///none"})
    assert second.process.returncode == 0
    assert "Resolving" not in second.stderr and "own/words.txt" in second.stdout
    unknown = yarnflow.run("submit", "--packages", "org.own:other:1.0", script, environment=environment)
    assert unknown.process.returncode == 14
    assert "package org.own:other:1.0 is not in Maven Central; correct it" in unknown.stderr
