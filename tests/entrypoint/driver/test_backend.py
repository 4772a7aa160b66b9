"""What a job's options mean for its session."""

from __future__ import annotations

from pathlib import Path

import pytest

from yarnflow.config.configuration import Configuration
from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.messages import DriverAssignment, Fence
from yarnflow.entrypoint.driver.backend import session_settings
from yarnflow.spark.launch.session import spark_options

ASSIGNMENT = DriverAssignment(
    JobId("a" * 32), DriverId("d1"), "host:1", Fence("l", 1), "/checkpoints", "/work"
)


@pytest.mark.parametrize(
    ("options", "tries"),
    [
        ({}, "4"),
        ({"pipeline.execution-mode": "micro-batch"}, "4"),
        # what a failed task has written is in Kafka
        ({"pipeline.execution-mode": "real-time"}, "1"),
        ({"pipeline.execution-mode": "real-time", "spark.task.maxFailures": "3"}, "3"),
    ],
)
def test_tries_of_a_task(options: dict[str, str], tries: str) -> None:
    configuration = Configuration.from_dict(options, "a test")
    settings = session_settings(configuration, ASSIGNMENT, "127.0.0.1", "s", Path("/tmp"))
    assert spark_options(settings)["spark.task.maxFailures"] == tries
