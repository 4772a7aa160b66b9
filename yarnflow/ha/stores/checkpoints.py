"""Completed checkpoints of one job in ZooKeeper, and the counter of their ids.

The counter and a pointer per checkpoint stand in ZooKeeper; what is known of a checkpoint is a
document in the storage directory; the checkpoint's own ``_metadata`` lies in the job's directory.
Written in the order metadata, document, pointer; deleted in the opposite one.

Flink counterparts: ``DefaultCompletedCheckpointStore``, ``ZooKeeperCheckpointIDCounter``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from kazoo.client import TransactionRequest
from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError

from yarnflow.core.checkpoint.messages import CheckpointInfo, CheckpointKind
from yarnflow.core.files import FileSystems
from yarnflow.core.ids import JobId
from yarnflow.core.json_codec import from_json, to_json
from yarnflow.core.messages import Fence
from yarnflow.core.states import JobStatus
from yarnflow.errors import LeadershipLost, RpcProtocolError
from yarnflow.ha.client import ZooKeeper
from yarnflow.ha.stores.bodies import Bodies
from yarnflow.ha.stores.checkpoint_files import CheckpointFiles

logger = logging.getLogger(__name__)

_DIGITS = 19


class ZooKeeperCheckpoints:
    """Implements :class:`yarnflow.core.ha.ports.CheckpointStore`.

    Parameters
    ----------
    zookeeper, fs_of, storage_dir, fence
        As in :class:`~yarnflow.ha.stores.bodies.Bodies`.
    job_id : JobId
    directory : str
        The job's checkpoint directory (a URI).
    """

    def __init__(
        self,
        zookeeper: ZooKeeper,
        fs_of: FileSystems,
        storage_dir: str,
        fence: Callable[[], Fence],
        job_id: JobId,
        directory: str,
    ) -> None:
        self._zookeeper = zookeeper
        self._fence = fence
        self._job = f"jobs/{job_id}"
        self._counter = zookeeper.path(self._job, "checkpoint_id_counter")
        self._bodies = Bodies(zookeeper, fs_of, storage_dir, f"{self._job}/checkpoints", fence)
        self._files = CheckpointFiles(fs_of, directory)
        #: id in the job's directory, for a counter that ZooKeeper lost
        self._highest: int | None = None

    def next_id(self) -> int:
        """A number above all that were given before."""
        node = self._counter
        while True:
            found = self._zookeeper.get(node)
            try:
                if found is None or self._highest is None:
                    # the directory may know of ids that ZooKeeper does not know (any more)
                    self._highest = self._files.highest_id()
                if found is None:
                    number = self._highest + 1
                    self._zookeeper.ensure(self._job)
                    change = partial(_create, node, number)
                else:
                    number = max(int(found[0]), self._highest) + 1
                    change = partial(_replace, node, number, int(found[1].version))
                self._zookeeper.commit("count checkpoints", self._fence().epoch, change)
                return number
            except (NodeExistsError, BadVersionError, NoNodeError):
                continue  # an earlier try whose answer was lost came through; or the job's node went

    def add(self, checkpoint: CheckpointInfo, metadata: bytes) -> CheckpointInfo:
        """Write a completed one; returns it with its path."""
        if checkpoint.kind is CheckpointKind.CHECKPOINT:
            checkpoint = replace(
                checkpoint, external_path=self._files.write(checkpoint.checkpoint_id, metadata)
            )
        name = _name(checkpoint.checkpoint_id)
        try:
            self._bodies.put(name, to_json(checkpoint).encode())
        except LeadershipLost:
            # the number is this master's alone, so nobody else has written there
            if checkpoint.kind is CheckpointKind.CHECKPOINT and not self._bodies.has(name):
                self._files.delete(checkpoint.checkpoint_id)
            raise
        return checkpoint

    def remove(self, checkpoint_id: int) -> None:
        """Delete a checkpoint, or the record of a savepoint."""
        known = self._find(checkpoint_id)
        self._bodies.remove(_name(checkpoint_id))
        if known is None or known.kind is CheckpointKind.CHECKPOINT:
            self._files.delete(checkpoint_id)

    def all(self) -> Sequence[CheckpointInfo]:
        """By id; unreadable ones are left out."""
        found = []
        for name, content in sorted(self._bodies.all().items()):
            info = _understood(int(name), content)
            if info is None:
                continue
            if info.kind is CheckpointKind.CHECKPOINT and not self._files.exists(info.checkpoint_id):
                logger.warning("Checkpoint %d has lost its _metadata and is passed over.", info.checkpoint_id)
                continue
            found.append(info)
        return found

    def recorded_directory(self) -> str:
        """The job's directory (a URI) by the records alone; empty = there are none."""
        for name, content in sorted(self._bodies.all().items(), reverse=True):
            info = _understood(int(name), content)
            if info is not None and info.kind is CheckpointKind.CHECKPOINT:
                return info.external_path.rpartition("/")[0]
        return ""

    def discard_all(self) -> None:
        self._forget()
        self._files.delete_directory()

    def close_job(self, status: JobStatus) -> None:
        """Pointers and counter go, what the job's directory has stays."""
        self._forget()
        self._files.release(status)

    def _forget(self) -> None:
        self._bodies.remove_all()
        try:
            self._zookeeper.commit(
                "end the count of checkpoints", self._fence().epoch, lambda t: t.delete(self._counter)
            )
        except NoNodeError:
            pass

    def _find(self, checkpoint_id: int) -> CheckpointInfo | None:
        content = self._bodies.get(_name(checkpoint_id))
        return None if content is None else _understood(checkpoint_id, content)


def _understood(checkpoint_id: int, content: bytes) -> CheckpointInfo | None:
    try:
        return from_json(CheckpointInfo, content.decode())
    except (RpcProtocolError, UnicodeDecodeError) as error:
        logger.error("Checkpoint %d cannot be understood: %s", checkpoint_id, error)
        return None


def _create(node: str, number: int, transaction: TransactionRequest) -> None:
    transaction.create(node, str(number).encode())


def _replace(node: str, number: int, version: int, transaction: TransactionRequest) -> None:
    transaction.set_data(node, str(number).encode(), version)


def _name(checkpoint_id: int) -> str:
    return f"{checkpoint_id:0{_DIGITS}d}"
