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
JAVA_OPTIONS_ALL: Final[ConfigOption[str]] = declare.string(
    "env.java.opts.all",
    "",
    Scope.CLUSTER,
    "JVM options of all drivers and executors, before those of env.java.opts.jobmanager and "
    "env.java.opts.taskmanager, and these before spark.driver.extraJavaOptions and "
    "spark.executor.extraJavaOptions, which a job may set.",
    deprecated_keys=("env.java.opts",),
)
JAVA_OPTIONS_DRIVER: Final[ConfigOption[str]] = declare.string(
    "env.java.opts.jobmanager",
    "",
    Scope.CLUSTER,
    "JVM options of drivers, which are the JVMs beside the JobManager here.",
)
JAVA_OPTIONS_EXECUTOR: Final[ConfigOption[str]] = declare.string(
    "env.java.opts.taskmanager",
    "",
    Scope.CLUSTER,
    "JVM options of executors, the JVMs of TaskManagers.",
)
CLASS_DATA_SHARING: Final[ConfigOption[str]] = declare.choice(
    "driver.class-data-sharing",
    "auto",
    ("auto", "off"),
    Scope.CLUSTER,
    "auto = drivers and executors use archives of Spark's loaded classes to start faster, if `yarnflow "
    "prepare` has made archives on their machine; off = never use them.",
)
