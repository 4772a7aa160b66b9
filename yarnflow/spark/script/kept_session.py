"""PySpark's classes while a script runs: it can neither replace nor stop the driver's session.

What it calls on its way there, such as the start of a query, is known to the driver by then.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from yarnflow.operators.databases.commits import current_batch
from yarnflow.operators.databases.tokens import RunToken
from yarnflow.spark.checkpoints.job import Fence
from yarnflow.spark.script.identity import QueryIdentities
from yarnflow.spark.script.queries import ScriptQueries
from yarnflow.spark.script.session_options import Preparation
from yarnflow.spark.served_files import warn_of_private_files

#: of Spark, in the thread that calls a function of ``foreachBatch``
_QUERY_ID: Final = "sql.streaming.queryId"
#: a query of a script has one
_SINK: Final = "foreach-batch"


def _asked_of_context(arguments: Mapping[str, Any]) -> dict[str, object]:
    """Return the options in the arguments of a ``SparkContext``."""
    conf = arguments.get("conf")
    asked: dict[str, object] = {} if conf is None else dict(conf.getAll())
    if arguments.get("appName"):
        asked["spark.app.name"] = arguments["appName"]
    if arguments.get("master"):
        asked["spark.master"] = arguments["master"]
    return asked


@contextmanager
def kept_session(
    spark: Any,
    queries: ScriptQueries,
    identities: QueryIdentities,
    fence: Fence,
    token: RunToken,
    preparation: Preparation,
) -> Iterator[None]:
    """Keep a script that runs from replacing or stopping the session, and know its queries."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    context = spark.sparkContext
    owner = os.getpid()

    def stop(self: Any) -> None:
        if os.getpid() == owner:
            queries.stop()

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        # a second context is an error in Spark; a script that makes its own gets the driver's
        asked = signature.bind(self, *args, **kwargs).arguments
        preparation.prepare_context(_asked_of_context(asked))
        self.__dict__.update(context.__dict__)
        self.environment.update(asked.get("environment") or {})
        for path in asked.get("pyFiles") or ():
            self.addPyFile(path)

    def get_or_create(_cls: type, conf: Any = None) -> Any:
        preparation.prepare_context(_asked_of_context({"conf": conf}), is_new=False)
        return context

    def prepared(build: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(build)
        def give(self: Any) -> Any:
            if os.getpid() == owner:
                preparation.prepare(self._options)
            return build(self)

        return give

    def foreach_batch(self: Any, function: Callable[[Any, int], None]) -> Any:
        @functools.wraps(function)
        def fenced(frame: Any, batch_id: int) -> None:
            fence()
            # the identity of the query's checkpoint, as for sinks of graphs
            query_id = str(frame.sparkSession.sparkContext.getLocalProperty(_QUERY_ID))
            with current_batch(token.batch(f"{query_id}/{_SINK}", batch_id)):
                function(frame, batch_id)

        return spark_foreach_batch(self, fenced)

    def known(begin: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(begin)
        def start(self: Any, *args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe(1)

            def prepared_start() -> Any:
                identities.prepare(self, begin, args, kwargs, frame)
                return begin(self, *args, **kwargs)

            return queries.start(self._spark, prepared_start)

        return start

    def looked_at(add: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(add)
        def add_path(self: Any, path: str, *args: Any, **kwargs: Any) -> Any:
            warn_of_private_files([path])
            return add(self, path, *args, **kwargs)

        return add_path

    spark_foreach_batch = DataStreamWriter.foreachBatch
    signature = inspect.signature(SparkContext.__init__)
    replacements: list[tuple[type, str, Any]] = [
        (SparkSession, "stop", stop),
        (SparkContext, "stop", stop),
        (SparkContext, "__init__", init),
        (SparkContext, "getOrCreate", classmethod(get_or_create)),
        # which addPyFile calls as well
        (SparkContext, "addFile", looked_at(SparkContext.addFile)),
        (SparkContext, "addArchive", looked_at(SparkContext.addArchive)),
        (SparkSession.Builder, "getOrCreate", prepared(SparkSession.Builder.getOrCreate)),
        (SparkSession.Builder, "create", prepared(SparkSession.Builder.create)),
        (DataStreamWriter, "foreachBatch", foreach_batch),
        (DataStreamWriter, "start", known(DataStreamWriter.start)),
        (DataStreamWriter, "toTable", known(DataStreamWriter.toTable)),
    ]
    # as they are written there: getattr would bind a class method
    originals = [(cls, name, vars(cls)[name]) for cls, name, _ in replacements]
    for cls, name, replacement in replacements:
        setattr(cls, name, replacement)
    try:
        yield
    finally:
        for cls, name, original in originals:
            setattr(cls, name, original)
