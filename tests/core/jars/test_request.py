"""What options ask for, from several sides one after the other."""

from __future__ import annotations

import pytest

from yarnflow.core.jars.connectors import connector_packages
from yarnflow.core.jars.request import (
    BROUGHT,
    JarRequest,
    check_files,
    jars_of,
    layered,
    merged,
    moved,
    with_jars,
)
from yarnflow.errors import JarError

_OPTIONS = {
    "pipeline.jars": "/x/a.jar; file:///x/b.jar",
    "pipeline.classpaths": "file:///opt/c.jar",
    "spark.jars": "/x/d.jar,/x/a.jar",
    "spark.jars.packages": "g:a:1, g:b:2",
    "spark.jars.repositories": "https://r",
    "spark.jars.excludes": "g:z",
    "parallelism.default": "2",
}


def test_all_that_options_ask_for() -> None:
    request = JarRequest.of(_OPTIONS)
    assert request.files == ("/x/a.jar", "file:///x/b.jar", "/x/d.jar")
    assert request.class_paths == ("file:///opt/c.jar",)
    assert [str(package) for package in request.packages] == ["g:a:1", "g:b:2"]
    assert request.repositories == ("https://r",) and request.excludes == ("g:z",)
    assert not request.empty and JarRequest.of({"spark.jars": "", "spark.jars.excludes": "g:z"}).empty


FILES = {
    "/x/a.jar": ["file:///x/a.jar"],
    "file:///x/b.jar": [],
    "file:///opt/c.jar": ["local:/opt/c.jar"],
    "/x/d.jar": ["file:///x/d.jar"],
}


def brought() -> dict[str, str]:
    """Where the options' jars are; b is left out."""
    request = JarRequest.of(_OPTIONS)
    contents = {"file:///x/a.jar": "1-1", "file:///ivy/g_a-1.jar": "1-2"}
    return with_jars(_OPTIONS, FILES, request.packages, ["file:///ivy/g_a-1.jar"], contents)


def test_nothing_is_brought_twice() -> None:
    options = brought()
    jars = ("file:///x/a.jar", "local:/opt/c.jar", "file:///x/d.jar", "file:///ivy/g_a-1.jar")
    assert jars_of(options) == jars and options["parallelism.default"] == "2"
    assert JarRequest.of(options).empty
    there = moved(options, {"file:///ivy/g_a-1.jar": "hdfs://n/g_a-1.jar"})
    assert jars_of(there) == (*jars[:3], "hdfs://n/g_a-1.jar")
    assert JarRequest.of(there).empty
    assert "1-1" in there[BROUGHT] and "1-2" not in there[BROUGHT], "a copy does not change"

    builder = {"spark.jars.packages": "g:a:1,g:c:3", "spark.jars": "/x/d.jar,/x/e.jar", "other": "1"}
    more = merged(there, builder)
    assert "other" not in more
    left = JarRequest.of(more)
    assert left.files == ("/x/e.jar",) and [str(package) for package in left.packages] == ["g:c:3"]
    found = jars_of(with_jars(more, {"/x/e.jar": ["hdfs://n/e.jar"]}, left.packages, []))
    assert found == (*jars[:3], "hdfs://n/g_a-1.jar", "hdfs://n/e.jar")


def test_what_is_replaced_is_brought_again() -> None:
    options = {**brought(), "spark.jars": "/x/z.jar"}
    left = JarRequest.of(options)
    assert left.files == ("/x/a.jar", "/x/z.jar") and left.class_paths == ("file:///opt/c.jar",)
    assert [str(package) for package in left.packages] == ["g:a:1", "g:b:2"]


