"""The Table API is not here, but for the types of fields, which file formats take.

Its names can be imported, and any use of them says what to use instead.

PyFlink: ``pyflink.table`` with all modules below it.
"""

from typing import Any, Final

from yarnflow.api.table.data_types import DataTypes
from yarnflow.graph.compatibility import refused_class

__all__ = ["DataTypes"]

_WHY: Final = "the Table API is not here"
_USE: Final = "env.sql('SELECT …', name=stream), select(…), or a PySpark script"


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    return refused_class(name, _WHY, _USE)
