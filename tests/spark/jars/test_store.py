"""Results that are used again, and those that are not."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from yarnflow.core.jars.coordinates import MavenCoordinate
from yarnflow.core.jars.request import JarRequest
from yarnflow.errors import ConfigError, JarError, JarNotFound
from yarnflow.spark.jars.store import PackageStore

A = MavenCoordinate("org.x", "a", "1")
B = MavenCoordinate("org.x", "b_2.13", "2")


@dataclass
class FakeIvy:
    """Resolves every package to a jar of its own, except for those it does not know."""

    unknown: Sequence[MavenCoordinate] = ()
    asked: list[tuple[MavenCoordinate, ...]] = field(default_factory=list)
    content: bytes = b"jar"

    def resolve(self, request: JarRequest, directory: Path) -> list[Path]:
        self.asked.append(request.packages)
        found = []
        for package in request.packages:
            if package in self.unknown:
                raise JarNotFound(f"no {package}")
            own = directory / "cache" / package.group / package.artifact / "jars" / "own.jar"
            if not own.exists():
                own.parent.mkdir(parents=True)
                own.write_bytes(self.content)
            jar = directory / "jars" / f"{package.group}_{package.artifact}-{package.version}.jar"
            jar.parent.mkdir(exist_ok=True)
            jar.write_bytes(own.read_bytes())
            found.append(jar)
        return found


def test_a_result_is_found_once(tmp_path: Path) -> None:
    ivy, notes = FakeIvy(), list[str]()
    store = PackageStore(ivy.resolve, tmp_path, notes.append)
    jars = store.get(JarRequest(packages=(A, B)))
    assert [jar.read_bytes() for jar in jars] == [b"jar", b"jar"]
    again = PackageStore(ivy.resolve, tmp_path, notes.append)
    assert again.get(JarRequest(packages=(B, A))) == jars
    assert ivy.asked == [(A, B)] and notes == ["Resolving org.x:a:1, org.x:b_2.13:2."]
    assert store.get(JarRequest()) == []
    store.get(JarRequest(packages=(A,)))
    assert len(ivy.asked) == 2


def test_settings_of_ivy_are_part_of_what_is_asked(tmp_path: Path) -> None:
    ivy = FakeIvy()
    settings = tmp_path / "ivysettings.xml"
    request = JarRequest(packages=(A,), ivy_settings=str(settings))
    store = PackageStore(ivy.resolve, tmp_path / "jars")
    with pytest.raises(JarError, match="spark.jars.ivySettings.*ivysettings.xml.*cannot be read"):
        store.get(request)
    for text in ("<ivysettings/>", "<ivysettings/>", "<ivysettings><x/></ivysettings>"):
        settings.write_text(text)
        store.get(request)
    assert len(ivy.asked) == 2


def test_a_jar_that_changed_is_fetched_again(tmp_path: Path) -> None:
    ivy = FakeIvy()
    store = PackageStore(ivy.resolve, tmp_path)
    (jar,) = store.get(JarRequest(packages=(A,)))
    jar.write_bytes(b"cut")
    assert [found.read_bytes() for found in store.get(JarRequest(packages=(A,)))] == [b"jar"]
    assert len(ivy.asked) == 2
    # its own copy as well: that is where it came from
    own = next((tmp_path / "ivy" / "cache").rglob("own.jar"))
    own.write_bytes(b"cut")
    jar.unlink()
    assert [found.read_bytes() for found in store.get(JarRequest(packages=(A,)))] == [b"jar"]
    assert len(ivy.asked) == 3


def test_a_jar_that_was_only_touched_is_good(tmp_path: Path) -> None:
    ivy = FakeIvy()
    store = PackageStore(ivy.resolve, tmp_path)
    (jar,) = store.get(JarRequest(packages=(A,)))
    os.utime(jar, (1, 1))
    assert store.get(JarRequest(packages=(A,))) == [jar] and len(ivy.asked) == 1


def test_a_record_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    ivy = FakeIvy()
    store = PackageStore(ivy.resolve, tmp_path)
    store.get(JarRequest(packages=(A,)))
    (record,) = (tmp_path / "resolved").glob("*.json")
    for text in ("", "[]", '{"format": 0, "jars": []}', '{"format": 1, "jars": [{"path": "/x"}]}'):
        record.write_text(text)
        store.get(JarRequest(packages=(A,)))
    assert len(ivy.asked) == 5


def test_the_first_alternative_that_there_is(tmp_path: Path) -> None:
    newest = replace(A, version="9")
    store = PackageStore(FakeIvy(unknown=(newest, B)).resolve, tmp_path)
    packages, jars = store.get_first(JarRequest(), [(newest,), (A,)])
    assert packages == (A,) and [jar.name for jar in jars] == ["org.x_a-1.jar"]
    with pytest.raises(JarNotFound, match="no org.x:b_2.13:2"):
        store.get_first(JarRequest(), [(B,), (newest,)])
    with pytest.raises(JarNotFound, match="no org.x:a:9"):
        store.get_first(JarRequest(), [(newest,)])


def test_an_alternative_that_was_missing_is_not_asked_for_each_time(tmp_path: Path) -> None:
    newest = replace(A, version="9")
    ivy = FakeIvy(unknown=(newest,))
    for _ in range(3):
        packages, _ = PackageStore(ivy.resolve, tmp_path).get_first(JarRequest(), [(newest,), (A,)])
        assert packages == (A,)
    assert ivy.asked == [(newest,), (A,)]
    (missing,) = (tmp_path / "resolved").glob("*.missing")
    os.utime(missing, (1, 1))
    ivy.unknown = ()
    assert PackageStore(ivy.resolve, tmp_path).get_first(JarRequest(), [(newest,), (A,)])[0] == (newest,)


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "jars").write_text("a file")
    with pytest.raises(ConfigError, match="cannot write to .*jars"):
        PackageStore(FakeIvy().resolve, tmp_path / "jars").get(JarRequest(packages=(A,)))


def test_snapshots_are_good_for_an_hour(tmp_path: Path) -> None:
    ivy, notes = FakeIvy(), list[str]()
    store = PackageStore(ivy.resolve, tmp_path, notes.append)
    request = JarRequest(packages=(replace(A, version="2-SNAPSHOT"),))
    store.get(request)
    ivy.content = b"newer"
    assert [jar.read_bytes() for jar in store.get(request)] == [b"jar"]
    (record,) = (tmp_path / "resolved").glob("*.json")
    os.utime(record, (1, 1))
    assert [jar.read_bytes() for jar in store.get(request)] == [b"newer"] and len(ivy.asked) == 2
    os.utime(record, (1, 1))
    ivy.unknown = request.packages
    assert [jar.read_bytes() for jar in store.get(request)] == [b"newer"], "better than none"
    assert notes[-1] == "no org.x:a:2-SNAPSHOT; the last result is used again."


def test_a_cache_whose_path_spark_cannot_read(tmp_path: Path) -> None:
    ivy = FakeIvy()
    with pytest.raises(JarError, match="my cache.* Spark cannot read a path with ' '; let XDG_CACHE_HOME or"):
        PackageStore(ivy.resolve, tmp_path / "my cache").get(JarRequest(packages=(A,)))
    assert not ivy.asked
