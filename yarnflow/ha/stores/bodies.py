"""Documents on the shared file system with a pointer to each in ZooKeeper.

The document is written first, then the pointer; the pointer is deleted first, then the document:
a pointer always leads to something, and a crash in between leaves a file that nobody knows.  Every
change of a pointer is refused to a master that was deposed.

A document is called by the digest of its content, so that its pointer, which only the cluster can write,
vouches for it: others may be able to write files there, and drivers run what a job's document says.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable
from typing import Final

from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError

from yarnflow.core.files import FileSystems
from yarnflow.core.messages import Fence
from yarnflow.errors import FileMissing, LeadershipLost
from yarnflow.ha.client import ZooKeeper
from yarnflow.ha.settings import ZooKeeperSettings

logger = logging.getLogger(__name__)

#: at the end of a document's name; those of earlier versions have no digest
_DIGEST: Final = re.compile(r"-(?P<digest>[0-9a-f]{64})\.json$")


def cluster_directory(storage_dir: str, settings: ZooKeeperSettings) -> str:
    """Where a cluster has its documents below ``high-availability.storageDir`` (URIs)."""
    return f"{storage_dir.rstrip('/')}/{settings.root.rpartition('/')[2]}"


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
        self._directory: Final = f"{cluster_directory(storage_dir, zookeeper.settings)}/{kind}"
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
        uri = f"{self._directory}/{name}-{epoch}-{_digest(content)}.json"
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

    def replace(self, name: str, content: bytes) -> None:
        """Write a document anew that cannot be read, if there is a pointer to it.

        Raises
        ------
        LeadershipLost
            This master was deposed.
        """
        node = self.node(name)
        epoch = self._fence().epoch
        # what was written before may be damaged, and its name be taken
        uri = f"{self._directory}/{name}-{epoch}-again-{hashlib.sha256(content).hexdigest()}.json"
        found, pointer = self._zookeeper.get(node), uri.encode()
        if found is None:
            return
        fs, path = self._fs_of(uri)
        fs.write(path, content)
        version = int(found[1].version)
        try:
            self._zookeeper.commit(
                f"point to {uri}", epoch, lambda t: t.set_data(node, pointer, version)
            )
        except (BadVersionError, NoNodeError):
            pass  # by an earlier try whose answer was lost; nobody else changes it, as this master leads
        except LeadershipLost:
            present = self._zookeeper.get(node)
            if present is None or present[0] != pointer:
                fs.delete(path)
            raise
        if found[0] != pointer:
            fs, path = self._fs_of(found[0].decode())
            fs.delete(path)

    def get(self, name: str) -> bytes | None:
        """The document; None when there is none, or its file is gone or not as it was written."""
        found = self._zookeeper.get(self.node(name))
        return None if found is None else self._read(found[0])

    def all(self) -> dict[str, bytes]:
        """Name → document of all whose files are there; the pointers are read together."""
        names = self._zookeeper.children(self._zookeeper.path(self._kind))
        found = self._zookeeper.get_all([self.node(name) for name in names])
        read = {name: self._read(node[0]) for name, node in zip(names, found) if node is not None}
        return {name: content for name, content in read.items() if content is not None}

    def _read(self, pointer: bytes) -> bytes | None:
        fs, path = self._fs_of(pointer.decode())
        try:
            content = fs.read(path)
        except FileMissing:
            logger.error("%s has a pointer in ZooKeeper but is gone; it is passed over", path)
            return None
        named = _DIGEST.search(path)
        if named is not None and named["digest"] != _digest(content):
            logger.error(
                "%s is not as the cluster wrote it (its SHA-256 is %s); it is passed over: see who may write "
                "there", path, _digest(content),
            )  # fmt: skip
            return None
        return content

    def names(self) -> list[str]:
        """Of all documents, in the order in which their pointers were made."""
        names = self._zookeeper.children(self._zookeeper.path(self._kind))
        nodes = zip(names, self._zookeeper.get_all([self.node(name) for name in names]))
        found = [(int(node[1].czxid), name) for name, node in nodes if node is not None]
        return [name for _order, name in sorted(found)]

    def without_pointer(self) -> list[str]:
        """Names of documents to which there is no pointer: of masters that were killed, or it was lost."""
        fs, path = self._fs_of(self._directory)
        stored = {entry.name.partition("-")[0] for entry in fs.list(path) if entry.name.endswith(".json")}
        return sorted(stored.difference(self._zookeeper.children(self._zookeeper.path(self._kind))))

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


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
