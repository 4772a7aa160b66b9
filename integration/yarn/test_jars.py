"""Packages of a script's own session builder, in containers."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.conftest import POSTGRES
from integration.test_jars import ON_EXECUTORS
from integration.yarn.jobs import TWO_TASK_MANAGERS, Yarn

SCRIPT = f"""
from pyspark.sql import SparkSession

spark = SparkSession.builder.config("spark.jars.packages", "{POSTGRES}").getOrCreate()
assert spark.conf.get("spark.jars").startswith("hdfs://"), spark.conf.get("spark.jars")
rows = spark.range(8).repartition(2).selectExpr("{ON_EXECUTORS} AS found").collect()
assert len(rows) == 8 and {{row.found for row in rows}} <= {{"true", "false"}}, rows
try:
    properties = {{"driver": "org.postgresql.Driver"}}
    spark.read.jdbc("jdbc:postgresql://127.0.0.1:1/x", "t", properties=properties)
except Exception as error:
    assert "FAILED_JDBC.CONNECTION" in str(error), error
else:
    raise AssertionError("nobody is there to be read")
"""

#: its text does not tell the jar: it is one of the container's own
PROGRAM = f"""
from pathlib import Path
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
(jar,) = Path.cwd().glob("postgresql-*.jar")
env.add_jars(f"file://{{jar}}")
rows = env.from_collection([(n,) for n in range(8)], schema="a INT")
rows.select("{ON_EXECUTORS} AS found").print()
env.execute("jars")
"""


@pytest.mark.drill
@pytest.mark.parametrize("target", ["yarn-per-job", "yarn-application"])
def test_packages_of_a_script(yarn: Yarn, tmp_path: Path, target: str) -> None:
    """Twice: the second time nothing is uploaded."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    cache = f"{yarn.home}/.yarnflow/cache"
    found = []
    for _ in range(2):
        assert yarn.run("submit", "-t", target, *TWO_TASK_MANAGERS, script).process.returncode == 0
        found.append({(path, tuple(files)) for path, _, files in yarn.hdfs.walk(cache)})
    assert found[0] == found[1]
    assert any("postgresql" in name for _, names in found[0] for name in names)


@pytest.mark.drill
def test_a_jar_of_the_container_that_the_program_runs_in(yarn: Yarn, postgres: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    shipped = tmp_path / "postgresql-1.jar"
    shipped.write_bytes(Path(postgres.removeprefix("file://")).read_bytes())
    flags = ("-t", "yarn-application", f"-Dyarn.ship-files={shipped}", *TWO_TASK_MANAGERS)
    assert yarn.run("submit", *flags, program).process.returncode == 0
