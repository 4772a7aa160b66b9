"""Applications for the tests of staging."""

from __future__ import annotations

from yarnflow.core.yarn import (
    Application,
    ApplicationState,
    FinalStatus,
)
from yarnflow.staging.layout import APPLICATION_TAG, deployment_tag


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
