"""From options to jars, with and without connectors."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from tests.client.jars.test_files import jar
from yarnflow.client.jars.bring import JarBringer
from yarnflow.core.jars.request import JarRequest, jars_of
from yarnflow.errors import JarError, JarNotFound
from yarnflow.spark.jars import resolver
from yarnflow.spark.jars.store import PackageStore


class Repository:
    """Packages there are, as text; each is one jar."""

    def __init__(self, directory: Path, *known: str) -> None:
        self.directory = directory
        self.known = known
        self.asked: list[str] = []
        self.properties: tuple[str, ...] = ()
        self.notes: list[str] = []

    def bringer(self) -> JarBringer:
        def store(properties: tuple[str, ...]) -> PackageStore:
            self.properties = properties
            return PackageStore(self._resolve, self.directory)

        return JarBringer(self.notes.append, store)

    def _resolve(self, request: JarRequest, directory: Path) -> list[Path]:
        found = []
        for package in map(str, request.packages):
            self.asked.append(package)
            if package not in self.known:
                raise JarNotFound(f"no {package}")
            found.append(directory / f"{package.replace(':', '_')}.jar")
            found[-1].touch()
        return found


def names(options: dict[str, str]) -> list[str]:
    return [uri.rpartition("/")[2] for uri in jars_of(options)]


def test_files_and_packages(tmp_path: Path) -> None:
    repository = Repository(tmp_path, "g:a:1")
    own = jar(tmp_path / "own.jar")
    options = {"pipeline.jars": str(own), "spark.jars.packages": "g:a:1", "spark.x": "1"}
    options["spark.driver.extraJavaOptions"] = "-Xss2m -Dhttps.proxyHost=p"
    brought = repository.bringer().bring(options)
    assert names(brought) == ["own.jar", "g_a_1.jar"] and brought["spark.x"] == "1"
    assert all(uri.startswith("file:///") for uri in jars_of(brought))
    assert repository.properties == ("-Dhttps.proxyHost=p",)
    assert repository.bringer().bring(brought) == brought and repository.asked == ["g:a:1"]
    assert repository.bringer().bring({"spark.x": "1"}) == {"spark.x": "1"}


def test_what_a_script_sets_itself(tmp_path: Path) -> None:
    repository = Repository(tmp_path, "g:a:1", "g:b:1")
    options = repository.bringer().bring({"spark.jars.packages": "g:a:1"})
    own = {"spark.jars.packages": "g:b:1,g:a:1", "spark.sql.extensions": "x"}
    assert names(repository.bringer().bring(options, own_options=own)) == ["g_a_1.jar", "g_b_1.jar"]
    with pytest.raises(JarError, match="g:a:2"):
        repository.bringer().bring(options, own_options={"spark.jars.packages": "g:a:2"})


KAFKA = "org.apache.spark:spark-sql-kafka-0-10_2.13"
TOKENS = "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.2.0"


def test_packages_of_a_connector_for_this_spark(tmp_path: Path) -> None:
    best = f"{KAFKA}:{version('pyspark')}"
    repository = Repository(tmp_path, best, "g:a:1")
    brought = repository.bringer().bring({"spark.jars.packages": "g:a:1"}, ["kafka", "files"])
    assert repository.asked == ["g:a:1", best]
    assert repository.bringer().bring(brought, ["kafka"]) == brought, "is there"


def test_packages_of_a_connector_for_another_spark(tmp_path: Path) -> None:
    repository = Repository(tmp_path, f"{KAFKA}:4.2.0", TOKENS)
    assert len(jars_of(repository.bringer().bring({}, ["kafka"]))) == 2
    with pytest.raises(JarNotFound, match=version("pyspark")):
        Repository(tmp_path / "other").bringer().bring({}, ["kafka"])


def test_a_connector_of_the_users_own(tmp_path: Path) -> None:
    own = jar(tmp_path / "spark-sql-kafka-0-10_2.13-4.3.1.jar")
    repository = Repository(tmp_path, f"{KAFKA}:4.1.0")
    assert names(repository.bringer().bring({"spark.jars": str(own)}, ["kafka"])) == [own.name]
    asked = {"spark.jars.packages": f"{KAFKA}:4.1.0"}
    assert len(jars_of(repository.bringer().bring(asked, ["kafka"]))) == 1


def test_a_jar_of_flink_is_left_out_whatever_its_name_says(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    flink = "flink-sql-connector-kafka_2.12-1.14.jar", "flink-sql-connector-kafka_2.12-1.13.jar"
    made = [jar(tmp_path / name, "org/apache/flink/X.class") for name in flink]
    options = {"pipeline.jars": ";".join(map(str, made))}
    brought = repository.bringer().bring(options)
    assert jars_of(brought) == () and len(repository.notes) == 2
    assert repository.bringer().bring(brought) == brought and len(repository.notes) == 2, "said once"
    other = jar(tmp_path / "delta_2.12-1.jar")
    with pytest.raises(JarError, match="delta_2.12-1.jar is made for Scala 2.12"):
        repository.bringer().bring({"spark.jars": str(other)})


def test_packages_in_a_container_stay_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTAINER_ID", "container_1")
    monkeypatch.setenv("XDG_CACHE_HOME", "/none")
    monkeypatch.chdir(tmp_path)

    def resolve(request: JarRequest, directory: Path, *_: object) -> list[Path]:
        (directory / "a.jar").touch()
        return [directory / "a.jar"]

    monkeypatch.setattr(resolver, "resolve_apart", resolve)
    brought = JarBringer(print).bring({"spark.jars.packages": "g:a:1"})
    assert jars_of(brought) == (f"file://{tmp_path}/packages/ivy/a.jar",)
