"""Options of the Python interpreter and the JVM of drivers."""

from __future__ import annotations

from typing import Final

from yarnflow.config import declare
from yarnflow.config.option import ConfigOption, Scope

PYTHON_EXECUTABLE: Final[ConfigOption[str]] = declare.string(
    "python.executable",
    "",
    Scope.JOB,
    "Interpreter of the Python workers on TaskManagers; empty = the one the TaskManager runs in.",
)
CLASS_DATA_SHARING: Final[ConfigOption[str]] = declare.choice(
    "driver.class-data-sharing",
    "auto",
    ("auto", "off"),
    Scope.CLUSTER,
    "auto = drivers and executors use archives of Spark's loaded classes to start faster, if `yarnflow "
    "prepare` has made archives on their machine; off = never use them.",
)
