"""What a submission is, for people and tools."""

from __future__ import annotations

import pytest

from yarnflow.config.configuration import Configuration
from yarnflow.core.ids import JobId, VertexId
from yarnflow.core.job.description import EventLog, PlanInput
from yarnflow.core.messages import JobSubmission, ProgramKind
from yarnflow.graph.job_graph import JobEdge, JobGraph, JobVertex, ShipStrategy
from yarnflow.runtime.dispatcher.describing import describe_job

JOB = JobId("a" * 32)
GRAPH = JobGraph(
    JOB,
    "flights",
    ProgramKind.GRAPH,
    vertices=(
        JobVertex(VertexId("v1"), "source", (1,), 1, 128, "default"),
        JobVertex(VertexId("v2"), "window", (2,), 3, 128, "default"),
    ),
    edges=(JobEdge(VertexId("v1"), VertexId("v2"), ShipStrategy.HASH),),
    job_parameters={"limit": "3", "api-key": "secret"},
)
SUBMISSION = JobSubmission(JOB, "flights", ProgramKind.GRAPH, "", {})


def test_a_job_is_described() -> None:
    made = describe_job(SUBMISSION, GRAPH, Configuration.from_dict({}, "test"))
    assert [node.vertex_id for node in made.nodes] == ["v2", "v1"], "sources last, as Flink has it"
    assert made.nodes[0].inputs == (PlanInput(VertexId("v1"), "HASH", "blocking"),)
    assert (made.parallelism, made.max_parallelism, made.batch, made.adaptive) == (3, -1, False, False)
    assert made.job_parameters == {"limit": "3", "api-key": "******"}


def test_what_follows_from_its_options() -> None:
    options = {
        "pipeline.execution-mode": "real-time",
        "pipeline.max-parallelism": "16",
        "jobmanager.scheduler": "adaptive",
    }
    made = describe_job(SUBMISSION, GRAPH, Configuration.from_dict(options, "test"))
    assert made.nodes[0].inputs[0].exchange == "pipelined"
    assert (made.scheduler, made.adaptive, made.max_parallelism) == ("adaptive", True, 16)


@pytest.mark.parametrize(
    "options, found",
    [
        ({}, None),
        ({"spark.eventLog.enabled": "false", "spark.eventLog.dir": "hdfs:///x"}, None),
        ({"spark.eventLog.enabled": "true"}, EventLog("file:///tmp/spark-events")),
        (
            {
                "spark.eventLog.enabled": "TRUE",
                "spark.eventLog.dir": "hdfs:///x",
                "spark.eventLog.rolling.enabled": "false",
                "spark.yarn.historyServer.address": "host:18080",
            },
            EventLog("hdfs:///x", False, "http://host:18080"),
        ),
        (
            {
                "spark.eventLog.enabled": "true",
                "spark.eventLog.dir": "hdfs:///x",
                "spark.yarn.historyServer.address": "host:18080",
                "historyserver.spark.url": "https://spark/",
            },
            EventLog("hdfs:///x", True, "https://spark/"),
        ),
        (
            {"spark.eventLog.enabled": "true", "historyserver.spark.url": "javascript://x"},
            EventLog("file:///tmp/spark-events"),
        ),
    ],
)
def test_where_sparks_event_log_is(options: dict[str, str], found: EventLog | None) -> None:
    assert describe_job(SUBMISSION, GRAPH, Configuration.from_dict(options, "test")).event_log == found


def test_places_of_an_event_log() -> None:
    rolling = EventLog("hdfs:///x/", True, "http://host:18080/")
    assert rolling.path("app-1") == "hdfs:///x/eventlog_v2_app-1"
    assert rolling.url("app-1") == "http://host:18080/history/app-1/"
    assert (EventLog("hdfs:///x", False).path("app-1"), EventLog("x").url("app-1")) == ("hdfs:///x/app-1", "")
