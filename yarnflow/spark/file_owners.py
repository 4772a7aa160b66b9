"""Owners and permissions of files: local ones as the system says, those in HDFS as the NameNode does."""

from __future__ import annotations

import os
import stat
from typing import Any, Final

from yarnflow.core.checkpoint.ownership import Access
from yarnflow.errors import StorageError
from yarnflow.spark.hadoop_files import HadoopFiles

_LOCAL: Final = "file"
#: whose permissions are enforced by who keeps the files; object stores make theirs up
_HDFS: Final = ("hdfs", "viewfs", "webhdfs", "swebhdfs")


class FileOwners:
    """See :class:`~yarnflow.core.checkpoint.ownership.Owners`, which this is.

    Parameters
    ----------
    files : HadoopFiles
    """

    def __init__(self, files: HadoopFiles) -> None:
        self._files = files

    def user(self, path: str) -> str:
        """A local user's number, HDFS's name of the user; empty = permissions mean nothing there."""
        scheme = self._files.qualified(path).partition(":")[0]
        if scheme == _LOCAL:
            return str(os.geteuid())
        if scheme not in _HDFS:
            return ""
        groups = self._files.java_class("org.apache.hadoop.security.UserGroupInformation")
        return str(groups.getCurrentUser().getShortUserName())

    def access(self, path: str) -> Access:
        """Raises StorageError."""
        local = self._local(path)
        if not local:
            return _told(self._files.call(path, "getFileStatus"))
        try:
            return _local_access(os.lstat(local))
        except OSError as error:
            raise StorageError(f"cannot read the owner of {path}: {error.strerror}") from error

    def accesses(self, directory: str) -> dict[str, Access]:
        """Raises StorageError."""
        local = self._local(directory)
        if not local:
            found = self._files.call(directory, "listStatus")
            return {str(status.getPath().getName()): _told(status) for status in found}
        try:
            with os.scandir(local) as entries:
                return {entry.name: _local_access(entry.stat(follow_symlinks=False)) for entry in entries}
        except OSError as error:
            raise StorageError(f"cannot read the owners in {directory}: {error.strerror}") from error

    def set_mode(self, path: str, mode: int) -> None:
        """Change permission bits; without effect where permissions mean nothing.

        Raises
        ------
        StorageError
        """
        local = self._local(path)
        if not local:
            permission = self._files.java_class("org.apache.hadoop.fs.permission.FsPermission")
            self._files.call(path, "setPermission", permission(f"{mode:o}"))
            return
        try:
            os.chmod(local, mode)
        except OSError as error:
            raise StorageError(f"cannot change permissions of {path}: {error.strerror}") from error

    def _local(self, path: str) -> str:
        """The path of a local file; empty = it is elsewhere."""
        scheme, _, rest = self._files.qualified(path).partition(":")
        return "/" + rest.lstrip("/") if scheme == _LOCAL else ""


def _told(status: Any) -> Access:
    return Access(str(status.getOwner()), int(status.getPermission().toShort()))


def _local_access(found: os.stat_result) -> Access:
    return Access(str(found.st_uid), stat.S_IMODE(found.st_mode))
