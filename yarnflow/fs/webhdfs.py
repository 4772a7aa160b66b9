"""HDFS over its REST interface (WebHDFS), without a JVM.

Decides how each operation of :class:`yarnflow.core.files.FileSystem` becomes requests, to which
NameNode they go and which are tried again.  Files appear whole: content goes into a temporary
file beside its target, which is then renamed, and HDFS renames atomically.  Never keeps a whole
uploaded file in memory.  Flink counterpart: ``flink-hadoop-fs``.
"""

from __future__ import annotations

import builtins
import logging
import os
import posixpath
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

import requests
from hdfs import HdfsError, InsecureClient

from yarnflow.config.hadoop.conf import HadoopConf
from yarnflow.core.files import FileStatus, HeldDirectory
from yarnflow.errors import FileMissing, StorageError, StorageUnavailable
from yarnflow.fs.by_path import DirectoryByPath
from yarnflow.fs.webhdfs_errors import Place, Refused, refused

T = TypeVar("T")

#: for a connection, for an answer
_TIMEOUT_S: Final = (5.0, 30.0)
#: with content the first one bounds each send, too, and DataNodes may be slow to take it
_TRANSFER_TIMEOUT_S: Final = (30.0, 60.0)
#: pauses before further attempts; the first serves connections that were closed while idle
_RETRY_PAUSES_S: Final = (0.0, 0.5, 1.5)
#: with several NameNodes: time for the other one to become active
_FAILOVER_PAUSES_S: Final = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
#: no further attempt after this time: a NameNode that hangs is waited for once
_RETRY_FOR_S: Final = 25.0
_CHUNK_BYTES: Final = 1 << 20
logger: Final = logging.getLogger(__name__)


class _Client(InsecureClient):  # type: ignore[misc]
    """The library's client for one NameNode, with our time limits and errors."""

    def __init__(self, url: str, user: str) -> None:
        session = requests.Session()
        # proxies and .netrc are for the world outside, not for the cluster
        session.trust_env = False
        session.verify = os.environ.get("REQUESTS_CA_BUNDLE") or True
        super().__init__(url, user=user, session=session)
        self.base_url: Final = url
        self.session: Final = session

    def _request(self, method: str, url: str, **kwargs: Any) -> requests.Response:
        """All of the library's requests come through here.

        Raises
        ------
        Refused
            The server answered with an error.
        """
        response: requests.Response = self.session.request(
            method=method,
            url=url,
            timeout=_TIMEOUT_S if kwargs.get("data") is None else _TRANSFER_TIMEOUT_S,
            headers={"content-type": "application/octet-stream"},
            **kwargs,
        )
        if response.status_code >= 400:
            raise refused(response)
        return response

    def put(self, path: str, data: bytes | _Upload, permission: int, replication: int | None) -> None:
        """Create or replace a file; its parent must exist."""
        answer = self._create(
            path,
            overwrite="true",
            permission=f"{permission:o}",
            replication=replication,
            createparent="false",
        )
        self._request("PUT", answer.headers["location"], data=data)

    def content(self, path: str) -> bytes:
        with self._open(path) as response:
            return bytes(response.content)

    def move(self, source: str, target: str, *, replace: bool) -> None:
        """Rename without the old call's habit of moving into a directory that is the target."""
        answer = self._rename(source, destination=target, renameoptions="OVERWRITE" if replace else "NONE")
        # a server that does not know the options answers as the old call does
        if answer.content and answer.json().get("boolean") is False:
            raise Refused(403, "FileAlreadyExistsException", f"{target} exists, or {source} does not")


class _Unreadable(Exception):
    """A local file; no OSError, which libraries below take for a broken connection."""


class _Upload:
    """A local file as the body of a request: streamed, with its length known."""

    def __init__(self, local: str) -> None:
        self._local = local
        self._length = os.stat(local).st_size

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[bytes]:
        left = self._length
        try:
            with open(self._local, "rb") as file:
                while left and (chunk := file.read(min(_CHUNK_BYTES, left))):
                    left -= len(chunk)
                    yield chunk
        except OSError as error:
            raise _Unreadable(f"cannot read {self._local}: {error.strerror}; check the file") from error
        if left:
            raise _Unreadable(f"{self._local} became shorter while it was uploaded; try again")


