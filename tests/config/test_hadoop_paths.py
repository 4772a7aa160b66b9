"""Paths of HDFS that do not say which HDFS."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.hadoop_directory import hadoop_environ
from yarnflow.config.checkpoint_root import cluster_storage, shared_checkpoint_root
from yarnflow.config.configuration import Configuration
from yarnflow.config.hadoop.paths import names_file_system, with_file_system, with_file_systems
from yarnflow.errors import ConfigError, YarnUnavailable


def test_a_path_gets_the_default_file_system(tmp_path: Path) -> None:
    environ = hadoop_environ(tmp_path, "hdfs://nn:8020/")
    assert with_file_system("hdfs:///a/b", environ) == "hdfs://nn:8020/a/b"
    assert with_file_system("hdfs:/a/b", environ) == "hdfs://nn:8020/a/b"


@pytest.mark.parametrize("path", ["", "/a", "a", "file:///a", "hdfs://other:1/a", "s3a://bucket/a"])
def test_other_paths_stay_and_nothing_is_read_for_them(path: str) -> None:
    assert with_file_system(path, {}) == path


def test_each_path_of_a_list_gets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in hadoop_environ(tmp_path, "hdfs://nn:8020").items():
        monkeypatch.setenv(name, value)
    assert (
        with_file_systems("hdfs:///a.jar,/b.jar,hdfs:///c.jar")
        == "hdfs://nn:8020/a.jar,/b.jar,hdfs://nn:8020/c.jar"
    )
    assert [names_file_system(path) for path in ("hdfs:///a", "hdfs:/a", "hdfs://nn/a", "/a", "")] == [
        *(False, False),
        *(True, True, True),
    ]


def test_without_a_default_hdfs_the_path_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"^hdfs:///a does not say which HDFS, and .* is file://; write hdfs://"
    ):
        with_file_system("hdfs:///a", hadoop_environ(tmp_path, "file:///"))
    with pytest.raises(YarnUnavailable):
        with_file_system("hdfs:///a", {})


def test_directories_of_options_have_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in hadoop_environ(tmp_path, "hdfs://nn:8020").items():
        monkeypatch.setenv(name, value)

    def options(**values: str) -> Configuration:
        named = {key.replace("_", "."): value for key, value in values.items()}
        return Configuration.from_dict(named, "test")

    storage = Configuration.from_dict({"high-availability.storageDir": "hdfs:///ha"}, "test")
    assert cluster_storage(storage).startswith("hdfs://nn:8020/ha/")
    assert (
        shared_checkpoint_root(options(execution_checkpointing_dir="hdfs:///cp/"), "") == "hdfs://nn:8020/cp"
    )
