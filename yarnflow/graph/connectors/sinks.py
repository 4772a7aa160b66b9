"""Where records end, without a broker: files, databases, functions of the program."""

from __future__ import annotations

from dataclasses import dataclass, field

from yarnflow.graph.closures import Closure
from yarnflow.graph.connectors.messages import MessageFormat
from yarnflow.graph.schema import Schema


@dataclass(frozen=True, slots=True)
class PrintSink:
    """Records on the driver's standard output, as Flink prints them.  At-least-once."""

    identifier: str = ""


@dataclass(frozen=True, slots=True)
class FileSink:
    """Files named by batch; a batch done again replaces its own files.  Exactly-once."""

    path: str
    #: ``csv``, ``json``, ``parquet``, ``orc`` or ``avro``; ``text`` = the text of each element on a line
    format: str
    options: dict[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    #: of names
    prefix: str = "part"
    #: of names; empty = that of the format
    suffix: str = ""
    #: each batch goes to a directory of its time: Java's ``DateTimeFormatter``; empty = it does not
    bucket_pattern: str = ""
    #: of that time; empty = the driver's
    bucket_zone: str = ""
    #: SQL that gives each row's directory; empty = none
    bucket_expression: str = ""
    #: that a file may have, about; 0 = any number
    part_bytes: int = 0
    #: a batch becomes files of about this size; 0 = one file in each directory; None = one for each task
    compact_bytes: int | None = None
    #: types of the fields in the files, in their order; None = as they are
    written_as: Schema | None = None
    #: CSV: field that holds an array → what stands between its elements
    separators: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JdbcSink:
    """Rows of a database, each batch in one transaction.  Exactly-once.  Flink: ``JdbcSink``."""

    #: with ``?`` for each field, in their order
    statement: str
    #: ``jdbc:postgresql://host:port/database``; may hold a password
    url: str = field(repr=False)
    user: str = ""
    password: str = field(default="", repr=False)
    #: handed to the database at a time
    batch_rows: int = 5000
    #: how often a database that does not answer is asked again, before the job restarts
    max_retries: int = 3


@dataclass(frozen=True, slots=True)
class SocketSink:
    """Lines to a TCP server.  Promises nothing.  Flink: ``SocketClientSink``."""

    host: str
    port: int
    value: MessageFormat

    @property
    def where(self) -> str:
        """What is written to, for people."""
        return f"the socket at {self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ForeachBatchSink:
    """``f(dataframe, batch_id)`` in the driver; exactly-once if ``f`` uses the batch's token."""

    closure: Closure


@dataclass(frozen=True, slots=True)
class CollectSink:
    """Elements that the program itself reads.  Flink: ``executeAndCollect``."""

    #: end after so many elements; None = all
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class DiscardSink:
    """Drops what functions nobody reads give; they run all the same.  Flink: ``DiscardingSink``."""
