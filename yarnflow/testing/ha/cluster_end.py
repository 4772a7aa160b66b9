"""That a cluster has ended, kept in memory."""

from __future__ import annotations

from collections.abc import Callable

from yarnflow.core.cluster_result import ClusterResult
from yarnflow.errors import YarnflowError


class FakeClusterEnd:
    """:class:`~yarnflow.core.ha.ports.ClusterEnd` of one cluster, shared by its masters.

    Attributes
    ----------
    result : ClusterResult, optional
        What was declared and not removed.
    declared : list of ClusterResult
        All that were, in order.
    attempts : int
        Calls of :meth:`declare`, also those that failed.
    failures : list of YarnflowError
        Raised one after another by :meth:`declare`, before it succeeds.
    error : YarnflowError, optional
        Raised by :meth:`declare` while it is set.
    removed : bool
        :meth:`remove_cluster` was called.
    """

    def __init__(self) -> None:
        self.result: ClusterResult | None = None
        self.declared: list[ClusterResult] = []
        self.attempts = 0
        self.failures: list[YarnflowError] = []
        self.error: YarnflowError | None = None
        self.removed = False
        self._listeners: list[Callable[[ClusterResult], None]] = []

    def declare(self, result: ClusterResult) -> None:
        """Keep the result and call all listeners."""
        self.attempts += 1
        if self.failures:
            raise self.failures.pop(0)
        if self.error is not None:
            raise self.error
        self.declared.append(result)
        self.result = result
        for listener in self._listeners:
            listener(result)

    def on_ended(self, listener: Callable[[ClusterResult], None]) -> None:
        """Call ``listener`` with a result that is there, and with each :meth:`declare`."""
        self._listeners.append(listener)
        if self.result is not None:
            listener(self.result)

    def remove_cluster(self) -> None:
        """Drop the result and set :attr:`removed`."""
        self.removed = True
        self.result = None
