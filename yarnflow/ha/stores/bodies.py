"""Documents on the shared file system with a pointer to each in ZooKeeper.

The document is written first, then the pointer; the pointer is deleted first, then the document:
a pointer always leads to something, and a crash in between leaves a file that nobody knows.  Every
change of a pointer is refused to a master that was deposed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from kazoo.exceptions import NodeExistsError, NoNodeError

from yarnflow.core.files import FileSystems
from yarnflow.core.messages import Fence
from yarnflow.errors import FileMissing, LeadershipLost
from yarnflow.ha.client import ZooKeeper

logger = logging.getLogger(__name__)


class Bodies:
    """One kind of document of a cluster.

    Parameters
    ----------
    zookeeper : ZooKeeper
    fs_of : callable
        Opens the file system of a URI.
    storage_dir : str
        ``high-availability.storageDir`` (a URI).
    kind : str
        Name of the node and of the directory, e.g. ``jobgraphs``.
    fence : callable
        The leadership under which is written.
    """

    def __init__(
        self,
        zookeeper: ZooKeeper,
        fs_of: FileSystems,
        storage_dir: str,
        kind: str,
        fence: Callable[[], Fence],
    ) -> None:
        self._zookeeper = zookeeper
        self._fs_of = fs_of
        cluster = zookeeper.settings.root.rpartition("/")[2]
        self._directory: Final = f"{storage_dir.rstrip('/')}/{cluster}/{kind}"
        self._kind: Final = kind
        self._fence = fence

    def node(self, name: str) -> str:
        """Path of the pointer to a document."""
        return self._zookeeper.path(self._kind, name)

    def put(self, name: str, content: bytes) -> None:
        """Write a document and its pointer, unless there is one: the first one stands.

        Raises
        ------
        LeadershipLost
            This master was deposed.
        """
        self._zookeeper.ensure(self._kind)
        node = self.node(name)
        if self._zookeeper.get(node) is not None:
            return
        epoch = self._fence().epoch
        # a master that was deposed unawares must not write over what the next one has written
        uri = f"{self._directory}/{name}-{epoch}.json"
        fs, path = self._fs_of(uri)
        fs.make_directory(path.rpartition("/")[0])
        fs.write(path, content)
        pointer = uri.encode()
        try:
            self._zookeeper.commit(
                f"point to {uri}",
                epoch,
                lambda t: t.create(node, pointer),
            )
        except NodeExistsError:
            pass  # by an earlier try whose answer was lost
        except LeadershipLost:
            found = self._zookeeper.get(node)
            if found is None or found[0] != pointer:  # else an earlier try came through in time
                fs.delete(path)
            raise

    def get(self, name: str) -> bytes | None:
        """The document; None when there is none, or its file is gone."""
        found = self._zookeeper.get(self.node(name))
        if found is None:
            return None
        fs, path = self._fs_of(found[0].decode())
        try:
            return fs.read(path)
        except FileMissing:
            logger.error("%s has a pointer in ZooKeeper but is gone; it is passed over", path)
            return None

    def names(self) -> list[str]:
        """Of all documents, in the order in which their pointers were made."""
        found = []
        for name in self._zookeeper.children(self._zookeeper.path(self._kind)):
            node = self._zookeeper.get(self.node(name))
            if node is not None:
                found.append((int(node[1].czxid), name))
        return [name for _order, name in sorted(found)]

    def has(self, name: str) -> bool:
        """Whether there is a pointer."""
        return self._zookeeper.get(self.node(name)) is not None

    def remove(self, name: str) -> None:
        """Delete pointer and document.  Idempotent."""
        node = self.node(name)
        found = self._zookeeper.get(node)
        if found is None:
            self._zookeeper.assert_leads(self._fence().epoch)
            return
        self._delete_node(node)
        fs, path = self._fs_of(found[0].decode())
        fs.delete(path)

    def remove_all(self) -> None:
        """Delete all pointers, then the directory with all documents.  Idempotent."""
        parent = self._zookeeper.path(self._kind)
        for name in self._zookeeper.children(parent):
            self._delete_node(f"{parent}/{name}")
        self._delete_node(parent)
        fs, path = self._fs_of(self._directory)
        fs.delete(path)

    def _delete_node(self, node: str) -> None:
        try:
            self._zookeeper.commit(f"delete {node}", self._fence().epoch, lambda t: t.delete(node))
        except NoNodeError:
            pass
