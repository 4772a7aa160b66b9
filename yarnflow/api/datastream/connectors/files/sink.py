"""Files that are written.  PyFlink: ``pyflink.datastream.connectors.file_system``.

Decides which files and directories records go to.  Every micro-batch finishes the files it writes, and
makes them visible all at once; so a policy can divide the records of a batch among more files or fewer, but
not keep one open for the next batch.
"""

from __future__ import annotations

import os
import re
import zoneinfo
from collections.abc import Mapping
from typing import Any, Final

from yarnflow.api.building.definitions import check_options, columns
from yarnflow.api.common.serialization import BulkWriterFactory, Encoder
from yarnflow.api.datastream.connectors.base import Sink, StreamTransformer, SupportsPreprocessing
from yarnflow.api.datastream.connectors.files.source import absolute, charset_option
from yarnflow.api.origin import call_origin
from yarnflow.errors import SchemaError, UnsupportedGraph
from yarnflow.graph.compatibility import differs, refused_class, same_and
from yarnflow.graph.connectors import sinks
from yarnflow.graph.operators import Operator
from yarnflow.graph.schema import VALUE_FIELD, Field, Schema
from yarnflow.graph.types import parse_type, schema_of_type

_FORMATS: Final = ("csv", "json", "parquet", "orc", "avro")
_BY_BATCH: Final = "each micro-batch finishes its files, which is sooner"
_BASE_PATH: Final = "without a bucket assigner all goes to the sink's own directory, not to one for each hour"
_MIB: Final = 1024 * 1024
#: what Java's patterns of dates have as letters, and quotes around any other text
_PATTERN: Final = re.compile(r"(?:[GuyDMLdQqYwWEecFaBhKkHmsSAnNVvzOXxZ]+|[^A-Za-z'\[\]{}#]|'[^']*')+")
_OFFSET: Final = re.compile(r"(?:GMT|UTC|UT)?[+-]\d{1,2}(?::?\d{2}){0,2}|Z|GMT|UTC|UT")
#: what names of files cannot have
_NOT_IN_NAMES: Final = re.compile(r"[/\\:*?\"<>|\x00-\x1f]")


# --- when files end -----------------------------------------------------------------------


class RollingPolicy:
    """When records go into another file; a micro-batch always ends its files.

    Parameters
    ----------
    part_size : int
        Bytes that a file may have; 0: any number.
    """

    def __init__(self, part_size: int = 0) -> None:
        self.part_size = part_size

    @staticmethod
    @differs(f"the intervals have no effect: {_BY_BATCH}; part_size is kept nearly")
    def default_rolling_policy(
        part_size: int = 128 * _MIB,
        rollover_interval: int = 60 * 1000,
        inactivity_interval: int = 60 * 1000,
    ) -> DefaultRollingPolicy:
        """By size: a file has about ``part_size`` bytes at most, as its rows were counted before."""
        if part_size <= 0 or rollover_interval <= 0 or inactivity_interval <= 0:
            raise ValueError("part_size and intervals of a rolling policy must be above 0")
        return DefaultRollingPolicy(part_size)

    @staticmethod
    def on_checkpoint_rolling_policy() -> OnCheckpointRollingPolicy:
        """With every checkpoint, which a micro-batch is."""
        return OnCheckpointRollingPolicy()


class DefaultRollingPolicy(RollingPolicy):
    """By size."""


class OnCheckpointRollingPolicy(RollingPolicy):
    """With every checkpoint."""


# --- where records go -----------------------------------------------------------------------


class BucketAssigner:
    """Which directory below the sink's a record goes to.

    Parameters
    ----------
    pattern : str
        Of the time of writing, as Java's ``DateTimeFormatter`` takes it; empty: none.
    zone : str
        Of that time; empty: that of the driver.
    expression : str
        SQL over the record's fields that gives its directory; empty: none.
    """

    def __init__(self, pattern: str = "", zone: str = "", expression: str = "") -> None:
        self.pattern = pattern
        self.zone = zone
        self.expression = expression

    @staticmethod
    def base_path_bucket_assigner() -> BucketAssigner:
        """All go to the sink's own directory; the default."""
        return BucketAssigner()

    @staticmethod
    @differs("the time is that of the micro-batch")
    def date_time_bucket_assigner(
        format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None
    ) -> BucketAssigner:
        """By the time of writing, such as ``2026-11-23--17``.

        Raises
        ------
        UnsupportedGraph
            The pattern is none of Java's, or the zone is not known.
        """
        if not _PATTERN.fullmatch(format_str):
            raise UnsupportedGraph(f"{call_origin()}: '{format_str}' is no pattern of dates")
        if timezone_id is not None and not _is_zone(timezone_id):
            raise UnsupportedGraph(
                f"{call_origin()}: there is no time zone '{timezone_id}'; write one such as Europe/Rome "
                "or +01:00"
            )
        return BucketAssigner(format_str, timezone_id or "")

    @staticmethod
    def expression_bucket_assigner(expression: str) -> BucketAssigner:
        """By the record (yarnflow's own): ``"city"``, or ``"date_format(at, 'yyyy-MM-dd')"`` for event time.

        A slash in the value divides directories; a record without a value goes to ``null``.  Elements of a
        text sink are called ``value``.
        """
        return BucketAssigner(expression=expression)


