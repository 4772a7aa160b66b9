"""Paths of HDFS that leave out which HDFS it is (``hdfs:///a/b``): Hadoop's default one."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

from yarnflow.config.hadoop.conf import CORE_SITE, HadoopConf
from yarnflow.errors import ConfigError

#: with any number of slashes but two, behind which an authority would be
_WITHOUT_AUTHORITY: Final = re.compile(r"hdfs:(?:///+|/(?!/))(?P<below_root>.*)", re.IGNORECASE | re.DOTALL)


def with_file_system(uri: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return a path with the file system it is of; Spark's state stores refuse one that leaves it out.

    Parameters
    ----------
    uri : str
        As an option, a request or a program has it; all but ``hdfs:///…`` stay as they are.

    Raises
    ------
    YarnUnavailable
        Hadoop's configuration cannot be read, or has another file system.
    ConfigError
        Its default file system is not HDFS.
    """
    found = _WITHOUT_AUTHORITY.fullmatch(uri)
    if found is None:
        return uri
    conf = HadoopConf.load(environ, (CORE_SITE,))
    if not conf.default_fs.startswith("hdfs://"):
        raise ConfigError(
            f"{uri} does not say which HDFS, and fs.defaultFS in {conf.directory} is {conf.default_fs}; "
            "write hdfs://host:port/…"
        )
    return f"{conf.default_fs}/{found['below_root']}"


def with_file_systems(text: str) -> str:
    """Return the value of an option, with :func:`with_file_system` for each path in a list of them."""
    return ",".join(map(with_file_system, text.split(",")))


def names_file_system(uri: str) -> bool:
    """Return whether a path says of which file system it is, or is not one of HDFS."""
    return _WITHOUT_AUTHORITY.fullmatch(uri) is None