def test_jars_of_both_sides_are_there() -> None:
    program = {"spark.jars": "/x/d.jar,/x/z.jar", "pipeline.jars": "/x/y.jar", "spark.x": "1"}
    options = layered(brought(), program)
    assert options["spark.x"] == "1" and options["parallelism.default"] == "2"
    assert jars_of(options) == (*jars_of(brought()), "/x/z.jar")
    assert JarRequest.of(options).files == ("/x/y.jar", "/x/z.jar")
    # both have brought something, as a session and a job
    job = with_jars({}, {"/x/y.jar": ["hdfs://n/y.jar"]})
    both = layered(brought(), {**job, "spark.jars.packages": "g:a:1"})
    assert jars_of(both) == (*jars_of(brought()), "hdfs://n/y.jar") and JarRequest.of(both).empty
    assert layered({"a": "1"}, {"b": "2"}) == {"a": "1", "b": "2"}


def test_copies_of_a_job_take_the_place_of_what_its_cluster_was_told() -> None:
    """A cluster of its own has the configuration of the client, with paths of the client's machine."""
    local = [jar for jar in jars_of(brought()) if jar.startswith("file:")]
    job = moved(brought(), {jar: jar.replace("file://", "hdfs://n") for jar in local})
    copies = [jar for jar in jars_of(job) if jar.startswith("hdfs:")]
    assert jars_of(layered(brought(), job)) == ("local:/opt/c.jar", *copies)
    assert JarRequest.of(layered(brought(), job)).empty


def test_what_is_new_must_fit_what_was_brought() -> None:
    with pytest.raises(JarError, match="g:a:1 and g:a:2"):
        JarRequest.of(merged(brought(), {"spark.jars.packages": "g:a:2"}))
    options = with_jars({"spark.jars.packages": "g:a:1"}, {"/x/b-1.jar": ["hdfs://n/b-1.jar"]})
    check_files(options, {"/x/b-2_2.12.jar": []})
    for name in ("a-2.jar", "b-2.jar"):
        with pytest.raises(JarError, match=f"{name}; keep one"):
            check_files(options, {name: [f"file:///x/{name}"]})


def test_two_jars_of_one_name() -> None:
    options = with_jars({"spark.jars": "hdfs://n/a.jar"}, {"/x/b.jar": ["file:///x/b.jar"]})
    for jar in ("hdfs://m/a.jar", "file:///y/b.jar"):
        with pytest.raises(JarError, match=f"two jars are called .*{jar}; rename one"):
            with_jars(options, {jar: [jar]})
    with_jars(options, {"c": ["local:/x/b.jar"]})


def test_the_same_request_has_the_same_options_whatever_their_order() -> None:
    files = {"/b.jar": ["/b.jar"], "/a.jar": ["/a.jar"]}
    first = with_jars({}, files)[BROUGHT]
    assert first == with_jars({}, dict(reversed(files.items())))[BROUGHT]
    assert first != with_jars({}, files, contents={"/a.jar": "1"})[BROUGHT]


def test_key_of_a_result() -> None:
    def key(settings: str = "", **options: str) -> str:
        return JarRequest.of({f"spark.jars.{name}": text for name, text in options.items()}).key(settings)

    first = key(packages="g:a:1,g:b:1", excludes="g:x,g:y")
    assert first == key(packages="g:b:1,g:a:1", excludes="g:y,g:x") and len(first) == 64
    others = {
        key(packages="g:a:1"),
        key(packages="g:a:1,g:b:2", excludes="g:x,g:y"),
        key(packages="g:a:1,g:b:1", excludes="g:x"),
        key(packages="g:a:1,g:b:1", excludes="g:x,g:y", repositories="https://r"),
        key("<ivysettings/>", packages="g:a:1,g:b:1", excludes="g:x,g:y"),
    }
    assert len(others) == 5 and first not in others


def test_packages_of_connectors() -> None:
    best, fallback = connector_packages("kafka", "4.3.0")
    assert [str(package) for package in best] == ["org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0"]
    assert {package.version for package in fallback} == {"4.2.0"} and len(fallback) == 2
    assert connector_packages("files", "4.3.0") == ()
