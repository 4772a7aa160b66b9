"""How a job takes checkpoints.  PyFlink: ``pyflink.datastream.checkpoint_config``."""

from __future__ import annotations

from typing import Any, Final

from yarnflow.api.building.settings import JobSettings
from yarnflow.api.common.time import Duration
from yarnflow.api.datastream.checkpointing_mode import CheckpointingMode
from yarnflow.api.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from yarnflow.api.lengths import DurationLike, to_ms
from yarnflow.api.origin import call_origin
from yarnflow.config.options import job
from yarnflow.errors import GraphError
from yarnflow.graph.compatibility import differs, same_and

_NO_EFFECT = "accepted and without effect"
_UNALIGNED = "kept; no result depends on it: between two batches nothing is under way"


#: what Flink takes
_SHORTEST_MS: Final = 10


def _at_least(least: int, value: object, what: str, unit: str) -> None:
    if not isinstance(value, int) or value < least:
        shown, bound = f"{value!r} {unit}".rstrip(), f"{least} {unit}".rstrip()
        raise GraphError(f"{call_origin()}: a {what} {shown} is not possible; it must be {bound} or more")


class CheckpointConfig:
    """Reads and changes the checkpoint settings of an environment."""

    def __init__(self, settings: JobSettings) -> None:
        self._settings = settings

    def _accept(self, name: str, value: Any) -> CheckpointConfig:
        self._settings.accepted[name] = value
        return self

    def _accepted(self, name: str, default: Any) -> Any:
        return self._settings.accepted.get(name, default)

    # --- with effect ------------------------------------------------------------------

    @same_and("every micro-batch is committed in any case")
    def is_checkpointing_enabled(self) -> bool:
        """Whether an interval of checkpoints was set."""
        return self.get_checkpoint_interval() > 0

    def get_checkpoint_interval(self) -> int:
        """Shortest time between two recorded checkpoints, in milliseconds; -1 if none was set."""
        known = self._settings.is_set(job.CHECKPOINT_INTERVAL_MS)
        return self._settings.get(job.CHECKPOINT_INTERVAL_MS) if known else -1

    def set_checkpoint_interval(self, checkpoint_interval: int) -> CheckpointConfig:
        """Set the shortest time between two recorded checkpoints, in milliseconds."""
        _at_least(_SHORTEST_MS, checkpoint_interval, "checkpoint interval of", "ms")
        self._settings.set(job.CHECKPOINT_INTERVAL_MS, checkpoint_interval)
        return self

    def get_checkpoint_timeout(self) -> int:
        """How long a checkpoint may take, in milliseconds."""
        return self._settings.get(job.CHECKPOINT_TIMEOUT_MS)

    def set_checkpoint_timeout(self, checkpoint_timeout: int) -> CheckpointConfig:
        """Set how long a checkpoint may take, in milliseconds."""
        _at_least(_SHORTEST_MS, checkpoint_timeout, "checkpoint timeout of", "ms")
        self._settings.set(job.CHECKPOINT_TIMEOUT_MS, checkpoint_timeout)
        return self

    def get_min_pause_between_checkpoints(self) -> int:
        """Shortest time from the end of a checkpoint to the begin of the next, in milliseconds."""
        return self._settings.get(job.CHECKPOINT_MIN_PAUSE_MS)

    def set_min_pause_between_checkpoints(self, min_pause_between_checkpoints: int) -> CheckpointConfig:
        """Set the shortest time from the end of a checkpoint to the begin of the next, in milliseconds."""
        self._settings.set(job.CHECKPOINT_MIN_PAUSE_MS, min_pause_between_checkpoints)
        return self

    def set_externalized_checkpoint_retention(
        self, retention_mode: ExternalizedCheckpointRetention
    ) -> CheckpointConfig:
        """Set what becomes of checkpoints when the job ends."""
        self._settings.set(job.CHECKPOINT_RETENTION, retention_mode.name)
        return self

    @same_and("where nothing was set, checkpoints of a job that was canceled or failed are kept all the same")
    def get_externalized_checkpoint_retention(self) -> ExternalizedCheckpointRetention | None:
        """What becomes of checkpoints when the job ends, as it was set."""
        if not self._settings.is_set(job.CHECKPOINT_RETENTION):
            return ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
        return ExternalizedCheckpointRetention[self._settings.get(job.CHECKPOINT_RETENTION)]

    def is_externalized_checkpoints_enabled(self) -> bool:
        """Whether it was set that checkpoints are kept when the job ends."""
        kept = ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
        return self.get_externalized_checkpoint_retention() is not kept

    # --- without effect ---------------------------------------------------------------------

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """The promise of checkpoints, as it was set; state is exactly-once with both.

        AT_LEAST_ONCE where no interval was set, as in Flink.
        """
        if not self.is_checkpointing_enabled():
            return CheckpointingMode.AT_LEAST_ONCE
        mode: CheckpointingMode = self._accepted("checkpointing-mode", CheckpointingMode.EXACTLY_ONCE)
        return mode

    @same_and("AT_LEAST_ONCE is exactly-once, too")
    def set_checkpointing_mode(self, checkpointing_mode: CheckpointingMode) -> CheckpointConfig:
        """What a checkpoint promises."""
        return self._accept("checkpointing-mode", checkpointing_mode)

    def get_max_concurrent_checkpoints(self) -> int:
        """How many checkpoints may be under way, as it was set."""
        return int(self._accepted("max-concurrent-checkpoints", 1))

    @same_and("kept; no result depends on it: batches are committed one after the other")
    def set_max_concurrent_checkpoints(self, max_concurrent_checkpoints: int) -> CheckpointConfig:
        """How many checkpoints may be under way."""
        _at_least(1, max_concurrent_checkpoints, "number of concurrent checkpoints of", "")
        return self._accept("max-concurrent-checkpoints", max_concurrent_checkpoints)

    def is_fail_on_checkpointing_errors(self) -> bool:
        """Whether a failed checkpoint fails the job, as it was set; it never does here."""
        return self.get_tolerable_checkpoint_failure_number() == 0

    @differs(_NO_EFFECT + ": a batch that cannot be committed is done again")
    def set_fail_on_checkpointing_errors(self, fail_on_checkpointing_errors: bool) -> CheckpointConfig:
        """Whether a failed checkpoint fails the job."""
        return self._accept("tolerable-failures", 0 if fail_on_checkpointing_errors else 2**31 - 1)

    def get_tolerable_checkpoint_failure_number(self) -> int:
        """How many checkpoints may fail, as it was set; no number fails the job here."""
        return int(self._accepted("tolerable-failures", 0))

    @differs(_NO_EFFECT + ": a batch that cannot be committed is done again")
    def set_tolerable_checkpoint_failure_number(
        self, tolerable_checkpoint_failure_number: int
    ) -> CheckpointConfig:
        """How many checkpoints may fail in a row."""
        _at_least(0, tolerable_checkpoint_failure_number, "number of tolerable failures of", "")
        return self._accept("tolerable-failures", tolerable_checkpoint_failure_number)

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Whether checkpoints may overtake elements, as it was set; False where no interval was set."""
        return self.is_checkpointing_enabled() and bool(self._accepted("unaligned-checkpoints", False))

    @same_and(_UNALIGNED)
    def enable_unaligned_checkpoints(self, enabled: bool = True) -> CheckpointConfig:
        """Let checkpoints overtake elements."""
        return self._accept("unaligned-checkpoints", enabled)

    @same_and(_UNALIGNED)
    def disable_unaligned_checkpoints(self) -> CheckpointConfig:
        """Let checkpoints wait for elements."""
        return self._accept("unaligned-checkpoints", False)

    @same_and(_UNALIGNED)
    def set_aligned_checkpoint_timeout(self, alignment_timeout: DurationLike) -> CheckpointConfig:
        """How long checkpoints wait for elements before they overtake them."""
        return self._accept("aligned-checkpoint-timeout", to_ms(alignment_timeout, "alignment timeout"))

    def get_aligned_checkpoint_timeout(self) -> Duration:
        """How long checkpoints wait for elements before they overtake them, as it was set."""
        return Duration(int(self._accepted("aligned-checkpoint-timeout", 0)))

    @same_and(_UNALIGNED)
    def set_alignment_timeout(self, alignment_timeout: DurationLike) -> CheckpointConfig:
        """PyFlink's older name of :meth:`set_aligned_checkpoint_timeout`."""
        return self.set_aligned_checkpoint_timeout(alignment_timeout)

    def get_alignment_timeout(self) -> Duration:
        """PyFlink's older name of :meth:`get_aligned_checkpoint_timeout`."""
        return self.get_aligned_checkpoint_timeout()

    @same_and(_UNALIGNED)
    def set_force_unaligned_checkpoints(self, force_unaligned_checkpoints: bool = True) -> CheckpointConfig:
        """Let checkpoints overtake elements wherever Flink would not."""
        return self._accept("force-unaligned-checkpoints", force_unaligned_checkpoints)

    def is_force_unaligned_checkpoints(self) -> bool:
        """Whether checkpoints overtake elements everywhere, as it was set."""
        return bool(self._accepted("force-unaligned-checkpoints", False))