def _is_zone(name: str) -> bool:
    if _OFFSET.fullmatch(name):
        return True
    try:
        zoneinfo.ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        return False
    return True


class OutputFileConfigBuilder:
    """Says how files are named."""

    def __init__(self) -> None:
        self._part_prefix = "part"
        self._part_suffix = ""

    def with_part_prefix(self, prefix: str) -> OutputFileConfigBuilder:
        """How names begin."""
        self._part_prefix = prefix
        return self

    def with_part_suffix(self, suffix: str) -> OutputFileConfigBuilder:
        """How names end; that of the format unless set."""
        self._part_suffix = suffix
        return self

    def build(self) -> OutputFileConfig:
        """The name."""
        return OutputFileConfig(self._part_prefix, self._part_suffix)


class OutputFileConfig:
    """How files are named: prefix, what tells sink, micro-batch and file, suffix."""

    OutputFileConfigBuilder = OutputFileConfigBuilder

    def __init__(self, part_prefix: str, part_suffix: str) -> None:
        for text in (part_prefix, part_suffix):
            if _NOT_IN_NAMES.search(text):
                raise UnsupportedGraph(f"{call_origin()}: no name of a file can have {text!r} in it")
        if part_prefix.startswith((".", "_")):
            raise UnsupportedGraph(
                f"{call_origin()}: files whose names begin with '{part_prefix[0]}' are hidden from readers"
            )
        self._part_prefix = part_prefix
        self._part_suffix = part_suffix

    @staticmethod
    def builder() -> Any:
        """Begin a name."""
        return OutputFileConfigBuilder()

    def get_part_prefix(self) -> str:
        """How names begin."""
        return self._part_prefix

    def get_part_suffix(self) -> str:
        """How names end; empty: as the format's do."""
        return self._part_suffix


# --- fewer files ----------------------------------------------------------------------------


class FileCompactStrategyBuilder:
    """Says how few files a micro-batch writes."""

    def __init__(self) -> None:
        self._checkpoints = 0
        self._size = 0

    @differs("1 only: a micro-batch's files are visible with it, and none is held back for the next")
    def enable_compaction_on_checkpoint(
        self, num_checkpoints_before_compaction: int
    ) -> FileCompactStrategyBuilder:
        """Every micro-batch writes one file, or as many as the size says."""
        if num_checkpoints_before_compaction != 1:
            raise UnsupportedGraph(
                f"{call_origin()}: enable_compaction_on_checkpoint({num_checkpoints_before_compaction}): "
                "files of several micro-batches are not put together; use 1, and a larger "
                "execution.micro-batch.interval"
            )
        self._checkpoints = 1
        return self

    @differs("no file is held back until there are so many bytes")
    def set_size_threshold(self, size_threshold: int) -> FileCompactStrategyBuilder:
        """A micro-batch writes files of about so many bytes, as its rows were counted before."""
        if size_threshold <= 0:
            raise ValueError("the size threshold must be above 0")
        self._size = size_threshold
        return self

    @same_and("without effect: the tasks of the sink write")
    def set_num_compact_threads(self, num_compact_threads: int) -> FileCompactStrategyBuilder:
        """Threads of Flink's compactor."""
        return self

    def build(self) -> FileCompactStrategy:
        """The strategy."""
        if not (self._checkpoints or self._size):
            raise ValueError("call enable_compaction_on_checkpoint(1) or set_size_threshold(bytes)")
        return FileCompactStrategy(self._size)


