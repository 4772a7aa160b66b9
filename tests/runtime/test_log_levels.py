"""Levels of loggers of this process."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from yarnflow.core.messages import LogLevel
from yarnflow.errors import InvalidOption
from yarnflow.runtime.log_levels import is_of_java, set_log_level

NAME = "yarnflow.test.levels"


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    level = logging.getLogger().level
    yield
    logging.getLogger(NAME).setLevel(logging.NOTSET)
    logging.getLogger().setLevel(level)


@pytest.mark.parametrize(
    ("word", "number"),
    [("DEBUG", 10), ("trace", 10), ("WARN", 30), ("warning", 30), ("ERROR", 40), ("OFF", 60), ("", 0)],
)
def test_words_of_log4j_and_python(word: str, number: int) -> None:
    logging.getLogger(NAME).setLevel(1)
    set_log_level(LogLevel(NAME, word))
    assert logging.getLogger(NAME).level == number


def test_the_root_has_a_level_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    set_log_level(LogLevel("", "ERROR"))
    assert logging.getLogger().level == logging.ERROR
    with pytest.raises(InvalidOption, match="no logger above it"):
        set_log_level(LogLevel("", ""))


def test_no_other_word_is_taken() -> None:
    with pytest.raises(InvalidOption, match="'LOUD' is no level of a log; expected one of TRACE, DEBUG"):
        set_log_level(LogLevel(NAME, "LOUD"))


def test_the_change_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    set_log_level(LogLevel(NAME, "DEBUG"))
    assert caplog.messages == [f"Logger {NAME} has level DEBUG from now on."]


def test_loggers_of_java() -> None:
    assert is_of_java("org.apache.spark.sql") and not is_of_java("yarnflow.spark") and not is_of_java("")
