"""What becomes of calls and listeners while the connection to ZooKeeper comes and goes."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest
from kazoo.exceptions import NoAuthError

from tests.ha.conftest import OpenSession, kazoo_of
from tests.ha.fake_kazoo import Ensemble, Result
from yarnflow.errors import ForeignNode, ZooKeeperUnavailable
from yarnflow.ha.connection import Connection


def test_call_waits_for_the_connection(session: OpenSession) -> None:
    zookeeper = session(Ensemble())
    kazoo = kazoo_of(zookeeper)
    kazoo.suspend()
    answered: list[str] = []
    caller = threading.Thread(target=lambda: answered.append(zookeeper.ensure("jobs")))
    caller.start()
    assert answered == []
    kazoo.resume()
    caller.join()
    assert answered == ["/yarnflow/cluster/jobs"]


def test_call_waits_no_longer_than_a_session(session: OpenSession) -> None:
    zookeeper = session(Ensemble(), session_timeout_ms=20)
    kazoo_of(zookeeper).suspend()
    with pytest.raises(ZooKeeperUnavailable, match=r"ZooKeeper \(zk:2181\) did not answer: read /x"):
        zookeeper.get("/x")


def test_answer_that_never_comes_is_given_up(session: OpenSession) -> None:
    zookeeper = session(Ensemble(), session_timeout_ms=20)

    class Never(Result):
        def wait(self, timeout: float) -> bool:
            return False

    kazoo_of(zookeeper).get_async = lambda *_: Never()  # type: ignore[method-assign]
    with pytest.raises(ZooKeeperUnavailable, match="too late"):
        zookeeper.get("/x")


def test_listener_never_waits_for_the_connection(session: OpenSession) -> None:
    # or nobody would be told that it is lost
    zookeeper = session(Ensemble())
    kazoo = kazoo_of(zookeeper)
    told: list[Connection] = []
    refused = threading.Event()

    def refresh() -> None:
        kazoo.suspend()
        try:
            zookeeper.get("/x")
        except ZooKeeperUnavailable:
            refused.set()
            raise

    zookeeper.on_connection(told.append)
    zookeeper.keep_fresh(refresh)
    zookeeper.settle()
    assert refused.is_set()
    zookeeper.forget(refresh)
    kazoo.resume()
    zookeeper.settle()
    assert told[-2:] == [Connection.SUSPENDED, Connection.CONNECTED]


def test_refresh_that_failed_is_done_again_when_connected(session: OpenSession) -> None:
    zookeeper = session(Ensemble())
    kazoo, found = kazoo_of(zookeeper), []

    def refresh() -> None:
        found.append(zookeeper.get("/yarnflow/cluster", zookeeper.refresher(refresh)))

    kazoo.suspend()
    zookeeper.keep_fresh(refresh)
    zookeeper.settle()
    assert found == []
    kazoo.resume()
    zookeeper.settle()
    assert found == [None]
    zookeeper.ensure("jobs")
    zookeeper.settle()
    assert found[-1] is not None


def test_one_watch_however_often_it_is_set(session: OpenSession) -> None:
    ensemble = Ensemble()
    zookeeper = session(ensemble)

    def refresh() -> None:
        zookeeper.get("/yarnflow/cluster", zookeeper.refresher(refresh))

    for _ in range(3):
        refresh()
    assert [len(watches) for watches in ensemble.watches.values()] == [1]


def test_failing_listener_harms_no_other(session: OpenSession) -> None:
    zookeeper = session(Ensemble())
    zookeeper.settle()  # the first connection is told of by now
    told: list[Connection] = []

    def fails(_connection: Connection) -> None:
        raise RuntimeError("of the test")

    zookeeper.on_connection(fails)
    zookeeper.on_connection(told.append)
    kazoo_of(zookeeper).suspend()
    zookeeper.settle()
    assert told == [Connection.SUSPENDED]


def test_refusal_says_what_may_be_the_reason(session: OpenSession) -> None:
    zookeeper = session(Ensemble())
    kazoo_of(zookeeper).get_async = lambda *_: Result(error=NoAuthError())  # type: ignore[method-assign]
    with pytest.raises(ForeignNode, match="refused to read /x, as that is somebody else's.*another secret"):
        zookeeper.get("/x")


def test_change_of_an_own_node_is_not_done_in_the_next_session(session: OpenSession) -> None:
    ensemble = Ensemble()
    zookeeper = session(ensemble)
    path = zookeeper.ensure("jobs") + "/lease"
    zookeeper.create(path, b"mine", ephemeral=True)
    kazoo = kazoo_of(zookeeper)
    seen: list[str] = []

    def expires_at_the_write() -> str:
        seen.append("")
        if len(seen) == 3:  # after content and ACL were read
            kazoo.expire()
            ensemble.create(path, b"another's", owner=99, acl=kazoo.default_acl)
            kazoo.start(timeout=0)
            return "undone"
        return ""

    kazoo.before = expires_at_the_write
    assert not zookeeper.set_own(path, b"still mine?")
    assert ensemble.nodes[path][0] == b"another's"
    assert not zookeeper.delete_own(path)
    assert path in ensemble.nodes


@pytest.mark.parametrize("there", [True, False])
def test_confirmation_is_told(there: bool, session: OpenSession) -> None:
    zookeeper = session(Ensemble())
    answers: list[bool] = []
    path = zookeeper.ensure("jobs")
    zookeeper.confirm(path if there else f"{path}/x", answers.append)
    assert answers == [there]


def test_no_confirmation_without_an_answer(session: OpenSession) -> None:
    zookeeper = session(Ensemble())
    answers: list[bool] = []
    path = zookeeper.ensure("jobs")
    kazoo_of(zookeeper).before = lambda: "done"
    zookeeper.confirm(path, answers.append)
    kazoo_of(zookeeper).suspend()
    zookeeper.confirm(path, answers.append)
    assert answers == []


def test_session_file_that_cannot_be_written_ends_nothing(session: OpenSession, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    zookeeper = session(Ensemble(), sessions=tmp_path / "file")
    assert zookeeper.connection is Connection.CONNECTED


def test_new_session_replaces_the_file(session: OpenSession, tmp_path: Path) -> None:
    zookeeper: Any = session(Ensemble(), sessions=tmp_path)
    file = tmp_path / f"{os.getpid()}.json"
    first = file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    kazoo_of(zookeeper).expire()
    kazoo_of(zookeeper).start(timeout=0)
    assert file.read_text() != first
    zookeeper.close()
    assert list(tmp_path.iterdir()) == []
