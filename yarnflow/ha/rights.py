"""What a cluster's nodes in ZooKeeper allow, and whether one that is there allows others more.

Below ``high-availability.zookeeper.path.root``, which clusters of all users share, anybody may make a node
of any name with any ACL before the cluster of that name does.  So no node is taken for the cluster's by its
name: it must have the ACL that the cluster itself gives its nodes.  Nobody else can make such a node, as that
ACL has a digest of a password which only holders of the cluster's secret can compute.

A look at the ACL after a node was made, or read, is enough, from the top to the bottom:

* below a node of the cluster others cannot make, delete or change anything, nor can they change its ACL;
* others who may delete below the shared parent can delete a cluster's node as long as nothing is below it,
  since ZooKeeper deletes only nodes without children.  One that they make in its place has another ACL.  So
  whoever makes nodes looks at the top once more when something of the cluster is below it: if it is the same
  node as before, it can be replaced no more (:meth:`yarnflow.ha.client.ZooKeeper.ensure`);
* an ACL is of the node whose content was read if both tell the same ``czxid``, which no two nodes have.

Never asks ZooKeeper itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

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
_SHARED: Final = Permissions.READ | Permissions.CREATE
#: what a user can do about a node of somebody else's
ADVICE: Final = (
    "delete it as ZooKeeper's administrator if no cluster uses it (zkCli.sh: deleteall {path}), or choose "
    "another high-availability.cluster-id or high-availability.zookeeper.path.root"
)


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
        #: of the parent of all clusters: others find and make theirs there, and can do nothing else
        self.shared: Final[list[ACL]] = (
            [ACL(_SHARED, ANYONE_ID_UNSAFE), *holders] if holders else OPEN_ACL_UNSAFE
        )
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
        """What everybody may do to the shared parent beyond making a cluster; empty = nothing."""
        if not self.protected:
            return ""
        allowed = 0
        for entry in found:
            if entry.id == ANYONE_ID_UNSAFE:
                allowed |= entry.perms
        return _letters(allowed & ~_SHARED)


def described(acl: Sequence[ACL]) -> str:
    """An ACL as ZooKeeper's command line writes it, digests shortened."""
    return ",".join(f"{entry.id.scheme}:{_shown(entry.id.id)}:{_letters(entry.perms)}" for entry in acl)


def _shown(name: str) -> str:
    user, colon, digest = name.partition(":")
    return f"{user}:{digest[:_SHOWN]}…" if colon and len(digest) > _SHOWN else name


def _letters(permissions: int) -> str:
    return "".join(letter for letter, permission in _LETTERS if permissions & permission)
