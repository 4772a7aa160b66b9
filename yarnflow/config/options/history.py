"""Options of archives of jobs that have ended, and of the history server that shows them."""

from __future__ import annotations

from typing import Final

from yarnflow.config import declare
from yarnflow.config.option import ConfigOption, Scope

_CLUSTER = Scope.CLUSTER

ARCHIVE_DIR: Final[ConfigOption[str]] = declare.string(
    "jobmanager.archive.fs.dir",
    "",
    _CLUSTER,
    "Directory where the JobManager writes down what its REST interface answers about a job, once the job "
    "has ended; hdfs://… or file://…. A history server shows it when the cluster is gone. Empty = nothing is "
    "written.",
)
SOURCE_DIRS: Final[ConfigOption[str]] = declare.string(
    "historyserver.archive.fs.dir",
    "",
    _CLUSTER,
    "Directories with archives that the history server shows, separated by commas; those that Flink has "
    "written can be among them. Empty = that of jobmanager.archive.fs.dir.",
)
SOURCE_REFRESH_MS: Final[ConfigOption[int]] = declare.duration(
    "historyserver.archive.fs.refresh-interval",
    "10 s",
    _CLUSTER,
    "How often the history server looks for new archives.",
    at_least="100 ms",
)
CLEAN_EXPIRED: Final[ConfigOption[bool]] = declare.boolean(
    "historyserver.archive.clean-expired-jobs",
    False,
    _CLUSTER,
    "A job whose archive is not there any more is forgotten. Otherwise the history server shows it as long "
    "as it has its copy.",
)
RETAINED_JOBS: Final[ConfigOption[int]] = declare.integer(
    "historyserver.archive.retained-jobs",
    -1,
    _CLUSTER,
    "The newest archives of each directory that stay; the history server deletes the others, and their jobs "
    "are forgotten. -1 = all stay.",
    at_least=-1,
)
RETAINED_TTL_MS: Final[ConfigOption[int]] = declare.duration(
    "historyserver.archive.retained-ttl",
    "0 ms",
    _CLUSTER,
    "An archive that is older is deleted likewise. 0 = none is too old.",
)
WEB_ADDRESS: Final[ConfigOption[str]] = declare.string(
    "historyserver.web.address",
    "localhost",
    _CLUSTER,
    "Local address that the history server listens at; 0.0.0.0 = every interface of the machine.",
)
WEB_PORT: Final[ConfigOption[int]] = declare.integer(
    "historyserver.web.port",
    8082,
    _CLUSTER,
    "Port of the history server's REST interface and dashboard; 0 = any free port.",
    at_least=0,
    at_most=65535,
)
WEB_REFRESH_MS: Final[ConfigOption[int]] = declare.duration(
    "historyserver.web.refresh-interval",
    "10 s",
    _CLUSTER,
    "Time after which a dashboard of the history server asks again.",
    at_least="100 ms",
)
WEB_TMP_DIR: Final[ConfigOption[str]] = declare.string(
    "historyserver.web.tmpdir",
    "",
    _CLUSTER,
    "Directory of this machine for the history server's copies, which it finds there when it is started "
    "again; of one history server only. Empty = one of this user's in io.tmp.dirs.",
)
WEB_TOKEN_FILE: Final[ConfigOption[str]] = declare.string(
    "historyserver.web.token-file",
    "",
    _CLUSTER,
    "File with the token that a request to the history server needs; its owner alone may read it (chmod "
    "600). Empty = none is needed.",
)
JOBMANAGER_LOG_URL: Final[ConfigOption[str]] = declare.string(
    "historyserver.log.jobmanager.url-pattern",
    "",
    _CLUSTER,
    "Where the history server sends readers to for the JobManager's log of a job; <jobid> stands for the "
    "job's id.",
)
TASKMANAGER_LOG_URL: Final[ConfigOption[str]] = declare.string(
    "historyserver.log.taskmanager.url-pattern",
    "",
    _CLUSTER,
    "The same for the log of a TaskManager; <tmid> stands for its id.",
)
SPARK_URL: Final[ConfigOption[str]] = declare.string(
    "historyserver.spark.url",
    "",
    Scope.JOB,
    "Address of Spark's own history server, such as http://host:18080, for links from jobs that write "
    "Spark's event log (spark.eventLog.enabled, spark.eventLog.dir). Empty = that of "
    "spark.yarn.historyServer.address, if it is set.",
)
