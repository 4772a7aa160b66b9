"""Where keyed state lives.  PyFlink: ``pyflink.datastream.state_backend``.

An environment takes none since Flink 2: the option is ``state.backend.type``.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, ClassVar

from yarnflow.graph.compatibility import NO_JVM, refused, refused_class, same_and

_NO_RESULT = "kept; no result depends on it"


class StateBackend:
    """Base of all backends."""

    #: value of ``state.backend.type``
    option_value: ClassVar[str] = ""


class HashMapStateBackend(StateBackend):
    """In the memory of the workers."""

    option_value = "hashmap"


class PredefinedOptions(Enum):
    """Settings of RocksDB; Spark has its own."""

    DEFAULT = 0
    SPINNING_DISK_OPTIMIZED = 1
    SPINNING_DISK_OPTIMIZED_HIGH_MEM = 2
    FLASH_SSD_OPTIMIZED = 3


class EmbeddedRocksDBStateBackend(StateBackend):
    """On local disks, for state larger than memory."""

    option_value = "rocksdb"

    def __init__(self, enable_incremental_checkpointing: bool | None = None) -> None:
        self._incremental = enable_incremental_checkpointing
        self._paths: list[str] = []
        self._predefined = PredefinedOptions.DEFAULT
        self._threads = 4

    @same_and(_NO_RESULT + ": Spark keeps state below spark.local.dir")
    def set_db_storage_paths(self, *paths: str) -> None:
        """Directories of the databases."""
        self._paths = list(paths)

    def get_db_storage_paths(self) -> list[str]:
        """Directories of the databases, as they were set."""
        return list(self._paths)

    @same_and("checkpoints are incremental by state.changelog.enabled")
    def is_incremental_checkpoints_enabled(self) -> bool:
        """Whether a checkpoint writes only what changed."""
        return bool(self._incremental)

    @same_and(_NO_RESULT)
    def set_predefined_options(self, options: PredefinedOptions) -> None:
        """Settings for a kind of disk."""
        self._predefined = options

    def get_predefined_options(self) -> PredefinedOptions:
        """Settings for a kind of disk, as they were set."""
        return self._predefined

    @refused(NO_JVM, "spark.sql.streaming.stateStore.rocksdb.… options")
    def set_options(self, options_factory_class_name: str) -> None:
        """A Java class that makes settings."""

    def get_options(self) -> str | None:
        """None."""
        return None

    def get_number_of_transfer_threads(self) -> int:
        """How many threads copy files, as it was set."""
        return self._threads

    @same_and(_NO_RESULT)
    def set_number_of_transfer_threads(self, number_of_transfering_threads: int) -> None:
        """Threads that copy state files."""
        if number_of_transfering_threads < 1:
            raise ValueError(f"{number_of_transfering_threads} threads copy nothing; take 1 or more")
        self._threads = number_of_transfering_threads


CustomStateBackend: Any = refused_class("CustomStateBackend", NO_JVM, "the option state.backend.type")
