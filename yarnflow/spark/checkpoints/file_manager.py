"""Which of Spark's file managers writes the checkpoint of a query.

Spark writes each file of a checkpoint under another name and renames it, by default through Hadoop's
``FileContext``.  On a local file system that asks of every name whether it is a link, for which it runs the
program ``readlink`` unless Hadoop's native library is there: eight processes for each file.  The manager
through Hadoop's ``FileSystem`` ends in the same system call, keeps the same checksum files, and asks nothing.
Decides that it is used for local files alone: elsewhere, as on HDFS, only ``FileContext`` renames over a file
in one step.  It makes a directory anew that is gone, which ``FileContext`` does not: so that is looked for.

Flink has no counterpart.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession

from yarnflow.errors import StateDamaged, StorageError
from yarnflow.spark.checkpoints.damage.soundness import METADATA
from yarnflow.spark.hadoop_files import WAYS_OUT, HadoopFiles

FILE_MANAGER: Final = "spark.sql.streaming.checkpointFileManagerClass"
_MANAGERS: Final = "org.apache.spark.sql.execution.streaming.checkpointing"
LOCAL_FILE_MANAGER: Final = f"{_MANAGERS}.FileSystemBasedCheckpointFileManager"

#: a query that starts must not see what is set for another one; listeners may start some in the same thread
_starting: Final = threading.RLock()


@contextmanager
def file_manager(spark: SparkSession, files: HadoopFiles, *places: str) -> Iterator[None]:
    """Have a query that is started here use the manager that suits its files.

    Spark copies the session's settings for each query while it starts, those of its state stores as well.

    Parameters
    ----------
    spark : SparkSession
        In which the query starts.
    files : HadoopFiles
    places : str
        Directories that Spark's managers may write to: the checkpoint, and what a file sink writes to; none =
        they are not known.
    """
    with _starting:
        settings = {}
        if places and not _is_chosen(spark, files) and all(_is_local(files, place) for place in places):
            settings[FILE_MANAGER] = LOCAL_FILE_MANAGER
        with session_settings(spark, settings):
            yield


def check_still_there(files: HadoopFiles, directory: str) -> None:
    """Before a batch: a query would go on without what was in its checkpoint directory.

    Raises
    ------
    StateDamaged
        The directory is a local one, and was deleted since the query was started.
    """
    if files.is_local(directory) and not files.exists(f"{directory}/{METADATA}"):
        raise StateDamaged(f"{directory} was deleted while its query ran; {WAYS_OUT}")


@contextmanager
def session_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """A query keeps what holds while it starts; what the session runs next does not."""
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in settings:
            spark.conf.unset(key)


def _is_chosen(spark: SparkSession, files: HadoopFiles) -> bool:
    """Whether the user has, for the session or in Hadoop's configuration."""
    return spark.conf.get(FILE_MANAGER, None) is not None or files.setting(FILE_MANAGER) is not None


def _is_local(files: HadoopFiles, place: str) -> bool:
    try:
        return files.is_local(place)
    except StorageError:
        # it need not be a path: formats give the option any meaning
        return False
