"""What failures of Ivy mean."""

from __future__ import annotations

from pathlib import Path

from yarnflow.core.jars.coordinates import MavenCoordinate
from yarnflow.core.jars.request import JarRequest
from yarnflow.errors import JarError, JarNotFound
from yarnflow.spark.jars.ivy import failure_of, own_jars, without_own

REQUEST = JarRequest(packages=(MavenCoordinate("g", "a", "1"),), repositories=("https://r",))


def said(problem: str, log: str = "", request: JarRequest = REQUEST) -> tuple[type[JarError], str]:
    error = failure_of(problem, log, request)
    return type(error), error.message


def test_a_package_that_nobody_has() -> None:
    kind, text = said("java.lang.RuntimeException: [unresolved dependency: g#a;1: not found]")
    assert kind is JarNotFound
    assert text.startswith("package g:a:1 is not in Maven Central, https://r; correct it")


def test_something_a_package_needs() -> None:
    problem = "java.lang.RuntimeException: [unresolved dependency: h#b;2: not found]"
    kind, text = said(problem)
    assert kind is JarNotFound and "package h:b:2 (asked for: g:a:1) is not in" in text
    kind, text = said("java.lang.RuntimeException: [download failed: h#b;2!b.jar]")
    assert kind is JarNotFound and "package h:b:2 (asked for: g:a:1)" in text


def test_no_network() -> None:
    problem = "java.lang.RuntimeException: [unresolved dependency: g#a;1: not found]"
    log = "\tServer access error at url https://repo/g/a.pom (java.net.UnknownHostException: repo)\n"
    kind, text = said(problem, log)
    assert kind is JarError
    assert "package g:a:1 could not be looked for: no answer from https://repo/g/a.pom" in text
    assert "(java.net.UnknownHostException: repo)" in text
    kind, text = said(problem, "\tHost repo not found. url=https://repo/g/a.pom\n")
    assert kind is JarError and "no answer from https://repo/g/a.pom; see to the network" in text


def test_a_repository_that_nobody_misses() -> None:
    problem = "java.lang.RuntimeException: [unresolved dependency: g#a;1: not found]"
    log = "\tServer access error at url https://repos.spark-packages.org/g/a.pom (java.net.X)\n"
    log += "\tHost repos.spark-packages.org not found. url=https://repos.spark-packages.org/g/a.jar\n"
    assert said(problem, log)[0] is JarNotFound


def test_credentials_of_repositories_are_not_shown() -> None:
    request = JarRequest(packages=REQUEST.packages, repositories=("https://ann:pw@r/m", "https://ghp_1@s"))
    problem = "[unresolved dependency: g#a;1: not found]"
    server = "\tServer access error at url https://ann:pw@r/g (x)"
    host = "\tHost r not found. url=https://ghp_1@s\n"
    for what, log in ((problem, ""), (problem, server), (problem, host), ("x: https://ann:pw@r", "")):
        text = said(what, log, request)[1]
        assert "pw" not in text and "ghp_1" not in text and "******@" in text


def test_what_spark_has_itself_is_left_out() -> None:
    own = own_jars()
    spark = next(name for name in own if name.startswith("spark-core_"))
    jars = [
        Path(f"/ivy/org.apache.spark_{spark}"),
        Path("/ivy/org.x_mine-1.jar"),
        Path("/ivy/g_h_i_2.13-1.jar"),
    ]
    assert without_own(jars, own) == jars[1:]
    assert without_own(jars, {"i_2.13-1.jar", "1.jar"}) == jars[:2]


def test_anything_else_is_passed_on() -> None:
    assert said("java.lang.X: y\n\tat z")[1] == "package g:a:1 could not be resolved: java.lang.X: y"
