"""Jars named by path."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from tests.config.hadoop_directory import hadoop_environ
from yarnflow.client.jars.files import contents_of, find_class_paths, find_jars, present_jars
from yarnflow.errors import JarError


def jar(path: Path, *names: str) -> Path:
    with zipfile.ZipFile(path, "w") as made:
        for name in names or ("x/Y.class",):
            made.writestr(name, b"")
    return path


def test_addresses_of_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    one, two = jar(tmp_path / "one.jar"), jar(tmp_path / "two.jar")
    given = ["one.jar", str(two), f"file://{one}", "hdfs://n/x.jar", "local:/opt/y.jar"]
    assert list(find_jars(given, pytest.fail).items()) == [
        ("one.jar", [f"file://{one}"]),
        (str(two), [f"file://{two}"]),
        (f"file://{one}", [f"file://{one}"]),
        ("hdfs://n/x.jar", ["hdfs://n/x.jar"]),
        ("local:/opt/y.jar", ["local:/opt/y.jar"]),
    ]


def test_jars_of_hdfs_say_of_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in hadoop_environ(tmp_path, "hdfs://nn:8020").items():
        monkeypatch.setenv(name, value)
    found = {"hdfs:///a.jar": ["hdfs://nn:8020/a.jar"]}
    assert find_jars(["hdfs:///a.jar"], print) == find_class_paths(["hdfs:///a.jar"], print) == found
    # the cluster may know
    monkeypatch.delenv("HADOOP_CONF_DIR")
    assert find_jars(["hdfs:///a.jar"], print) == {"hdfs:///a.jar": ["hdfs:///a.jar"]}


def test_jars_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "text.jar").write_text("no zip")
    (tmp_path / "folder.jar").mkdir()
    for name, what in (("gone.jar", "does not exist"), ("text.jar", "as a jar"), ("folder.jar", "as a jar")):
        with pytest.raises(JarError, match=f"{name} .*{what}.*; check"):
            find_jars([str(tmp_path / name)], pytest.fail)


@pytest.mark.parametrize("name", ["two words.jar", "a%20b.jar", "a#b.jar", "a?.jar"])
def test_paths_that_spark_reads_otherwise(name: str, tmp_path: Path) -> None:
    with pytest.raises(JarError, match="Spark cannot read a path with '[ %#?]'; move or rename"):
        find_jars([str(jar(tmp_path / name))], pytest.fail)


def test_a_jar_of_flink_is_left_out(tmp_path: Path) -> None:
    flink = jar(tmp_path / "flink-sql-connector-kafka.jar", "META-INF/", "org/apache/flink/X.class")
    iceberg = jar(tmp_path / "iceberg.jar", "org/apache/iceberg/flink/X.class")
    notes: list[str] = []
    found = find_jars([str(flink), str(iceberg)], notes.append)
    assert found == {str(flink): [], str(iceberg): [f"file://{iceberg}"]}
    assert len(notes) == 1 and notes[0].startswith("flink-sql-connector-kafka.jar is a jar of Flink")
    assert find_class_paths([f"file://{flink}"], notes.append) == {f"file://{flink}": []} and len(notes) == 2


def test_a_jar_of_flink_need_not_be_there() -> None:
    """Flink's examples name one at ``/path/to``."""
    notes: list[str] = []
    flink = "file:///path/to/flink-sql-connector-kafka-1.15.0.jar"
    assert find_jars([flink], notes.append) == {flink: []}
    assert len(notes) == 1 and notes[0].startswith("flink-sql-connector-kafka-1.15.0.jar is a jar of Flink")


def test_class_paths_are_each_machines_own(tmp_path: Path) -> None:
    here = jar(tmp_path / "here.jar")
    given = [str(here), "file:///elsewhere/x.jar", "local:/elsewhere/y.jar", "https://h/z.jar"]
    assert list(find_class_paths(given, pytest.fail).values()) == [
        *([f"local:{here}"], ["local:/elsewhere/x.jar"], ["local:/elsewhere/y.jar"], ["https://h/z.jar"]),
    ]
    with pytest.raises(JarError, match="class path x.jar is not an absolute path"):
        find_class_paths(["x.jar"], pytest.fail)


def test_patterns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    one, two = jar(tmp_path / "one.jar"), jar(tmp_path / "two.jar")
    (tmp_path / "other.txt").touch()
    given = f"{tmp_path}/*.jar"
    assert find_jars([given, "o*e.jar"], pytest.fail) == {
        given: [f"file://{one}", f"file://{two}"],
        "o*e.jar": [f"file://{one}"],
    }
    with pytest.raises(JarError, match=r"no jar matches x\*.jar \(looked in .*\); check the path"):
        find_jars(["x*.jar"], pytest.fail)
    with pytest.raises(JarError, match="hdfs://n/x.*patterns are for jars of this machine; name each"):
        find_jars(["hdfs://n/x*.jar"], pytest.fail)


def test_of_two_copies_one_is_enough(tmp_path: Path) -> None:
    one, two, other = (tmp_path / name / "own.jar" for name in ("one", "two", "other"))
    for file, content in ((one, "a"), (two, "a"), (other, "b")):
        file.parent.mkdir()
        jar(file, content)
    found = find_jars(map(str, (one, two, other)), pytest.fail)
    assert list(found.values()) == [[f"file://{one}"], [f"file://{one}"], [f"file://{other}"]]


def test_what_tells_one_content_of_a_jar_from_another(tmp_path: Path) -> None:
    own = jar(tmp_path / "own.jar")
    jars = [f"file://{own}", "hdfs://n/x.jar", "local:/none.jar"]
    first = contents_of(jars)
    assert list(first) == jars[:1] and contents_of(jars) == first
    os.utime(own, (1, 1))
    assert contents_of(jars) != first


def test_what_a_program_may_have_elsewhere(tmp_path: Path) -> None:
    own = jar(tmp_path / "own.jar")
    jars = f"file://{own};/none.jar;{tmp_path}/*.jar;/none/*.jar;hdfs://n/x.jar"
    options = {"pipeline.jars": jars, "spark.jars.packages": "g:a:1"}
    here = f"file://{own},{tmp_path}/*.jar,hdfs://n/x.jar"
    assert present_jars(options) == {**options, "pipeline.jars": here}


def test_a_jar_that_the_container_has_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTAINER_ID", "container_1")
    with pytest.raises(JarError, match="gone.jar does not exist in the container .*; ship it with --jars"):
        find_jars([str(tmp_path / "gone.jar")], pytest.fail)
