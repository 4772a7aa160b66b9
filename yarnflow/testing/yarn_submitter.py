"""A way to submit applications to a :class:`~yarnflow.testing.yarn_cluster.FakeYarnCluster`."""

from __future__ import annotations

import threading
from collections.abc import Callable

from yarnflow.core.yarn import Application, ApplicationSpec, ApplicationState, FinalStatus
from yarnflow.errors import YarnflowError
from yarnflow.testing.yarn_cluster import FakeYarnCluster

#: longer than any test holds a submit back
_HELD_BACK_S = 20.0


class FakeYarnSubmitter:
    """:class:`yarnflow.core.yarn.YarnSubmitter`; YARN runs whatever is submitted, at once.

    Parameters
    ----------
    cluster : FakeYarnCluster
        Where the applications are known from then on.

    Attributes
    ----------
    specs : list of ApplicationSpec
        What was submitted.
    calls : list of str
        Names of ``start``, ``submit``, ``abort`` and ``close`` as they came.
    state : ApplicationState
        That applications have once they are submitted.
    undone : callable
        What the last submit was given, for a test that lets it fail half-way.
    error : YarnflowError, optional
        Raised by :meth:`submit` while it is set; YARN has no application then.
    on_submit : callable
        Called in the thread that submits, before YARN has the application.
    on_accepted : callable
        Called with id and specification as soon as YARN has the application: what its master does.
    under_way, aborted, closed : threading.Event
        Set when a submit has begun, by :meth:`abort` and by :meth:`close`.
    may_end : threading.Event
        While it is cleared, submits are held back.
    """

    def __init__(self, cluster: FakeYarnCluster) -> None:
        self._cluster = cluster
        self.specs: list[ApplicationSpec] = []
        self.calls: list[str] = []
        self.error: YarnflowError | None = None
        self.on_submit: Callable[[], None] = lambda: None
        self.on_accepted: Callable[[str, ApplicationSpec], None] = lambda application_id, spec: None
        self.state = ApplicationState.RUNNING
        self.undone: Callable[[str], object] = lambda application_id: None
        self.under_way = threading.Event()
        self.aborted = threading.Event()
        self.closed = threading.Event()
        self.may_end = threading.Event()
        self.may_end.set()

    def start(self) -> None:
        """Begin to connect, as the real one starts its JVM."""
        self.calls.append("start")

    def submit(self, spec: ApplicationSpec, undone: Callable[[str], object] = lambda _: None) -> str:
        """Let YARN have the application; ids are ``application_1_0001`` and so on."""
        self.calls.append("submit")
        self.undone = undone
        self.on_submit()
        self.under_way.set()
        assert self.may_end.wait(_HELD_BACK_S)
        if self.error is not None:
            raise self.error
        self.specs.append(spec)
        application_id = f"application_1_{len(self.specs):04d}"
        self._cluster.add(
            Application(
                application_id,
                spec.name,
                "ann",
                spec.queue,
                self.state,
                FinalStatus.UNDEFINED,
                spec.tags,
                started_ms=len(self._cluster.known),
            )
        )
        self.on_accepted(application_id, spec)
        return application_id

    def abort(self) -> None:
        """Only say so: the test lets the submit under way fail."""
        self.calls.append("abort")
        self.aborted.set()

    def kill(self, application_id: str) -> None:
        """Have the cluster kill it."""
        self._cluster.kill(application_id)

    def close(self) -> None:
        """Only say so."""
        self.calls.append("close")
        self.closed.set()
