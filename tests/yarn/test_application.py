from __future__ import annotations

import pytest

from yarnflow.core.yarn import FinalStatus
from yarnflow.errors import YarnError, YarnUnavailable
from yarnflow.testing.skein_clients import FakeSkeinApplication
from yarnflow.yarn.application import YarnApplication
from yarnflow.yarn.library import skein
from yarnflow.yarn.workers import YarnWorkers


@pytest.fixture
def client() -> FakeSkeinApplication:
    return FakeSkeinApplication()


@pytest.fixture
def application(client: FakeSkeinApplication) -> YarnApplication:
    return YarnApplication(client, "container_1", "taskmanager_3", YarnWorkers(client))


@pytest.mark.parametrize("error", [ValueError("no such page"), KeyError("gone")])
def test_what_the_application_master_refuses(
    application: YarnApplication, client: FakeSkeinApplication, error: Exception
) -> None:
    client.down = error
    with pytest.raises(YarnError, match="application_1_0001 refused: "):
        application.finish(FinalStatus.SUCCEEDED)


@pytest.mark.parametrize(("asked", "told"), [(0.5, 0.5), (-1, 0.0), (7, 1.0)])
def test_progress_is_within_bounds(
    application: YarnApplication, client: FakeSkeinApplication, asked: float, told: float
) -> None:
    application.set_progress(asked)
    assert client.calls == [("progress", told)]


def test_values_are_published_for_those_who_wait(application: YarnApplication) -> None:
    application.publish("key", b"value")
    assert application.await_value("key") == b"value"


def test_a_web_page_gets_an_address_behind_the_proxy(
    application: YarnApplication, client: FakeSkeinApplication
) -> None:
    assert application.add_web_page("http://node1:8081") == "http://proxy/pages/jobmanager"
    assert client.calls == [("page", "jobmanager", "http://node1:8081", "JobManager")]
    # a JobManager that was started again serves elsewhere
    application.add_web_page("http://node1:8082")
    assert client.calls[1:] == [
        ("no page", "jobmanager"),
        ("page", "jobmanager", "http://node1:8082", "JobManager"),
    ]


@pytest.mark.parametrize("status", list(FinalStatus))
def test_the_end_is_told_once(
    application: YarnApplication, client: FakeSkeinApplication, status: FinalStatus
) -> None:
    application.finish(status, "ValueError: bad row\nsecond line")
    application.finish(FinalStatus.SUCCEEDED)
    assert client.calls == [("shutdown", status.value, "ValueError: bad row\nsecond line")]


def test_diagnostics_are_never_empty_nor_endless(client: FakeSkeinApplication) -> None:
    YarnApplication(client, "", "", YarnWorkers(client)).finish(FinalStatus.KILLED)
    YarnApplication(client, "", "", YarnWorkers(client)).finish(FinalStatus.FAILED, "x" * 9000)
    assert client.calls[0] == ("shutdown", "KILLED", "The job was canceled.")
    assert len(client.calls[1][2]) == 4000


@pytest.mark.parametrize(
    ("error", "kind"), [("ConnectionError", YarnUnavailable), ("ApplicationError", YarnError)]
)
def test_an_application_master_that_is_gone(
    application: YarnApplication, client: FakeSkeinApplication, error: str, kind: type[Exception]
) -> None:
    client.down = getattr(skein().exceptions, error)("x")
    with pytest.raises(kind, match="application_1_0001") as raised:
        application.finish(FinalStatus.SUCCEEDED)
    assert type(raised.value) is kind


def test_outside_of_a_container() -> None:
    with pytest.raises(YarnError, match="not in a container"):
        YarnApplication.from_current()
