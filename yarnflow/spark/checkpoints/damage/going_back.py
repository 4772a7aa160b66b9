"""A query whose files are damaged, brought back to the newest sound batch.

Decides what of a query's directory is kept: damaged files are moved aside, and the logs and the state are cut
off behind the newest batch that :mod:`yarnflow.spark.checkpoints.damage.soundness` finds whole. Batches
behind it whose input is known are done again as they were, one by one, for their state alone: what was
committed is in the sinks. Where it is not known, the sinks get another identity, since they would leave out
what is new in a batch that they have seen: rows may then be there twice, but none is missing. All steps can
be done again: a driver that dies meanwhile is made good by the next. Flink counterpart: none; there an older
checkpoint is named by hand.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Final

from yarnflow.core.checkpoint.manifest import RESTORED_FILE
from yarnflow.core.checkpoint.messages import ClaimMode, RestoredState
from yarnflow.core.checkpoint.query_files import (
    COMMITS,
    DAMAGED_DIRECTORY,
    OFFSETS,
    SINK_IDENTITY_FILE,
    WRITTEN_FILE,
)
from yarnflow.core.json_codec import from_json
from yarnflow.errors import RpcProtocolError, StateDamaged, StateWentBack
from yarnflow.spark.checkpoints.damage.soundness import (
    METADATA,
    NONE,
    Damage,
    Finding,
    StateCheck,
    damage_at_start,
    stale_state,
)
from yarnflow.spark.checkpoints.job import Fence
from yarnflow.spark.checkpoints.positions import committed_batch, plans_drain
from yarnflow.spark.hadoop_files import HadoopFiles
from yarnflow.spark.state.files import numbered

logger = logging.getLogger(__name__)

#: below a query's directory: offsets of batches that are to be done again, after the one that comes next
AGAIN: Final = "again"
#: in a query's directory: it is being brought back
_PLAN: Final = "going-back"
_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is to be done; the same however often it is begun."""

    batch: int
    again: tuple[int, ...]
    damaged: tuple[str, ...]
    #: the last batch that the sinks have wholly; -1 = those behind ``batch`` will be others
    written: int
    #: another one for the sinks; empty = they keep theirs
    identity: str
    #: what the job's history says
    said: str


def mend(
    files: HadoopFiles,
    directory: str,
    name: str,
    fence: Fence,
    *,
    does_again: bool = True,
    all_state: bool = False,
    suspects: Collection[str] = (),
) -> None:
    """Look at the files of a query that does not run, and bring it back if some are damaged.

    Parameters
    ----------
    files : HadoopFiles
    directory, name : str
        The query's.
    fence : callable
        Raises when this driver may not write.
    does_again : bool
        It can be started for a single batch that was planned before; else nothing is changed.
    all_state : bool
        Read all of its state, since Spark could not; else the last entries of its logs.
    suspects : collection of str
        Files that Spark could not read, relative to the directory.

    Raises
    ------
    StateWentBack
        Some were: at its next start the query goes on.
    StateDamaged
        Some are, and nothing is sound, or nothing may be changed.
    StorageError
        The file system does not answer.
    """
    plan = _begun(files, directory)
    if plan is None:
        if not all_state and damage_at_start(files, directory) is None:
            return
        finding = StateCheck(files, directory, suspects).run()
        if not finding.damaged:
            return
        if finding.batch is None or not does_again:
            raise StateDamaged(_hopeless(name, directory, finding, does_again, _origin(files, directory)))
        written = max(committed_batch(files, directory), written_batch(files, directory))
        plan = _plan_of(name, directory, finding, written)
        fence()
        files.write(f"{directory}/{_PLAN}", json.dumps(asdict(plan)).encode())
    _carry_out(files, directory, plan, fence)
    logger.error("%s", plan.said)
    raise StateWentBack(plan.said)


def written_batch(files: HadoopFiles, directory: str) -> int:
    """The last batch that the sinks have wholly, of a query that was brought back; -1 = it was not.

    Raises
    ------
    StateDamaged
    """
    path = f"{directory}/{WRITTEN_FILE}"
    return files.parsed(path, int) if files.exists(path) else NONE


class Again:
    """Batches of one query that are done again, each with the input that it had.

    Parameters
    ----------
    files : HadoopFiles
    directory : str
        The query's.
    """

    def __init__(self, files: HadoopFiles, directory: str) -> None:
        self._files = files
        self._directory = directory

    @property
    def last(self) -> int:
        """The last one that waits; -1 = none."""
        return max(numbered(self._files.children(f"{self._directory}/{AGAIN}")), default=NONE)

    def is_drained(self) -> bool:
        """Whether the last one fires all windows, so that none may follow."""
        last = self.last
        return last != NONE and plans_drain(self._files, f"{self._directory}/{AGAIN}/{last}")

    def next(self, fence: Fence) -> bool:
        """Have the next batch planned; whether there are others behind it, so that Spark must plan none."""
        waiting = f"{self._directory}/{AGAIN}"
        found = numbered(self._files.children(waiting))
        if not found:
            return False
        following = committed_batch(self._files, self._directory) + 1
        fence()
        for number in found:
            if number < following:
                # the driver that did it again has died before it could say so
                self._files.delete(f"{waiting}/{number}")
            elif number == following:
                _delete_entry(self._files, f"{self._directory}/{OFFSETS}", number)
                self._files.rename(f"{waiting}/{number}", f"{self._directory}/{OFFSETS}/{number}")
        if found[-1] > following:
            return True
        self._files.delete(waiting)
        return False


