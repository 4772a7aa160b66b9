"""PyFlink's bridge to Java; there is none here.  PyFlink: ``pyflink.util.java_utils``."""

from __future__ import annotations

from typing import Any

from yarnflow.graph.compatibility import NO_JVM, refused


@refused(NO_JVM)
def to_jarray(j_type: Any, arr: Any) -> Any:
    """A Java array."""


@refused(NO_JVM)
def to_j_duration(time_delta: Any) -> Any:
    """Java's Duration."""


@refused(NO_JVM)
def from_j_duration(j_duration: Any) -> Any:
    """A timedelta of Java's Duration."""


@refused(NO_JVM)
def load_java_class(class_name: str) -> Any:
    """A Java class."""


@refused(NO_JVM, "env.set_config(key, value)")
def get_j_env_configuration(j_env: Any) -> Any:
    """The configuration of a Java environment."""
