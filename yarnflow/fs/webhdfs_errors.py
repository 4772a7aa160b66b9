"""What WebHDFS and the network say, as errors of ours.

Decides which answers are errors of which kind, whether trying again can help, and the one line a
user reads.  Never sends anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import requests

from yarnflow.errors import FileMissing, StorageDenied, StorageError, StorageUnavailable

#: of what a server says; some say whole stack traces
_MAX_TEXT: Final = 300
_DENIED: Final = frozenset({"AccessControlException", "SecurityException", "AuthorizationException"})
_QUOTA: Final = frozenset(
    {"QuotaExceededException", "NSQuotaExceededException", "DSQuotaExceededException"}
)  # fmt: skip
#: what is wrong is the path that was asked for
_PATH: Final = frozenset(
    {"FileAlreadyExistsException", "ParentNotDirectoryException", "InvalidPathException"}
)  # fmt: skip
#: parts of IOExceptions' texts
_NO_DATA_NODES: Final = ("minReplication", "could only be written to", "Failed to find datanode")
_PASSIVE: Final = frozenset({"StandbyException", "RetriableException", "RetryStartFileException"})


class Refused(Exception):
    """A server's answer that is not a success.

    Parameters
    ----------
    status : int
        Of HTTP.
    exception : str
        Simple name of the Java exception; empty when the answer is not WebHDFS's.
    text : str
        First line of what it says.
    """

    def __init__(self, status: int, exception: str, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.exception = exception
        self.text = text

    @property
    def safe_mode(self) -> bool:
        """HDFS takes no changes until enough DataNodes have reported, or an operator ends it."""
        return self.exception == "SafeModeException" or (
            self.exception in _PASSIVE and "safe mode" in self.text.lower()
        )

    @property
    def passive(self) -> bool:
        """Another NameNode, or the same one a moment later, may do it."""
        return self.exception in _PASSIVE and not self.safe_mode

    @property
    def exists(self) -> bool:
        """Something is there already."""
        return self.exception == "FileAlreadyExistsException"

    @property
    def missing(self) -> bool:
        """Nothing is there."""
        return self.exception == "FileNotFoundException"


def refused(response: requests.Response) -> Refused:
    """Read an answer whose status is 400 or more."""
    try:
        remote = response.json()["RemoteException"]
        exception, text = str(remote["exception"]), str(remote.get("message") or "")
    except (ValueError, LookupError, TypeError):
        exception, text = "", f"HTTP status {response.status_code} {response.reason or ''}"
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [f"HTTP {response.status_code}"]
    return Refused(response.status_code, exception.rpartition(".")[2], lines[0][:_MAX_TEXT].rstrip("."))


@dataclass(frozen=True, slots=True)
class Place:
    """Which file system messages speak of."""

    #: ``hdfs://…``
    uri: str
    #: base URLs of the NameNodes
    name_nodes: tuple[str, ...]
    conf_dir: Path
    user: str

    def error(self, doing: str, path: str, answer: Refused) -> StorageError:
        """The error for an answer, e.g. ``doing`` = "write"."""
        where = f"cannot {doing} {self.uri}{path}"
        if answer.safe_mode:
            return StorageUnavailable(
                f"{where}: HDFS is in safe mode and takes no changes; check with: hdfs dfsadmin -safemode get"
            )
        if answer.passive:
            return StorageUnavailable(
                f"{where}: no NameNode of {', '.join(self.name_nodes)} is active ({answer.text}); "
                "check with: hdfs haadmin -getAllServiceState"
            )
        if answer.exception in _PATH:
            return StorageError(f"{where}: {answer.text}; choose another path")
        if answer.missing:
            return FileMissing(f"{where}: {answer.text}; check the path")
        if answer.status == 401:
            return StorageDenied(
                f"{where}: HDFS wants to know who {self.user} is ({answer.text}); "
                "clusters with Kerberos are not supported yet"
            )
        if answer.exception in _DENIED:
            return StorageDenied(
                f"{where} as user {self.user}: {answer.text}; "
                "use another directory or have its permissions changed"
            )
        if answer.exception in _QUOTA:
            return StorageDenied(f"{where}: {answer.text}; delete files there or have the quota raised")
        if any(sign in answer.text for sign in _NO_DATA_NODES):
            return StorageUnavailable(
                f"{where}: no DataNode takes data ({answer.text}); check with: hdfs dfsadmin -report"
            )
        said = f"{answer.exception}: {answer.text}" if answer.exception else answer.text
        if not answer.exception:
            return StorageUnavailable(
                f"{where}: {', '.join(self.name_nodes)} answers {said}, as no WebHDFS does; "
                f"check dfs.webhdfs.enabled and dfs.namenode.http-address in {self.conf_dir}"
            )
        return StorageError(f"{where}: {said}; see the log of the NameNode")

    def unreachable(
        self, doing: str, path: str, failures: list[requests.RequestException]
    ) -> StorageUnavailable:
        """The error when nobody answered; ``failures`` are the last ones, one per NameNode tried."""
        where = f"cannot {doing} {self.uri}{path}"
        said = {base_url(failure): reason(failure) for failure in failures}
        if others := [url for url in said if url and url not in self.name_nodes]:
            return StorageUnavailable(
                f"{where}: DataNode {others[0]}: {said[others[0]]}; this machine must be able to connect to "
                "every DataNode of HDFS; check with: hdfs dfsadmin -report"
            )
        nodes = ", ".join(f"{url or 'NameNode'}: {text}" for url, text in said.items())
        return StorageUnavailable(
            f"{where}: {nodes}; start HDFS, or check HADOOP_CONF_DIR, which is {self.conf_dir}"
        )


def base_url(failure: requests.RequestException) -> str:
    """Scheme, host and port of the server a request failed at; empty when it is not known."""
    if failure.request is None or not failure.request.url:
        return ""
    parts = urlsplit(str(failure.request.url))
    return f"{parts.scheme}://{parts.netloc}"


def reason(failure: BaseException) -> str:
    """The deepest cause of a failed request in a few words."""
    if isinstance(failure, requests.ConnectTimeout):
        return "no connection in time"
    if isinstance(failure, requests.Timeout):
        return "no answer in time"
    seen: list[BaseException] = []
    current: object = failure
    while isinstance(current, BaseException) and current not in seen:
        seen.append(current)
        arguments = [argument for argument in current.args if isinstance(argument, BaseException)]
        current = getattr(current, "reason", None) or current.__cause__ or current.__context__
        if not isinstance(current, BaseException) or current in seen:
            current = arguments[0] if arguments else None
    for cause in reversed(seen):
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
    text = str(seen[-1]) or type(seen[-1]).__name__
    return text.splitlines()[0][:_MAX_TEXT]
