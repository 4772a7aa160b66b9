"""The generated documents belong to the declarations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from yarnflow.cli.documents import command_line_markdown
from yarnflow.config.conf_file import read_conf_file
from yarnflow.config.configuration import Configuration
from yarnflow.config.documents import conf_yaml, exit_codes_markdown, log_yaml, options_markdown
from yarnflow.config.log_file import DEFAULT_LOGGING, read_log_file
from yarnflow.config.options import ALL_OPTIONS
from yarnflow.core.states_page import states_markdown
from yarnflow.errors import ERRORS_BY_CODE, ConfigError, YarnflowError

ROOT = Path(__file__).resolve().parents[2]


def error_classes(root: type[YarnflowError]) -> Iterator[type[YarnflowError]]:
    yield root
    for child in root.__subclasses__():
        yield from error_classes(child)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("conf/OPTIONS.md", options_markdown()),
        ("conf/yarnflow-conf.yaml", conf_yaml()),
        ("conf/log.yaml", log_yaml()),
        ("docs/exit-codes.md", exit_codes_markdown()),
        ("docs/states.md", states_markdown()),
        ("docs/command-line.md", command_line_markdown()),
    ],
)
def test_generated_files_are_up_to_date(name: str, content: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == content, "run scripts/gen-docs"


def test_the_shipped_configuration_sets_nothing() -> None:
    assert Configuration.load(ROOT / "conf", {}, []) == Configuration.empty()


def test_every_line_of_the_shipped_configuration_can_be_switched_on(tmp_path: Path) -> None:
    lines = [line[1:] if line[:1] == "#" and line[:2] != "# " else line for line in conf_yaml().splitlines()]
    path = tmp_path / "yarnflow-conf.yaml"
    path.write_text("\n".join(lines), encoding="utf-8")
    assert [entry.key for entry in read_conf_file(path)] == [option.key for option in ALL_OPTIONS]
    conf = Configuration.load(tmp_path, {}, [])
    for option in ALL_OPTIONS:
        assert conf.is_set(option) and conf.get(option) == option.default, option.key


def test_the_shipped_log_file_is_the_default() -> None:
    assert read_log_file(ROOT / "conf" / "log.yaml") == DEFAULT_LOGGING


FILE = """\
version: 1
formatters:
  short: {format: '%(message)s'}
handlers:
  file:
    class: logging.FileHandler
    filename: ${log.file}
    formatter: short
root:
  level: INFO
  handlers: [file]
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (FILE, "a: [", "log.yaml:1 is not YAML"),
        (FILE, "- a", "log.yaml:1: expected lines of the form"),
        (FILE, "", "log.yaml: expected lines of the form"),
        ("version: 1", "version: 2", "log.yaml:1: expected version: 1"),
        ("handlers:\n", "handler:\n", "log.yaml:4: unknown key handler; did you mean handlers?"),
        ("logging.FileHandler", "logging.No", "log.yaml:6: handler file: cannot import logging.No"),
        ("    class: logging.FileHandler\n", "", "log.yaml:5: handler file has no class"),
        ("formatter: short", "formatter: long", "log.yaml:8: handler file: there is no formatter long"),
        ("level: INFO", "level: LOUD", "log.yaml:10: root: 'LOUD' is no level"),
        ("handlers: [file]", "handlers: [fil]", "log.yaml:11: root: there is no handler fil"),
        ("handlers: [file]", "handlers: file", "log.yaml:11: root: handlers must be a list"),
        ("  level: INFO\n  handlers: [file]\n", "  - INFO", "log.yaml:9: root must hold lines"),
    ],
)
def test_a_bad_log_file_is_told_with_its_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "log.yaml"
    path.write_text(FILE, encoding="utf-8")
    assert read_log_file(path)["root"] == {"level": "INFO", "handlers": ["file"]}
    assert old in FILE
    path.write_text(FILE.replace(old, new), encoding="utf-8")
    with pytest.raises(ConfigError, match=re.escape(said)) as caught:
        read_log_file(path)
    assert "\n" not in str(caught.value)


def test_a_log_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read .*log.yaml"):
        read_log_file(tmp_path / "log.yaml")


def test_no_two_errors_share_an_exit_status_or_a_code() -> None:
    # other tests declare errors of their own
    classes = [cls for cls in error_classes(YarnflowError) if cls.__module__ == YarnflowError.__module__]
    assert len({cls.exit_code for cls in classes}) == len(classes)
    assert len({cls.code for cls in classes}) == len(classes) == len(ERRORS_BY_CODE)
    # taken by success, wrong usage and signals
    assert not {cls.exit_code for cls in classes} & {0, 2, *range(126, 166)}


def test_the_table_of_exit_statuses_has_meaning_and_action() -> None:
    rows = exit_codes_markdown().splitlines()
    not_found = "| 41 | `JOB_NOT_FOUND` | No job has this id. | Look it up with `yarnflow list --all`. | no |"
    assert not_found in rows
    assert any(row.startswith("| 0 | | The job FINISHED") for row in rows)
    assert any(row.startswith("| 71 | `RPC_TIMEOUT` |") and row.endswith("| yes |") for row in rows)
