"""Files that are read.  PyFlink: ``pyflink.datastream.connectors.file_system``.

Decides how a program names files and their formats; reading is Spark's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Final

from yarnflow.api.building.definitions import check_options
from yarnflow.api.datastream.connectors.base import Source
from yarnflow.api.lengths import DurationLike
from yarnflow.api.origin import call_origin
from yarnflow.errors import SchemaError, UnsupportedGraph
from yarnflow.graph.compatibility import differs
from yarnflow.graph.connectors import sources
from yarnflow.graph.operators import Operator
from yarnflow.graph.schema import VALUE_FIELD, Field, Schema
from yarnflow.graph.types import to_schema

_FORMATS: Final = ("text", "csv", "json", "parquet", "orc", "avro")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_TEXT_SCHEMA: Final = Schema((Field(VALUE_FIELD, "string"),), scalar=True)
_SPARK_SPLITS: Final = "accepted and without effect: Spark lists and splits files"


class StreamFormat:
    """How the lines of a file become elements."""

    def __init__(
        self,
        format: str = "text",
        schema: object | None = None,
        options: Mapping[str, object] | None = None,
        separators: Mapping[str, str] | None = None,
    ) -> None:
        self.format = format
        self.schema = schema
        self.options = dict(options or {})
        #: CSV: field that holds an array → what stands between its elements
        self.separators = dict(separators or {})

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        """Each line is an element."""
        return StreamFormat(options=charset_option(charset_name))


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
        ``text`` (a scalar stream of lines), ``csv``, ``json``, ``parquet``, ``orc`` or ``avro``.
    schema : str, type or Schema
        Fields of the records; all formats but text need it.  Parquet, ORC and Avro files that do not have a
        field give None for it.
    options : mapping, optional
        Reader options as Spark names them.
    bounded : bool
        Read what is there and end; else watch for new files for ever.
    max_files_per_trigger : int
        Files taken into one micro-batch, in order of modification time; 0 = no limit.
    separators : mapping, optional
        CSV: field that holds an array to what stands between its elements.
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
        separators: Mapping[str, str] | None = None,
    ) -> None:
        self._path = absolute(path)
        self._format = format
        self._schema = schema
        self._options = dict(options or {})
        self._bounded = bounded
        self._max_files_per_trigger = max_files_per_trigger
        self._separators = dict(separators or {})

    @staticmethod
    def for_path(path: str | os.PathLike[str]) -> FileSourceBuilder:
        """Begin a source by its path."""
        return FileSourceBuilder(path)

    @staticmethod
    def for_record_stream_format(
        stream_format: StreamFormat, *paths: str | os.PathLike[str]
    ) -> FileSourceBuilder:
        """Begin a source by the format of its lines.

        Directories are read with all below them; several paths are one glob of Spark's.
        """
        return FileSourceBuilder(_one_path(paths))._of(stream_format)

    @staticmethod
    def for_bulk_file_format(bulk_format: StreamFormat, *paths: str | os.PathLike[str]) -> FileSourceBuilder:
        """Begin a source by the format of its files.

        Directories are read with all below them; several paths are one glob of Spark's.
        """
        return FileSourceBuilder(_one_path(paths))._of(bulk_format)

    def operator(self) -> tuple[Operator, Schema]:
        if self._format not in _FORMATS:
            raise UnsupportedGraph(f"no file format '{self._format}'; there are {', '.join(_FORMATS)}")
        if self._max_files_per_trigger < 0:
            raise UnsupportedGraph("max_files_per_trigger must be 0 (no limit) or more")
        if self._format == "text":
            schema = _TEXT_SCHEMA
        elif self._schema is None:
            raise SchemaError(f"{self._format} files need schema='name TYPE, …'")
        else:
            found = to_schema(self._schema)
            schema = Schema(found.fields)
        source = sources.FileSource(
            self._path,
            self._format,
            schema,
            check_options(self._options),
            self._bounded,
            self._max_files_per_trigger,
            self._separators,
        )
        return source, schema


class FileSourceBuilder:
    """Builds a :class:`FileSource` step by step."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._settings: dict[str, Any] = {"path": path}
        self._options: dict[str, object] = {}

    def _of(self, format: StreamFormat) -> FileSourceBuilder:
        self._settings.update(format=format.format, schema=format.schema, separators=format.separators)
        # as Flink's enumerators do; Spark would leave out what lies in directories of a directory
        self._options.update({"recursiveFileLookup": True, **format.options})
        return self

    def format(self, format: str) -> FileSourceBuilder:
        """``text``, ``csv``, ``json``, ``parquet``, ``orc`` or ``avro``."""
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


def _one_path(paths: tuple[str | os.PathLike[str], ...]) -> str:
    if not paths:
        raise UnsupportedGraph("a file source needs a path")
    texts = [absolute(path) for path in paths]
    return texts[0] if len(texts) == 1 else "{" + ",".join(texts) + "}"


def absolute(path: str | os.PathLike[str]) -> str:
    """Relative paths are meant from where the program runs, not from where a driver does."""
    text = os.fspath(path)
    # several paths in braces are absolute already
    return text if _SCHEME.match(text) or not text or text.startswith("{") else os.path.abspath(text)


def charset_option(charset: str) -> dict[str, object]:
    """The option of lines in a charset; none of UTF-8.

    Raises
    ------
    UnsupportedGraph
        It is not known, or lines cannot be found in it.
    """
    try:
        line_feed = "\n".encode(charset)
    except LookupError:
        raise UnsupportedGraph(f"{call_origin()}: there is no charset {charset!r}") from None
    if line_feed != b"\n":
        raise UnsupportedGraph(f"{call_origin()}: lines of {charset} are not possible; use UTF-8")
    return {} if charset.upper() in ("UTF-8", "UTF8") else {"encoding": charset}
