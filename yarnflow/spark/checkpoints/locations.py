"""Whose a checkpoint location of a script's own is: a marker in it, which names the job's directory.

A query goes on from what is at its location, whatever its job was started from.  So no two jobs may have
one at a time, of whatever cluster.  Decides that a job which may still run has it: the marker in that job's
directory (:mod:`yarnflow.ha.stores.state_owner`) says so.  A job that has ended leaves the location to the
next one that starts a query there, which renames the marker: of two, one can.  So does a job whose cluster
was lost, but only to the next job of its key, as a key has at most one live job; the state of the lost one is
claimed, so that it cannot come back.  On one machine the driver's process tells, for jobs without keys as
well.  Spark lists only the directories that it makes there, and so does not
notice the hidden file.  Flink counterpart: none; its programs do not say where checkpoints are.
"""

from __future__ import annotations

import hashlib
import logging
import os
import socket
import threading
from dataclasses import dataclass
from typing import Final

from yarnflow.core.checkpoint.manifest import CLAIMED, HELD, from_bytes, manifest_in
from yarnflow.core.json_codec import from_json, to_json
from yarnflow.core.resources.processes import process_stat
from yarnflow.errors import RpcProtocolError, SavepointInvalid, StateInUse, StorageError
from yarnflow.spark.checkpoints.job import Fence
from yarnflow.spark.hadoop_files import HadoopFiles

logger = logging.getLogger(__name__)

#: at a location; what follows stands for the job's directory
_MARKER: Final = ".used-by-"
_DIGITS: Final = 12
#: of directories that no other machine sees
_LOCAL: Final = "file:"


@dataclass(frozen=True, slots=True)
class _User:
    """What a marker says."""

    #: the job's checkpoint directory (a URI)
    directory: str
    #: the machine it is on; empty = all machines of the cluster see it
    host: str = ""
    job_key: str = ""
    #: of the driver that uses it
    driver_host: str = ""
    driver_pid: int = 0
    #: when that process began, as its machine counts
    driver_began: str = ""


