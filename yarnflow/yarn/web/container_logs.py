"""Log files of containers whose application still runs, from their NodeManager.

Decides how a file is read from an offset although YARN only offers beginnings and ends.  Logs of
ended applications lie on HDFS and are read by ``yarn logs``.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from yarnflow.errors import FileMissing, YarnError
from yarnflow.yarn.web.http import RemoteFailure, WebServices

#: read beyond what is new, for what a file grows while it is asked for
_SLACK_BYTES: Final = 64 * 1024
_MAX_ANSWER_BYTES: Final = 8 * 1024 * 1024
_HEAD: Final = re.compile(rb"\ALogLength:(\d+)\nLogContents:\n", re.M)
_HEAD_START: Final = b"\nLogLength:"


@dataclass(frozen=True, slots=True)
class LogFile:
    """A log file of a container."""

    name: str
    length_bytes: int


class ContainerLogs:
    """Reads log files of containers whose application still runs, also of those that have ended.

    Parameters
    ----------
    user : str
        Who asks, where there is no Kerberos.
    timeout_ms : int
        To wait for each answer.
    """

    def __init__(self, user: str, *, timeout_ms: int = 10_000) -> None:
        self._user = user
        self._timeout_ms = timeout_ms
        self._nodes: dict[str, WebServices] = {}
        self._lock = threading.Lock()

    def files(self, node: str, container_id: str) -> Sequence[LogFile]:
        """Log files, sorted by name; none when there are no logs (yet, or any more).

        Parameters
        ----------
        node : str
            ``host:port`` of the NodeManager's web server (``YarnContainer.node``).
        container_id : str
            YARN's.

        Raises
        ------
        YarnError
        """
        try:
            answer = self._services(node).get(f"/ws/v1/node/containers/{container_id}/logs")
        except RemoteFailure as error:
            if _gone(error):
                return []
            raise
        infos = answer.get("containerLogsInfo") or []
        files: dict[str, LogFile] = {}
        # one entry for local logs, further ones for those that were aggregated while it ran
        for info in infos if isinstance(infos, list) else [infos]:
            found = info.get("containerLogInfo") or []
            for entry in found if isinstance(found, list) else [found]:
                file = LogFile(str(entry["fileName"]), int(entry.get("fileSize") or 0))
                files.setdefault(file.name, file)
        return sorted(files.values(), key=lambda file: file.name)

    def read(
        self,
        node: str,
        container_id: str,
        name: str,
        offset_bytes: int = 0,
        max_bytes: int = _MAX_ANSWER_BYTES,
    ) -> bytes:
        """Content from ``offset_bytes`` on; empty when there is nothing new.

        At most ``max_bytes`` are given at a time, so read on until it is empty.

        Raises
        ------
        FileMissing
            There is no such file, or no logs of the container any more.
        YarnError
        """
        length = self._length(node, container_id, name)
        if length <= offset_bytes:
            return b""
        end = min(length, offset_bytes + max_bytes)
        if end < length and end <= length // 2:
            # the beginning is nearer than the end
            content, start, _ = self._part(node, container_id, name, end)
        else:
            content, start, _ = self._part(node, container_id, name, -(length - offset_bytes + _SLACK_BYTES))
        if start > offset_bytes:
            # it grew by more than the slack meanwhile; all of it will do
            content, start, _ = self._part(node, container_id, name, 0)
        return content[offset_bytes - start :][:max_bytes]

    def tail(self, node: str, container_id: str, name: str, size_bytes: int) -> bytes:
        """The last bytes of a file.  Raises as ``read``."""
        return self._part(node, container_id, name, -size_bytes)[0]

    def close(self) -> None:
        with self._lock:
            services, self._nodes = list(self._nodes.values()), {}
        for service in services:
            service.close()

    def _length(self, node: str, container_id: str, name: str) -> int:
        for file in self.files(node, container_id):
            if file.name == name:
                return file.length_bytes
        raise _missing(node, container_id, name)

    def _part(self, node: str, container_id: str, name: str, size: int) -> tuple[bytes, int, int]:
        """First ``size`` bytes, or last if negative, or all if 0: content, its offset, the file's length."""
        parameters = {"size": str(size)} if size else {}
        path = f"/ws/v1/node/containers/{container_id}/logs/{quote(name)}"
        try:
            answer = self._services(node).content(path, **parameters)
        except RemoteFailure as error:
            if _gone(error):
                raise _missing(node, container_id, name) from error
            raise
        return parse_log(answer, size)

    def _services(self, node: str) -> WebServices:
        with self._lock:
            if node not in self._nodes:
                self._nodes[node] = WebServices(
                    [node],
                    self._user,
                    what="the NodeManager",
                    advice="the node may be lost; logs of ended applications are aggregated",
                    timeout_ms=self._timeout_ms,
                )
            return self._nodes[node]


def parse_log(answer: bytes, size: int) -> tuple[bytes, int, int]:
    """Take the file out of the frame YARN puts around it: content, its offset, the file's length."""
    begin = answer.find(_HEAD_START)
    head = _HEAD.match(answer[begin + 1 :]) if begin >= 0 else None
    if head is None:
        raise YarnError(f"the NodeManager sent no log file: {answer[:200].decode(errors='replace')!r}")
    length = int(head[1])
    count = min(abs(size), length) if size else length
    content = answer[begin + 1 + head.end() :][:count]
    return content, length - count if size < 0 else 0, length


def _missing(node: str, container_id: str, name: str) -> FileMissing:
    return FileMissing(f"container {container_id} on {node} has no log file {name} (any more)")


def _gone(error: RemoteFailure) -> bool:
    """No logs any more, or not yet: Hadoop 3.5 answers 503 around a 404 until the container runs."""
    return error.status in (400, 404, 500) or (error.status == 503 and "404 Not Found" in error.reason)