def _begun(files: HadoopFiles, directory: str) -> _Plan | None:
    path = f"{directory}/{_PLAN}"
    if not files.exists(path):
        return None
    try:
        found = json.loads(files.read(path))
        return _Plan(**{**found, "again": tuple(found["again"]), "damaged": tuple(found["damaged"])})
    except (ValueError, KeyError, TypeError):
        return None  # what is left to do is found out again


def _plan_of(name: str, directory: str, finding: Finding, written: int) -> _Plan:
    paths = tuple(damage.path for damage in finding.damaged)
    assert finding.batch is not None, "checked by the caller"
    renewed = finding.lost is not None or bool({METADATA, SINK_IDENTITY_FILE} & set(paths))
    where = "its beginning" if finding.batch == NONE else f"batch {finding.batch}, the newest that is sound"
    if finding.lost is not None:
        then = (
            f"the input of batch {finding.lost} is not known any more, so what is behind is read anew, and "
            "rows that had been written of it may be there twice"
        )
    elif finding.again:
        first, last = finding.again[0], finding.again[-1]
        span = f"batch {first} is" if first == last else f"batches {first} to {last} are"
        then = f"{span} done again with the same input"
        if last <= written:
            then += ", and written nowhere"
        elif renewed:
            then += f", and rows of batch {last} may be there twice"
    else:
        then = "nothing is done again"
    said = (
        f"{_told(directory, finding.damaged)}; query {name} goes on from {where}; {then}; what is damaged "
        f"was moved to {directory}/{DAMAGED_DIRECTORY}"
    )
    identity = str(uuid.uuid4()) if renewed else ""
    return _Plan(finding.batch, finding.again, paths, written if finding.again else NONE, identity, said)


def _origin(files: HadoopFiles, directory: str) -> str:
    """Where a query's state was brought from before its job started, as a clause; empty = it began here."""
    marker = f"{directory.rpartition('/')[0]}/{RESTORED_FILE}"
    if not files.exists(marker):
        return ""
    try:
        state = from_json(RestoredState, files.read(marker).decode())
    except (RpcProtocolError, UnicodeDecodeError):
        return ""
    how = "moved" if state.claim_mode == ClaimMode.CLAIM.value else "copied"
    return f"; what the job started from was {how} here from {state.path}"


def _hopeless(name: str, directory: str, finding: Finding, does_again: bool, origin: str) -> str:
    why = f"query {name} cannot be brought back to an earlier batch by itself"
    if does_again:
        why = f"there is no committed batch whose files are sound, for query {name} to go on from"
    return (
        f"{_told(directory, finding.damaged)}{origin}; {why}: put back the file from a copy, start the job "
        "from a savepoint (-s PATH), or without its state (--restore none)"
    )


def _told(directory: str, damaged: Collection[Damage]) -> str:
    shown = [f"{directory}/{damage.path} {damage.said}" for damage in list(damaged)[:_NAMED]]
    more = len(damaged) - len(shown)
    return "; ".join(shown) + (f"; {more} more files are damaged" if more > 0 else "")


def _carry_out(files: HadoopFiles, directory: str, plan: _Plan, fence: Fence) -> None:
    for path in plan.damaged:
        if files.exists(f"{directory}/{path}"):
            fence()
            _move_aside(files, directory, path)
    for number in plan.again[1:]:
        entry = f"{directory}/{OFFSETS}/{number}"
        if files.exists(entry):
            files.write(f"{directory}/{AGAIN}/{number}", files.read(entry))
    if plan.identity and not plan.again:
        files.delete(f"{directory}/{AGAIN}")
    if plan.written > plan.batch:
        files.write(f"{directory}/{WRITTEN_FILE}", str(plan.written).encode())
    else:
        files.delete(f"{directory}/{WRITTEN_FILE}")
    fence()
    planned = plan.again[0] if plan.again else plan.batch
    # commits first: until they are gone, nothing says that these batches are to be done again
    for log, kept in ((COMMITS, plan.batch), (OFFSETS, planned)):
        for number in reversed(numbered(files.children(f"{directory}/{log}"))):
            if number > kept:
                _delete_entry(files, f"{directory}/{log}", number)
    for path in stale_state(files.tree(f"{directory}"), plan.batch):
        parent, _, entry_name = f"{directory}/{path}".rpartition("/")
        _delete_entry(files, parent, entry_name)
    before = f"{directory}/{OFFSETS}/{planned - 1}"
    if planned == plan.batch > 0 and not files.exists(before):
        # Spark reads it, and takes nothing from it
        files.write(before, files.read(f"{directory}/{OFFSETS}/{planned}"))
    if METADATA in plan.damaged:
        files.write(f"{directory}/{METADATA}", json.dumps({"id": plan.identity}).encode())
    if plan.identity:
        files.write(f"{directory}/{SINK_IDENTITY_FILE}", plan.identity.encode())
    files.delete(f"{directory}/{_PLAN}")


def _move_aside(files: HadoopFiles, directory: str, path: str) -> None:
    aside = f"{directory}/{DAMAGED_DIRECTORY}/{path.replace('/', '.')}"
    files.make_directory(f"{directory}/{DAMAGED_DIRECTORY}")
    files.delete(aside)
    files.rename(f"{directory}/{path}", aside)
    parent, _, name = f"{directory}/{path}".rpartition("/")
    files.delete(f"{parent}/.{name}.crc")


def _delete_entry(files: HadoopFiles, directory: str, name: int | str) -> None:
    """A file, with the checksum that a local file system keeps beside it: Spark writes another one there."""
    files.delete(f"{directory}/.{name}.crc")
    files.delete(f"{directory}/{name}")
