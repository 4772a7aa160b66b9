"""Job keys on the shared file system: at most one live job of a user has a key.

A key is a sequence of generations.  The newest one owns the key, and for each generation one
file decides once and for all what became of it: the first to create ``<generation>.application``
either binds it to an application or revokes it.  So a submit that takes too long and a master
that starts at that very moment cannot both win.  Whoever counts as dead is decided outside,
and may be decided wrongly for a generation that has no application yet without harm.

Flink has no counterpart (its job ids are unique per cluster only); the place is that of a
``JobGraphStore``'s lock nodes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from yarnflow.core.files import FileSystem
from yarnflow.core.ha.program_keys import OWNER_FILE, becomes_owner, mark_owner
from yarnflow.core.json_codec import from_json, to_json
from yarnflow.core.ports import Clock
from yarnflow.core.yarn import YarnCluster
from yarnflow.errors import ApplicationNotFound, FileMissing, RpcProtocolError, StorageError
from yarnflow.staging.layout import APPLICATION_SUFFIX, StagingLayout, deployment_tag, generation_of

logger: Final = logging.getLogger(__name__)
#: what is written instead of an application id
_REVOKED: Final = "revoked"
#: each one more than once means that another client made progress
_MAX_TRIES: Final = 100
#: age of temporary files whose writers have died
_ABANDONED_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class _Record:
    deployment_id: str
    job_id: str
    created_ms: int
    yarn_cluster: str = ""
    program: str = ""


@dataclass(frozen=True, slots=True)
class KeyTaken:
    """The key is the caller's."""

    generation: int


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """Who holds a key, or held it last."""

    key: str
    generation: int
    deployment_id: str
    job_id: str
    #: by the clock of the client that took it
    created_ms: int
    #: empty until its application is known
    application_id: str = ""
    #: it was given up, or taken over before it had an application
    revoked: bool = False
    #: where it is; empty = not known
    yarn_cluster: str = ""
    #: digest of what its job runs; empty = not known
    program: str = ""


