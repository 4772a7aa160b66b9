"""What a submission is, for people and tools."""

from __future__ import annotations

from yarnflow.config.configuration import Configuration
from yarnflow.core.ids import JobId, VertexId
from yarnflow.core.job.description import PlanInput
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
    assert (made.parallelism, made.batch, made.adaptive) == (3, False, False)
    assert made.job_parameters == {"limit": "3", "api-key": "******"}


def test_what_follows_from_its_options() -> None:
    options = {"pipeline.execution-mode": "real-time", "jobmanager.scheduler": "adaptive"}
    made = describe_job(SUBMISSION, GRAPH, Configuration.from_dict(options, "test"))
    assert made.nodes[0].inputs[0].exchange == "pipelined"
    assert (made.scheduler, made.adaptive) == ("adaptive", True)
