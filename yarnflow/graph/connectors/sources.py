"""Sources without a server, and sockets: what is read, as plain values.

Every source says whether it is ``bounded``, that is whether it ends by itself, and whether it is
``read_at_once``: wholly in the first micro-batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from yarnflow.graph.schema import Schema


@dataclass(frozen=True, slots=True)
class CollectionSource:
    """Rows known on the client.  Flink: ``from_collection``."""

    bounded: ClassVar[bool] = True
    read_at_once: ClassVar[bool] = True

    schema: Schema
    #: Arrow IPC stream of all rows: columns in schema order; of elements (``schema.element_type``) the one
    #: binary column ``value``, each element pickled
    arrow_ipc: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class SequenceSource:
    """Whole numbers from ``first`` to ``last``, both included.  Flink: ``NumberSequenceSource``."""

    bounded: ClassVar[bool] = True
    read_at_once: ClassVar[bool] = True

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class FileSource:
    """Files of a directory, bounded or watched for new ones.  Flink: ``FileSource``."""

    path: str
    #: ``text``, ``csv``, ``json``, ``parquet``, ``orc`` or ``avro``
    format: str
    schema: Schema
    #: reader options as Spark names them
    options: dict[str, str] = field(default_factory=dict)
    #: read what is there at the start and end; else watch the directory for ever
    bounded: bool = True
    #: files taken into one micro-batch; 0 = no limit
    max_files_per_trigger: int = 0
    #: CSV: field that holds an array → what stands between its elements
    separators: dict[str, str] = field(default_factory=dict)

    @property
    def read_at_once(self) -> bool:
        return self.bounded and not self.max_files_per_trigger


@dataclass(frozen=True, slots=True)
class SocketSource:
    """Lines of a TCP connection (host and port of a server).  Flink: ``socketTextStream``."""

    bounded: ClassVar[bool] = False
    read_at_once: ClassVar[bool] = False

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class RateSource:
    """``timestamp, value`` rows at a steady rate.  Flink: ``DataGeneratorSource``; Spark: ``rate``."""

    read_at_once: ClassVar[bool] = False

    rows_per_second: int
    #: stop after this many rows; None = for ever
    count: int | None = None

    @property
    def bounded(self) -> bool:
        return self.count is not None