class JobKeys:
    """The keys of one staging directory.

    Parameters
    ----------
    fs : FileSystem
    layout : StagingLayout
    clock : Clock
    yarn_cluster : str
        Where those are that take keys here.
    """

    def __init__(
        self, fs: FileSystem, layout: StagingLayout, clock: Clock, yarn_cluster: str = ""
    ) -> None:
        self._fs: Final = fs
        self._layout: Final = layout
        self._clock: Final = clock
        self._yarn_cluster: Final = yarn_cluster

    def adopt(self, earlier_key: str, key: str) -> bool:
        """Take over the key of an earlier version's job for a program with the key ``key``.

        The first that asks gets it for good; False when another one has it, when no earlier version had it,
        or when the program has a key of its own already.
        """
        directory = self._layout.job_key(earlier_key)
        if not self._fs.list(directory) or self._fs.list(self._layout.job_key(key)):
            return False
        return becomes_owner(self._fs, directory, key)

    def take(
        self,
        key: str,
        deployment_id: str,
        job_id: str,
        is_live: Callable[[KeyHolder], bool],
        program: str = "",
    ) -> KeyTaken | KeyHolder:
        """Take a key unless a live job has it; then the answer is its holder.

        Parameters
        ----------
        key : str
        deployment_id, job_id : str
            Of the job that is about to be submitted.
        is_live : callable
            Decides about the present holder; see :func:`liveness`.
        program : str
            Digest of what the job runs; empty = not known.

        Raises
        ------
        StorageError
            The file system does not do what is asked, or other clients never let go of the key.
        """
        directory = self._layout.job_key(key)
        self._fs.make_directory(directory, permission=0o700)
        if not self._fs.list(directory):
            # before others can see it, so that nobody takes it for one of an earlier version
            mark_owner(self._fs, directory, key)
        for _ in range(_MAX_TRIES):
            generation = self._newest(key)
            if generation:
                holder = self._holder(key, generation)
                if holder is None:
                    continue
                if not holder.revoked and is_live(holder):
                    return holder
                undecided = not holder.revoked and not holder.application_id
                if undecided and not self._decide(key, generation, _REVOKED):
                    # it has just been bound to its application, or revoked by another client
                    continue
            mine = generation + 1
            record = _Record(deployment_id, job_id, self._clock.now_ms(), self._yarn_cluster, program)
            if not self._fs.create(self._layout.generation(key, mine), to_json(record).encode()):
                continue
            if self._newest(key) != mine:
                # this client was so slow that others had this generation, too, and deleted it
                self._fs.delete(self._layout.generation(key, mine))
                continue
            self._clean(key, mine)
            mark_owner(self._fs, directory, key)
            return KeyTaken(mine)
        raise StorageError(
            f"job key {key!r} in {self._where(key)} is being taken by many clients at once; submit again"
        )

    def set_application(self, key: str, generation: int, application_id: str) -> bool:
        """Bind a generation to its application; False = the key was taken over, so the job must not run.

        The client calls it after its submit (and kills the application on False), the master before it
        starts the job (and ends FAILED on False).  Idempotent.
        """
        bound = self._decide(key, generation, application_id)
        if not bound:
            bound = self._decision(key, generation) == application_id
        if self.is_newest(key, generation):
            return bound
        # the decision about it is gone with it, unless this call has just made a new one
        with suppress(StorageError):
            self._fs.delete(self._layout.generation_application(key, generation))
        return False

    def release(self, key: str, generation: int) -> None:
        """Give a key back whose application was never submitted.  Idempotent."""
        self._decide(key, generation, _REVOKED)

    def is_newest(self, key: str, generation: int) -> bool:
        """Whether no later generation exists."""
        return self._newest(key) == generation

    def holder(self, key: str) -> KeyHolder | None:
        """The newest holder, dead or alive; None = the key was never taken."""
        for _ in range(_MAX_TRIES):
            generation = self._newest(key)
            if not generation:
                return None
            if (holder := self._holder(key, generation)) is not None:
                return holder
        raise StorageError(f"job key {key!r} in {self._where(key)} changes all the time; try again")

    def _newest(self, key: str) -> int:
        """The newest generation; 0 = there is none."""
        names = [status.name for status in self._fs.list(self._layout.job_key(key))]
        return max((generation_of(name) or 0 for name in names), default=0)

    def _holder(self, key: str, generation: int) -> KeyHolder | None:
        """Return what is recorded about a generation; None = it is history by now."""
        path = self._layout.generation(key, generation)
        try:
            record = from_json(_Record, self._fs.read(path).decode("utf-8", "replace"))
        except FileMissing:
            return None
        except RpcProtocolError as error:
            raise StorageError(
                f"{self._fs.uri}{path} is no record of a job key: {error}; if no job with the key {key!r} "
                f"runs, run: hdfs dfs -rm -r '{self._layout.job_key(key)}'"
            ) from error
        decision = self._decision(key, generation)
        if not decision and not self.is_newest(key, generation):
            return None
        revoked = decision == _REVOKED
        return KeyHolder(
            key=key,
            generation=generation,
            deployment_id=record.deployment_id,
            job_id=record.job_id,
            created_ms=record.created_ms,
            application_id="" if revoked else decision,
            revoked=revoked,
            yarn_cluster=record.yarn_cluster,
            program=record.program,
        )

    def _decide(self, key: str, generation: int, decision: str) -> bool:
        """Decide about a generation, once for all times; False = it is decided already."""
        return self._fs.create(self._layout.generation_application(key, generation), decision.encode())

    def _decision(self, key: str, generation: int) -> str:
        """Application id or revoked; empty = nothing is decided."""
        try:
            return self._fs.read(self._layout.generation_application(key, generation)).decode()
        except FileMissing:
            return ""

    def _clean(self, key: str, newest: int) -> None:
        """Delete what older generations left; it does no harm if it stays."""
        directory = self._layout.job_key(key)
        try:
            for status in self._fs.list(directory):
                name = status.name
                if name == OWNER_FILE:
                    continue
                generation = generation_of(name.removesuffix(APPLICATION_SUFFIX))
                abandoned = generation is None and self._clock.now_ms() - status.modified_ms > _ABANDONED_MS
                if abandoned or (generation is not None and generation < newest):
                    self._fs.delete(status.path)
        except StorageError as error:
            logger.warning("old records of job key %s stay: %s", key, error)

    def _where(self, key: str) -> str:
        return f"{self._fs.uri}{self._layout.job_key(key)}"


def liveness(
    cluster: YarnCluster, clock: Clock, pending_timeout_ms: int, yarn_cluster: str = ""
) -> Callable[[KeyHolder], bool]:
    """Decide about holders by what YARN says; for :meth:`JobKeys.take`.

    A holder is live while its application has not ended, or another master of the same cluster, which
    is an application with the same tag.  One without application is live while YARN has an application
    with its tag, and else until it is ``pending_timeout_ms`` old.  An application of another YARN counts as
    live, since this one knows nothing of it.  The function raises YarnError when YARN cannot be asked.

    Parameters
    ----------
    yarn_cluster : str
        Which YARN is asked; empty = there is no other.
    """

    def is_live(holder: KeyHolder) -> bool:
        known = False
        if holder.application_id:
            with suppress(ApplicationNotFound):
                if not cluster.application(holder.application_id).state.ended:
                    return True
                known = True
        if found := cluster.applications(tag=deployment_tag(holder.deployment_id)):
            return any(not application.state.ended for application in found)
        if holder.application_id:
            return not known and is_elsewhere(holder.yarn_cluster, yarn_cluster)
        # clocks differ: a time far ahead is no more to be trusted than one long ago
        return abs(clock.now_ms() - holder.created_ms) < pending_timeout_ms

    return is_live


def is_elsewhere(recorded: str, yarn_cluster: str) -> bool:
    """Whether a record is about another YARN; not when either is not known."""
    return bool(recorded and yarn_cluster) and recorded != yarn_cluster