class WebHdfsFileSystem:
    """:class:`yarnflow.core.files.FileSystem` over WebHDFS; safe to use from several threads.

    Missing parents of new directories get the new directory's permission; parents of files must
    exist.

    Parameters
    ----------
    conf : HadoopConf
        Where the NameNodes are.
    user : str
        Who asks (``user.name``).
    replication : int
        Of uploaded files (``yarn.file-replication``); -1 = HDFS's default.
    sleep, monotonic : callable
        Pause, and time, in seconds; for tests.

    Raises
    ------
    StorageUnavailable
        The cluster uses Kerberos.
    """

    def __init__(
        self,
        conf: HadoopConf,
        user: str,
        *,
        replication: int = -1,
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        if conf.secure:
            raise StorageUnavailable(
                f"{conf.default_fs} uses Kerberos (hadoop.security.authentication in {conf.directory}), "
                "which is not supported yet"
            )
        name_nodes = tuple(conf.namenode_http_addresses())
        self._place: Final = Place(conf.default_fs, name_nodes, conf.directory, user)
        self._clients: Final = [_Client(url, user) for url in name_nodes]
        #: the NameNode that answered last; a race between threads costs one request
        self._active = 0
        self._replication: Final = replication if replication > 0 else None
        self._pauses_s: Final = _RETRY_PAUSES_S if len(name_nodes) == 1 else _FAILOVER_PAUSES_S
        self._sleep: Final = sleep
        self._monotonic: Final = monotonic
        self._home = ""

    @property
    def uri(self) -> str:
        return self._place.uri

    @property
    def user(self) -> str:
        return self._place.user

    def home(self) -> str:
        """Home directory of the user; it need not exist."""
        if not self._home:
            answer = self._call("find the home directory of", "/", lambda c: c._get_home_directory("/"))
            self._home = str(answer.json()["Path"])
        return self._home

    def read(self, path: str) -> bytes:
        return self._call("read", path, lambda client: client.content(path))

    def write(self, path: str, content: bytes, *, permission: int = 0o600) -> None:
        self._put(path, lambda: content, permission, None, replace=True)

    def create(self, path: str, content: bytes, *, permission: int = 0o600) -> bool:
        """Create with content if nothing is there, atomically; False = something is."""
        return self._put(path, lambda: content, permission, None, replace=False)

    def upload(self, local: str, path: str, *, permission: int = 0o644) -> int:
        """Copy a local file there, atomically; an older one is replaced.

        Raises
        ------
        FileMissing
            There is no such local file.
        StorageDenied, StorageUnavailable, StorageError
            As for all operations; also when the local file cannot be read.
        """
        try:
            length_bytes = len(_Upload(local))
            self._put(path, lambda: _Upload(local), permission, self._replication, replace=True)
        except FileNotFoundError as error:
            raise FileMissing(f"{local} does not exist; check the path") from error
        except _Unreadable as error:
            raise StorageError(str(error)) from error
        return length_bytes

    def status(self, path: str) -> FileStatus | None:
        """The entry, or None when there is none."""
        try:
            answer = self._call("look up", path, lambda client: client._get_file_status(path))
        except FileMissing:
            return None
        return _status(path, answer.json()["FileStatus"])

    def list(self, path: str) -> Sequence[FileStatus]:
        """Entries of a directory, sorted by path; empty when there is none, or it is a file."""
        try:
            answer = self._call("list", path, lambda client: client._list_status(path))
        except FileMissing:
            return ()
        entries = answer.json()["FileStatuses"]["FileStatus"]
        # a file lists itself, without a name
        named = [raw for raw in entries if raw["pathSuffix"]]
        found = [_status(posixpath.join(path, raw["pathSuffix"]), raw) for raw in named]
        return sorted(found, key=lambda status: status.path)

    def make_directory(self, path: str, *, permission: int = 0o700) -> None:
        """Create a directory and its missing parents.  Idempotent."""
        self._call("create", path, lambda client: client._mkdirs(path, permission=f"{permission:o}"))

    def rename(self, source: str, target: str) -> bool:
        """Move; False when the target exists already.  Raises FileMissing."""
        return self._move(source, target, source, replace=False)

    def delete(self, path: str) -> bool:
        """Delete a file or a whole directory; False when there was nothing."""
        answer = self._call("delete", path, lambda client: client._delete(path, recursive="true"))
        return bool(answer.json()["boolean"])

    @contextmanager
    def hold(self, path: str) -> Iterator[HeldDirectory]:
        """Hold a directory by its path.  Raises FileMissing."""
        yield DirectoryByPath(self, path)

    def close(self) -> None:
        """Close all connections.  Idempotent; a later call opens them anew."""
        for client in self._clients:
            client.session.close()

    def _put(
        self,
        path: str,
        body: Callable[[], bytes | _Upload],
        permission: int,
        replication: int | None,
        *,
        replace: bool,
    ) -> bool:
        """Write a temporary file and give it its name; False = the name was taken."""
        parent, name = posixpath.split(path)
        temporary = f"{parent}/.{name[:100]}.{secrets.token_hex(8)}.tmp"
        done = False
        try:
            self._call("write", path, lambda client: client.put(temporary, body(), permission, replication))
            done = self._move(temporary, path, path, replace=replace)
        finally:
            if not done:
                with suppress(StorageError):
                    self.delete(temporary)
        return done

    def _move(self, source: str, target: str, named: str, *, replace: bool) -> bool:
        """Rename; ``named`` is the path that messages are about."""
        tried = 0

        def move(client: _Client) -> bool:
            nonlocal tried
            tried += 1
            try:
                client.move(source, target, replace=replace)
            except Refused as answer:
                # after a lost answer, an earlier attempt may have done it
                if tried > 1 and self._gone(client, source) and not self._gone(client, target):
                    return True
                # a file cannot take a directory's place, whatever HDFS calls that
                if not replace and (answer.exists or answer.exception == "IOException"):
                    if answer.exists or not self._gone(client, target):
                        return False
                raise
            return True

        return self._call("rename" if named == source else "write", named, move)

    def _gone(self, client: _Client, path: str) -> bool:
        try:
            client._get_file_status(path)
        except Refused as answer:
            if answer.missing:
                return True
            raise
        return False

    def _call(self, doing: str, path: str, request: Callable[[_Client], T]) -> T:
        """Make a request to the active NameNode, looking for it where necessary.

        ``request`` may be made several times; what must not be done twice has to see to it itself.
        """
        failures: builtins.list[requests.RequestException] = []
        passive: Refused | None = None
        end_s = self._monotonic() + _RETRY_FOR_S
        for pause_s in (*self._pauses_s, None):
            failures, passive, first = [], None, self._active
            for offset in range(len(self._clients)):
                index = (first + offset) % len(self._clients)
                try:
                    result = request(self._clients[index])
                except Refused as answer:
                    if not answer.passive:
                        self._active = index
                        raise self._place.error(doing, path, answer) from answer
                    passive = answer
                except HdfsError as error:
                    raise StorageError(f"cannot {doing} {self.uri}{path}: {error}; check the path") from error
                except requests.RequestException as failure:
                    failures.append(failure)
                else:
                    self._active = index
                    return result
            if pause_s is None or self._monotonic() > end_s:
                break
            logger.debug("%s %s: no active NameNode answered; trying again in %s s", doing, path, pause_s)
            self._sleep(pause_s)
        if failures:
            raise self._place.unreachable(doing, path, failures) from failures[-1]
        assert passive is not None
        raise self._place.error(doing, path, passive) from passive


def _status(path: str, raw: dict[str, Any]) -> FileStatus:
    return FileStatus(
        path=path,
        is_directory=raw["type"] == "DIRECTORY",
        length_bytes=int(raw["length"]),
        modified_ms=int(raw["modificationTime"]),
        permission=int(raw["permission"], 8),
        owner=str(raw["owner"]),
    )
