"""Files.  PyFlink: ``pyflink.datastream.connectors.file_system``.

Decides how a program names files and their formats; reading and writing is Spark's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Final

from yarnflow.api.building.definitions import check_options, columns
from yarnflow.api.common.serialization import BulkWriterFactory, Encoder
from yarnflow.api.datastream.connectors.base import Sink, Source, StreamTransformer, SupportsPreprocessing
from yarnflow.api.lengths import DurationLike
from yarnflow.errors import SchemaError, UnsupportedGraph
from yarnflow.graph import operators
from yarnflow.graph.compatibility import differs, refused, refused_class
from yarnflow.graph.schema import VALUE_FIELD, Field, Schema
from yarnflow.graph.types import parse_type, to_schema

_SOURCE_FORMATS: Final = ("text", "csv", "json", "parquet")
_SINK_FORMATS: Final = ("csv", "json", "parquet")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_TEXT_SCHEMA: Final = Schema((Field(VALUE_FIELD, "string"),), scalar=True)
_SPARK_ROLLS: Final = "accepted and without effect: each micro-batch writes files of its own"
_SPARK_SPLITS: Final = "accepted and without effect: Spark lists and splits files"


# --- reading ------------------------------------------------------------------------------


class StreamFormat:
    """How the lines of a file become elements."""

    def __init__(
        self, format: str = "text", schema: object | None = None, options: Mapping[str, object] | None = None
    ) -> None:
        self.format = format
        self.schema = schema
        self.options = dict(options or {})

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        """Each line is an element."""
        # Spark reads UTF-8 where nothing else is said
        plain = charset_name.upper() in ("UTF-8", "UTF8")
        return StreamFormat(options={} if plain else {"encoding": charset_name})


class BulkFormat(StreamFormat):
    """How a whole file becomes elements; made by the formats."""


class FileEnumeratorProvider:
    """Which files are read in which parts; Spark decides that."""

    @staticmethod
    @differs(_SPARK_SPLITS)
    def default_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Files are split."""
        return FileEnumeratorProvider()

    @staticmethod
    @differs(_SPARK_SPLITS)
    def default_non_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Files are not split."""
        return FileEnumeratorProvider()


class FileSplitAssignerProvider:
    """Which subtask reads which part; Spark decides that."""

    @staticmethod
    @differs(_SPARK_SPLITS)
    def locality_aware_split_assigner() -> FileSplitAssignerProvider:
        """Those nearby."""
        return FileSplitAssignerProvider()


class FileSource(Source):
    """Files of a directory, a glob, or one file.

    See also ``FileSource.for_path(path).format("csv").schema("a INT").build()``.

    Parameters
    ----------
    path : str
        A path or URI; one without a scheme is a path of the cluster's default file system.
    format : str
        ``text`` (a scalar stream of lines), ``csv``, ``json`` or ``parquet``.
    schema : str, type or Schema
        Fields of the records; all formats but text need it.
    options : mapping, optional
        Reader options as Spark names them.
    bounded : bool
        Read what is there and end; else watch for new files for ever.
    max_files_per_trigger : int
        Files taken into one micro-batch, in order of modification time; 0 = no limit.
    """

    name = "File Source"

    def __init__(
        self,
        path: str | os.PathLike[str],
        format: str = "text",
        schema: object | None = None,
        options: Mapping[str, object] | None = None,
        bounded: bool = True,
        max_files_per_trigger: int = 0,
    ) -> None:
        self._path = _absolute(path)
        self._format = format
        self._schema = schema
        self._options = dict(options or {})
        self._bounded = bounded
        self._max_files_per_trigger = max_files_per_trigger

    @staticmethod
    def for_path(path: str | os.PathLike[str]) -> FileSourceBuilder:
        """Begin a source by its path."""
        return FileSourceBuilder(path)

    @staticmethod
    def for_record_stream_format(
        stream_format: StreamFormat, *paths: str | os.PathLike[str]
    ) -> FileSourceBuilder:
        """Begin a source by the format of its lines; several paths are one glob of Spark's."""
        return FileSourceBuilder(_one_path(paths))._of(stream_format)

    @staticmethod
    def for_bulk_file_format(bulk_format: StreamFormat, *paths: str | os.PathLike[str]) -> FileSourceBuilder:
        """Begin a source by the format of its files; several paths are one glob of Spark's."""
        return FileSourceBuilder(_one_path(paths))._of(bulk_format)

    def operator(self) -> tuple[operators.Operator, Schema]:
        if self._format not in _SOURCE_FORMATS:
            raise UnsupportedGraph(f"no file format '{self._format}'; there are {', '.join(_SOURCE_FORMATS)}")
        if self._max_files_per_trigger < 0:
            raise UnsupportedGraph("max_files_per_trigger must be 0 (no limit) or more")
        if self._format == "text":
            schema = _TEXT_SCHEMA
        elif self._schema is None:
            raise SchemaError(f"{self._format} files need schema='name TYPE, …'")
        else:
            found = to_schema(self._schema)
            schema = Schema(found.fields)
        source = operators.FileSource(
            self._path,
            self._format,
            schema,
            check_options(self._options),
            self._bounded,
            self._max_files_per_trigger,
        )
        return source, schema


