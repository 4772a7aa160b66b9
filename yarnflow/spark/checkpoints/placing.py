"""State put where a query will look for it, by one driver alone.

What is copied or written anew is made in a directory of the attempt's own, beside its place, and then
renamed, after a look at whether this driver is still the job's.  A driver that is not finds its directory
gone, or its place taken.  Flink counterpart: the fencing of ``CompletedCheckpointStore`` by leadership.
"""

from __future__ import annotations

import uuid
from typing import Final

from yarnflow.errors import StorageError
from yarnflow.spark.checkpoints.job import Fence
from yarnflow.spark.hadoop_files import HadoopFiles

#: between a directory's name and what is an attempt's own
_WORK: Final = ".restoring"


def work_directory(target: str) -> str:
    """Where an attempt makes what is to be at a place; no other attempt has the same."""
    return f"{target}{_WORK}-{uuid.uuid4().hex}"


def remove_left_work(files: HadoopFiles, target: str, fence: Fence) -> None:
    """Remove what attempts that are over, or no longer the job's, have left beside a place."""
    directory, _, name = target.rpartition("/")
    for left in files.children(directory):
        if left.startswith(f"{name}{_WORK}"):
            fence()
            files.delete(f"{directory}/{left}")


def put_in_place(files: HadoopFiles, work: str, target: str, fence: Fence) -> None:
    """Have a directory at its place.

    Raises
    ------
    LeaseLost
        This driver may not write any more.
    StorageError
        Something is there: file systems would put the directory into it.
    """
    fence()
    if files.exists(target):
        raise StorageError(
            f"{target} is there already: another driver of the job has put its state there meanwhile; start "
            "the job again"
        )
    files.rename(work, target)