class Locations:
    """Those that queries of one script have outside of the job's directory.  Thread-safe.

    Parameters
    ----------
    files : HadoopFiles
    job_dir : str
        The job's checkpoint directory (a URI).
    fence : callable
        Raises when this driver may not write.
    job_key : str
        The job's; empty = it has none.
    """

    def __init__(self, files: HadoopFiles, job_dir: str, fence: Fence, job_key: str = "") -> None:
        self._files = files
        self._job_dir = files.qualified(job_dir).rstrip("/")
        self._fence = fence
        self._job_key = job_key
        self._marker = _marker_of(self._job_dir)
        self._lock = threading.Lock()
        self._used: set[str] = set()

    def use(self, location: str) -> None:
        """Have a location, before anything is written there.  Idempotent.

        Parameters
        ----------
        location : str
            Qualified.

        Raises
        ------
        StateInUse
            Another job has it, and may still run.
        LeaseLost, StorageError
        """
        with self._lock:
            if location in self._used or location.startswith(f"{self._job_dir}/"):
                return
            parent = location.rpartition("/")[0]
            if self._files.exists(f"{parent}/{HELD}"):
                # it is where that job keeps a query that names no location
                raise _in_use(location, parent)
            self._take(location)
            self._used.add(location)

    def mark(self, location: str, directory: str) -> None:
        """Have the marker of a location in a directory that is to be in its place."""
        if location in self._used:
            self._files.write(f"{directory}/{self._marker}", to_json(self._user(location)).encode())

    def leave(self) -> None:
        """Leave those of which nobody else could find out that the job has ended."""
        with self._lock:
            used, self._used = self._used, set()
        for location in used:
            if not self._user(location).host:
                continue
            try:
                self._fence()
                self._files.delete(f"{location}/{self._marker}")
            except Exception as error:
                # also when the JVM has ended: whatever the job ended with is told, and not this
                logger.warning("%s was not left to other jobs: %s", location, error)

    def _take(self, location: str) -> None:
        files, mine = self._files, f"{location}/{self._marker}"
        found = self._others(location)
        for marker in found:
            self._check_user(location, marker)
        self._fence()
        had = files.exists(mine)
        if found and not had:
            self._rename(location, found[0])
        files.write(mine, to_json(self._user(location)).encode())
        # who makes a marker has not taken it from anybody
        for marker in self._others(location):
            try:
                self._check_user(location, marker)
            except StateInUse:
                if not had:
                    files.delete(mine)
                raise
            files.delete(f"{location}/{marker}")

    def _rename(self, location: str, marker: str) -> None:
        """Make another job's marker this one's; of several jobs, one can."""
        try:
            self._files.rename(f"{location}/{marker}", f"{location}/{self._marker}")
        except StorageError as error:
            if self._files.exists(f"{location}/{marker}"):
                raise
            raise StateInUse(
                f"{location} is in use: another job is about to start a query there; give this one another "
                "checkpointLocation"
            ) from error

    def _others(self, location: str) -> list[str]:
        """Markers of other jobs."""
        names = (entry.name for entry in self._files.entries(location))
        return [name for name in names if name.startswith(_MARKER) and name != self._marker]

    def _user(self, location: str) -> _User:
        alone = self._job_dir.startswith(_LOCAL) and not location.startswith(_LOCAL)
        here, pid = socket.gethostname(), os.getpid()
        return _User(self._job_dir, here if alone else "", self._job_key, here, pid, _began(pid))

    def _check_user(self, location: str, marker: str) -> None:
        path = f"{location}/{marker}"
        try:
            user = from_json(_User, self._files.read(path).decode())
        except (RpcProtocolError, UnicodeDecodeError):
            user = _User("")
        if _marker_of(user.directory) != marker:
            raise StateInUse(
                f"{location} is in use: whose it is cannot be told from {path}, as a driver was lost that "
                "was about to write it; start its job again, or delete the file if no job has the location"
            )
        if user.host and user.host != socket.gethostname():
            raise StateInUse(
                f"{location} is in use: the job of {user.directory} on {user.host} may still run; end that "
                f"job first, give this one another checkpointLocation, or delete {path} if that job has ended"
            )
        self._check_directory(location, user)

    def _check_directory(self, location: str, user: _User) -> None:
        """Whether the job of a directory, or the one that has claimed its state, may still run."""
        directory = user.directory
        names = [entry.name for entry in self._files.entries(directory)]
        claimers = (name.removeprefix(CLAIMED) for name in names if name.startswith(CLAIMED))
        beside = [f"{directory.rpartition('/')[0]}/{claimer}" for claimer in claimers]
        holders = [claimer for claimer in beside if self._files.exists(f"{claimer}/{HELD}")]
        if HELD in names and not self._is_left(user):
            raise _in_use(location, directory)
        for holder in holders:
            if holder != self._job_dir and not self._claim_lost(holder):
                raise _in_use(location, holder)

    def _is_left(self, user: _User) -> bool:
        """Whether a job that has not ended in order was lost, so that this one may go on."""
        here = user.driver_host == socket.gethostname()
        if here and _began(user.driver_pid) == user.driver_began:
            return False
        return self._claim_lost(user.directory) or (here and user.job_key == self._job_key)

    def _claim_lost(self, directory: str) -> bool:
        """Claim the state of a job that was lost, as this one has its key; False = it has another one."""
        (root, _, job), held = self._job_dir.rpartition("/"), f"{directory}/{HELD}"
        # keys are those of a checkpoint directory
        if not self._job_key or directory.rpartition("/")[0] != root:
            return False
        try:
            content = self._files.read(held)
            if from_bytes(manifest_in(content), held).job_key != self._job_key:
                return False
            self._fence()
            self._files.rename(held, f"{directory}/{CLAIMED}{job}")
        except SavepointInvalid:
            return False  # its program did not start
        except StorageError:
            if self._files.exists(held):
                raise
            return False  # another job has claimed it
        logger.info("The job of %s was lost; this one has its key, and has claimed its state.", directory)
        return True


def _in_use(location: str, job_dir: str) -> StateInUse:
    return StateInUse(
        f"{location} is in use: the job of {job_dir} may still run, as it has not ended in order; end that "
        f"job first, give this one another checkpointLocation, or delete {job_dir}/{HELD} if its cluster was "
        "lost"
    )


def _began(pid: int) -> str:
    """When a process of this machine began, in its ticks; empty = none of that number runs."""
    stat = process_stat(pid)
    return stat.began if stat is not None and stat.runs else ""


def _marker_of(job_dir: str) -> str:
    return f"{_MARKER}{hashlib.sha256(job_dir.encode()).hexdigest()[:_DIGITS]}"
