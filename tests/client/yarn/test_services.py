"""Where the staging directory is, and what a missing library means."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest

from tests.client.yarn.yarn_fakes import World
from yarnflow.client.yarn.services import libraries, staging_root, yarn_services
from yarnflow.config.configuration import Configuration
from yarnflow.errors import ConfigError, InvalidOption, YarnUnavailable


def root(text: str, world: World) -> str:
    return staging_root(Configuration.from_dict({"yarn.staging-directory": text}, "-D"), world.fs)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_default_is_in_the_users_home(world: World) -> None:
    assert staging_root(Configuration.empty(), world.fs) == f"{world.fs.home()}/.yarnflow"


@pytest.mark.parametrize("text", ["/data/y", "/data/y/", "hdfs://memory:8020/data/y", "hdfs:///data/y"])
def test_forms(text: str, world: World) -> None:
    assert root(text, world) == "/data/y"


@pytest.mark.parametrize(
    "text", ["hdfs://other:8020/y", "s3a://bucket/y", "hdfs://memory:80200/y", "y", "y/z"]
)
def test_other_places_are_refused(text: str, world: World) -> None:
    with pytest.raises(InvalidOption, match="yarn.staging-directory"):
        root(text, world)


def test_home_is_asked_for_once(world: World) -> None:
    services = world.services()
    assert services.layout is services.layout


def test_missing_library_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: Any, **more: Any) -> Any:
        if name == "yarnflow.yarn.web.resource_manager":
            raise ModuleNotFoundError("No module named 'requests'", name="requests")
        return real(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConfigError, match="pip install requests"):
        yarn_services(Configuration.empty(), {"HADOOP_CONF_DIR": str(tmp_path)})


def test_our_own_missing_modules_are_bugs() -> None:
    with pytest.raises(ModuleNotFoundError), libraries():
        raise ModuleNotFoundError("No module named 'yarnflow.nothing'", name="yarnflow.nothing")


def test_no_configuration() -> None:
    with pytest.raises(YarnUnavailable, match="HADOOP_CONF_DIR"):
        yarn_services(Configuration.empty(), {})


def test_close_ends_the_jvm_and_a_further_submit_starts_another(world: World) -> None:
    services = world.services()
    services.close()
    assert world.submitter.calls == ["close"]
    services.submitter().start()
    assert world.submitter.calls == ["close", "start"]
