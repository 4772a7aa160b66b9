"""From a URI or Hadoop's configuration to a file system; the libraries are loaded when one is needed."""

from __future__ import annotations

import os
import threading

from yarnflow.config.hadoop.conf import HadoopConf
from yarnflow.core.files import FileSystem, FileSystems
from yarnflow.core.uris import split_uri
from yarnflow.errors import ConfigError


def open_file_system(conf: HadoopConf, user: str, *, replication: int = -1) -> FileSystem:
    """The cluster's default file system; nothing is connected yet.

    Parameters
    ----------
    conf : HadoopConf
    user : str
        Who asks; on directories of this machine, that is the operating system's user.
    replication : int
        Of uploaded files (``yarn.file-replication``); -1 = the file system's default.

    Raises
    ------
    YarnUnavailable
        ``fs.defaultFS`` is neither HDFS nor ``file:///``, or its NameNodes are not named.
    """
    if conf.default_fs == "file://":
        from yarnflow.fs.local import LocalFileSystem

        return LocalFileSystem()
    from yarnflow.fs.webhdfs import WebHdfsFileSystem

    return WebHdfsFileSystem(conf, user, replication=replication)


def file_systems() -> FileSystems:
    """Opens the file system of a URI: ``hdfs://…`` or ``file://…``; plain paths are of this machine."""
    opened: dict[str, FileSystem] = {}
    lock = threading.Lock()

    def fs_of(uri: str) -> tuple[FileSystem, str]:
        scheme, authority, path = split_uri(uri)
        if scheme in ("", "file"):
            key = "file://"
        elif scheme == "hdfs":
            key, path = "hdfs://", path or "/"
        else:
            raise ConfigError(f"{uri}: only hdfs://… and file://… can be used")
        with lock:
            if key not in opened:
                opened[key] = _open(key)
            found = opened[key]
        if authority and key == "hdfs://" and found.uri != f"hdfs://{authority}":
            raise ConfigError(
                f"{uri}: the cluster's file system is {found.uri} (fs.defaultFS in HADOOP_CONF_DIR); "
                "use that one"
            )
        return found, path

    return fs_of


def _open(scheme: str) -> FileSystem:
    if scheme == "file://":
        from yarnflow.fs.local import LocalFileSystem

        return LocalFileSystem()
    conf = HadoopConf.load(os.environ)
    return open_file_system(conf, conf.user(os.environ))