class FileSourceBuilder:
    """Builds a :class:`FileSource` step by step."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._settings: dict[str, Any] = {"path": path}
        self._options: dict[str, object] = {}

    def _of(self, format: StreamFormat) -> FileSourceBuilder:
        self._settings.update(format=format.format, schema=format.schema)
        self._options.update(format.options)
        return self

    def format(self, format: str) -> FileSourceBuilder:
        """``text``, ``csv``, ``json`` or ``parquet``."""
        self._settings["format"] = format
        return self

    def schema(self, schema: object) -> FileSourceBuilder:
        """Fields, as DDL text or a Python type."""
        self._settings["schema"] = schema
        return self

    def option(self, key: str, value: object) -> FileSourceBuilder:
        """A reader option as Spark names it."""
        self._options[key] = value
        return self

    def max_files_per_trigger(self, files: int) -> FileSourceBuilder:
        """Files taken into one micro-batch."""
        self._settings["max_files_per_trigger"] = files
        return self

    def process_static_file_set(self) -> FileSourceBuilder:
        """Read what is there and end; the default."""
        self._settings["bounded"] = True
        return self

    @differs("the interval is that of micro-batches")
    def monitor_continuously(self, discovery_interval: DurationLike | None = None) -> FileSourceBuilder:
        """Watch for new files for ever."""
        self._settings["bounded"] = False
        return self

    @differs(_SPARK_SPLITS)
    def set_file_enumerator(self, file_enumerator: FileEnumeratorProvider) -> FileSourceBuilder:
        """Which files are read in which parts."""
        return self

    @differs(_SPARK_SPLITS)
    def set_split_assigner(self, split_assigner: FileSplitAssignerProvider) -> FileSourceBuilder:
        """Which subtask reads which part."""
        return self

    def build(self) -> FileSource:
        """The source."""
        return FileSource(**self._settings, options=self._options)


# --- writing ------------------------------------------------------------------------------


class RollingPolicy:
    """When a file is finished; with every micro-batch."""

    @staticmethod
    @differs(_SPARK_ROLLS)
    def default_rolling_policy(
        part_size: int = 1024 * 1024 * 128,
        rollover_interval: int = 60 * 1000,
        inactivity_interval: int = 60 * 1000,
    ) -> DefaultRollingPolicy:
        """By size and age."""
        return DefaultRollingPolicy()

    @staticmethod
    def on_checkpoint_rolling_policy() -> OnCheckpointRollingPolicy:
        """With every checkpoint."""
        return OnCheckpointRollingPolicy()


class DefaultRollingPolicy(RollingPolicy):
    """By size and age."""


class OnCheckpointRollingPolicy(RollingPolicy):
    """With every checkpoint."""


class BucketAssigner:
    """Which directory an element goes to."""

    @staticmethod
    def base_path_bucket_assigner() -> BucketAssigner:
        """All go to the sink's own directory."""
        return BucketAssigner()

    @staticmethod
    @refused("directories are made of fields", "FileSink.for_path(…).partition_by('field')")
    def date_time_bucket_assigner(
        format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None
    ) -> Any:
        """By the time of writing."""


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
        """How names end."""
        self._part_suffix = suffix
        return self

    def build(self) -> OutputFileConfig:
        """The name."""
        return OutputFileConfig(self._part_prefix, self._part_suffix)


class OutputFileConfig:
    """How files are named; Spark names them."""

    OutputFileConfigBuilder = OutputFileConfigBuilder

    def __init__(self, part_prefix: str, part_suffix: str) -> None:
        self._part_prefix = part_prefix
        self._part_suffix = part_suffix

    @staticmethod
    @differs("accepted and without effect: files are named by batch")
    def builder() -> Any:
        """Begin a name."""
        return OutputFileConfigBuilder()

    def get_part_prefix(self) -> str:
        """How names begin, as it was set; files here have other names."""
        return self._part_prefix

    def get_part_suffix(self) -> str:
        """How names end, as it was set; files here have other names."""
        return self._part_suffix


FileCompactStrategy: Any = refused_class("FileCompactStrategy", "files are not compacted by a sink")
FileCompactor: Any = refused_class("FileCompactor", "files are not compacted by a sink")


