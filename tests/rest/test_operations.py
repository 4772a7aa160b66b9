"""What is begun by REST, and what becomes of it."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.rest.asgi import Answer, ask
from tests.rest.bench import NEW, OLD, Bench
from yarnflow.core.checkpoint.messages import AfterSavepoint, CheckpointKind
from yarnflow.errors import (
    AuthenticationFailed,
    CheckpointError,
    HaError,
    LeadershipLost,
    RpcProtocolError,
    RpcTimeout,
    StorageUnavailable,
)
from yarnflow.rest.framework import operations
from yarnflow.rest.framework.errors import RestError
from yarnflow.rest.framework.operations import Operations, Outcome
from yarnflow.testing.runtime import ManualClock

TRIGGER = "1" * 32


@pytest.fixture
def bench() -> Bench:
    return Bench()


def begin(bench: Bench, path: str, body: dict[str, Any], status: int = 202) -> str:
    answer = ask(bench.app, "POST", path, body)
    assert answer.status == status, answer.body
    return str(answer.json["request-id"])


def test_a_savepoint(bench: Bench) -> None:
    """1. it is begun  2. it goes on  3. it is there, again and again  4. it is forgotten."""
    trigger = begin(
        bench, f"/jobs/{NEW}/savepoints",
        {"target-directory": "hdfs://n/sp", "cancel-job": False, "formatType": "CANONICAL"},
    )  # fmt: skip
    request = bench.view.requests[trigger]
    assert (request.kind, request.target_dir) == (CheckpointKind.SAVEPOINT, "hdfs://n/sp")
    assert request.after is AfterSavepoint.CONTINUE
    path = f"/jobs/{NEW}/savepoints/{trigger}"
    assert bench.get(path) == {"status": {"id": "IN_PROGRESS"}, "operation": None}
    bench.view.complete(trigger, "hdfs://n/sp/savepoint-1")
    done = {"status": {"id": "COMPLETED"}, "operation": {"location": "hdfs://n/sp/savepoint-1"}}
    assert bench.get(path) == done
    bench.clock.advance(299_000)
    assert bench.get(path) == done
    bench.clock.advance(1_000)
    assert f"no savepoint operation with triggerId={trigger}" in ask(bench.app, "GET", path).error
    assert ask(bench.app, "GET", path).status == 404


def test_a_checkpoint(bench: Bench) -> None:
    trigger = begin(bench, f"/jobs/{NEW}/checkpoints", {"checkpointType": "FULL"})
    assert bench.view.requests[trigger].kind is CheckpointKind.CHECKPOINT
    bench.view.complete(trigger)
    assert bench.get(f"/jobs/{NEW}/checkpoints/{trigger}")["operation"] == {"checkpointId": 1}
    assert ask(bench.app, "GET", f"/jobs/{NEW}/savepoints/{trigger}").status == 404, "it is no savepoint"
    assert ask(bench.app, "GET", f"/jobs/{OLD}/checkpoints/{trigger}").status == 404, "of another job"


@pytest.mark.parametrize(
    "path, body, after",
    [
        ("stop", {"drain": True}, AfterSavepoint.DRAIN),
        ("stop", {"targetDirectory": "/sp"}, AfterSavepoint.STOP),
        ("stop", {}, AfterSavepoint.STOP),
        ("savepoints", {"cancel-job": True}, AfterSavepoint.STOP),
    ],
)
def test_what_follows_a_savepoint(
    bench: Bench, path: str, body: dict[str, Any], after: AfterSavepoint
) -> None:
    trigger = begin(bench, f"/jobs/{NEW}/{path}", body)
    assert bench.view.requests[trigger].after is after


def test_the_same_trigger_is_one_operation(bench: Bench) -> None:
    for _ in range(2):
        assert begin(bench, f"/jobs/{NEW}/savepoints", {"triggerId": TRIGGER}) == TRIGGER
    assert len(bench.view.requests) == 1


def test_a_failure_is_the_operations_not_the_requests(bench: Bench) -> None:
    trigger = begin(bench, f"/jobs/{OLD}/savepoints", {"target-directory": "/sp"})
    cause = bench.get(f"/jobs/{OLD}/savepoints/{trigger}")["operation"]["failure-cause"]
    assert (cause["class"], "has ended" in cause["stack-trace"]) == ("CHECKPOINT", True)
    trigger = begin(bench, f"/jobs/{NEW}/savepoints", {})
    bench.view.complete(trigger, failure="no space")
    cause = bench.get(f"/jobs/{NEW}/savepoints/{trigger}")["operation"]["failure-cause"]
    assert (cause["class"], cause["stack-trace"]) == ("CHECKPOINT_FAILED", "no space")
    assert b"no space" in base64.b64decode(cause["serialized-throwable"])


@pytest.mark.parametrize(
    "body",
    [b"{", b"[]", b"3", b'"x"', b'{"target-directory": 3}', b'{"formatType": "OTHER"}', b"\xff",
     b"[" * 60_000,
     b'{"triggerId": "zz"}'],
)  # fmt: skip
def test_a_body_that_is_none(bench: Bench, body: bytes) -> None:
    answer = ask(bench.app, "POST", f"/jobs/{NEW}/savepoints", body)
    assert answer.status == 400 and answer.error.startswith("Bad request received.")
    assert not bench.view.requests


def test_an_empty_body_is_an_empty_object_and_unknown_fields_are_ignored(bench: Bench) -> None:
    assert ask(bench.app, "POST", f"/jobs/{NEW}/savepoints").status == 202
    assert ask(bench.app, "POST", f"/jobs/{NEW}/savepoints", {"targetDir": 3}).status == 202


def test_a_body_that_is_too_long(bench: Bench) -> None:
    assert ask(bench.app, "POST", f"/jobs/{NEW}/stop", b" " * 65_537).status == 413
    answer = ask(bench.app, "POST", f"/jobs/{NEW}/stop", b" " * 65_537, {"content-length": "2"})
    assert answer.status == 413, "what is declared is not believed"


def test_a_job_that_there_is_not(bench: Bench) -> None:
    for path in ("savepoints", "stop", "checkpoints"):
        assert ask(bench.app, "POST", f"/jobs/{'c' * 32}/{path}").status == 404


def _outcome(bench: Bench, trigger: str) -> Any:
    for _ in range(3_000):
        made = bench.get(f"/savepoint-disposal/{trigger}")
        if made["status"]["id"] == "COMPLETED":
            return made["operation"]
    raise AssertionError("it did not end")


def test_a_savepoint_is_disposed_of(bench: Bench) -> None:
    bench.view.savepoints = {"hdfs://n/sp"}
    trigger = begin(bench, "/savepoint-disposal", {"savepoint-path": "hdfs://n/sp"}, 200)
    assert _outcome(bench, trigger) == {}
    assert not bench.view.savepoints
    trigger = begin(bench, "/savepoint-disposal", {"savepoint-path": "hdfs://n/sp"}, 200)
    assert _outcome(bench, trigger)["failure-cause"]["class"] == "SAVEPOINT_NOT_FOUND"
    assert ask(bench.app, "POST", "/savepoint-disposal", {}).status == 400


@pytest.mark.parametrize(
    "error, code",
    [(StorageUnavailable("no HDFS"), "STORAGE_UNAVAILABLE"), (PermissionError(13, "x"), "INTERNAL")],
    ids=["may-succeed-later", "unforeseen"],
)
def test_a_disposal_that_fails_has_ended(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, error: Exception, code: str
) -> None:
    def dispose(_path: str) -> None:
        raise error

    monkeypatch.setattr(bench.view, "dispose_savepoint", dispose)
    trigger = begin(bench, "/savepoint-disposal", {"savepoint-path": "hdfs://n/sp"}, 200)
    assert _outcome(bench, trigger)["failure-cause"]["class"] == code


def test_an_operation_that_breaks_keeps_no_other_from_beginning() -> None:
    clock = ManualClock(0)
    store = Operations(1_000, clock.monotonic_ms)

    def broken() -> Outcome | None:
        raise RuntimeError("x")

    store.begin("s", "a", lambda _: broken)
    clock.advance(1_000)
    assert store.begin("s", "b", lambda _: lambda: None) == "b"


def cancel(bench: Bench, job_id: str = NEW, query: str = "") -> Answer:
    return ask(bench.app, "PATCH", f"/jobs/{job_id}{query}")


def test_cancel(bench: Bench) -> None:
    answer = cancel(bench, query="?mode=cancel")
    assert (answer.status, answer.json, bench.view.canceled) == (202, {}, [NEW])
    ended = cancel(bench, OLD)
    assert ended.status == 409 and "another terminal state (FAILED)" in ended.error
    assert cancel(bench, query="?mode=stop").status == 308
    assert cancel(bench, query="?mode=nope").status == 400
    assert ask(bench.app, "GET", f"/jobs/{NEW}/yarn-cancel").status == 202
    assert bench.view.canceled == [NEW, NEW]


def test_the_head_of_what_changes_something_changes_nothing(bench: Bench) -> None:
    answer = ask(bench.app, "HEAD", f"/jobs/{NEW}/yarn-cancel")
    assert (answer.status, answer.headers["allow"]) == (405, "GET, PUT")
    assert bench.view.canceled == []


@pytest.mark.parametrize(
    "error, status",
    [
        (LeadershipLost("x"), 503),
        (HaError("x"), 503),
        (RpcTimeout("x"), 504),
        (CheckpointError("x"), 409),
        # between two processes of the cluster
        (AuthenticationFailed("x"), 502),
        (RpcProtocolError("x"), 502),
    ],
)
def test_what_goes_wrong_is_no_fault_of_the_server(bench: Bench, error: Any, status: int) -> None:
    bench.view.error = error
    assert cancel(bench).status == status
    assert ask(bench.app, "DELETE", "/cluster").status == status


def test_the_cluster_is_ended(bench: Bench) -> None:
    assert ask(bench.app, "DELETE", "/cluster").status == 200
    assert bench.view.ended


# --- the store ---


def test_operations_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "MAX_OPERATIONS", 2)
    clock = ManualClock(0)
    store = Operations(1_000, clock.monotonic_ms)
    for number in range(2):
        store.begin("s", f"{number}", lambda _: lambda: None)
    with pytest.raises(RestError) as refused:
        store.begin("s", "2", lambda _: lambda: None)
    assert refused.value.status == 503


def test_nothing_begins_when_the_server_ends() -> None:
    stored = Operations(60_000, ManualClock().monotonic_ms)
    stored.close()
    with pytest.raises(RestError) as refused:
        stored.in_background(lambda: None)
    assert refused.value.status == 503


def test_those_nobody_asks_for_are_not_kept_for_ever() -> None:
    clock = ManualClock(0)
    store = Operations(1_000, clock.monotonic_ms)
    store.begin("s", "a", lambda _: lambda: Outcome(1))
    clock.advance(1_000)
    store.begin("s", "b", lambda _: lambda: None)
    clock.advance(1_000)
    with pytest.raises(KeyError):
        store.outcome("s", "a")


def test_what_may_work_later_is_no_outcome() -> None:
    clock = ManualClock(0)
    store = Operations(1_000, clock.monotonic_ms)
    answers: list[Outcome | Exception] = [RpcTimeout("x"), Outcome("done")]

    def poll() -> Outcome | None:
        said = answers.pop(0)
        if isinstance(said, Exception):
            raise said
        return said

    store.begin("s", "a", lambda _: poll)
    assert store.outcome("s", "a") is None
    assert store.outcome("s", "a") == Outcome("done")
