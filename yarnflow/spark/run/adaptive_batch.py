"""How many tasks the stages of a batch have: Spark's adaptive query execution decides by their sizes.

Only says which of Spark's settings follow from the job's options.  It is about columns: functions on elements
have the subtasks the program says, in a batch as in a stream.  Flink counterpart:
``AdaptiveBatchScheduler``.
"""

from __future__ import annotations

from typing import Final

from yarnflow.config.configuration import Configuration
from yarnflow.config.options.job import (
    BATCH_AUTO_PARALLELISM,
    BATCH_BYTES_PER_TASK,
    BATCH_MAX_PARALLELISM,
    PARALLELISM_DEFAULT,
)

_COALESCE: Final = "spark.sql.adaptive.coalescePartitions"


def batch_settings(configuration: Configuration) -> dict[str, str]:
    """Settings of a session that runs a batch; what the user has set of Spark's is left as it is."""
    if not configuration.get(BATCH_AUTO_PARALLELISM):
        settings = {f"{_COALESCE}.enabled": "false"}
    else:
        # as in Flink, a parallelism that the program or the command sets is the most there can be
        most = BATCH_MAX_PARALLELISM if not configuration.is_set(PARALLELISM_DEFAULT) else PARALLELISM_DEFAULT
        settings = {
            "spark.sql.adaptive.enabled": "true",
            f"{_COALESCE}.initialPartitionNum": str(configuration.get(most)),
            f"{_COALESCE}.parallelismFirst": "false",
            "spark.sql.adaptive.advisoryPartitionSizeInBytes": str(configuration.get(BATCH_BYTES_PER_TASK)),
        }
    own = configuration.spark_options()
    return {key: value for key, value in settings.items() if key not in own}
