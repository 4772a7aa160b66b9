"""What tells the leaders of a cluster apart when ZooKeeper has forgotten some of them.

ZooKeeper may be emptied, or restored from a backup: then it counts epochs that there were already, or
begins anew, and whoever has followed a later leader would refuse the next ones for ever, and take the old
one for newer.  So each epoch that was granted is noted on the shared file system, too.  When ZooKeeper is
behind that, the cluster's next *incarnation* begins, with an epoch node of its own in ZooKeeper.  The epoch
that everybody sees is made of both and only ever rises; of the first incarnation it is ZooKeeper's alone.

Flink has no counterpart: its fencing tokens are random, and have no order.
"""

from __future__ import annotations

import re
from typing import Final

from yarnflow.core.files import FileSystems

_EPOCH: Final = "epoch"
_NODE: Final = re.compile(r"epoch(?:-([1-9]\d*))?")
_DIGITS: Final = 19
#: leaders that an incarnation may have; a 32nd of what a version of ZooKeeper's can count
_SPAN: Final = 1_000_000


def epoch_of(incarnation: int, version: int) -> int:
    """The epoch that everybody sees.

    Parameters
    ----------
    incarnation : int
        0 = the first one.
    version : int
        Of the incarnation's epoch node.
    """
    return incarnation * _SPAN + version


def node_of(incarnation: int) -> str:
    """Name of an incarnation's epoch node."""
    return f"{_EPOCH}-{incarnation}" if incarnation else _EPOCH


def parts_of(epoch: int) -> tuple[str, int]:
    """Name and version of the node that an epoch is of."""
    incarnation, version = divmod(epoch, _SPAN)
    return node_of(incarnation), version


def incarnation_after(epoch: int) -> int:
    """The one that begins when ZooKeeper does not know of an epoch that was granted."""
    return epoch // _SPAN + 1


def newest_incarnation(names: list[str]) -> int:
    """By the names of nodes; 0 when there is no epoch node."""
    found = (_NODE.fullmatch(name) for name in names)
    return max((int(match[1] or 0) for match in found if match), default=0)


class GrantedEpochs:
    """The last epoch that was granted, as a file whose name is all there is to it.

    Parameters
    ----------
    fs_of : callable
        Opens the file system of a URI.
    directory : str
        Of the cluster, below ``high-availability.storageDir`` (a URI).
    """

    def __init__(self, fs_of: FileSystems, directory: str) -> None:
        self._fs_of = fs_of
        self._directory = f"{directory.rstrip('/')}/epochs"

    def last(self) -> int:
        """0 = there was no leader yet, or none that noted it.  Raises StorageError."""
        fs, path = self._fs_of(self._directory)
        return max((int(entry.name) for entry in fs.list(path) if entry.name.isdigit()), default=0)

    def note(self, epoch: int) -> bool:
        """This process leads under an epoch; False = another one has.  Raises StorageError."""
        fs, path = self._fs_of(self._directory)
        fs.make_directory(path)
        if not fs.create(f"{path}/{epoch:0{_DIGITS}d}", b""):
            return False
        for entry in fs.list(path):
            if entry.name.isdigit() and int(entry.name) < epoch:
                fs.delete(entry.path)
        return True