class FileCompactStrategy:
    """How few files a micro-batch writes.

    Parameters
    ----------
    size_threshold : int
        Bytes of a file, about; 0: all rows of a directory go to one.
    """

    Builder = FileCompactStrategyBuilder

    def __init__(self, size_threshold: int = 0) -> None:
        self.size_threshold = size_threshold

    @staticmethod
    def builder() -> FileCompactStrategyBuilder:
        """Begin a strategy."""
        return FileCompactStrategyBuilder()


class FileCompactor:
    """How files are put together: here they are written whole."""

    @staticmethod
    def concat_file_compactor(file_delimiter: bytes | None = None) -> FileCompactor:
        """One behind the other; with nothing in between."""
        if file_delimiter:
            raise UnsupportedGraph(
                f"{call_origin()}: concat_file_compactor({file_delimiter!r}): files are written whole, with "
                "nothing in between; leave the delimiter out"
            )
        return FileCompactor()

    @staticmethod
    def identical_file_compactor() -> FileCompactor:
        """A single file as it is."""
        return FileCompactor()


# --- the sink -------------------------------------------------------------------------------


class FileSinkBuilder:
    """Builds a :class:`FileSink` step by step."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._settings: dict[str, Any] = {"path": path}
        self._options: dict[str, object] = {}

    def format(self, format: str) -> FileSinkBuilder:
        """``csv``, ``json``, ``parquet``, ``orc`` or ``avro``."""
        self._settings["format"] = format
        return self

    def option(self, key: str, value: object) -> FileSinkBuilder:
        """A writer option as Spark names it."""
        self._options[key] = value
        return self

    def partition_by(self, *names: str) -> FileSinkBuilder:
        """Fields that become ``name=value`` directories."""
        self._settings["partition_by"] = names
        return self

    @same_and(f"without effect: {_BY_BATCH}")
    def with_bucket_check_interval(self, interval: int) -> FileSinkBuilder:
        """How often Flink looks for files to end, in milliseconds."""
        return self

    def with_bucket_assigner(self, bucket_assigner: BucketAssigner) -> FileSinkBuilder:
        """Which directory a record goes to; the sink's own unless set."""
        self._settings["buckets"] = bucket_assigner
        return self

    def with_rolling_policy(self, rolling_policy: RollingPolicy) -> FileSinkBuilder:
        """When records go into another file."""
        self._settings["part_size"] = rolling_policy.part_size
        return self

    def with_output_file_config(self, output_file_config: OutputFileConfig) -> FileSinkBuilder:
        """How files are named."""
        self._settings["file_config"] = output_file_config
        return self

    def enable_compact(self, strategy: FileCompactStrategy, compactor: FileCompactor) -> FileSinkBuilder:
        """A micro-batch writes few files, instead of one or more for each of its tasks."""
        self._settings["compact"] = strategy
        return self

    def disable_compact(self) -> FileSinkBuilder:
        """Each task of a micro-batch writes files of its own; the default."""
        self._settings.pop("compact", None)
        return self

    def _of(self, factory: BulkWriterFactory) -> FileSinkBuilder:
        self._settings.update(
            format=factory.format, row_type=factory.row_type, separators=factory.separators
        )
        self._options.update(factory.options)
        return self

    def build(self) -> FileSink:
        """The sink."""
        return FileSink(**self._settings, options=self._options)


