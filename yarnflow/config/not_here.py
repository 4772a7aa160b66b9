"""Keys of Flink without a meaning here: why, and what to do instead.

Read only where a key is unknown, so that a configuration file of Flink's is told line by line what to
drop.  A key that gets a meaning is declared as an option, and its line here goes.
"""

from __future__ import annotations

from typing import Final

_SPARK_NETWORK: Final = "records travel by Spark, whose options begin with spark.shuffle and spark.network"
_ONE_AT_A_TIME: Final = "checkpoints are taken at batch boundaries, one at a time"
_ROCKSDB: Final = "options of Spark's RocksDB begin with spark.sql.streaming.stateStore.rocksdb"
_PYTHON: Final = "a program is Python; nothing of Flink's JVM runs"

#: key, or beginning of keys that ends with a dot → why
NOT_HERE: Final[dict[str, str]] = {
    "akka.": "processes talk by Thrift; see rpc.ask.timeout and rpc.framesize",
    "pekko.": "processes talk by Thrift; see rpc.ask.timeout and rpc.framesize",
    "blob.": "files of jobs lie on the file system; there is no blob server",
    "classloader.": _PYTHON,
    "cluster.evenly-spread-out-slots": "slots are given where executors of the job are already",
    "execution.batch-shuffle-mode": _SPARK_NETWORK,
    "execution.checkpointing.aligned-checkpoint-timeout": _ONE_AT_A_TIME,
    "execution.checkpointing.incremental": "see state.changelog.enabled",
    "state.backend.incremental": "see state.changelog.enabled",
    "execution.checkpointing.local-backup.": "state on local disks is Spark's own",
    "state.backend.local-recovery": "state on local disks is Spark's own",
    "execution.checkpointing.max-concurrent-checkpoints": _ONE_AT_A_TIME,
    "execution.checkpointing.mode": "what is delivered how often follows from sources and sinks",
    "execution.checkpointing.storage": "checkpoints are in execution.checkpointing.dir",
    "state.checkpoint-storage": "checkpoints are in execution.checkpointing.dir",
    "execution.checkpointing.tolerable-failed-checkpoints": "a failed checkpoint never fails a job: every "
    "batch is committed",
    "execution.checkpointing.unaligned": _ONE_AT_A_TIME,
    "execution.checkpointing.unaligned.": _ONE_AT_A_TIME,
    "historyserver.archive.clean-expired-applications": "each job is an application of its own; see "
    "historyserver.archive.clean-expired-jobs",
    "historyserver.archive.retained-applications": "each job is an application of its own; see "
    "historyserver.archive.retained-jobs",
    "historyserver.web.ssl.enabled": "the history server speaks plain HTTP; a proxy before it may speak TLS",
    "jobmanager.execution.failover-strategy": "Spark runs lost tasks again, and no more than those",
    "kubernetes.": "there is no target on Kubernetes",
    "pipeline.generic-types": "objects without a type are pickled",
    "pipeline.object-reuse": "Python objects are handed on as they are",
    "pipeline.serialization-config": "objects without a type are pickled",
    "python.client.executable": "main() runs in the Python that runs yarnflow",
    "python.requirements": "packages are not installed for a job: `yarnflow env pack` packs an environment, "
    "and python.environment names the archive",
    "queryable-state.": "`yarnflow savepoint inspect --state` shows state",
    "slot.idle.timeout": "a job gives its slots back when it ends",
    "state.backend.rocksdb.": _ROCKSDB,
    "state.backend.forst.": _ROCKSDB,
    "table.": "SQL is Spark's, and its options begin with spark.sql",
    "taskmanager.data.": _SPARK_NETWORK,
    "taskmanager.heap.mb": "write taskmanager.memory.process.size, with the unit",
    "jobmanager.heap.mb": "write jobmanager.memory.process.size, with the unit",
    "taskmanager.memory.flink.size": "write taskmanager.memory.process.size, which is all of it",
    "taskmanager.memory.framework.heap.size": "a TaskManager is a Python process; see "
    "taskmanager.memory.framework.size",
    "taskmanager.memory.framework.off-heap.size": "a TaskManager is a Python process; see "
    "taskmanager.memory.framework.size",
    "taskmanager.memory.network.": _SPARK_NETWORK,
    "taskmanager.memory.segment-size": _SPARK_NETWORK,
    "taskmanager.memory.task.heap.size": "the executor's heap is what the other parts of "
    "taskmanager.memory.process.size leave",
    "taskmanager.network.": _SPARK_NETWORK,
    "yarn.application.type": "YARN shows the type skein",
    "yarn.classpath.include-user-jar": "see pipeline.jars",
    "yarn.flink-dist-jar": "every submit ships its own version",
    "yarn.properties-file.location": "a session is found among the user's own; see yarn.application.id",
    "yarn.provided.lib.dirs": "uploaded files are cached by their content",
}


def why_not_here(key: str) -> str:
    """Why a key of Flink means nothing here; empty = nothing is known about it."""
    if key in NOT_HERE:
        return NOT_HERE[key]
    beginnings = (known for known in NOT_HERE if known.endswith(".") and key.startswith(known))
    return next((NOT_HERE[known] for known in beginnings), "")
