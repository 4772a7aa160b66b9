"""What the history server makes of its options."""

from __future__ import annotations

from pathlib import Path

import pytest

from yarnflow.config.configuration import Configuration
from yarnflow.entrypoint.standalone.history_server import archive_dirs, read_token
from yarnflow.errors import ConfigError, FileMissing


def _dirs(**options: str) -> tuple[str, ...]:
    given = {key.replace("__", "."): value for key, value in options.items()}
    return archive_dirs(Configuration.from_dict(given, "test"))


def test_directories_are_those_of_the_server_else_those_of_the_job_manager() -> None:
    found = _dirs(historyserver__archive__fs__dir=" hdfs:///a, file:///b,,hdfs:///a")
    assert found == ("hdfs:///a", "file:///b")
    assert _dirs(jobmanager__archive__fs__dir="hdfs:///c") == ("hdfs:///c",)
    with pytest.raises(ConfigError, match="historyserver.archive.fs.dir"):
        _dirs()


def test_a_token_is_read_from_a_file_of_its_owner(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("open-sesame\n")
    file.chmod(0o600)
    assert read_token(str(file)) == "open-sesame"
    assert read_token("") == ""


@pytest.mark.parametrize(
    "content, mode, error, said",
    [
        ("x", 0o644, ConfigError, "chmod 600"),
        ("", 0o600, ConfigError, "one token"),
        ("two words", 0o600, ConfigError, "one token"),
        ("a\nb", 0o600, ConfigError, "one token"),
        (None, 0, FileMissing, "does not exist"),
    ],
)
def test_a_file_without_a_token_is_refused(
    content: str | None, mode: int, error: type[Exception], said: str, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_text(content)
        file.chmod(mode)
    with pytest.raises(error, match=said):
        read_token(str(file))
