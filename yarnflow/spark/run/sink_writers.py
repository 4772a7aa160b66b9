"""The sinks of one query: which there are, and what they are called."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import SparkSession

from yarnflow.core.checkpoint.query_files import query_directory
from yarnflow.core.collect import parts
from yarnflow.core.json_codec import to_json
from yarnflow.graph.state.sinks import SINKS_FILE, SinkEntries, entry_of, gone_on
from yarnflow.operators.databases.tokens import RunToken
from yarnflow.spark.checkpoints.job import Fence
from yarnflow.spark.checkpoints.sinks import read_identity, read_sinks
from yarnflow.spark.connectors.batch_sink import BatchSink, SinkPlace
from yarnflow.spark.connectors.sinks import batch_sink
from yarnflow.spark.hadoop_files import HadoopFiles
from yarnflow.spark.translate.query_groups import GraphIndex, QueryGroup

#: below a job's checkpoint directory: batches that sinks have not written completely
SINKS_DIRECTORY: Final = "sinks"


@dataclass(frozen=True, slots=True)
class AttemptOutput:
    """What the sinks of an attempt are told of it."""

    #: the job's checkpoint directory
    directory: str
    token: RunToken
    #: raises when this driver may not write
    fence: Fence
    #: seals the elements that the program collects
    part_key: bytes = field(default=b"", repr=False)


class SinkWriters:
    """Makes each when it is needed.

    Parameters
    ----------
    spark : SparkSession
    index : GraphIndex
        The job's graph.
    group : QueryGroup
        What the query consists of.
    output : AttemptOutput
    check : callable
        Raises when the attempt was told to stop.
    """

    def __init__(
        self,
        spark: SparkSession,
        index: GraphIndex,
        group: QueryGroup,
        output: AttemptOutput,
        check: Callable[[], None],
    ) -> None:
        self._spark = spark
        self._index = index
        self._group = group
        self._output = output
        self._check = check
        self._files = HadoopFiles(spark)
        self._query_directory = f"{output.directory}/{query_directory(group.name)}"
        self._writers: dict[int, BatchSink] = {}
        #: of each sink that has one; None = not looked up yet
        self._keys: dict[int, str] | None = None

    def writer(self, sink: int) -> BatchSink:
        """Of a sink of the query."""
        if sink not in self._writers:
            self._writers[sink] = batch_sink(self._place(sink))
        return self._writers[sink]

    def claim(self, planned: Callable[[], int]) -> None:
        """Before the query starts: no earlier attempt writes any more.

        Parameters
        ----------
        planned : callable
            Tells the last batch that an earlier attempt can have written.

        Raises
        ------
        DatabaseError
            A sink's database cannot be written to.
        """
        for sink in self._group.sinks:
            writer = self.writer(sink)
            if writer.claims:
                self._output.fence()
                # asked after the fence: an earlier driver plans none after that
                writer.open(planned())

    def finish(self) -> None:
        """Let all tidy up: also those that had nothing left to do in this attempt."""
        for sink in self._group.sinks:
            self.writer(sink).finish()

    def close(self) -> None:
        """Nothing is written any more; never raises."""
        for writer in self._writers.values():
            with suppress(Exception):
                writer.close()

    def _place(self, sink: int) -> SinkPlace:
        node = self._index.nodes[sink]
        before = self._index.nodes[node.inputs[0]].output_schema
        return SinkPlace(
            self._spark,
            node,
            None if before.element_type is not None else before.scalar,
            self._identity(),
            self._output.token,
            self._may_write,
            f"{self._output.directory}/{SINKS_DIRECTORY}/{self._group.name}",
            f"{self._output.directory}/{parts.DIRECTORY}/{self._group.name}",
            self._output.part_key,
            self._key(sink),
        )

    def _key(self, sink: int) -> str:
        """What the query's checkpoint calls a sink; empty = nothing.

        All sinks are noted there before the first of them writes.
        """
        if self._keys is None:
            entries = {one: entry_of(self._index.nodes[one]) for one in self._group.sinks}
            known = {one: entry for one, entry in entries.items() if entry is not None}
            saved = read_sinks(self._files, self._query_directory)
            now = gone_on(saved, tuple(known.values()))
            if now != saved:
                self._output.fence()
                content = to_json(SinkEntries(now)).encode()
                self._files.write(f"{self._query_directory}/{SINKS_FILE}", content)
            self._keys = {one: entry.key for one, entry in zip(known, now, strict=False)}
        return self._keys.get(sink, "")

    def _may_write(self) -> None:
        self._check()
        self._output.fence()

    def _identity(self) -> str:
        """The id Spark gave the query's checkpoint, or the one it got as a copy of another."""
        found = read_identity(self._files, self._query_directory)
        if not found:
            # a batch program has none by itself
            self._output.fence()
            found = str(uuid.uuid4())
            self._files.write(f"{self._query_directory}/metadata", json.dumps({"id": found}).encode())
        return found
