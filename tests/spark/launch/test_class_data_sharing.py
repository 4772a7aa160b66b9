"""Archives: found, made once, ignored when unfit."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from yarnflow.errors import YarnflowError
from yarnflow.spark.launch.class_data_sharing import (
    Role,
    archive_path,
    archives_exist,
    build_archives,
    default_cache_dir,
    installed_flags,
    jvm_flags,
)
from yarnflow.spark.launch.java import JavaRuntime

JAVA = JavaRuntime(Path("/jre/bin/java"), "17.0.1", "PATH")


def write_archives(flags: Mapping[Role, list[str]]) -> None:
    for (flag,) in flags.values():
        Path(flag.removeprefix("-XX:ArchiveClassesAtExit=")).write_bytes(bytes(2 << 20))


def test_no_archive_no_flags(tmp_path: Path) -> None:
    assert jvm_flags(Role.DRIVER, JAVA, tmp_path / "absent") == []


def test_made_archives_are_used_and_not_made_again(tmp_path: Path) -> None:
    cache = tmp_path / "cds"
    assert build_archives(JAVA, cache, write_archives)
    assert archives_exist(JAVA, cache)
    path = archive_path(Role.EXECUTOR, JAVA, cache)
    assert jvm_flags(Role.EXECUTOR, JAVA, cache) == ["-Xshare:auto", f"-XX:SharedArchiveFile={path}"]
    assert not build_archives(JAVA, cache, lambda flags: pytest.fail("made twice"))
    assert cache.stat().st_mode & 0o077 == 0


def test_another_java_has_another_archive(tmp_path: Path) -> None:
    other = JavaRuntime(JAVA.program, "17.0.2", "PATH")
    build_archives(JAVA, tmp_path / "cds", write_archives)
    assert jvm_flags(Role.DRIVER, other, tmp_path / "cds") == []


def test_a_cut_off_archive_is_ignored(tmp_path: Path) -> None:
    path = archive_path(Role.DRIVER, JAVA, tmp_path)
    path.write_bytes(b"half")
    assert jvm_flags(Role.DRIVER, JAVA, tmp_path) == []


def test_only_one_builder_works(tmp_path: Path) -> None:
    holder = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(holder, fcntl.LOCK_EX)
        assert not build_archives(JAVA, tmp_path, lambda flags: pytest.fail("worked beside another"))
    finally:
        os.close(holder)


def test_archives_below_the_user_s_own_home_are_found_where_home_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = tmp_path / "own", tmp_path / "other"
    monkeypatch.setattr("pwd.getpwuid", lambda uid: SimpleNamespace(pw_dir=str(own)))
    monkeypatch.setenv("HOME", str(other))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert installed_flags(Role.DRIVER, JAVA) == []
    build_archives(JAVA, own / ".cache" / "yarnflow" / "cds", write_archives)
    assert str(own) in installed_flags(Role.DRIVER, JAVA)[1]
    build_archives(JAVA, default_cache_dir(), write_archives)
    assert str(other) in installed_flags(Role.DRIVER, JAVA)[1]


def test_failed_training_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(YarnflowError, match="no class-data archive of the driver"):
        build_archives(JAVA, tmp_path, lambda flags: None)
    assert not archives_exist(JAVA, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["lock"]


def test_cache_directory_follows_xdg() -> None:
    assert default_cache_dir({"XDG_CACHE_HOME": "/c", "HOME": "/h"}) == Path("/c/yarnflow/cds")
    assert default_cache_dir({"XDG_CACHE_HOME": "relative", "HOME": "/h"}) == Path("/h/.cache/yarnflow/cds")
