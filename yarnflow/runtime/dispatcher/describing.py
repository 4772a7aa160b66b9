"""What a submission is, for people and tools: its plan and the options that matter to them."""

from __future__ import annotations

from typing import Final

from yarnflow.config.configuration import Configuration
from yarnflow.config.options import history as history_options
from yarnflow.config.options import job as job_options
from yarnflow.config.secrets import masked, masked_urls
from yarnflow.core.job.description import EventLog, JobDescription, PlanInput, PlanNode
from yarnflow.core.messages import JobSubmission
from yarnflow.core.resources.scheduling import SchedulerKind
from yarnflow.graph.job_graph import JobGraph, JobVertex
from yarnflow.graph.plan import describe

_SPARK_SERVER: Final = "spark.yarn.historyServer.address"


def describe_job(submission: JobSubmission, graph: JobGraph, configuration: Configuration) -> JobDescription:
    """One job.

    Parameters
    ----------
    configuration : Configuration
        The job's own options over the cluster's.
    """
    get = configuration.get
    scheduler = get(job_options.SCHEDULER)
    # records of a micro-batch wait in files until all senders are done
    exchange = "pipelined" if get(job_options.EXECUTION_MODE) == "real-time" else "blocking"
    return JobDescription(
        job_id=submission.job_id,
        name=submission.name,
        batch=graph.batch,
        nodes=tuple(_node(graph, vertex, exchange) for vertex in reversed(graph.vertices)),
        parallelism=max((vertex.parallelism for vertex in graph.vertices), default=1),
        max_parallelism=get(job_options.MAX_PARALLELISM),
        restart_strategy=get(job_options.RESTART_STRATEGY),
        scheduler=scheduler,
        state_backend=get(job_options.STATE_BACKEND),
        adaptive=SchedulerKind(scheduler) is not SchedulerKind.DEFAULT,
        job_parameters=masked(dict(graph.job_parameters)),
        event_log=event_log(configuration),
        savepoint_dir=get(job_options.SAVEPOINT_DIR),
    )


def event_log(configuration: Configuration) -> EventLog | None:
    """Where the job's drivers write Spark's event log; None = they write none."""
    options = configuration.spark_options()
    if options.get("spark.eventLog.enabled", "").lower() != "true":
        return None
    server = configuration.get(history_options.SPARK_URL) or options.get(_SPARK_SERVER, "")
    if server and "://" not in server:
        server = f"http://{server}"
    return EventLog(
        # Spark's own default
        masked_urls(options.get("spark.eventLog.dir", "file:///tmp/spark-events")),
        options.get("spark.eventLog.rolling.enabled", "true").lower() == "true",
        # what else a reader's browser might be sent to is no address of a page
        masked_urls(server) if server.startswith(("http://", "https://")) else "",
    )


def _node(graph: JobGraph, vertex: JobVertex, exchange: str) -> PlanNode:
    nodes = {node.node_id: node for node in graph.nodes}
    operators = tuple(
        f"{nodes[number].name}: {nodes[number].description or describe(nodes[number].operator)}"
        for number in vertex.chain
        if number in nodes
    )
    return PlanNode(
        vertex_id=vertex.vertex_id,
        parallelism=vertex.parallelism,
        # a script has a vertex and no operators that anybody knows
        operators=operators or (vertex.name,),
        inputs=tuple(
            PlanInput(edge.source, edge.ship_strategy.value, exchange)
            for edge in graph.edges
            if edge.target == vertex.vertex_id
        ),
    )
