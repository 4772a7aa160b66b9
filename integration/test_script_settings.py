"""What a script sets for itself counts as in plain Spark: the same script run by Python is asked."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from integration.conftest import Commands, Started

CONTEXT = """
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

conf = SparkConf().setMaster("local[2]").setAppName("hours of Tokyo")
conf.set("spark.sql.session.timeZone", "Asia/Tokyo").set("spark.sql.shuffle.partitions", "3")
conf.set("spark.team", "clocks").set("spark.hadoop.team.color", "green")
sc = SparkContext(conf=conf)
spark = SparkSession(sc)
print("says hour", spark.sql("select hour(timestamp_seconds(0)) h").first().h)
print("says partitions", spark.conf.get("spark.sql.shuffle.partitions"))
print("says team", sc.getConf().get("spark.team"))
print("says color", sc._jsc.hadoopConfiguration().get("team.color"), "name", sc.appName)
"""
POSITIONAL = """
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

conf = SparkConf().set("spark.sql.session.timeZone", "Asia/Tokyo").set("spark.executorEnv.SHIFT", "night")
sc = SparkContext("local[2]", "by position", None, None, {"TEAM": "clocks"}, 0, conf=conf)
print("says", sc.appName, SparkSession(sc).conf.get("spark.sql.session.timeZone"))
variables = sc.parallelize(["TEAM", "SHIFT"], 1).map(lambda name: __import__("os").environ.get(name))
print("says", variables.collect())
"""
GET_OR_CREATE = """
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

for zone in ("Asia/Tokyo", "Europe/Paris"):
    sc = SparkContext.getOrCreate(SparkConf().set("spark.sql.session.timeZone", zone).set("spark.team", zone))
    spark = SparkSession.builder.getOrCreate()
    print("says", spark.conf.get("spark.sql.session.timeZone"), sc.getConf().get("spark.team"))
"""
WAREHOUSE = """
import os, sys
from pyspark.sql import SparkSession

place = os.path.abspath(sys.argv[1])
spark = SparkSession.builder.appName("numbers").config("spark.sql.warehouse.dir", place).getOrCreate()
spark.range(5).write.mode("overwrite").saveAsTable("numbers")
spark.sql("create table empty (a int) using parquet")
print("says name", spark.sparkContext.appName)
print("says moved", spark.conf.get("spark.sql.warehouse.dir").endswith(place))
print("says there", sorted(name for name in os.listdir(place)))
again = SparkSession.builder.config("spark.sql.warehouse.dir", place + "-other").getOrCreate()
print("says still there", again.table("numbers").count(), os.path.exists(place + "-other"))
described = {row.col_name: row.data_type for row in again.sql("describe formatted numbers").collect()}
print("says location", described["Location"].endswith(place + "/numbers"))
"""
WAREHOUSE_OF_CONTEXT = """
import os, sys
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

place = os.path.abspath(sys.argv[1])
sc = SparkContext(conf=SparkConf().set("spark.sql.warehouse.dir", place))
SparkSession(sc).range(5).write.saveAsTable("numbers")
print("says", os.listdir(place), SparkSession.builder.getOrCreate().table("numbers").count())
"""
SCRIPTS = {
    "context": CONTEXT,
    "positional": POSITIONAL,
    "get-or-create": GET_OR_CREATE,
    "warehouse": WAREHOUSE,
    "warehouse-of-context": WAREHOUSE_OF_CONTEXT,
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.gate] * (name == "warehouse")) for name in SCRIPTS]
)
def test_a_script_prints_what_it_prints_in_plain_spark(name: str, yarnflow: Commands, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPTS[name])
    plain = yarnflow.start_command(
        [sys.executable, script, tmp_path / "plain"],
        {"PYSPARK_SUBMIT_ARGS": "--master local[2] pyspark-shell"},
    )
    plain.wait()
    assert plain.process.returncode == 0, plain.stderr
    wanted = printed(plain)
    done = yarnflow.run("submit", script, tmp_path / "ours")
    assert done.process.returncode == 0, done.stderr
    assert wanted and printed(done) == wanted


def printed(command: Started) -> list[str]:
    """Return the lines of the script; the command has others about its job."""
    return [line for line in command.stdout.splitlines() if line.startswith("says ")]
