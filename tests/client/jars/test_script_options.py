"""What a script's text tells of the jars it wants."""

from __future__ import annotations

import pytest

from yarnflow.client.jars.script_options import jar_options

SCRIPT = b"""
from pyspark import SparkConf
from pyspark.sql import SparkSession

PACKAGES = "g:a:1"
CHANGED = "x.jar"
CHANGED = "y.jar"
conf = SparkConf().set("spark.jars.repositories", "https://r")
spark = (
    SparkSession.builder.appName("x")
    .config("spark.jars.packages", ",".join([PACKAGES, "g:b:2"]))
    .config(map={"spark.jars.excludes": "g:z", "spark.sql.shuffle.partitions": "2"})
    .config(key="spark.jars.ivySettings", value="/x.xml")
    .config("spark.jars", CHANGED)
    .config("spark.jars.ivy", directory())
    .getOrCreate()
)
"""


def test_literals_and_names_of_literals() -> None:
    assert jar_options(SCRIPT) == {
        "spark.jars.repositories": "https://r",
        "spark.jars.packages": "g:a:1,g:b:2",
        "spark.jars.excludes": "g:z",
        "spark.jars.ivySettings": "/x.xml",
    }
    assert jar_options(b"print(1)\nx.set('a', 'b')\n{**y}\nf(map={**y})") == {}


SET = 'builder.config("spark.jars", "a.jar")'
CERTAIN = [
    f"def main():\n    try:\n        {SET}\n    finally:\n        x()\nif __name__ == '__main__': main()",
    f"def made():\n    return {SET}\nspark = made()",
    f"async def main():\n    {SET}\nasyncio.run(main())",
    f"import sys\nif len(sys.argv) > 2:\n    sys.exit(1)\nwith {SET} as spark:\n    pass",
    f"{SET}\n{SET}",
]
UNCERTAIN = [
    f"if local:\n    {SET}",
    f"if local:\n    pass\nelse:\n    {SET}",
    f"for x in y:\n    {SET}",
    f"try:\n    {SET}\nexcept ValueError:\n    pass",
    f"def main():\n    {SET}",
    f"def main():\n    if x:\n        return 1\n    {SET}\nmain()",
    f"def main():\n    return 1\n    {SET}\nmain()",
    f"raise SystemExit\n{SET}",
    f"{SET} if x else 1",
    f"x and {SET}",
    f"f = lambda: {SET}",
    "builder.config('spark.jars', 'a.jar' if x else 'b.jar')",
    f"{SET}\nbuilder.config('spark.jars', 'b.jar')",
    f"{SET}\nif x:\n    builder.config('spark.jars', computed())",
    "def made(jar):\n    builder.config('spark.jars', jar)\njar = 'a.jar'\nmade('b.jar')",
]


@pytest.mark.parametrize("source", CERTAIN)
def test_what_certainly_runs_counts(source: str) -> None:
    assert jar_options(source.encode()) == {"spark.jars": "a.jar"}


@pytest.mark.parametrize("source", UNCERTAIN)
def test_what_may_not_run_or_is_said_in_two_ways_does_not(source: str) -> None:
    assert jar_options(source.encode()) == {}


def test_what_a_program_of_pyflink_adds() -> None:
    source = b"env.add_jars('a.jar', computed(), 'b.jar')\nif x:\n    env.add_jars('c.jar')\n"
    source += b"env.add_classpaths('file:///d.jar')\nconfig.set_string('pipeline.jars', 'e.jar')"
    assert jar_options(source) == {
        "pipeline.jars": "e.jar;a.jar;b.jar",
        "pipeline.classpaths": "file:///d.jar",
    }
