"""ZooKeeper in memory behind kazoo's asynchronous calls; answers can be lost, sessions can end.

Everything is done at once in the caller's thread; watches are called there as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kazoo.exceptions import (
    BadVersionError,
    ConnectionLoss,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
)
from kazoo.protocol.states import EventType, KazooState, KeeperState, WatchedEvent
from kazoo.security import ACL, OPEN_ACL_UNSAFE, Permissions

Watch = Callable[[WatchedEvent], None]


@dataclass
class Stat:
    """What is known of a node beside its content."""

    czxid: int
    ephemeralOwner: int = 0
    version: int = 0
    ctime: int = 0
    acl: Sequence[ACL] = ()


@dataclass
class Ensemble:
    """The servers."""

    nodes: dict[str, tuple[bytes, Stat]] = field(default_factory=lambda: {"": (b"", Stat(0))})
    zxid: int = 0
    sessions: int = 0
    #: of contents and of lists of children
    watches: dict[tuple[str, str], set[Watch]] = field(default_factory=dict)

    def children(self, path: str) -> list[str]:
        return [name[len(path) + 1 :] for name in self.nodes if name.rpartition("/")[0] == path and name]

    def get(self, path: str) -> tuple[bytes, Stat]:
        if path not in self.nodes:
            raise NoNodeError
        return self.nodes[path]

    def create(
        self,
        path: str,
        content: bytes,
        owner: int = 0,
        sequence: bool = False,
        acl: Sequence[ACL] = OPEN_ACL_UNSAFE,
    ) -> str:
        parent = path.rpartition("/")[0]
        self.get(parent)
        self.zxid += 1
        if sequence:
            path = f"{path}{self.zxid:010d}"
        if path in self.nodes:
            raise NodeExistsError
        self.nodes[path] = (content, Stat(self.zxid, owner, ctime=time.time_ns() // 1_000_000, acl=acl))
        self._happened(path, EventType.CREATED)
        return path

    def set(self, path: str, content: bytes, version: int = -1) -> None:
        self.check(path, version)
        self.nodes[path] = (content, self.nodes[path][1])
        self.nodes[path][1].version += 1
        self._happened(path, EventType.CHANGED)

    def delete(self, path: str, version: int = -1) -> None:
        self.check(path, version)
        if self.children(path):
            raise NotEmptyError
        del self.nodes[path]
        self._happened(path, EventType.DELETED)

    def check(self, path: str, version: int) -> None:
        if version not in (-1, self.get(path)[1].version):
            raise BadVersionError

    def end_session(self, session: int) -> None:
        for path in [path for path, (_content, stat) in self.nodes.items() if stat.ephemeralOwner == session]:
            self.delete(path)

    def _happened(self, path: str, what: str) -> None:
        told = self.watches.pop(("node", path), set())
        if what != EventType.CHANGED:
            told = told | self.watches.pop(("children", path.rpartition("/")[0]), set())
        for watch in told:
            watch(WatchedEvent(what, KeeperState.CONNECTED, path))


class Result:
    """Kazoo's asynchronous result, there at once."""

    def __init__(self, value: Any = None, error: Exception | None = None) -> None:
        self.value = value
        self._error = error

    def wait(self, timeout: float) -> bool:
        return True

    def get(self) -> Any:
        if self._error is not None:
            raise self._error
        return self.value

    def successful(self) -> bool:
        return self._error is None

    def rawlink(self, callback: Callable[[Result], None]) -> None:
        callback(self)