class FileSinkBuilder:
    """Builds a :class:`FileSink` step by step."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._settings: dict[str, Any] = {"path": path}
        self._options: dict[str, object] = {}

    def format(self, format: str) -> FileSinkBuilder:
        """``csv``, ``json`` or ``parquet``."""
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

    def with_bucket_check_interval(self, interval: int) -> FileSinkBuilder:
        """PyFlink's; without effect, since each micro-batch writes files of its own."""
        return self

    def with_bucket_assigner(self, bucket_assigner: BucketAssigner) -> FileSinkBuilder:
        """PyFlink's; all elements go to the sink's own directory."""
        return self

    def with_rolling_policy(self, rolling_policy: RollingPolicy) -> FileSinkBuilder:
        """PyFlink's; without effect, since each micro-batch writes files of its own."""
        return self

    def with_output_file_config(self, output_file_config: OutputFileConfig) -> FileSinkBuilder:
        """PyFlink's; without effect, since files are named by batch."""
        return self

    @refused("files are not compacted by a sink")
    def enable_compact(self, strategy: Any, compactor: Any) -> Any:
        """Make few large files of many small ones."""

    @differs("without effect: files are not compacted by a sink")
    def disable_compact(self) -> FileSinkBuilder:
        """Leave files as they are."""
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
        ``csv``, ``json`` or ``parquet``; ``text`` = the text of each element on a line.
    options : mapping, optional
        Writer options as Spark names them.
    partition_by : sequence of str
        Fields that become ``name=value`` directories.
    """

    name = "File Sink"
    BaseBuilder = RowFormatBuilder = BulkFormatBuilder = FileSinkBuilder

    def __init__(
        self,
        path: str | os.PathLike[str],
        format: str = "parquet",
        options: Mapping[str, object] | None = None,
        partition_by: tuple[str, ...] | list[str] = (),
    ) -> None:
        self._path = _absolute(path)
        self._format = format
        self._options = dict(options or {})
        self._partition_by = tuple(partition_by)

    @staticmethod
    def for_path(path: str | os.PathLike[str]) -> FileSinkBuilder:
        """Begin a sink by its path."""
        return FileSinkBuilder(path)

    @staticmethod
    def for_row_format(base_path: str, encoder: Encoder) -> FileSinkBuilder:
        """Begin a sink of lines."""
        builder = FileSinkBuilder(base_path).format("text")
        plain = encoder.charset_name.upper() in ("UTF-8", "UTF8")
        return builder if plain else builder.option("encoding", encoder.charset_name)

    @staticmethod
    def for_bulk_format(base_path: str, writer_factory: BulkWriterFactory) -> FileSinkBuilder:
        """Begin a sink of whole files."""
        builder = FileSinkBuilder(base_path).format(writer_factory.format)
        for key, value in writer_factory.options.items():
            builder.option(key, value)
        return builder

    def get_transformer(self) -> StreamTransformer | None:
        """None."""
        return None

    def operator(self, schema: Schema) -> operators.Operator:
        from yarnflow.graph.expressions import unknown_field

        options = check_options(self._options)
        if self._format == "text":
            return operators.FileSink(self._path, "text", options, self._partition_by)
        if self._format not in _SINK_FORMATS:
            raise UnsupportedGraph(f"no file format '{self._format}'; there are {', '.join(_SINK_FORMATS)}")
        schema = columns(schema)
        for name in self._partition_by:
            if schema.known and schema.find(name) is None:
                raise unknown_field(name, schema)
        if schema.known and {n.lower() for n in schema.names} <= {n.lower() for n in self._partition_by}:
            raise UnsupportedGraph("partition_by names all fields, so nothing would be left for the files")
        nested = [f.name for f in schema.fields if f.type and parse_type(f.type).children]
        if self._format == "csv" and nested:
            raise SchemaError(
                f"csv cannot hold field '{nested[0]}' of type {_type(schema, nested[0])}; use json"
            )
        return operators.FileSink(self._path, self._format, options, self._partition_by)


StreamingFileSink: Any = refused_class("StreamingFileSink", "it is the older form of FileSink", "FileSink")


def _type(schema: Schema, name: str) -> str:
    field = schema.find(name)
    return field.type or "" if field is not None else ""


def _one_path(paths: tuple[str | os.PathLike[str], ...]) -> str:
    if not paths:
        raise UnsupportedGraph("a file source needs a path")
    texts = [_absolute(path) for path in paths]
    return texts[0] if len(texts) == 1 else "{" + ",".join(texts) + "}"


def _absolute(path: str | os.PathLike[str]) -> str:
    """Relative paths are meant from where the program runs, not from where a driver does."""
    text = os.fspath(path)
    # several paths in braces are absolute already
    return text if _SCHEME.match(text) or not text or text.startswith("{") else os.path.abspath(text)
