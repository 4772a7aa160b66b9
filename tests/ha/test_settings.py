"""From options to what a process needs to know of ZooKeeper."""

from __future__ import annotations

import pytest

from yarnflow.config.configuration import Configuration
from yarnflow.errors import ConfigError
from yarnflow.ha.settings import ZooKeeperSettings

QUORUM = {"high-availability.zookeeper.quorum": "a:2181, b:2181"}


def settings(**options: str) -> ZooKeeperSettings:
    values = {key.replace("__", ".").replace("_", "-"): text for key, text in options.items()}
    values = {f"high-availability.{key}": text for key, text in values.items()}
    return ZooKeeperSettings.of(Configuration.from_dict({**QUORUM, **values}, "test"))


def test_defaults() -> None:
    found = settings()
    assert found.quorum == "a:2181,b:2181"
    assert found.root == "/yarnflow/default"
    assert found.session_timeout_ms == 10_000 and found.protected


def test_what_was_asked_for() -> None:
    found = settings(
        cluster_id="c", zookeeper__path__root="/x/y/", zookeeper__client__acl="open",
        zookeeper__client__session_timeout="6 s",
    )  # fmt: skip
    assert (found.root, found.protected, found.session_timeout_ms) == ("/x/y/c", False, 6_000)


@pytest.mark.parametrize("root", ["", "/"])
def test_root_may_be_that_of_zookeeper(root: str) -> None:
    assert settings(zookeeper__path__root=root).root == "/default"


def test_name_that_is_none_of_a_node() -> None:
    with pytest.raises(ConfigError, match="cluster-id 'a/b'"):
        settings(cluster_id="a/b")


def test_quorum_is_needed() -> None:
    with pytest.raises(ConfigError, match="zookeeper.quorum is not set"):
        ZooKeeperSettings.of(Configuration.from_dict({}, "test"))
