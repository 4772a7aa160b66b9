"""A job's directory filled from a savepoint or a retained checkpoint, before its queries start.

Decides in which order it is looked at, brought and given up: all that can be refused is refused before
anything is copied, and the source of claimed state is removed when all is in its place.  A driver that died
meanwhile is made good by the next one.  Flink counterparts: ``Checkpoints.loadAndValidateCheckpoint``,
``RecoveryClaimMode``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession

from yarnflow.core.checkpoint.manifest import METADATA_FILE, RESTORED_FILE, checkpoint_id_of, from_bytes
from yarnflow.core.checkpoint.messages import CheckpointKind, ClaimMode, RestoredState, RestoreSettings
from yarnflow.core.checkpoint.program_shape import ProgramShape
from yarnflow.core.json_codec import from_json, to_json
from yarnflow.core.messages import ProgramKind
from yarnflow.errors import RpcProtocolError, SavepointInvalid
from yarnflow.graph.state.sinks import SinkEntry
from yarnflow.operators.task.state_layout import StateLayout
from yarnflow.spark.checkpoints.job import Fence, no_fence
from yarnflow.spark.checkpoints.restoring.bringing import Bringing
from yarnflow.spark.checkpoints.restoring.layouts import Layouts
from yarnflow.spark.checkpoints.restoring.manifest_file import manifest_content
from yarnflow.spark.checkpoints.restoring.parts import (
    BESIDE,
    check_open,
    parts_of,
    with_silent_queries,
    without_queries_that_are_gone,
)
from yarnflow.spark.checkpoints.restoring.program_fit import (
    check_fits,
    check_no_batch_begun,
    check_sinks,
    new_partitions,
)
from yarnflow.spark.checkpoints.restoring.trust import doubt_of, without_elements
from yarnflow.spark.checkpoints.saved_queries import SAVED_QUERIES_FILE, write_saved_queries
from yarnflow.spark.hadoop_files import HadoopFiles

logger = logging.getLogger(__name__)


def restore(
    spark: SparkSession,
    settings: RestoreSettings,
    job_dir: str,
    shape: ProgramShape | None,
    key: bytes = b"",
    *,
    trusted: bool = False,
    allow_non_restored: bool = False,
    layouts: Mapping[str, StateLayout] | None = None,
    sinks: Mapping[str, Sequence[SinkEntry]] | None = None,
    fence: Fence = no_fence,
) -> RestoredState | None:
    """Bring a job's state into its directory, unless an earlier driver of the job did so.

    Parameters
    ----------
    spark : SparkSession
    settings : RestoreSettings
        With the path looked up already if it was to be the latest.
    job_dir : str
        The job's checkpoint directory (a URI).
    shape : ProgramShape or None
        Of the program that is to go on; None = not known, nothing is checked.
    key : bytes
        With which savepoints of the cluster are signed.
    trusted : bool
        The user vouches for the state: it need not be signed.
    allow_non_restored : bool
        State of operators that the program has no more may be left behind, and batches of sinks.
    layouts : mapping, optional
        Query → where the program has the state of its operators on elements.
    sinks : mapping, optional
        Query → its sinks in the program; what they have begun is to be completed by them.
    fence : callable
        Raises when this driver may not write, or not go on; asked while it waits.

    Returns
    -------
    RestoredState or None
        None = the job starts empty.

    Raises
    ------
    SavepointNotFound
    SavepointInvalid
        A file is missing or damaged; the message names it.
    StateIncompatible
        The program does not fit, or has not the sink that is to complete a batch; nothing was touched.
    StateDrained
        All windows have fired; nothing was touched.
    StateNotTrusted
        It holds objects, and others may have written them.
    """
    if not settings.path:
        return None
    restoring = _Restore(spark, settings, job_dir.rstrip("/"), key, trusted, layouts or {}, fence)
    return restoring.run(shape, allow_non_restored, sinks)


class _Restore:
    def __init__(
        self,
        spark: SparkSession,
        settings: RestoreSettings,
        job_dir: str,
        key: bytes,
        trusted: bool,
        layouts: Mapping[str, StateLayout],
        fence: Fence,
    ) -> None:
        self._spark = spark
        self._files = HadoopFiles(spark)
        self._settings = settings
        self._job_dir = job_dir
        self._key = key
        self._trusted = trusted
        self._layouts = layouts
        self._fence = fence

    def run(
        self,
        shape: ProgramShape | None,
        allow_non_restored: bool,
        sinks: Mapping[str, Sequence[SinkEntry]] | None = None,
    ) -> RestoredState:
        files = self._files
        marker = f"{self._job_dir}/{RESTORED_FILE}"
        if files.exists(marker):
            state = self._restored_before(marker)
            self._give_up_source(state)
            return state
        root, content = manifest_content(files, self._settings.path)
        manifest = with_silent_queries(files, root, from_bytes(content, f"{root}/{METADATA_FILE}"))
        if shape is not None:
            check_fits(root, manifest, shape, allow_non_restored)
        check_open(root, manifest)
        # all is looked at before anything is copied
        partitions = new_partitions(manifest, shape)
        parts = parts_of(files, root, manifest)
        layouts = Layouts(files, self._layouts, manifest)
        if allow_non_restored and shape is not None and shape.kind == ProgramKind.GRAPH.value:
            parts = without_queries_that_are_gone(parts, manifest, shape)
        for part in parts:
            layouts.check(part, shape)
            if part.damage and (partitions or layouts.is_changed(part)):
                raise SavepointInvalid(
                    f"{part.source}/{part.damage.path} {part.damage.said}, and only the same program with "
                    "the same parallelism can go on from an earlier batch; submit that, or start from a "
                    "savepoint"
                )
        if partitions or any(layouts.is_changed(part) for part in parts):
            check_no_batch_begun(files, root, manifest)
        if sinks is not None and not allow_non_restored:
            changed = shape is None or shape.graph_hash != manifest.program.graph_hash
            check_sinks(files, root, manifest, sinks, changed)
        doubt = ""
        if not self._trusted:
            doubt = doubt_of(files, root, manifest, content, parts, self._job_dir, self._key)
        bringing = Bringing(self._spark, files, self._job_dir, self._fence)
        for part in parts:
            if doubt:
                part = without_elements(part)
            if not files.exists(f"{self._job_dir}/{part.name}"):
                bringing.bring(root, part, manifest, layouts, partitions, doubt)
        state = RestoredState(
            root,
            manifest.kind,
            manifest.checkpoint_id,
            int(time.time() * 1000),
            self._settings.claim_mode.value,
        )
        self._fence()
        if manifest.program.kind == ProgramKind.SCRIPT.value:
            write_saved_queries(files, self._job_dir, root, manifest, allow_non_restored)
        files.write(marker, to_json(state).encode())
        self._give_up_source(state)
        logger.info("Restored %s from %s.", self._job_dir, root)
        return state

    def _restored_before(self, marker: str) -> RestoredState:
        """What an earlier driver has put in its place; that there is a marker says that it was all."""
        try:
            return from_json(RestoredState, self._files.read(marker).decode())
        except (RpcProtocolError, UnicodeDecodeError) as error:
            logger.error("%s is damaged, and written anew; what was claimed stays: %s", marker, error)
        root = self._settings.path.rstrip("/").removesuffix(f"/{METADATA_FILE}")
        number = checkpoint_id_of(root.rpartition("/")[2])
        kind = CheckpointKind.SAVEPOINT if number is None else CheckpointKind.CHECKPOINT
        state = RestoredState(root, kind, number or 0, int(time.time() * 1000))
        self._fence()
        self._files.write(marker, to_json(state).encode())
        return state

    def _give_up_source(self, state: RestoredState) -> None:
        """Remove claimed state, once it is in the job's directory."""
        if state.claim_mode != ClaimMode.CLAIM.value:
            return
        self._fence()
        if state.kind is CheckpointKind.SAVEPOINT:
            # first what makes it one
            self._files.delete(f"{state.path}/{METADATA_FILE}")
            self._files.delete(state.path)
            return
        job = state.path.rpartition("/")[0]
        if job == self._job_dir:
            return
        # what is a checkpoint's of it: whatever else lies there is not ours
        for entry in self._files.entries(job):
            ours = entry.name in (*BESIDE, RESTORED_FILE, SAVED_QUERIES_FILE)
            ours = ours or checkpoint_id_of(entry.name) is not None
            if ours or self._files.exists(f"{self._job_dir}/{entry.name}"):
                self._files.delete(f"{job}/{entry.name}")
        if not self._files.entries(job):
            self._files.delete(job)
