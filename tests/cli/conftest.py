"""For all tests of commands: no cluster that happens to run on this machine."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.state_cluster import Cluster
from tests.client.fakes import FakeConnection
from yarnflow.client import targets
from yarnflow.process.signals import ENDING


@pytest.fixture(autouse=True)
def _no_clusters_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Commands that name no cluster look for those of the user, which must not decide a test."""
    monkeypatch.setenv("YARNFLOW_CONF_IO_TMP_DIRS", str(tmp_path / "clusters"))


@pytest.fixture
def interpreter(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Commands run in this process, and leave it as it was."""
    for name in ("YARNFLOW_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    main_module, argv, path = sys.modules["__main__"], sys.argv, list(sys.path)
    handlers = {number: signal.getsignal(number) for number in ENDING}
    yield
    sys.modules["__main__"], sys.argv, sys.path[:] = main_module, argv, path
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """What every target connects to."""
    fake = Cluster()

    def connect(target: targets.Target, configuration: object, *_: object) -> FakeConnection:
        fake.connects.append(target.name)
        connection = FakeConnection(fake, target.owned)
        connection.left, connection.leader = fake.left, fake.followed
        return connection

    monkeypatch.setattr(targets.Target, "connect", connect)
    return fake
