"""Which executor a program finds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from yarnflow.api import RateSource, StreamExecutionEnvironment, close_cluster, executor
from yarnflow.api.executor import (
    GraphCollector,
    ProgramAborted,
    current_executor,
    surrounding_configuration,
    use_executor,
)
from yarnflow.errors import ConfigError, ProgramError

#: taken before the fixture that replaces it for all tests
FIND = executor._executor_entry_point

MODULE = """
from yarnflow.api.executor import GraphCollector
made = []
class Found(GraphCollector):
    configuration = {"parallelism.default": "3"}
    default_parallelism = 5
    closed = 0
    def __init__(self):
        super().__init__()
        made.append(self)
    def close(self):
        self.closed += 1
"""


@pytest.fixture(autouse=True)
def find(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As in a program, but without what is installed here."""
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(executor, "_executor_entry_point", FIND)
    FIND.cache_clear()
    yield
    FIND.cache_clear()
    sys.modules.pop("found_by_a_test", None)


def _install(path: Path, name: str, value: str) -> None:
    info = path / f"{name}-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[{executor.EXECUTOR_GROUP}]\nany = {value}\n")
    (path / "found_by_a_test.py").write_text(MODULE)
    sys.path.append(str(path))


def test_the_declared_executor_is_made_once_when_it_is_first_needed(tmp_path: Path) -> None:
    _install(tmp_path, "yarnflow", "found_by_a_test:Found")
    env = StreamExecutionEnvironment.get_execution_environment()
    assert "found_by_a_test" not in sys.modules
    assert env.get_parallelism() == 3
    env.from_source(RateSource(1)).print()
    with pytest.raises(ProgramAborted):
        env.execute("mine")
    assert [current_executor()] == sys.modules["found_by_a_test"].made
    (graph,) = sys.modules["found_by_a_test"].made[0].graphs
    assert graph.name == "mine" and graph.vertices[0].parallelism == 3


def test_the_parallelism_where_nothing_says_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(tmp_path, "yarnflow", "found_by_a_test:Found")
    (tmp_path / "found_by_a_test.py").write_text(MODULE.replace('{"parallelism.default": "3"}', "{}"))
    env = StreamExecutionEnvironment.get_execution_environment()
    assert env.get_parallelism() == 5
    assert StreamExecutionEnvironment({"parallelism.default": "4"}).get_parallelism() == 4
    env.from_source(RateSource(1)).print()
    with pytest.raises(ProgramAborted):
        env.execute()
    # the driver is told of it, too
    (graph,) = sys.modules["found_by_a_test"].made[0].graphs
    assert graph.configuration == {"parallelism.default": "5"} and graph.vertices[0].parallelism == 5
    with use_executor(GraphCollector(), {}, 6):
        assert StreamExecutionEnvironment.get_execution_environment().get_parallelism() == 6
    with use_executor(GraphCollector(), {"parallelism.default": "2"}, 6):
        assert StreamExecutionEnvironment.get_execution_environment().get_parallelism() == 2
    with use_executor(GraphCollector()):
        assert StreamExecutionEnvironment.get_execution_environment().get_parallelism() == 1
    monkeypatch.setattr(StreamExecutionEnvironment, "_default_local_parallelism", 7)
    with use_executor(GraphCollector(), {"execution.target": "local"}, 6):
        assert StreamExecutionEnvironment.get_execution_environment().get_parallelism() == 7


def test_an_installed_executor_and_its_options_come_first(tmp_path: Path) -> None:
    _install(tmp_path, "yarnflow", "found_by_a_test:Found")
    collector = GraphCollector()
    with use_executor(collector, {"parallelism.default": "2"}):
        assert current_executor() is collector
        assert surrounding_configuration() == {"parallelism.default": "2"}
    assert surrounding_configuration() == {"parallelism.default": "3"}


def test_wrong_options_are_looked_at_again(tmp_path: Path) -> None:
    _install(tmp_path, "yarnflow", "found_by_a_test:make")
    (tmp_path / "found_by_a_test.py").write_text(
        MODULE
        + "from yarnflow.errors import ConfigError\nwrong = [True]\ndef make():\n"
        + "    if wrong and wrong.pop():\n        raise ConfigError('wrong')\n    return Found()\n"
    )
    with pytest.raises(ConfigError):
        current_executor()
    assert surrounding_configuration() == {"parallelism.default": "3"}


def test_a_package_seen_twice_is_one(tmp_path: Path) -> None:
    for directory in ("installed", "editable"):
        _install(tmp_path / directory, "yarnflow", "found_by_a_test:Found")
    assert surrounding_configuration() == {"parallelism.default": "3"}


def test_several_packages_are_refused(tmp_path: Path) -> None:
    _install(tmp_path / "one", "one", "found_by_a_test:Found")
    _install(tmp_path / "two", "two", "found_by_a_test:Other")
    with pytest.raises(ProgramError, match=r"found_by_a_test:Found, found_by_a_test:Other.*uninstall"):
        current_executor()


def test_without_one_options_are_none_and_jobs_cannot_run() -> None:
    assert surrounding_configuration() == {}
    with pytest.raises(ProgramError, match="yarnflow submit"):
        current_executor()


def test_close_cluster(tmp_path: Path) -> None:
    close_cluster()
    _install(tmp_path, "yarnflow", "found_by_a_test:Found")
    close_cluster()
    assert "found_by_a_test" not in sys.modules, "nothing is started to be closed"
    found = current_executor()
    close_cluster()
    assert found.closed == 1  # type: ignore[attr-defined]
