"""Which file systems are asked for, on a JVM made up here."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from yarnflow.errors import StorageError
from yarnflow.spark import hadoop_files
from yarnflow.spark.hadoop_files import HadoopFiles


@dataclass
class System:
    """One ``FileSystem``; that of local files keeps checksums and has another one below it."""

    scheme: str
    raw: System | None = None

    def getRawFileSystem(self) -> System:
        assert self.raw is not None
        return self.raw


@dataclass
class Hadoop:
    """Keeps one file system of each scheme until somebody closes it, as Hadoop does."""

    kept: dict[str, System] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def system(self, path: str) -> System:
        scheme = path.partition(":")[0]
        self.asked.append(scheme)
        raw = System(scheme) if scheme == "file" else None
        return self.kept.setdefault(scheme, System(scheme, raw))


@pytest.fixture
def hadoop(monkeypatch: pytest.MonkeyPatch) -> Hadoop:
    found = Hadoop()

    def path(text: str) -> Any:
        return SimpleNamespace(getFileSystem=lambda configuration: found.system(text))

    monkeypatch.setattr(hadoop_files, "java_class", lambda gateway, name: path)
    monkeypatch.setattr(hadoop_files, "is_instance", lambda gateway, system, name: system.raw is not None)
    return found


@pytest.fixture
def files(hadoop: Hadoop) -> HadoopFiles:
    context = SimpleNamespace(_gateway=None, _jsc=SimpleNamespace(hadoopConfiguration=lambda: None))
    return HadoopFiles(SimpleNamespace(sparkContext=context))  # type: ignore[arg-type]


def test_one_that_a_program_has_closed_is_not_used_again(files: HadoopFiles, hadoop: Hadoop) -> None:
    before = files.system("hdfs://nn/a")
    assert files.system("hdfs://nn/b") is before
    del hadoop.kept["hdfs"]
    after = files.system("hdfs://nn/a")
    assert after is not before and after is hadoop.kept["hdfs"]


def test_local_files_are_used_without_checksums_and_asked_for_once(
    files: HadoopFiles, hadoop: Hadoop
) -> None:
    raw = files.system("file:///a")
    assert raw is hadoop.kept["file"].raw
    assert files.system("file:///b") is raw and hadoop.asked == ["file"]


def test_local_files_are_deleted_without_java(
    files: HadoopFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes by paths, in which others may exchange a directory meanwhile."""
    monkeypatch.setattr(hadoop_files, "is_instance", lambda gateway, system, name: "Local" in name)
    monkeypatch.setattr(HadoopFiles, "qualified", lambda self, path: path)
    (tmp_path / "it").mkdir()
    (tmp_path / "link").symlink_to(tmp_path)
    files.delete(f"file:{tmp_path}/link/it")
    files.delete(f"file:{tmp_path}/link/it")
    assert not (tmp_path / "it").exists()
    with pytest.raises(StorageError, match="delete of .* failed: File name too long"):
        files.delete(f"file:{tmp_path}/{'x' * 300}")
