"""A YARN ResourceManager that knows the applications a test tells it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from yarnflow.core.yarn import (
    Application,
    ApplicationState,
    ClusterLimits,
    FinalStatus,
    Queue,
    YarnContainer,
)
from yarnflow.errors import ApplicationNotFound, YarnflowError


class FakeYarnCluster:
    """:class:`yarnflow.core.yarn.YarnCluster` in memory; an application changes when the test says so.

    Attributes
    ----------
    known : dict
        Applications by id, in order of submission.
    hidden : set of str
        Ids that :meth:`applications` leaves out; :meth:`application` still knows them.
    upcoming : list
        Each look at one application takes the next of these: a report is what YARN says from then
        on, an error is raised once.
    on_look : callable
        Called with the number of the look, at each look at one application.
    looks : int
        Looks at single applications so far.
    error : YarnflowError, optional
        Raised by everything YARN is asked while it is set.
    priority_error : YarnflowError, optional
        Raised by :meth:`set_priority` while it is set.
    all_queues, cluster_limits, containers_of
        What the cluster has; containers are the same for every application.
    killed, priorities
        What was asked for.
    """

    def __init__(self, *applications: Application) -> None:
        self.known = {application.application_id: application for application in applications}
        self.hidden: set[str] = set()
        self.upcoming: list[Application | YarnflowError] = []
        self.on_look: Callable[[int], None] = lambda count: None
        self.looks = 0
        self.error: YarnflowError | None = None
        self.priority_error: YarnflowError | None = None
        self.all_queues: Sequence[Queue] = [
            Queue("root", "root", leaf=False),
            Queue("default", "root.default"),
        ]
        self.cluster_limits = ClusterLimits(8192, 8, 16384, 16384, 16, 16, 2)
        self.containers_of: Sequence[YarnContainer] = []
        self.killed: list[str] = []
        self.priorities: dict[str, int] = {}

    def add(self, application: Application) -> Application:
        """Let YARN know an application, or another report of it."""
        self.known[application.application_id] = application
        return application

    def change(self, application_id: str, **values: Any) -> None:
        """Change some of what YARN says about an application."""
        self.known[application_id] = replace(self.known[application_id], **values)

    def application(self, application_id: str) -> Application:
        """Take the next of :attr:`upcoming`, if there is one, and report."""
        self.looks += 1
        self.on_look(self.looks)
        self._answer()
        if self.upcoming:
            change = self.upcoming.pop(0)
            if isinstance(change, YarnflowError):
                raise change
            self.add(change)
        if application_id not in self.known:
            raise ApplicationNotFound(f"no application {application_id}")
        return self.known[application_id]

    def applications(
        self, *, tag: str = "", user: str = "", states: Sequence[ApplicationState] = ()
    ) -> Sequence[Application]:
        """Those that have all that is asked for and are not hidden, in order of submission."""
        self._answer()
        return [
            found
            for found in self.known.values()
            if tag in ("", *found.tags)
            and user in ("", found.user)
            and (not states or found.state in states)
            and found.application_id not in self.hidden
        ]

    def queues(self) -> Sequence[Queue]:
        """Answer :attr:`all_queues`."""
        self._answer()
        return self.all_queues

    def limits(self) -> ClusterLimits:
        """Answer :attr:`cluster_limits`."""
        self._answer()
        return self.cluster_limits

    def containers(self, application_id: str) -> Sequence[YarnContainer]:
        """Answer :attr:`containers_of`."""
        self._answer()
        return self.containers_of

    def set_priority(self, application_id: str, priority: int) -> None:
        """Keep the last one of each application in :attr:`priorities`."""
        self._answer()
        if self.priority_error is not None:
            raise self.priority_error
        self.priorities[application_id] = priority

    def kill(self, application_id: str) -> None:
        """Let the application be KILLED, unless it has ended."""
        self._answer()
        if application_id not in self.known:
            raise ApplicationNotFound(f"no application {application_id}")
        self.killed.append(application_id)
        if not self.known[application_id].state.ended:
            self.change(
                application_id, state=ApplicationState.KILLED, final_status=FinalStatus.KILLED
            )

    def _answer(self) -> None:
        if self.error is not None:
            raise self.error
