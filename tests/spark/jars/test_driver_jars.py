"""What a driver brings itself, and what a script's session builder adds to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.config.hadoop_directory import hadoop_environ
from yarnflow.core.jars.request import JarRequest, jars_of, merged
from yarnflow.spark.jars import ivy
from yarnflow.spark.jars.driver_jars import DriverJars
from yarnflow.spark.launch.jar_loader import JarLoader
from yarnflow.spark.script.session_options import SessionOptions


@dataclass
class FakeLoader:
    """A class path."""

    jars: list[str] = field(default_factory=list)

    def add(self, jars: Sequence[str], directory: Path, options: Mapping[str, str]) -> None:
        self.jars += [jar for jar in jars if jar not in self.jars]


@pytest.fixture
def resolved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Packages that were resolved, each to a jar of its own."""
    asked: list[str] = []

    def resolve(_gateway: object, request: JarRequest, directory: Path) -> list[Path]:
        asked.extend(map(str, request.packages))
        jar = directory / f"{request.packages[0].artifact}.jar"
        jar.touch()
        return [jar]

    monkeypatch.setattr(ivy, "resolve", resolve)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return asked


def driver_jars(loader: FakeLoader, directory: Path) -> DriverJars:
    return DriverJars(None, cast(JarLoader, loader), directory)


def test_what_the_submit_has_not_brought(resolved: list[str], tmp_path: Path) -> None:
    loader = FakeLoader()
    options = {"spark.jars": "hdfs://n/a.jar,/x/b.jar", "spark.jars.packages": "g:c:1"}
    options["pipeline.classpaths"] = "file:///opt/d.jar"
    brought = driver_jars(loader, tmp_path).bring(options)
    names = [jar.rpartition("/")[2] for jar in loader.jars]
    assert names == ["a.jar", "b.jar", "d.jar", "c.jar"] and resolved == ["g:c:1"]
    assert loader.jars[:3] == ["hdfs://n/a.jar", "file:///x/b.jar", "local:/opt/d.jar"]
    assert list(jars_of(brought)) == loader.jars
    again = FakeLoader()
    assert driver_jars(again, tmp_path).bring(brought) == brought
    assert again.jars == loader.jars and resolved == ["g:c:1"]


def test_a_jar_of_hdfs_says_of_which(
    resolved: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in hadoop_environ(tmp_path, "hdfs://nn:8020").items():
        monkeypatch.setenv(name, value)
    loader = FakeLoader()
    brought = driver_jars(loader, tmp_path).bring({"spark.jars": "hdfs:///a.jar,/x/b.jar"})
    assert loader.jars == list(jars_of(brought)) == ["hdfs://nn:8020/a.jar", "file:///x/b.jar"]
    # a script's own builder asks for it as well
    again = driver_jars(loader, tmp_path).bring(merged(brought, {"spark.jars": "hdfs:///a.jar"}))
    assert jars_of(again) == jars_of(brought)


def test_packages_in_a_container_stay_there(
    resolved: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTAINER_ID", "container_1")
    loader = FakeLoader()
    driver_jars(loader, tmp_path / "own").bring({"spark.jars.packages": "g:c:1"})
    assert loader.jars[0].startswith(f"file://{tmp_path}/own/packages/")


def test_executors_get_what_a_builder_adds(resolved: list[str], tmp_path: Path) -> None:
    loader, added = FakeLoader(), list[str]()
    conf = SimpleNamespace(get=lambda _key, default: default)
    scala_context = SimpleNamespace(addJar=added.append, conf=lambda: conf)
    context = SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: scala_context))
    spark: Any = SimpleNamespace(sparkContext=context)
    jars = driver_jars(loader, tmp_path)
    options = jars.bring({"spark.jars": "hdfs://n/a.jar", "spark.jars.packages": "g:c:1"})
    builder = SessionOptions(spark, jars, options)
    builder.prepare({"spark.jars.packages": "g:c:1"})
    assert added == []
    asked = {"spark.jars.packages": "g:c:1,g:d:2", "spark.jars": "/x/e.jar"}
    for _ in range(2):
        builder.prepare(asked)
    assert [jar.rpartition("/")[2] for jar in added] == ["e.jar", "d.jar"]
    assert resolved == ["g:c:1", "g:d:2"] and len(loader.jars) == 4
