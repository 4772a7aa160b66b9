from __future__ import annotations

import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

from yarnflow.errors import YarnUnavailable
from yarnflow.yarn.class_path import class_path, hadoop_class_path, yarn_defaults
from yarnflow.yarn.heartbeat import write_application_jar

DEFAULTS = """<configuration>
<property><name>a</name><value>1</value></property>
<property><name>yarn.am.liveness-monitor.expiry-interval-ms</name><value>600000</value></property>
</configuration>"""


@pytest.fixture
def hadoop(tmp_path: Path) -> Path:
    """A Hadoop with jars, a folder with configuration and one with web pages."""
    for folder in ("lib", "conf", "web", "other"):
        (tmp_path / folder).mkdir()
    for name in ("b.jar", "a.jar", "hadoop-common-3.5.0-tests.jar", "bcprov-jdk18on-1.82.jar", "x.txt"):
        (tmp_path / "lib" / name).touch()
    (tmp_path / "other" / "single.jar").touch()
    (tmp_path / "conf" / "core-site.xml").touch()
    with zipfile.ZipFile(tmp_path / "lib" / "hadoop-yarn-common-3.5.0.jar", "w") as archive:
        archive.writestr("yarn-default.xml", DEFAULTS)
    return tmp_path


def test_jars_come_first_and_configuration_last(hadoop: Path) -> None:
    entries = ("conf", "web", "lib/*", "other/single.jar", "gone/*", "gone.jar")
    found = class_path(":".join(f"{hadoop}/{entry}" for entry in entries) + "::", hadoop / "conf")
    names = [path.name for path in found.jars]
    assert names == ["a.jar", "b.jar", "hadoop-yarn-common-3.5.0.jar", "single.jar"]
    assert found.folders == (hadoop / "conf",)
    first = Path("/skein.jar")
    assert found.text(first) == ":".join(map(str, (first, *found.jars, hadoop / "conf")))


def test_the_clients_configuration_comes_before_others(hadoop: Path) -> None:
    (hadoop / "web" / "yarn-site.xml").touch()
    found = class_path(f"{hadoop}/web:{hadoop}/lib/*", hadoop / "conf")
    assert found.folders == (hadoop / "conf", hadoop / "web")


def test_yarn_is_asked(hadoop: Path) -> None:
    _command(hadoop, f'[ "$*" = classpath ] && echo "$HADOOP_CONF_DIR:{hadoop}/lib/*"')
    found = hadoop_class_path({"PATH": f"{hadoop}/bin:/usr/bin:/bin"}, hadoop / "conf")
    assert len(found.jars) == 3
    assert found.folders == (hadoop / "conf",)


def test_in_a_container_yarn_is_found_by_the_homes_of_the_node(hadoop: Path) -> None:
    _command(hadoop, f'echo "{hadoop}/lib/*"')
    environ = {"PATH": "/usr/bin:/bin", "HADOOP_YARN_HOME": "/nowhere", "HADOOP_HOME": str(hadoop)}
    assert len(hadoop_class_path(environ, hadoop / "conf").jars) == 3


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo /nowhere/*", "names no jars that exist but /nowhere"),
        ("echo JAVA_HOME is not set >&2; exit 3", "exit status 3: JAVA_HOME is not set"),
        (None, "no command `yarn` on PATH"),
    ],
)
def test_a_yarn_that_cannot_tell(hadoop: Path, script: str | None, said: str) -> None:
    if script is not None:
        _command(hadoop, script)
    with pytest.raises(YarnUnavailable, match=said):
        hadoop_class_path({"PATH": f"{hadoop}/bin"}, hadoop / "conf")


def test_yarns_defaults_with_changes(hadoop: Path) -> None:
    jars = tuple((hadoop / "lib").glob("*.jar"))
    content = yarn_defaults(jars, {"a": "2", "new": "3"})
    assert content is not None
    found = {p.findtext("name"): p.findtext("value") for p in ElementTree.fromstring(content)}
    assert found == {"a": "2", "yarn.am.liveness-monitor.expiry-interval-ms": "600000", "new": "3"}
    assert yarn_defaults((hadoop / "lib" / "a.jar",), {}) is None


def _interval(jar: Path) -> str | None:
    with zipfile.ZipFile(jar) as archive:
        if "yarn-default.xml" not in archive.namelist():
            return None
        root = ElementTree.fromstring(archive.read("yarn-default.xml"))
    found = {p.findtext("name"): p.findtext("value") for p in root}
    return found["yarn.am.liveness-monitor.expiry-interval-ms"]


def test_the_heartbeat_is_half_of_the_expiry(hadoop: Path, tmp_path: Path) -> None:
    jars = tuple((hadoop / "lib").glob("*.jar"))
    target = tmp_path / "application.jar"
    write_application_jar(target, None, jars, 1_000)
    assert _interval(target) == "2000"
    write_application_jar(target, None, jars, 5_000)
    assert _interval(target) is None
    write_application_jar(target, None, (), 1_000)
    assert _interval(target) is None


def test_skein_is_part_of_the_jar_when_it_comes_from_nowhere_else(hadoop: Path, tmp_path: Path) -> None:
    skein = tmp_path / "skein.jar"
    with zipfile.ZipFile(skein, "w") as archive:
        archive.writestr("com/Main.class", "x")
    before = skein.read_bytes()
    target = tmp_path / "application.jar"
    write_application_jar(target, skein, tuple((hadoop / "lib").glob("*.jar")), 500)
    assert _interval(target) == "1000"
    with zipfile.ZipFile(target) as archive:
        assert "com/Main.class" in archive.namelist()
    assert skein.read_bytes() == before


def _command(hadoop: Path, script: str) -> None:
    (hadoop / "bin").mkdir()
    (hadoop / "bin" / "yarn").write_text(f"#!/bin/sh\n{script}\n")
    (hadoop / "bin" / "yarn").chmod(0o755)
