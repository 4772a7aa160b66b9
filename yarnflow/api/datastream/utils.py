"""Helpers around Java objects, of which there are none here.  PyFlink: ``pyflink.datastream.utils``."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from yarnflow.graph.compatibility import NO_JVM, refused
from yarnflow.graph.type_info import TypeInfo


class ResultTypeQueryable:
    """Says which type it produces."""

    @abstractmethod
    def get_produced_type(self) -> TypeInfo:
        """Type of the elements."""


@refused(NO_JVM, "spark.hadoop.… options")
def create_hadoop_configuration(config: Any) -> Any:
    """Hadoop's Java class."""


@refused(NO_JVM)
def create_java_properties(config: Any) -> Any:
    """Java's properties."""


@refused(NO_JVM)
def convert_to_python_obj(data: Any, type_info: TypeInfo) -> Any:
    """A Java object as a Python object."""


@refused(NO_JVM)
def pickled_bytes_to_python_obj(data: Any, type_info: TypeInfo) -> Any:
    """A Java object's pickled form as a Python object."""
