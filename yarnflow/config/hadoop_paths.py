"""Paths of HDFS that leave out which HDFS it is (``hdfs:///a/b``): Hadoop's default one."""

from __future__ import annotations

import os
from collections.abc import Mapping

from yarnflow.config.hadoop_conf import HadoopConf
from yarnflow.core.uris import split_uri
from yarnflow.errors import ConfigError


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
    scheme, authority, path = split_uri(uri)
    if scheme != "hdfs" or authority:
        return uri
    conf = HadoopConf.load(environ)
    if not conf.default_fs.startswith("hdfs://"):
        raise ConfigError(
            f"{uri} does not say which HDFS, and fs.defaultFS in {conf.directory} is {conf.default_fs}; "
            "write hdfs://host:port/…"
        )
    return f"{conf.default_fs}{path}"
