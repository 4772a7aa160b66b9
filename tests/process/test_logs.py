"""Lines of logs: as text and as JSON, with the job that they concern."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from yarnflow.config.configuration import Configuration
from yarnflow.config.log_file import DEFAULT_LOGGING
from yarnflow.core.job.context import job_context, process_of_job
from yarnflow.errors import ConfigError
from yarnflow.process.logs import FlinkFormatter, JsonFormatter, log_settings, set_up_logging

JOB = "ab" * 16
JSON = Configuration.from_dict({"yarnflow.log.format": "json"}, "test")


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, as it was before when the test is over."""
    found = logging.getLogger()
    handlers, level, factory = found.handlers[:], found.level, logging.getLogRecordFactory()
    yield found
    for handler in found.handlers:
        handler.close()
    found.handlers[:] = handlers
    found.setLevel(level)
    logging.setLogRecordFactory(factory)


def lines(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_json_lines(root: logging.Logger, tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    set_up_logging(log, log_settings(JSON))
    logger = logging.getLogger("yarnflow.test")
    logger.warning("of %s\nlines", "two")
    with job_context(JOB):
        logger.info("of a job")
        try:
            raise ValueError("bad luck")
        except ValueError:
            logger.exception("with a traceback")
    first, second, third = lines(log)
    assert first["message"] == "of two\nlines" and first["log.level"] == "WARN"
    assert first["log.logger"] == "yarnflow.test" and first["@timestamp"].endswith("Z")
    assert first["process.thread.name"] == threading.current_thread().name
    assert "flink-job-id" not in first and second["flink-job-id"] == JOB
    assert third["error.type"] == "ValueError"
    assert third["error.stack_trace"].startswith("Traceback") and "bad luck" in third["error.stack_trace"]


def test_text_lines_name_the_job_where_flinks_have_theirs(root: logging.Logger, tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    set_up_logging(log, log_settings(Configuration.empty()))
    with job_context(JOB):
        logging.getLogger("yarnflow.test").info("of a job")
    logging.getLogger("yarnflow.test").info("of none")
    first, second = log.read_text().splitlines()
    assert first.endswith(f" [{JOB}] - of a job") and second.endswith(" [] - of none")


def test_what_is_no_text_keeps_no_line_from_the_log() -> None:
    record = logging.LogRecord("x", logging.INFO, __file__, 1, "file %s", ("a\udcff",), None)
    assert json.loads(JsonFormatter().format(record))["message"] == "file a?"


def test_a_record_of_another_factory_has_no_job() -> None:
    record = logging.LogRecord("x", logging.INFO, __file__, 1, "m", (), None)
    assert FlinkFormatter().format(record).endswith("[] - m")


def test_a_process_of_one_job_names_it_in_all_threads(root: logging.Logger, tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    set_up_logging(log, log_settings(JSON))
    process_of_job(JOB)
    try:
        thread = threading.Thread(target=lambda: logging.getLogger("yarnflow.test").info("elsewhere"))
        thread.start()
        thread.join()
    finally:
        process_of_job("")
    logging.getLogger("yarnflow.test").info("after it")
    first, second = lines(log)
    assert first["flink-job-id"] == JOB and "flink-job-id" not in second


LOG_FILE = """\
version: 1
formatters:
  ours: {'()': yarnflow.process.logs.FlinkFormatter}
  theirs: {format: '%(job_id)s %(message)s'}
handlers:
  file: {class: logging.FileHandler, filename: '${log.file}', formatter: FORMATTER}
root: {level: INFO, handlers: [file]}
"""


def test_a_log_file_of_the_user_has_its_formatter_replaced(
    root: logging.Logger, tmp_path: Path
) -> None:
    mine, log = tmp_path / "log.yaml", tmp_path / "x.log"
    mine.write_text(LOG_FILE.replace("FORMATTER", "ours"))
    settings = log_settings(JSON.with_values({"yarnflow.log.config-file": str(mine)}))
    set_up_logging(log, settings)
    logging.getLogger("yarnflow.test").info("m")
    assert lines(log)[0]["message"] == "m"


def test_a_form_that_nothing_would_have_is_refused(tmp_path: Path) -> None:
    mine = tmp_path / "log.yaml"
    mine.write_text("version: 1\nroot: {level: INFO}\n")
    with pytest.raises(ConfigError, match=f"yarnflow.log.format is json, and {mine} has no formatter"):
        log_settings(JSON.with_values({"yarnflow.log.config-file": str(mine)}))


def test_formats_of_the_user_may_name_the_job(root: logging.Logger, tmp_path: Path) -> None:
    mine, log = tmp_path / "log.yaml", tmp_path / "x.log"
    mine.write_text(LOG_FILE.replace("FORMATTER", "theirs"))
    configuration = Configuration.from_dict({"yarnflow.log.config-file": str(mine)}, "test")
    set_up_logging(log, log_settings(configuration))
    with job_context(JOB):
        logging.getLogger("yarnflow.test").info("m")
    assert log.read_text() == f"{JOB} m\n"


def test_ours_is_not_changed() -> None:
    log_settings(JSON)
    assert DEFAULT_LOGGING["formatters"]["flink"]["()"].endswith("FlinkFormatter")
