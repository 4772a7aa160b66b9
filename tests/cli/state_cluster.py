"""A cluster with one job, for the verbs about state."""

from __future__ import annotations

from tests.client import saved
from tests.client.fakes import checkpoint
from yarnflow.core.checkpoint.messages import CheckpointKind
from yarnflow.core.messages import Fence, JobDetails, JobSubmission, ProgramKind
from yarnflow.core.states import JobStatus
from yarnflow.testing.gateways.dispatcher import FakeDispatcher

S = JobStatus
JOB = saved.JOB
SAVEPOINT = checkpoint(7, kind=CheckpointKind.SAVEPOINT, path="hdfs://n/sp/savepoint-ababab-1")
PROGRAM = """
import yarnflow
from yarnflow.api.executor import current_executor
from yarnflow.graph.job_graph import JobGraph
from yarnflow.core.messages import ProgramKind
client = current_executor().submit(JobGraph("ab" * 16, "flights", ProgramKind.GRAPH))
client.get_job_execution_result()
"""


class Cluster(FakeDispatcher):
    """One job that runs; ``left`` is what it leaves when nobody answers any more."""

    def __init__(self) -> None:
        super().__init__([S.RUNNING])
        self.connects: list[str] = []
        self.left: JobDetails | None = None
        self.followed: Fence | None = None
        self.submissions.append(JobSubmission(JOB, "flights", ProgramKind.GRAPH, "{}", {}))
