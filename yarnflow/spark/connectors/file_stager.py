"""Writes the rows of a batch into a directory nobody else looks at.

Decides how many files they become: a size is kept by the number of rows, as the bytes of a row are known from
the batches before; the first batch is written again where its files turn out too large.  Flink counterparts:
``RollingPolicy``, ``FileCompactStrategy``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from yarnflow.graph.connectors.sinks import FileSink
from yarnflow.spark.connectors.file_rows import BUCKET, ENCODING, spark_format
from yarnflow.spark.hadoop_files import HadoopFiles

#: a file may have so much more than it should before the first batch is written again
_TOLERANCE: Final = 1.25


class FileStager:
    """For the batches of one sink.

    Parameters
    ----------
    sink : FileSink
        Format, options, sizes.
    """

    def __init__(self, sink: FileSink) -> None:
        self._sink = sink
        #: of the last batch that had rows
        self._row_bytes = 0.0

    def stage(self, frame: DataFrame, data: str) -> int:
        """Write a batch into a directory; returns its rows."""
        sink = self._sink
        limited = sink.part_bytes > 0 or sink.compact_bytes is not None
        if not limited:
            return self._write(frame, data)
        # may be written twice, and counted: user functions are not called again for it
        keep = not self._row_bytes or sink.compact_bytes is not None
        if keep:
            frame.persist()
        try:
            rows = self._write(self._compacted(frame), data)
            sizes = self._sizes(frame, data)
            known = self._row_bytes > 0
            if rows:
                self._row_bytes = sum(sizes) / rows
            if not known and sink.part_bytes and max(sizes, default=0) > _TOLERANCE * sink.part_bytes:
                HadoopFiles(frame.sparkSession).delete(data)
                rows = self._write(self._compacted(frame), data)
            return rows
        finally:
            if keep:
                frame.unpersist()

    def _write(self, frame: DataFrame, data: str) -> int:
        sink = self._sink
        observed = Observation()
        counted = frame.observe(observed, F.count(F.lit(1)).alias("rows"))
        writer = counted.write.format(spark_format(sink.format))
        writer = writer.options(**self._options())
        if sink.part_bytes and self._row_bytes:
            writer = writer.option("maxRecordsPerFile", max(1, int(sink.part_bytes / self._row_bytes)))
        if sink.bucket_expression:
            writer = writer.partitionBy(BUCKET)
        elif sink.partition_by:
            writer = writer.partitionBy(*sink.partition_by)
        writer.save(data)
        return int(observed.get["rows"])

    def _options(self) -> Mapping[str, str]:
        options = dict(self._sink.options)
        if self._sink.format == "text":
            options.pop(ENCODING, None)
        return options

    def _compacted(self, frame: DataFrame) -> DataFrame:
        size = self._sink.compact_bytes
        if size is None:
            return frame
        # computed by as many tasks as before, and written by fewer
        rows = frame.count()
        return frame.coalesce(max(1, math.ceil(rows * self._row_bytes / size)) if size else 1)

    def _sizes(self, frame: DataFrame, data: str) -> list[int]:
        return [size for _, size in HadoopFiles(frame.sparkSession).files_below(data)]
