"""The generated documents belong to the declarations."""

from __future__ import annotations

import logging.config
from pathlib import Path

import pytest

from yarnflow.config.conf_file import read_conf_file, read_log_file
from yarnflow.config.configuration import Configuration
from yarnflow.config.documents import conf_yaml, options_markdown
from yarnflow.config.options import ALL_OPTIONS
from yarnflow.core.documents import states_markdown
from yarnflow.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("conf/OPTIONS.md", options_markdown()),
        ("conf/yarnflow-conf.yaml", conf_yaml()),
        ("docs/states.md", states_markdown()),
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


def test_the_shipped_log_file_is_a_logging_configuration(tmp_path: Path) -> None:
    settings = read_log_file(ROOT / "conf" / "log.yaml")
    handlers = settings["handlers"]
    assert isinstance(handlers, dict)
    handlers["file"]["filename"] = str(tmp_path / "x.log")
    logging.config.DictConfigurator(settings)
    assert settings["version"] == 1 and settings["root"] == {"level": "INFO", "handlers": ["file"]}


@pytest.mark.parametrize(("text", "said"), [("a: [", "cannot read"), ("- a", "expected lines of the form")])
def test_a_bad_log_file_is_told(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "log.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=said) as caught:
        read_log_file(path)
    assert "\n" not in str(caught.value)
