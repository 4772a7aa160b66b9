"""Makes this machine's class-data archives (``yarnflow prepare``).

Once per machine, Java and Spark.  Safe to start any number of times: one process works, the
others leave at once.
"""

from __future__ import annotations

from pathlib import Path

from yarnflow.process.spawn import wrap_command
from yarnflow.spark.launch.class_data_sharing import build_archives, default_cache_dir
from yarnflow.spark.launch.java import find_java
from yarnflow.spark.launch.jvm import DRIVER_JVM_FLAGS


def make_archives(cache_dir: Path | None = None) -> tuple[bool, Path]:
    """Make the archives if there are none.

    Returns
    -------
    tuple
        Whether this call made them, and the directory they are in.

    Raises
    ------
    JavaUnavailable
        There is no usable Java.
    YarnflowError
        The training job did not leave archives.
    """
    from yarnflow.spark.launch.training import train

    java = find_java()
    directory = cache_dir or default_cache_dir()
    made = build_archives(
        java, directory, lambda flags: train(java, list(DRIVER_JVM_FLAGS), flags, wrap_command)
    )
    return made, directory
