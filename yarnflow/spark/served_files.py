"""Files of this machine that a driver serves because they were added to its job.

Spark sends them to whoever connects to the driver's port and knows or guesses the name: it asks for the
secret only when something else is asked for.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterable, Mapping
from typing import Final

from yarnflow.core.uris import split_uri

logger = logging.getLogger(__name__)

#: Spark's options that add files
_OPTIONS: Final = ("spark.files", "spark.archives", "spark.submit.pyFiles", "spark.jars")


def warn_of_private_files(paths: Iterable[str]) -> None:
    """Warn of each file that others may not read, but will be able to."""
    for path in paths:
        local = _local(path)
        if local and _is_private(local):
            logger.warning(
                "%s can be read by its owner only, but Spark serves files that are added to a job to all"
                " who can connect to the driver's port, without authentication. Do not add secrets:"
                " put it into HDFS or another place executors can read, add it from there or pass its path.",
                local,
            )


def files_of_options(options: Mapping[str, str]) -> list[str]:
    """Return the paths and URIs that a job's options add."""
    listed = (path.strip() for key in _OPTIONS for path in options.get(key, "").split(","))
    return [path for path in listed if path]


def _local(path: str) -> str:
    """Return a file of this machine; empty = it is elsewhere, where Spark fetches it from."""
    scheme, _, place = split_uri(path)
    return place if scheme in ("", "file") else ""


def _is_private(path: str) -> bool:
    # an archive may be named "file#directory"
    for name in (path, path.rpartition("#")[0]):
        try:
            return not os.stat(name).st_mode & stat.S_IROTH
        except OSError:
            continue
    return False
