"""Where checkpoints lie.  PyFlink: ``pyflink.datastream.checkpoint_storage``.

An environment takes none since Flink 2; the directory is the option ``execution.checkpointing.dir``.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from yarnflow.graph.compatibility import NO_JVM, refused_class, same_and

_WRITE_BUFFER_BYTES: Final = 4096
_AT = "no job takes one; the option is execution.checkpointing.dir"


class CheckpointStorage:
    """Base of all places."""


@same_and(_AT)
class JobManagerCheckpointStorage(CheckpointStorage):
    """The memory of the JobManager."""

    DEFAULT_MAX_STATE_SIZE: ClassVar[int] = 5 * 1024 * 1024

    def __init__(self, checkpoint_path: str | None = None, max_state_size: int | None = None) -> None:
        self._checkpoint_path = checkpoint_path
        self._max_state_size = self.DEFAULT_MAX_STATE_SIZE if max_state_size is None else max_state_size

    def get_checkpoint_path(self) -> str | None:
        """What was given."""
        return self._checkpoint_path

    def get_max_state_size(self) -> int:
        """What was given, in bytes."""
        return self._max_state_size

    def get_savepoint_path(self) -> str | None:
        """None."""
        return None


@same_and(_AT)
class FileSystemCheckpointStorage(CheckpointStorage):
    """A directory."""

    MAX_FILE_STATE_THRESHOLD: ClassVar[int] = 1024 * 1024

    def __init__(
        self,
        checkpoint_path: str | None = None,
        file_state_size_threshold: int | None = None,
        write_buffer_size: int = -1,
    ) -> None:
        if checkpoint_path is None:
            raise TypeError("checkpoint_path cannot be None")
        self._checkpoint_path = checkpoint_path
        self._threshold = 20 * 1024 if file_state_size_threshold is None else file_state_size_threshold
        self._write_buffer_size = _WRITE_BUFFER_BYTES if write_buffer_size < 0 else write_buffer_size

    def get_checkpoint_path(self) -> str:
        """What was given."""
        return self._checkpoint_path

    def get_savepoint_path(self) -> str | None:
        """None."""
        return None

    def get_min_file_size_threshold(self) -> int:
        """What was given, in bytes."""
        return self._threshold

    def get_write_buffer_size(self) -> int:
        """What was given, in bytes; 4096 if it was not."""
        return self._write_buffer_size


CustomCheckpointStorage: Any = refused_class(
    "CustomCheckpointStorage", NO_JVM, "the option execution.checkpointing.dir"
)
