"""Settings of a whole job.  PyFlink: ``pyflink.common.execution_config``."""

from __future__ import annotations

from typing import Any, ClassVar

from yarnflow.api.building.pipeline import check_max_parallelism
from yarnflow.api.building.settings import JobSettings
from yarnflow.config.options import job
from yarnflow.errors import UnsupportedGraph
from yarnflow.graph.compatibility import differs, same_and

_NO_EFFECT = "accepted and without effect"
_NO_RESULT = "kept; no result depends on it"


class ExecutionConfig:
    """Reads and changes the settings of an environment; made by ``env.get_config()``."""

    PARALLELISM_DEFAULT: ClassVar[int] = -1
    PARALLELISM_UNKNOWN: ClassVar[int] = -2

    def __init__(self, settings: JobSettings) -> None:
        self._settings = settings

    def _accept(self, name: str, value: Any) -> ExecutionConfig:
        self._settings.accepted[name] = value
        return self

    def _accepted(self, name: str, default: Any) -> Any:
        return self._settings.accepted.get(name, default)

    # --- with effect ------------------------------------------------------------------

    def get_parallelism(self) -> int:
        """Subtasks of operators that set none."""
        return self._settings.parallelism()

    def set_parallelism(self, parallelism: int) -> ExecutionConfig:
        """Set the number of subtasks of operators that set none; -1 = as if it was not set."""
        if parallelism == self.PARALLELISM_DEFAULT:
            self._settings.values.pop(job.PARALLELISM_DEFAULT.key, None)
        else:
            self._settings.set(job.PARALLELISM_DEFAULT, parallelism)
        return self

    def get_max_parallelism(self) -> int:
        """The most subtasks operators may ever have; -1 = derived from each."""
        return self._settings.get(job.MAX_PARALLELISM)

    def set_max_parallelism(self, max_parallelism: int) -> ExecutionConfig:
        """Set the most subtasks operators that set none may ever have."""
        self._settings.set(job.MAX_PARALLELISM, check_max_parallelism(max_parallelism))
        return self

    def get_task_cancellation_timeout(self) -> int:
        """How long cancelling may take, in milliseconds."""
        return self._settings.get(job.TASK_CANCELLATION_TIMEOUT_MS)

    def set_task_cancellation_timeout(self, timeout: int) -> ExecutionConfig:
        """Set how long cancelling may take before processes are killed, in milliseconds."""
        self._settings.set(job.TASK_CANCELLATION_TIMEOUT_MS, timeout)
        return self

    def get_global_job_parameters(self) -> dict[str, str]:
        """What functions read by ``runtime_context.get_job_parameter``."""
        return dict(self._accepted("global-job-parameters", {}))

    def set_global_job_parameters(self, global_job_parameters_dict: dict[str, str]) -> ExecutionConfig:
        """Set what functions read by ``runtime_context.get_job_parameter``."""
        texts = {str(key): str(value) for key, value in global_job_parameters_dict.items()}
        return self._accept("global-job-parameters", texts)

    def has_auto_generated_uids_enabled(self) -> bool:
        """Whether operators need no uid."""
        return bool(self._accepted("auto-generated-uids", True))

    def enable_auto_generated_uids(self) -> ExecutionConfig:
        """Operators need no uid; the default."""
        return self._accept("auto-generated-uids", True)

    def disable_auto_generated_uids(self) -> ExecutionConfig:
        """Every operator needs a uid; the job is refused otherwise."""
        return self._accept("auto-generated-uids", False)

    # --- without effect ---------------------------------------------------------------------

    @differs(_NO_EFFECT + ": a watermark follows every batch of elements")
    def set_auto_watermark_interval(self, interval: int) -> ExecutionConfig:
        """Milliseconds between watermarks."""
        if interval < 0:
            raise UnsupportedGraph(f"a watermark interval of {interval} ms is below 0")
        return self._accept("auto-watermark-interval", interval)

    def get_auto_watermark_interval(self) -> int:
        """Milliseconds between watermarks."""
        return int(self._accepted("auto-watermark-interval", 200))

    @same_and(_NO_RESULT + ": there are no latency markers, and no metrics of them")
    def set_latency_tracking_interval(self, interval: int) -> ExecutionConfig:
        """Milliseconds between latency markers."""
        return self._accept("latency-tracking-interval", interval)

    def get_latency_tracking_interval(self) -> int:
        """Milliseconds between latency markers; 0 = none."""
        return int(self._accepted("latency-tracking-interval", 0))

    @same_and(_NO_RESULT + ": processes are asked to end once, and killed after the timeout")
    def set_task_cancellation_interval(self, interval: int) -> ExecutionConfig:
        """Milliseconds between attempts to cancel."""
        return self._accept("task-cancellation-interval", interval)

    def get_task_cancellation_interval(self) -> int:
        """Milliseconds between attempts to cancel."""
        return int(self._accepted("task-cancellation-interval", 30_000))

    @same_and(_NO_RESULT + ": functions are pickled by value")
    def enable_closure_cleaner(self) -> ExecutionConfig:
        """Clean Java's closures."""
        return self._accept("closure-cleaner", True)

    @same_and(_NO_RESULT)
    def disable_closure_cleaner(self) -> ExecutionConfig:
        """Do not clean Java's closures."""
        return self._accept("closure-cleaner", False)

    def is_closure_cleaner_enabled(self) -> bool:
        """Whether the closure cleaner is on, as it was set; there is none here."""
        return bool(self._accepted("closure-cleaner", True))

    @same_and(_NO_RESULT + ": nothing is written by Kryo")
    def enable_force_kryo(self) -> ExecutionConfig:
        """Use Kryo for POJOs."""
        return self._accept("force-kryo", True)

    @same_and(_NO_RESULT)
    def disable_force_kryo(self) -> ExecutionConfig:
        """Do not use Kryo for POJOs."""
        return self._accept("force-kryo", False)

    def is_force_kryo_enabled(self) -> bool:
        """Whether Kryo was asked for; nothing is written by it."""
        return bool(self._accepted("force-kryo", False))

    @same_and(_NO_RESULT + ": nothing is written by Kryo")
    def enable_generic_types(self) -> ExecutionConfig:
        """Allow types Kryo writes."""
        return self._accept("generic-types", True)

    @same_and(_NO_RESULT)
    def disable_generic_types(self) -> ExecutionConfig:
        """Refuse types Kryo writes."""
        return self._accept("generic-types", False)

    def has_generic_types_disabled(self) -> bool:
        """Whether types that Kryo writes were forbidden; nothing is written by it."""
        return not self._accepted("generic-types", True)

    @same_and(_NO_RESULT + ": nothing is written by Avro")
    def enable_force_avro(self) -> ExecutionConfig:
        """Use Avro for POJOs."""
        return self._accept("force-avro", True)

    @same_and(_NO_RESULT)
    def disable_force_avro(self) -> ExecutionConfig:
        """Do not use Avro for POJOs."""
        return self._accept("force-avro", False)

    def is_force_avro_enabled(self) -> bool:
        """Whether Avro was asked for; nothing is written by it."""
        return bool(self._accepted("force-avro", False))

    @same_and(_NO_RESULT + ": neighbours in a chain always share objects")
    def enable_object_reuse(self) -> ExecutionConfig:
        """Do not copy objects between chained operators."""
        return self._accept("object-reuse", True)

    @same_and(_NO_RESULT + ": neighbours in a chain always share objects, as in PyFlink")
    def disable_object_reuse(self) -> ExecutionConfig:
        """Copy objects between chained operators."""
        return self._accept("object-reuse", False)

    def is_object_reuse_enabled(self) -> bool:
        """Whether objects may be shared, as it was set; neighbours in a chain always share them."""
        return bool(self._accepted("object-reuse", False))

    def get_default_kryo_serializer_classes(self) -> dict[str, str]:
        """None are ever registered."""
        return {}

    def get_registered_kryo_types(self) -> list[str]:
        """None are ever registered."""
        return []

    def get_registered_pojo_types(self) -> list[str]:
        """None are ever registered."""
        return []

    def is_use_snapshot_compression(self) -> bool:
        """Whether snapshots are compressed, as it was set; Spark's state store decides."""
        return bool(self._accepted("snapshot-compression", False))

    @same_and(_NO_RESULT + ": Spark's state store decides")
    def set_use_snapshot_compression(self, use_snapshot_compression: bool) -> ExecutionConfig:
        """Compress snapshots."""
        return self._accept("snapshot-compression", use_snapshot_compression)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExecutionConfig) and self._settings is other._settings

    def __hash__(self) -> int:
        return id(self._settings)