class FakeKazooClient:
    """One session at an :class:`Ensemble`.

    Attributes
    ----------
    before : callable
        Called before each request; returns whether its answer is lost: ``""`` = no, ``"done"`` or
        ``"undone"`` = the request was or was not done.
    """

    def __init__(self, ensemble: Ensemble, default_acl: Sequence[ACL] = (), **_others: object) -> None:
        self.ensemble = ensemble
        self.default_acl = default_acl or OPEN_ACL_UNSAFE
        self.before: Callable[[], str] = lambda: ""
        self.connected = False
        self.client_state = KeeperState.CLOSED
        self.client_id: tuple[int, bytes] | None = None
        self._listeners: list[Callable[[str], None]] = []

    # --- life ---

    def add_listener(self, listener: Callable[[str], None]) -> None:
        self._listeners.append(listener)

    def start(self, timeout: float) -> None:
        self.ensemble.sessions += 1
        self.client_id = (self.ensemble.sessions, b"password")
        self.resume()

    def resume(self) -> None:
        self.connected = True
        self._tell(KazooState.CONNECTED, KeeperState.CONNECTED)

    def suspend(self) -> None:
        self.connected = False
        self._tell(KazooState.SUSPENDED, KeeperState.CONNECTING)

    def expire(self) -> None:
        self.connected = False
        assert self.client_id is not None
        self.ensemble.end_session(self.client_id[0])
        self._tell(KazooState.LOST, KeeperState.EXPIRED_SESSION)

    def stop(self) -> None:
        if self.client_id is not None:
            self.ensemble.end_session(self.client_id[0])
        self.connected = False

    def close(self) -> None:
        """Nothing is open."""

    def _tell(self, state: str, detail: str) -> None:
        self.client_state = detail
        for listener in self._listeners:
            listener(state)

    # --- requests ---

    def get_async(self, path: str, watch: Watch | None = None) -> Result:
        def get() -> tuple[bytes, Stat]:
            found = self.ensemble.get(path)
            self._watch("node", path, watch)
            content, stat = found
            return content, replace(stat)

        return self._request(get)

    def exists_async(self, path: str, watch: Watch | None = None) -> Result:
        def exists() -> Stat | None:
            self._watch("node", path, watch)
            return self.ensemble.nodes[path][1] if path in self.ensemble.nodes else None

        return self._request(exists)

    def get_children_async(self, path: str, watch: Watch | None = None, include_data: bool = False) -> Result:
        def children() -> list[str] | tuple[list[str], Stat]:
            _content, stat = self.ensemble.get(path)
            self._watch("children", path, watch)
            names = self.ensemble.children(path)
            return (names, replace(stat)) if include_data else names

        return self._request(children)

    def get_acls_async(self, path: str) -> Result:
        def acl() -> tuple[list[ACL], Stat]:
            _content, stat = self.ensemble.get(path)
            return list(stat.acl), replace(stat)

        return self._request(acl)

    def create_async(
        self, path: str, content: bytes, ephemeral: bool = False, sequence: bool = False
    ) -> Result:
        owner = self._owner(ephemeral)
        return self._request(lambda: self.ensemble.create(path, content, owner, sequence, self.default_acl))

    def ensure_path_async(self, path: str, acl: Sequence[ACL]) -> Result:
        def ensure() -> str:
            names = path.split("/")
            for end in range(2, len(names) + 1):
                if "/".join(names[:end]) not in self.ensemble.nodes:
                    self.ensemble.create("/".join(names[:end]), b"", acl=acl)
            return path

        return self._request(ensure)

    def set_async(self, path: str, content: bytes) -> Result:
        return self._request(lambda: self.ensemble.set(path, content))

    def delete_async(self, path: str) -> Result:
        def delete() -> None:
            parent = self.ensemble.nodes.get(path.rpartition("/")[0])
            if parent is not None and not self._may(Permissions.DELETE, parent[1].acl):
                raise NoAuthError
            self.ensemble.delete(path)

        return self._request(delete)

    def transaction(self) -> FakeTransaction:
        return FakeTransaction(self)

    def _may(self, permission: int, acl: Sequence[ACL]) -> bool:
        mine = {*(entry.id for entry in self.default_acl), *(entry.id for entry in OPEN_ACL_UNSAFE)}
        return not acl or any(entry.id in mine and entry.perms & permission for entry in acl)

    def _owner(self, ephemeral: bool) -> int:
        return self.client_id[0] if ephemeral and self.client_id is not None else 0

    def _watch(self, kind: str, path: str, watch: Watch | None) -> None:
        if watch is not None:
            self.ensemble.watches.setdefault((kind, path), set()).add(watch)

    def _request(self, do: Callable[[], Any]) -> Result:
        lost = self.before()
        if not self.connected or lost == "undone":
            return Result(error=ConnectionLoss())
        try:
            value = do()
        except (NoAuthError, NoNodeError, NodeExistsError, BadVersionError, NotEmptyError) as error:
            return Result(error=ConnectionLoss() if lost else error)
        return Result(error=ConnectionLoss()) if lost else Result(value)


class FakeTransaction:
    """All or nothing."""

    def __init__(self, client: FakeKazooClient) -> None:
        self._client = client
        self._steps: list[Callable[[], object]] = []

    def check(self, path: str, version: int) -> None:
        self._steps.append(lambda: self._client.ensemble.check(path, version))

    def create(self, path: str, content: bytes, ephemeral: bool = False) -> None:
        client = self._client
        owner = client._owner(ephemeral)
        self._steps.append(lambda: client.ensemble.create(path, content, owner, acl=client.default_acl))

    def set_data(self, path: str, content: bytes, version: int = -1) -> None:
        self._steps.append(lambda: self._client.ensemble.set(path, content, version))

    def delete(self, path: str, version: int = -1) -> None:
        self._steps.append(lambda: self._client.ensemble.delete(path, version))

    def commit_async(self) -> Result:
        return self._client._request(self._commit)

    def _commit(self) -> list[object]:
        ensemble = self._client.ensemble
        before = {path: (content, replace(stat)) for path, (content, stat) in ensemble.nodes.items()}
        watches, results = ensemble.watches, []
        # those are told of a change that stays only; a change that does not, changes nothing
        ensemble.watches = {}
        for number, step in enumerate(self._steps):
            try:
                results.append(step())
            except (NoNodeError, NodeExistsError, BadVersionError, NotEmptyError) as error:
                ensemble.nodes, ensemble.watches = before, watches
                after = len(self._steps) - number - 1
                return [*[RolledBackError()] * number, error, *[RuntimeInconsistency()] * after]
        paths = {*before, *ensemble.nodes}
        changed = {path for path in paths if before.get(path) != ensemble.nodes.get(path)}
        ensemble.watches = watches
        for path in sorted(changed):
            was, now = path in before, path in ensemble.nodes
            ensemble._happened(
                path, EventType.CHANGED if was and now else EventType.CREATED if now else EventType.DELETED
            )
        return results
