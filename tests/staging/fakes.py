"""A clock and a YARN for the tests of staging."""

from __future__ import annotations

from collections.abc import Sequence

from yarnflow.core.yarn import (
    Application,
    ApplicationState,
    ClusterLimits,
    FinalStatus,
    Queue,
    YarnContainer,
)
from yarnflow.errors import ApplicationNotFound, YarnUnavailable
from yarnflow.staging.layout import APPLICATION_TAG, deployment_tag


class ManualClock:
    """Stands still until it is advanced."""

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> int:
        return self._now_ms

    def advance_ms(self, by_ms: int) -> None:
        self._now_ms += by_ms


def application(
    application_id: str, deployment_id: str, state: ApplicationState, finished_ms: int = 0, user: str = "ann"
) -> Application:
    return Application(
        application_id,
        "flights",
        user,
        "default",
        state,
        FinalStatus.UNDEFINED,
        tags=(APPLICATION_TAG, deployment_tag(deployment_id)),
        finished_ms=finished_ms,
    )


class FakeYarn:
    """Knows what it was told; ``hidden`` applications are found by their id only."""

    def __init__(self) -> None:
        self._applications: dict[str, Application] = {}
        self.hidden: set[str] = set()
        self.down = False

    def add(self, added: Application) -> None:
        self._applications[added.application_id] = added

    def clear(self) -> None:
        self._applications.clear()

    def application(self, application_id: str) -> Application:
        if application_id not in self._applications:
            raise ApplicationNotFound(f"no application {application_id}")
        return self._applications[application_id]

    def applications(
        self, *, tag: str = "", user: str = "", states: Sequence[ApplicationState] = ()
    ) -> Sequence[Application]:
        if self.down:
            raise YarnUnavailable("no ResourceManager answers")
        return [
            found
            for found in self._applications.values()
            if tag in found.tags and user in ("", found.user) and found.application_id not in self.hidden
        ]

    def queues(self) -> Sequence[Queue]:
        raise NotImplementedError

    def limits(self) -> ClusterLimits:
        raise NotImplementedError

    def containers(self, application_id: str) -> Sequence[YarnContainer]:
        raise NotImplementedError

    def set_priority(self, application_id: str, priority: int) -> None:
        raise NotImplementedError
