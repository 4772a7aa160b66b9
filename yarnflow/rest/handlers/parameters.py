"""The parameters of the paths and queries; names are Flink's."""

from __future__ import annotations

from typing import Any, Final

from yarnflow.rest.answers.metrics import AGGREGATIONS
from yarnflow.rest.framework.parameters import Parameter, choice, hexadecimal, number, text, words

JOB_ID: Final = hexadecimal("jobid", "Id of a job.")
APPLICATION_ID: Final = hexadecimal("applicationid", "Id of an application: that of its job.")
TRIGGER_ID: Final = hexadecimal("triggerid", "Id that was answered when the operation was begun.")
VERTEX_ID: Final = text("vertexid", "Id of a vertex of the job.", r"[0-9A-Za-z_-]{1,64}")
CHECKPOINT_ID: Final = number("checkpointid", "Number of a checkpoint or savepoint of the job.")
SUBTASK_INDEX: Final = number("subtaskindex", "Number of a subtask, from 0.")
ATTEMPT: Final = number("attempt", "Number of an attempt, from 0.")
TASK_MANAGER_ID: Final = text("taskmanagerid", "Id of a TaskManager.", r"[^/\x00-\x1f\x7f]{1,255}")
FILE_NAME: Final = text(
    "filename", "Name of a file, as the list of logs has it.", r"[^/\x00-\x1f\x7f]{1,255}"
)
DASHBOARD_FOLDER: Final = text("folder", "Name of a part of the dashboard.", r"[0-9a-z]{1,32}")
DASHBOARD_FILE: Final = text("file", "Name of a file of the dashboard.", r"[0-9A-Za-z_.-]{1,128}")

MODE: Final = choice(
    "mode", "How the job ends; stop is not supported any more.", ("cancel", "stop"), "cancel"
)
MAX_EXCEPTIONS: Final = number("maxExceptions", "Most entries that are answered.")
FAILURE_LABEL_FILTER: Final = words("failureLabelFilter", "Only entries with these labels: name:value,….")
GET: Final = words("get", "Names of metrics; without it all names are answered, without values.")
AGG: Final = words(
    "agg", "How values are put together; without it in all ways.",
    choice("agg", "", AGGREGATIONS, ""),
)  # fmt: skip
JOBS: Final = words("jobs", "Only these jobs.", JOB_ID)
TASK_MANAGERS: Final = words("taskmanagers", "Only these TaskManagers.")
SUBTASKS: Final = words(
    "subtasks", "Only these subtasks: numbers and ranges, 0-3,7.", text("subtasks", "", r"\d{1,6}(-\d{1,6})?")
)
INCLUDE_SERIALIZED: Final[Parameter[Any]] = choice(
    "includeSerializedValue", "Without effect: there are no accumulators.", ("true", "false"), "false"
)
PROGRAM_ID: Final = text("jarid", "Id of an uploaded program.", r"[^/\\\x00-\x1f\x7f]{1,150}")
ENTRY_CLASS: Final = text("entry-class", "The module to run.", r"[\w.]{1,200}")
PARALLELISM: Final = number("parallelism", "Parallelism of the job, where the program says none.")
PROGRAM_ARG: Final = words("programArg", "Arguments of the program.")
PROGRAM_ARGS: Final = text(
    "program-args", "The same in one text, as a shell takes it apart.", r"[^\x00]{0,4096}"
)
SAVEPOINT_PATH: Final = text("savepointPath", "State that the job starts from.", r"[^\x00]{1,4096}")
ALLOW_NON_RESTORED: Final[Parameter[Any]] = choice(
    "allowNonRestoredState",
    "State that belongs to no operator any more is left out.",
    ("true", "false"),
    "false",
)

APPLICATION: Final = (APPLICATION_ID,)
JOB: Final = (JOB_ID,)
VERTEX: Final = (JOB_ID, VERTEX_ID)
SUBTASK: Final = (*VERTEX, SUBTASK_INDEX)
PROGRAM: Final = (PROGRAM_ID,)
PLAN_OF_PROGRAM: Final = (PROGRAM_ID, ENTRY_CLASS, PARALLELISM, PROGRAM_ARG, PROGRAM_ARGS)
RUN_OF_PROGRAM: Final = (*PLAN_OF_PROGRAM, SAVEPOINT_PATH, ALLOW_NON_RESTORED)
DATASET_ID: Final = text("datasetid", "Id of a dataset.", "[0-9A-Za-z_-]{1,64}")
OPERATOR_UID: Final = text("operatorUid", "Uid of an operator.", r"[^/\x00-\x1f\x7f]{1,255}")
RESCALE_ID: Final = text("rescaleuuid", "Id of a change of parallelism.", "[0-9A-Za-z_-]{1,64}")
