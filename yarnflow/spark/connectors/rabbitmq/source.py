"""The receiver of a queue with the job's files behind it."""

from __future__ import annotations

from collections.abc import Callable

from yarnflow.graph.connectors.rabbitmq import RabbitMqSource
from yarnflow.spark.checkpoints.job import Fence
from yarnflow.spark.connectors.rabbitmq.parts import PartFiles, SmallFiles
from yarnflow.spark.connectors.rabbitmq.receiver import Inbox, Receiver
from yarnflow.spark.connectors.rabbitmq.sink import check_client


def queue_receiver(
    source: RabbitMqSource, files: SmallFiles, directory: str, committed: Callable[[], int], fence: Fence
) -> Receiver:
    """A receiver that is not open yet.

    Parameters
    ----------
    directory : str
        Of the source's parts; part of the job's checkpoint directory.
    committed : callable
        Number of the last part of which all queries have committed the batch.
    fence : callable
        Raises when this driver may not write.

    Raises
    ------
    EnvironmentUnusable
        The client is not installed.
    """
    check_client()

    def subscribe() -> Inbox:
        from yarnflow.spark.connectors.rabbitmq.broker import Subscription

        return Subscription(source.server, source.queue, source.use_correlation_id)

    return Receiver(source, PartFiles(files, directory), subscribe, committed, fence)
