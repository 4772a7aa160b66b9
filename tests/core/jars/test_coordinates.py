"""Maven coordinates, and what is refused because it cannot go together."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from yarnflow.core.jars.coordinates import MavenCoordinate, check_names, check_together
from yarnflow.errors import JarError


def packages(*texts: str) -> list[MavenCoordinate]:
    return [MavenCoordinate.parse(text) for text in texts]


def test_forms_of_coordinates() -> None:
    assert MavenCoordinate.parse(" org.x:y_2.13:1.0 ") == MavenCoordinate("org.x", "y_2.13", "1.0")
    assert str(MavenCoordinate.parse("org.x/y:1.0")) == "org.x:y:1.0"
    for text in ("org.x:y", "org.x:y:1:jar", "org.x::1", "org.x:y y:1"):
        with pytest.raises(JarError, match="group:artifact:version"):
            MavenCoordinate.parse(text)


def test_two_versions_of_one_artifact() -> None:
    with pytest.raises(JarError, match="g:a:1.*g:a:2; keep one"):
        check_together(packages("g:a:1", "g:a:2"), ())
    with pytest.raises(JarError, match="/x/a-1.2.jar.*hdfs://n/a-1.3.jar"):
        check_together((), ("/x/a-1.2.jar", "hdfs://n/a-1.3.jar"))
    with pytest.raises(JarError, match="two versions of a .*g:a:1-jre.*a-2-jre.jar"):
        check_together(packages("g:a:1-jre"), ("a-2-jre.jar",))
    check_together(packages("g:a:1", "h:a:2", "g:b:3"), ())


def test_a_file_may_be_any_package_of_its_name() -> None:
    for file in ("a-1.jar", "a-2.jar"):
        check_together(packages("g:a:1", "h:a:2"), (file,))
    with pytest.raises(JarError, match="two versions of a .*g:a:1 and a-3.jar"):
        check_together(packages("g:a:1", "h:a:2"), ("a-3.jar",))


def test_credentials_of_addresses_are_not_shown() -> None:
    one, other = "https://ann:pw@h/a-1.jar", "https://ann:pw@h/b/a-1.jar"
    calls: list[Callable[[], None]] = [
        lambda: check_names([one, other]),
        lambda: check_together(packages("g:a:2"), [one]),
        lambda: check_together((), ["https://ann:pw@h/x_2.12-1.jar"]),
    ]
    for refused in calls:
        with pytest.raises(JarError, match=r"https://ann:\*{6}@h/") as said:
            refused()
        assert "pw" not in said.value.message


def test_names_that_only_look_alike() -> None:
    files = (
        *("log4j-1.2-api-2.17.jar", "log4j-2.20.jar", "netty-4.1.100.Final.jar"),
        *("netty-4.1.100.Final-linux-x86_64.jar", "mine.jar", "other.jar"),
    )
    check_together(packages("g:a:1-jre"), (*files, "a-1-jre.jar"))


def test_another_scala() -> None:
    with pytest.raises(JarError, match="Scala 2.12, .* 2.13; take delta_2.13 instead"):
        check_together(packages("io.delta:delta_2.12:1.0"), ())
    with pytest.raises(JarError, match="take iceberg-runtime-3.5_2.13-1.0.jar instead"):
        check_together((), ("/x/iceberg-runtime-3.5_2.12-1.0.jar",))
    check_together(packages("io.delta:delta_2.13:2.12"), ("x_2.13-1.jar", "x_3-1.jar"))
