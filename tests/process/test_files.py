"""Secret file, runtime directories, logging set-up."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from yarnflow.errors import ConfigError, InvalidOption
from yarnflow.process.dirs import (
    base_directory,
    create_cluster_directory,
    read_json,
    remove_stale,
    write_json,
)
from yarnflow.process.logs import FlinkFormatter, set_up_logging
from yarnflow.process.secret import create_secret, ensure_secret, read_secret


def test_secret_is_private_whatever_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    before = os.umask(0)
    try:
        text = create_secret(path)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(text) == 64 and read_secret(path) == text == ensure_secret(path)
    with pytest.raises(ConfigError, match="cannot create"):
        create_secret(path)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_secret_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "secret"
    create_secret(path)
    path.chmod(mode)
    with pytest.raises(ConfigError, match=f"chmod 600 {path}"):
        read_secret(path)


def test_secret_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret"
    create_secret(path)
    if os.geteuid() == 0:
        os.chown(path, 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(ConfigError, match="belongs to user"):
        read_secret(path)


def test_missing_and_empty_secret(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        read_secret(tmp_path / "none")
    path = tmp_path / "short"
    path.touch(0o600)
    path.write_text("abc\n")
    with pytest.raises(ConfigError, match="openssl rand"):
        read_secret(path)
    with pytest.raises(ConfigError, match="not a regular file"):
        read_secret(tmp_path)
    assert len(ensure_secret(tmp_path / "new")) == 64


def test_cluster_directory_is_private_and_goes(tmp_path: Path) -> None:
    directory = create_cluster_directory(str(tmp_path), "local")
    assert directory.path.stat().st_mode & 0o777 == 0o700
    assert directory.path.parent == base_directory(str(tmp_path))
    (directory.path / "work").mkdir()
    directory.remove(keep_evidence=False)
    assert not directory.path.exists()


def test_evidence_of_a_failed_job_stays(tmp_path: Path) -> None:
    directory = create_cluster_directory(str(tmp_path), "local")
    (directory.logs / "driver-1.log").write_text("why")
    (directory.path / "secret").write_text("s")
    (directory.path / "work").mkdir()
    directory.remove(keep_evidence=True)
    assert (directory.logs / "driver-1.log").read_text() == "why"
    assert not (directory.path / "secret").exists() and not (directory.path / "work").exists()
    assert remove_stale(base_directory(str(tmp_path)), "local") == []


def test_only_directories_of_dead_owners_are_stale(tmp_path: Path) -> None:
    base = base_directory(str(tmp_path))
    living = create_cluster_directory(str(tmp_path), "local")
    dead = create_cluster_directory(str(tmp_path), "local")
    os.close(dead._lock_fd)  # what the kernel does for a killed owner
    assert remove_stale(base, "local") == [dead.path]
    assert living.path.exists() and not dead.path.exists()
    living.remove(keep_evidence=False)


def test_base_directory_open_to_others_is_refused(tmp_path: Path) -> None:
    base_directory(str(tmp_path)).chmod(0o777)
    with pytest.raises(ConfigError, match="chmod 700"):
        base_directory(str(tmp_path))


def test_base_directory_must_not_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / f"yarnflow-{os.geteuid()}").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="not a directory of this user"):
        base_directory(str(tmp_path))


def test_json_files(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    assert read_json(path) is None
    write_json(path, {"address": "localhost:1"})
    assert read_json(path) == {"address": "localhost:1"}
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text("{")
    assert read_json(path) is None


def test_log_lines_look_like_flinks() -> None:
    record = logging.LogRecord("yarnflow.x", logging.WARNING, __file__, 1, "Job %s", ("a",), None)
    line = FlinkFormatter().format(record)
    assert " WARN  yarnflow.x " in line and line.endswith("[] - Job a")
    assert record.levelname == "WARNING"


def test_bad_logging_settings(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="log.yaml"):
        set_up_logging(tmp_path / "log", {"version": 1, "handlers": {"h": {"class": "no.such.Handler"}}})
