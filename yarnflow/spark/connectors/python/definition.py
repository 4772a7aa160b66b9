"""A user's data source class, loaded where the job runs."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.datasource import CaseInsensitiveDict, DataSource

from yarnflow.errors import UserCodeError
from yarnflow.graph.closures import Closure, load_closure
from yarnflow.spark.run.user_errors import user_traceback_of


def load_data_source(closure: Closure, options: Mapping[str, str]) -> DataSource:
    """An instance of the class, with these options.

    Raises
    ------
    UserCodeError
        It needs what is not here, or its constructor raises.
    """
    kind = load_closure(closure)
    if not (isinstance(kind, type) and issubclass(kind, DataSource)):
        raise UserCodeError(f"{closure.origin}: {closure.name} is no subclass of pyspark's DataSource")
    try:
        return kind(CaseInsensitiveDict(options))
    except Exception as error:
        found = user_traceback_of(error)
        raise UserCodeError(f"{found.summary} (data source {closure.name})", found.text) from error
