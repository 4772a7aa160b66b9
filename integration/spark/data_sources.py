"""Data sources as users write them, for scripts and programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
    SimpleDataSourceStreamReader,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType


@dataclass
class Range(InputPartition):
    """Numbers of a partition."""

    first: int
    end: int


@dataclass
class Written(WriterCommitMessage):
    """Rows of a task."""

    rows: list[tuple[Any, ...]]


class Numbers(DataSource):
    """``n, text`` from 0 to the option ``rows``; writes a file for each batch into the option ``path``."""

    @classmethod
    def name(cls) -> str:
        return "numbers"

    def schema(self) -> str:
        return "n bigint, text string"

    def reader(self, schema: StructType) -> DataSourceReader:
        return NumbersReader(self.options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return NumbersStream(int(self.options["rows"]), int(self.options.get("batch", "1000000")))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        return BatchFiles(self.options)


class NumbersReader(DataSourceReader):
    """Two partitions; the option ``asked`` names a file that counts how often it was asked for them."""

    def __init__(self, options: Any) -> None:
        self.rows = int(options["rows"])
        self.asked = options.get("asked")
        self.bad = int(options.get("bad", "-1"))

    def partitions(self) -> Sequence[InputPartition]:
        if self.asked:
            with open(self.asked, "a") as file:
                file.write("asked\n")
        half = self.rows // 2
        return [Range(0, half), Range(half, self.rows)]

    def read(self, partition: InputPartition) -> Iterator[tuple[int, str]]:
        assert isinstance(partition, Range)
        for n in range(partition.first, partition.end):
            if n == self.bad:
                raise ValueError(f"cannot read {n}")
            yield n, f"row {n}"


class NumbersStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """So many rows in each batch; offsets count them."""

    def __init__(self, rows: int, batch: int) -> None:
        self.rows = rows
        self.batch = batch

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"n": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        pass

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        return {"n": min(self.rows, start["n"] + self.batch)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [Range(start["n"], end["n"])]

    def read(self, partition: InputPartition) -> Iterator[tuple[int, str]]:
        assert isinstance(partition, Range)
        for n in range(partition.first, partition.end):
            yield n, f"row {n}"


class BatchFiles(DataSourceStreamWriter):
    """A file named after the batch: done again it is the same file."""

    def __init__(self, options: Any) -> None:
        self.path = options["path"]
        self.bad = int(options.get("bad", "-1"))
        self.bad_commit = options.get("bad-commit")

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        rows = [tuple(row) for row in iterator]
        if any(row[0] == self.bad for row in rows):
            raise ValueError(f"cannot write {self.bad}")
        return Written(rows)

    def commit(self, messages: list[Any], batchId: int) -> None:  # noqa: N803
        if self.bad_commit:
            raise RuntimeError("the store is closed")
        Path(self.path).mkdir(parents=True, exist_ok=True)
        rows = sorted(row for message in messages for row in message.rows)
        # whole or not at all for a test that looks meanwhile
        aside = Path(self.path, f"{batchId}.aside")
        aside.write_text(json.dumps(rows))
        aside.rename(aside.with_suffix(".json"))

    def abort(self, messages: list[Any], batchId: int) -> None:  # noqa: N803
        Path(self.path).mkdir(parents=True, exist_ok=True)
        Path(self.path, f"{batchId}.aborted").touch()


class Polled(DataSource):
    """Numbers that are polled for, five at a time, until there are as many as the option ``rows`` says."""

    @classmethod
    def name(cls) -> str:
        return "polled"

    def schema(self) -> StructType:
        return StructType().add("n", "long")

    def simpleStreamReader(self, schema: StructType) -> SimpleDataSourceStreamReader:  # noqa: N802
        return Poll(int(self.options["rows"]))


class Poll(SimpleDataSourceStreamReader):
    def __init__(self, rows: int) -> None:
        self.rows = rows

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"n": 0}

    def read(self, start: dict[str, int]) -> tuple[Iterator[tuple[int]], dict[str, int]]:
        end = {"n": min(start["n"] + 5, self.rows)}
        return self.readBetweenOffsets(start, end), end

    def readBetweenOffsets(  # noqa: N802
        self, start: dict[str, int], end: dict[str, int]
    ) -> Iterator[tuple[int]]:
        return iter([(n,) for n in range(start["n"], end["n"])])


class Arrows(DataSource):
    """Whole Arrow batches in and out; ``kind`` says by which writer."""

    @classmethod
    def name(cls) -> str:
        return "arrows"

    def schema(self) -> str:
        return "n bigint"

    def reader(self, schema: StructType) -> DataSourceReader:
        return ArrowReader()

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802
        return ArrowBatchFiles(self.options)


class ArrowReader(DataSourceReader):
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for first in (0, 3):
            yield pa.record_batch({"n": pa.array(range(first, first + 3), pa.int64())})


class ArrowBatchFiles(BatchFiles, DataSourceStreamArrowWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return Written([(n,) for batch in iterator for n in batch.column("n").to_pylist()])


class Batches(DataSource):
    """Can be written to in batches alone; ``arrow`` = by Arrow."""

    @classmethod
    def name(cls) -> str:
        return "batches"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        kind = ArrowAppender if "arrow" in self.options else Appender
        return kind(self.options["path"])


class Appender(DataSourceWriter):
    """A line of a file for each row; done again it is there twice."""

    def __init__(self, path: str) -> None:
        self.path = path

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return Written([tuple(row) for row in iterator])

    def commit(self, messages: list[Any]) -> None:
        with open(self.path, "a") as file:
            for message in messages:
                file.writelines(f"{row[0]}\n" for row in message.rows)


class ArrowAppender(Appender, DataSourceArrowWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return Written([(n,) for batch in iterator for n in batch.column("n").to_pylist()])