class FileSink(Sink, SupportsPreprocessing):
    """Files of a directory, exactly-once.

    Parameters
    ----------
    path : str
        A directory path or URI.
    format : str
        ``csv``, ``json``, ``parquet``, ``orc`` or ``avro``; ``text`` = the text of each element on a line.
    options : mapping, optional
        Writer options as Spark names them.
    partition_by : sequence of str
        Fields that become ``name=value`` directories.
    buckets : BucketAssigner, optional
        Which directory a record goes to; None: the sink's own.
    part_size : int
        Bytes that a file may have, about; 0: any number.
    file_config : OutputFileConfig, optional
        How files are named.
    compact : FileCompactStrategy, optional
        How few files a micro-batch writes; None: one or more for each task.
    row_type : DataType, optional
        What the fields are written as, in their order; None: as they are.
    separators : mapping, optional
        CSV: field that holds an array to what stands between its elements.
    """

    name = "File Sink"
    BaseBuilder = RowFormatBuilder = BulkFormatBuilder = FileSinkBuilder

    def __init__(
        self,
        path: str | os.PathLike[str],
        format: str = "parquet",
        options: Mapping[str, object] | None = None,
        partition_by: tuple[str, ...] | list[str] = (),
        *,
        buckets: BucketAssigner | None = None,
        part_size: int = 0,
        file_config: OutputFileConfig | None = None,
        compact: FileCompactStrategy | None = None,
        row_type: Any = None,
        separators: Mapping[str, str] | None = None,
    ) -> None:
        self._path = absolute(path)
        self._format = format
        self._options = dict(options or {})
        self._partition_by = tuple(partition_by)
        self._buckets = buckets or BucketAssigner()
        self._part_size = part_size
        self._file_config = file_config or OutputFileConfig("part", "")
        self._compact = compact
        self._row_type = row_type
        self._separators = dict(separators or {})

    @staticmethod
    def for_path(path: str | os.PathLike[str]) -> FileSinkBuilder:
        """Begin a sink by its path."""
        return FileSinkBuilder(path)

    @staticmethod
    @differs(_BASE_PATH)
    def for_row_format(base_path: str, encoder: Encoder) -> FileSinkBuilder:
        """Begin a sink of lines."""
        builder = FileSinkBuilder(base_path).format("text")
        for key, value in charset_option(encoder.charset_name).items():
            builder.option(key, value)
        return builder

    @staticmethod
    @differs(_BASE_PATH)
    def for_bulk_format(base_path: str, writer_factory: BulkWriterFactory) -> FileSinkBuilder:
        """Begin a sink of whole files."""
        return FileSinkBuilder(base_path)._of(writer_factory)

    def get_transformer(self) -> StreamTransformer | None:
        """None."""
        return None

    def operator(self, schema: Schema) -> Operator:
        if self._format == "text":
            lines = Schema((Field(VALUE_FIELD, "string"),), scalar=True)
            self._check_bucket(lines)
            return self._described(None)
        if self._format not in _FORMATS:
            known = ", ".join(("text", *_FORMATS))
            raise UnsupportedGraph(f"no file format '{self._format}'; there are {known}")
        schema = columns(schema)
        self._check_bucket(schema)
        written = None if self._row_type is None else self._written_as(schema)
        self._check_fields(written or schema)
        return self._described(written)

    def _described(self, written: Schema | None) -> sinks.FileSink:
        return sinks.FileSink(
            self._path,
            self._format,
            check_options(self._options),
            self._partition_by,
            prefix=self._file_config.get_part_prefix(),
            suffix=self._file_config.get_part_suffix(),
            bucket_pattern=self._buckets.pattern,
            bucket_zone=self._buckets.zone,
            bucket_expression=self._buckets.expression,
            part_bytes=self._part_size,
            compact_bytes=None if self._compact is None else self._compact.size_threshold,
            written_as=written,
            separators=self._separators,
        )

    def _check_bucket(self, schema: Schema) -> None:
        from yarnflow.graph.sql.expressions import select_schema

        if self._buckets.expression and schema.known:
            # finds fields that there are not
            select_schema((f"{self._buckets.expression} AS bucket",), schema)
        if self._buckets.expression and self._partition_by:
            raise UnsupportedGraph("partition_by and a bucket expression both name directories; use one")

    def _written_as(self, schema: Schema) -> Schema:
        written = schema_of_type(self._row_type)
        names = ", ".join(written.names)
        if schema.known and len(schema.fields) != len(written.fields):
            raise SchemaError(
                f"the stream has {len(schema.fields)} fields ({', '.join(schema.names)}), the row type of "
                f"the files {len(written.fields)} ({names})"
            )
        return written

    def _check_fields(self, schema: Schema) -> None:
        from yarnflow.graph.sql.expressions import unknown_field

        for name in self._partition_by:
            if schema.known and schema.find(name) is None:
                raise unknown_field(name, schema)
        if schema.known and {n.lower() for n in schema.names} <= {n.lower() for n in self._partition_by}:
            raise UnsupportedGraph("partition_by names all fields, so nothing would be left for the files")
        nested = [f.name for f in schema.fields if f.type and parse_type(f.type).children]
        bad = [name for name in nested if name not in self._separators]
        if self._format == "csv" and bad:
            raise SchemaError(f"csv cannot hold field '{bad[0]}' of type {_type(schema, bad[0])}; use json")


StreamingFileSink: Any = refused_class("StreamingFileSink", "it is the older form of FileSink", "FileSink")


def _type(schema: Schema, name: str) -> str:
    field = schema.find(name)
    return field.type or "" if field is not None else ""
