"""A cluster's nodes in ZooKeeper read, and made where they are missing; those of somebody else are refused.

Below ``high-availability.zookeeper.path.root``, which clusters of all users share, anybody may make a node
of any name with any ACL before the cluster of that name does.  So no node is taken for the cluster's by its
name: it must have the ACL that the cluster itself gives its nodes.  Nobody else can make such a node, as that
ACL has a digest of a password which only holders of the cluster's secret can compute.

A look at the ACL after a node was made, or read, is enough, from the top to the bottom:

* below a node of the cluster others cannot make, delete or change anything, nor can they change its ACL;
* others who may delete below the shared parent can delete a cluster's node as long as nothing is below it,
  since ZooKeeper deletes only nodes without children.  One that they make in its place has another ACL.  So
  whoever makes nodes looks at the top once more when something of the cluster is below it: if it is the same
  node as before, it can be replaced no more (:meth:`OwnNodes.ensure`);
* an ACL is of the node whose content was read if both tell the same ``czxid``, which no two nodes have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError, NoNodeError
from kazoo.security import ACL, ANYONE_ID_UNSAFE, OPEN_ACL_UNSAFE, Permissions, make_digest_acl

from yarnflow.errors import ForeignNode

_USER: Final = "yarnflow"
#: of ZooKeeper's command line, in its order
_LETTERS: Final = (
    ("c", Permissions.CREATE), ("d", Permissions.DELETE), ("r", Permissions.READ), ("w", Permissions.WRITE),
    ("a", Permissions.ADMIN),
)  # fmt: skip
#: of a digest; enough to tell two apart
_SHOWN: Final = 8
#: without DELETE no cluster could remove its own node below another user's, so each would leave one
_SHARED: Final = Permissions.READ | Permissions.CREATE | Permissions.DELETE
#: what a user can do about a node of somebody else's
ADVICE: Final = (
    "delete it as ZooKeeper's administrator if no cluster uses it (zkCli.sh: deleteall {path}), or choose "
    "another high-availability.cluster-id or high-availability.zookeeper.path.root"
)
#: requests under way at the same time
_TOGETHER: Final = 500


class NodeRights:
    """The ACLs of one cluster's nodes.

    Parameters
    ----------
    password : str or None
        What its processes log in to ZooKeeper with; None = everybody may read and change everything
        (``high-availability.zookeeper.client.acl: open``).
    """

    def __init__(self, password: str | None) -> None:
        self.protected: Final = password is not None
        holders = [] if password is None else [make_digest_acl(_USER, password, all=True)]
        #: of the cluster's nodes
        self.own: Final[list[ACL]] = holders or OPEN_ACL_UNSAFE
        #: of the parent of all clusters: others find, make and end theirs there, and can do nothing else
        self.shared: Final[list[ACL]] = [ACL(_SHARED, ANYONE_ID_UNSAFE)] if holders else OPEN_ACL_UNSAFE
        #: for a client's session
        self.login: Final = None if password is None else [("digest", f"{_USER}:{password}")]

    def check(self, path: str, found: Sequence[ACL]) -> None:
        """Return when a node has the ACL that this cluster gives its nodes.

        Raises
        ------
        ForeignNode
            It has another one, so it is not the cluster's, or others can change it.
        """
        if self.protected and set(found) != set(self.own):
            raise ForeignNode(
                f"{path} in ZooKeeper is not this cluster's: its ACL is {described(found)} instead of "
                f"{described(self.own)}; {ADVICE.format(path=path)}"
            )

    def excess(self, found: Sequence[ACL]) -> str:
        """Return what everybody may do at the shared parent but make and end clusters; empty = nothing."""
        if not self.protected:
            return ""
        allowed = 0
        for entry in found:
            if entry.id == ANYONE_ID_UNSAFE:
                allowed |= entry.perms
        return _letters(allowed & ~_SHARED)


class OwnNodes:
    """The nodes of one cluster.

    Every method raises :class:`ForeignNode` when a node is somebody else's.

    Parameters
    ----------
    client : KazooClient
    root : str
        Node of the cluster, absolute.
    rights : NodeRights
    ask : callable
        Sends a request and waits for its answer: ``ask("read /a/b", begin)``.
    """

    def __init__(
        self,
        client: KazooClient,
        root: str,
        rights: NodeRights,
        ask: Callable[[str, Callable[[], Any]], Any],
    ) -> None:
        self._client = client
        self._root = root
        self._rights = rights
        self._ask = ask

    def get(self, path: str, watch: Callable[[], None] | None = None) -> tuple[bytes, Any] | None:
        """Return content and stat of a node or None; ``watch`` is called at its next change."""
        watcher = None if watch is None else _Watcher(watch)
        while True:
            try:
                content, stat = self._ask(f"read {path}", lambda: self._client.get_async(path, watcher))
            except NoNodeError:
                if watcher is None:
                    return None
                if self._ask(f"watch {path}", lambda: self._client.exists_async(path, watcher)) is None:
                    return None
                continue  # it came meanwhile
            if self._is_own(path, stat):
                return content, stat

    def get_all(self, paths: Sequence[str]) -> list[tuple[bytes, Any] | None]:
        """Do what :meth:`get` does for each; asked for together, many take hardly longer than one."""
        found = self._ask_all("read", paths, self._client.get_async)
        if not self._rights.protected:
            return found
        there = [(number, node) for number, node in enumerate(found) if node is not None]
        acls = self._ask_all(
            "read the ACL of", [paths[number] for number, _node in there], self._client.get_acls_async
        )
        for (number, node), acl in zip(there, acls):
            if not self._is_of(paths[number], node[1], acl):
                found[number] = self.get(paths[number])  # another one came meanwhile
        return found

    def children(self, path: str, watch: Callable[[], None] | None = None) -> list[str]:
        """Return names below a node, none if there is no such node; that is not watched for."""
        watcher = None if watch is None else _Watcher(watch)
        while True:
            try:
                names, stat = self._ask(
                    f"list {path}",
                    lambda: self._client.get_children_async(path, watcher, include_data=True),
                )
            except NoNodeError:
                return []
            if self._is_own(path, stat):
                return list(names)

    def ensure(self, names: Sequence[str]) -> str:
        """Create a node of the cluster, by the names below its root, and those above it; returns its path."""
        root = self._root
        levels = list(accumulate(names, "{}/{}".format, initial=root))
        while True:
            # the top once more: with a node of the cluster below it, others cannot replace it any more
            found = self._ask_all("read the ACL of", [*levels, root], self._client.get_acls_async)
            there = [(level, node) for level, node in zip(levels, found) if node is not None]
            for level, (acl, _stat) in there:
                self._rights.check(level, acl)
            if len(there) < len(levels):
                self._make([level for level, node in zip(levels, found) if node is None])
            elif found[-1] is not None and found[-1][1].czxid == there[0][1][1].czxid:
                return levels[-1]

    def excess_rights(self) -> str:
        """Return what everybody may do at the shared parent but make and end clusters; empty = nothing."""
        parent = self._root.rpartition("/")[0]
        if not parent:
            return ""
        try:
            acl, _stat = self._ask(f"read the ACL of {parent}", lambda: self._client.get_acls_async(parent))
        except (ForeignNode, NoNodeError):
            return ""  # not everybody may even read it
        return self._rights.excess(acl)

    # --- whose nodes they are ---

    def _is_own(self, path: str, stat: Any) -> bool:
        """Return whether the node of a stat, which is the cluster's, is still there; raises ForeignNode."""
        if not self._rights.protected:
            return True
        try:
            answer = self._ask(f"read the ACL of {path}", lambda: self._client.get_acls_async(path))
        except NoNodeError:
            return False
        return self._is_of(path, stat, answer)

    def _is_of(self, path: str, stat: Any, answer: tuple[Sequence[ACL], Any] | None) -> bool:
        """Decide as :meth:`_is_own`, by the answer that has the ACL."""
        if answer is None or answer[1].czxid != stat.czxid:
            return False
        self._rights.check(path, answer[0])
        return True

    def _make(self, paths: Sequence[str]) -> None:
        """Create nodes, from the top; those that are there meanwhile stay."""
        for path in paths:
            try:
                self._ask(f"create {path}", partial(self._client.create_async, path, b""))
            except NodeExistsError:
                continue
            except NoNodeError:
                if path == self._root:
                    self._make_parent()
                return

    def _make_parent(self) -> None:
        parent, shared = self._root.rpartition("/")[0], self._rights.shared
        self._ask(f"create {parent}", lambda: self._client.ensure_path_async(parent, acl=shared))

    def _ask_all(self, what: str, paths: Sequence[str], begin: Callable[[str], Any]) -> list[Any | None]:
        """Return the answers for each node, None where there is none; asked for together."""
        found: list[Any | None] = []
        for first in range(0, len(paths), _TOGETHER):
            part = paths[first : first + _TOGETHER]
            requests = [begin(path) for path in part]
            for path, request in zip(part, requests):
                # the one under way is the first try; another is made when its answer is lost
                tries = chain([request], iter(partial(begin, path), None))
                try:
                    found.append(self._ask(f"{what} {path}", partial(next, tries)))
                except NoNodeError:
                    found.append(None)
        return found


@dataclass(frozen=True)
class _Watcher:
    """What kazoo calls; equal to others of the same watch."""

    watch: Callable[[], None]

    def __call__(self, event: Any) -> None:
        # events of the connection come by the state listener
        if event.type != "NONE":
            self.watch()


def described(acl: Sequence[ACL]) -> str:
    """Return an ACL as ZooKeeper's command line writes it, digests shortened."""
    return ",".join(f"{entry.id.scheme}:{_shown(entry.id.id)}:{_letters(entry.perms)}" for entry in acl)


def _shown(name: str) -> str:
    user, colon, digest = name.partition(":")
    return f"{user}:{digest[:_SHOWN]}…" if colon and len(digest) > _SHOWN else name


def _letters(permissions: int) -> str:
    return "".join(letter for letter, permission in _LETTERS if permissions & permission)
