"""Secret file, runtime directories, logging set-up."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from yarnflow.config.configuration import Configuration
from yarnflow.config.log_file import read_log_file
from yarnflow.errors import ConfigError, InvalidOption
from yarnflow.process.dirs import (
    base_directory,
    create_cluster_directory,
    read_json,
    remove_old_evidence,
    remove_stale,
    write_json,
)
from yarnflow.process.logs import FlinkFormatter, keep_log_file, log_settings, set_up_logging
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


def test_a_secret_is_there_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two masters of one machine may start at the same moment."""
    path = tmp_path / "secret"
    seen: list[bool] = []
    link = os.link

    def linked(*arguments: object, **more: object) -> None:
        seen.append(path.exists())
        link(*arguments, **more)  # type: ignore[arg-type]
        seen.append(read_secret(path) != "")

    monkeypatch.setattr(os, "link", linked)
    create_secret(path)
    assert seen == [False, True]
    assert [entry.name for entry in tmp_path.iterdir()] == ["secret"]


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


def test_evidence_of_the_five_newest_failures_stays(tmp_path: Path) -> None:
    base = base_directory(str(tmp_path))
    failed = []
    for age in (3, 6, 1, 7, 2, 5, 4):
        directory = create_cluster_directory(str(tmp_path), "local")
        (directory.logs / "driver-1.log").write_text(str(age))
        directory.remove(keep_evidence=True)
        os.utime(directory.path / "keep", (1000 - age, 1000 - age))
        failed.append((age, directory.path))
    other = base / "localish-1"
    other.mkdir()
    create_cluster_directory(str(tmp_path), "remote").remove(keep_evidence=False)
    running = create_cluster_directory(str(tmp_path), "local")
    assert sorted(age for age, path in failed if path.exists()) == [1, 2, 3, 4, 5]
    assert running.path.exists() and other.exists()
    assert remove_old_evidence(base, "local") == []
    assert remove_old_evidence(base, "local", keep=4) == [path for age, path in failed if age == 5]
    running.remove(keep_evidence=False)


def test_only_directories_of_dead_owners_are_stale(tmp_path: Path) -> None:
    base = base_directory(str(tmp_path))
    living = create_cluster_directory(str(tmp_path), "local")
    killed = (
        "import os; from yarnflow.process.dirs import create_cluster_directory as create;"
        f"made = create({str(tmp_path)!r}, 'local'); print(made.path, flush=True); os.kill(os.getpid(), 9)"
    )
    said = subprocess.run([sys.executable, "-c", killed], stdout=subprocess.PIPE, text=True).stdout
    dead = Path(said.strip())
    assert dead.is_dir()
    assert remove_stale(base, "local") == [dead]
    assert living.path.exists() and not dead.exists()
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


LOG_FILE = """\
version: 1
handlers:
  file: {class: logging.FileHandler, filename: '${log.file}', delay: true}
root: {level: ERROR, handlers: [file]}
"""


def test_processes_log_by_a_copy_of_the_log_file(tmp_path: Path) -> None:
    mine, copy = tmp_path / "log.yaml", tmp_path / "cluster" / "log.yaml"
    copy.parent.mkdir()
    mine.write_text(LOG_FILE)
    configuration = Configuration.from_dict({"yarnflow.log.config-file": str(mine)}, "test")
    values = keep_log_file(configuration, copy)
    mine.write_text("changed while the cluster runs")
    settings = log_settings(configuration.with_values(values))
    assert values == {"yarnflow.log.config-file": str(copy)}
    assert settings is not None and settings["root"] == {"level": "ERROR", "handlers": ["file"]}


def test_without_a_log_file_nothing_is_copied(tmp_path: Path) -> None:
    assert keep_log_file(Configuration.empty(), tmp_path / "log.yaml") == {}
    assert log_settings(Configuration.empty()) is None and not list(tmp_path.iterdir())


def test_a_wrong_log_file_is_told_by_whoever_starts_the_cluster(tmp_path: Path) -> None:
    mine = tmp_path / "log.yaml"
    mine.write_text(LOG_FILE.replace("ERROR", "EROR"))
    configuration = Configuration.from_dict({"yarnflow.log.config-file": str(mine)}, "test")
    with pytest.raises(ConfigError, match=f"{mine}:4: root: 'EROR' is no level"):
        keep_log_file(configuration, tmp_path / "copy.yaml")


def test_settings_replace_ours(tmp_path: Path) -> None:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    imported_before = logging.getLogger("yarnflow.imported.before")
    (tmp_path / "log.yaml").write_text(LOG_FILE)
    try:
        set_up_logging(tmp_path / "x.log", read_log_file(tmp_path / "log.yaml"))
        logging.getLogger("yarnflow.test").warning("not shown")
        logging.getLogger("yarnflow.test").error("shown")
        assert not imported_before.disabled
        for handler in root.handlers:
            handler.close()
    finally:
        root.handlers[:], root.level = before
        root.setLevel(root.level)  # drops what loggers remember of the level
    assert (tmp_path / "x.log").read_text() == "shown\n"
