"""File systems shared by all machines of a cluster."""

from __future__ import annotations

from yarnflow.config.hadoop_conf import HadoopConf
from yarnflow.core.ports import FileSystem


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
