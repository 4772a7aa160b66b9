"""Sessions of several jobs on one SparkContext."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from yarnflow.core.messages import QueryProgress
from yarnflow.spark.launch.session import DriverSession
from yarnflow.spark.progress.collector import ProgressCollector
from yarnflow.spark.progress.listener import listen

pytestmark = pytest.mark.gate

_OPTION = "spark.sql.shuffle.partitions"


def _run(spark: SparkSession, name: str) -> None:
    """A streaming query that ends by itself."""
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
    query = rows.writeStream.queryName(name).format("noop").trigger(availableNow=True).start()
    assert query.awaitTermination(60)


def test_the_session_of_the_next_job_knows_nothing_of_the_one_before(spark: SparkSession) -> None:
    first = DriverSession(spark.sparkContext, SimpleNamespace(shutdown=lambda: None))
    ours, heard = first.spark, ProgressCollector()
    no_longer = listen(ours, heard)
    default = ours.conf.get(_OPTION)
    ours.conf.set(_OPTION, "77")
    ours.range(3).createTempView("left")
    ours.udf.register("shout", lambda text: text.upper())
    ours.range(5).cache().count()
    endless = ours.readStream.format("rate").load().writeStream.format("noop").queryName("endless").start()
    _run(ours, "one")
    first.drain_events(10_000)
    assert {query.query for query in heard.snapshot()} == {"endless", "one"}
    no_longer()
    first.clear()
    assert not endless.isActive

    second = first.renewed()
    theirs = second.spark
    assert theirs.conf.get(_OPTION) == default
    assert not theirs.catalog.tableExists("left")
    assert not theirs.catalog.functionExists("shout")
    assert not theirs._jsparkSession.sharedState().cacheManager().numCachedEntries()
    # what asks for the session of its thread gets the new one
    assert SparkSession.active() is theirs
    theirs.range(1).select(F.udf(lambda number: str(number))("id")).schema
    before: tuple[QueryProgress, ...] = heard.snapshot()
    now_heard = ProgressCollector()
    listen(theirs, now_heard)
    _run(theirs, "two")
    second.drain_events(10_000)
    assert [query.query for query in now_heard.snapshot()] == ["two"]
    assert heard.snapshot() == before
    assert second.attachment().app_id == first.attachment().app_id
