"""A job that reads Kafka and writes Kafka and a database, in containers: Spark's connector comes with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.conftest import wait_until
from integration.database_servers import PostgreSql
from integration.faults.counted_words import (
    TABLE,
    assert_each_once,
    await_lines,
    from_kafka,
    message,
    program,
    rows_of_database,
    rows_of_topic,
    to_database,
    to_kafka,
)
from integration.kafka import KafkaBroker
from integration.servers import running
from integration.yarn.jobs import TWO_TASK_MANAGERS, Yarn, application_id
from integration.yarn.test_faults import TASK_MANAGER
from tests.patience import PATIENCE

LINES = 3000


@pytest.mark.drill
def test_a_container_is_killed_between_topics_and_a_database(
    yarn: Yarn, kafka: KafkaBroker, tmp_path: Path
) -> None:
    topic = kafka.create_topic(f"yarn-{tmp_path.name}")
    counts = kafka.create_topic(f"{topic}-counts")
    kafka.send_texts(topic, [message(line) for line in range(LINES)])
    with running(PostgreSql) as server:
        server.run(TABLE)
        source = from_kafka(kafka, topic, per_batch=100, bounded=True)
        counting = tmp_path / "counts.py"
        counting.write_text(program(source, to_kafka(kafka, counts), to_database(server)))
        paced = "-Dexecution.micro-batch.interval=1 s"
        started = yarn.start("submit", "-t", "yarn-per-job", *TWO_TASK_MANAGERS, paced, counting)
        await_lines(started, lambda: rows_of_database(server), 200)
        application = application_id(started)
        before = set(yarn.containers(application))
        yarn.kill_one(TASK_MANAGER)
        wait_until(lambda: set(yarn.containers(application)) - before, "another container")
        assert len(rows_of_database(server)) < LINES, "the job had ended before the fault"
        assert started.wait(PATIENCE.job_s) == 0, started.stderr[-3000:]
        assert_each_once(rows_of_database(server), LINES)
    assert_each_once(rows_of_topic(kafka, counts), LINES)
    assert yarn.ended(application)["finalStatus"] == "SUCCEEDED"
    cached = [name for _, _, names in yarn.hdfs.walk(f"{yarn.home}/.yarnflow/cache") for name in names]
    assert any("spark-sql-kafka" in name for name in cached), cached
