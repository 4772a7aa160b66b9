"""Every error yarnflow raises on purpose, declared once.

One class carries everything an outer layer needs to report it: a stable ``code`` for
Thrift, logs and REST, the exit status of a command, the HTTP status of a response and
whether trying the same call again can help.  The CLI prints ``str(error)`` as one line,
so a message says what is wrong, where, and what to do next.

::

    YarnflowError
     ├ ConfigError (ValueError)        UnknownOption, InvalidOption, JarError, JarNotFound
     ├ ProgramError                    ProgramNotFound, ProgramSyntaxError, NoExecuteCall,
     │                                 ProgramFailed, UnsupportedCall
     ├ GraphError (ValueError)         UnknownField, InvalidExpression, UnserializableFunction,
     │                                 ParallelismTooHigh, UnsupportedGraph, SchemaError,
     │                                 TimestampsMissing
     ├ JobError                        JobNotFound, JobUnreadable, DuplicateJob, JobFailed,
     │                                 JobCanceled, UserCodeError, SourceNotFound, DrillFailed,
     │                                 InvalidStateUse, InvalidKey, StateTooLarge,
     │                                 ElementMismatch, MalformedMessage, DatabaseError,
     │                                 DatabaseUnavailable, SinkTaken, BrokerUnavailable,
     │                                 ServerError, ServerUnavailable
     ├ ResourceError                   SlotUnavailable, TaskManagerNotFound, TaskManagerLost,
     │                                 ExecutorLost, DriverLost, PortUnavailable, JavaUnavailable,
     │                                 InvalidMemory, TaskManagerDismissed
     ├ HaError                         LeadershipLost, StaleEpoch, ZooKeeperUnavailable, LeaseLost,
     │                                 ForeignNode
     ├ CheckpointError                 CheckpointFailed, SavepointNotFound, SavepointInvalid,
     │                                 StateIncompatible, StateDrained, StateNotTrusted,
     │                                 StateInUse, StateUndecided, StateDamaged, StateWentBack
     ├ StorageError (OSError)          FileMissing, StorageUnavailable, StorageDenied,
     │                                 FileChanged
     ├ YarnError                       YarnUnavailable, ApplicationNotFound, ApplicationFailed,
     │                                 QueueUnavailable, RequestTooLarge, EnvironmentUnusable
     ├ RpcError                        RpcTimeout (TimeoutError), RpcUnavailable (ConnectionError),
     │                                 WrongProcess, CallSuspended, RpcProtocolError,
     │                                 SubmissionMissing, AuthenticationFailed, RemoteError
     └ InternalError                   InvalidTransition, InvariantViolated
"""

from __future__ import annotations

from typing import ClassVar, Final


class YarnflowError(Exception):
    """Base of all errors raised on purpose.

    Parameters
    ----------
    message : str
        One line: what is wrong, where, and what to do next.
    """

    #: stable identifier, ``UPPER_SNAKE``; what travels over Thrift and REST
    code: ClassVar[str] = "YARNFLOW"
    #: exit status of a command that ends with this error
    exit_code: ClassVar[int] = 1
    #: HTTP status of a REST response that reports this error
    http_status: ClassVar[int] = 500
    #: the same call, unchanged, may succeed later
    retryable: ClassVar[bool] = False

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message


class ConfigError(YarnflowError, ValueError):
    """A configuration cannot be used.  Operator action: correct the named option."""

    code = "CONFIG"
    exit_code = 10
    http_status = 400


class UnknownOption(ConfigError):
    """A key that no option declares.  Operator action: use the suggested key."""

    code = "UNKNOWN_OPTION"
    exit_code = 11


class InvalidOption(ConfigError):
    """A value that is not of the option's form.  Operator action: correct the value."""

    code = "INVALID_OPTION"
    exit_code = 12


class JarError(ConfigError):
    """A jar or package that a job asks for cannot be used.  Operator action: as the message says."""

    code = "JAR"
    exit_code = 13


class JarNotFound(JarError):
    """No repository that was asked has a package.  Operator action: correct it, or name its repository."""

    code = "JAR_NOT_FOUND"
    exit_code = 14


class ProgramError(YarnflowError):
    """The user's program cannot be turned into a job."""

    code = "PROGRAM"
    exit_code = 20
    http_status = 400


class ProgramNotFound(ProgramError):
    """The program file does not exist.  Operator action: check the path."""

    code = "PROGRAM_NOT_FOUND"
    exit_code = 21


class ProgramSyntaxError(ProgramError):
    """The program is not valid Python.  Operator action: correct the named line."""

    code = "PROGRAM_SYNTAX"
    exit_code = 22


class NoExecuteCall(ProgramError):
    """The program defined a pipeline but never called ``execute()``."""

    code = "NO_EXECUTE_CALL"
    exit_code = 23


class ProgramFailed(ProgramError):
    """The program's ``main`` raised an exception.  The user's traceback comes first.

    Parameters
    ----------
    message : str
        One line naming the exception.
    traceback_text : str
        The user's frames only, as Python prints them.
    """

    code = "PROGRAM_FAILED"
    exit_code = 24

    def __init__(self, message: str, traceback_text: str = "") -> None:
        super().__init__(message)
        self.traceback_text = traceback_text

    def __reduce__(self) -> tuple[type[ProgramFailed], tuple[str, str]]:
        return type(self), (self.message, self.traceback_text)


class UnsupportedCall(ProgramError):
    """A name of PyFlink that yarnflow has no counterpart of.  Operator action: as the message says."""

    code = "UNSUPPORTED_CALL"
    exit_code = 25


class GraphError(YarnflowError, ValueError):
    """A pipeline that cannot be a job graph.  Messages name the program's line."""

    code = "GRAPH"
    exit_code = 30
    http_status = 400


class UnknownField(GraphError):
    """An expression or key names a field the stream does not have."""

    code = "UNKNOWN_FIELD"
    exit_code = 31


class InvalidExpression(GraphError):
    """An expression that is not valid Spark SQL."""

    code = "INVALID_EXPRESSION"
    exit_code = 32


class UnserializableFunction(GraphError):
    """A user function that cloudpickle cannot serialize for the workers."""

    code = "UNSERIALIZABLE_FUNCTION"
    exit_code = 33


class ParallelismTooHigh(GraphError):
    """An operator's parallelism is above its maximum parallelism."""

    code = "PARALLELISM_TOO_HIGH"
    exit_code = 34


class UnsupportedGraph(GraphError):
    """A combination of operators that Spark cannot run with Flink's meaning."""

    code = "UNSUPPORTED_GRAPH"
    exit_code = 35


class SchemaError(GraphError):
    """A schema that cannot be read, or that does not fit its operator."""

    code = "SCHEMA"
    exit_code = 36


class TimestampsMissing(GraphError):
    """Elements have no event time where it is needed.  Operator action: assign timestamps and watermarks."""

    code = "TIMESTAMPS_MISSING"
    exit_code = 37


class JobError(YarnflowError):
    """An error that concerns one job."""

    code = "JOB"
    exit_code = 40


class JobNotFound(JobError):
    """No job has this id.  Operator action: look it up with ``yarnflow list --all``."""

    code = "JOB_NOT_FOUND"
    exit_code = 41
    http_status = 404


class JobUnreadable(JobError):
    """What a job is to run cannot be read.  Operator action: ``yarnflow recover``, or cancel the job."""

    code = "JOB_UNREADABLE"
    exit_code = 89


class DuplicateJob(JobError):
    """A live job has this job key already.  Operator action: cancel it or use another key."""

    code = "DUPLICATE_JOB"
    exit_code = 42
    http_status = 409


class JobFailed(JobError):
    """The job ended FAILED.  The message is the root cause; an error in user code comes first."""

    code = "JOB_FAILED"
    exit_code = 43


class JobCanceled(JobError):
    """The job ended CANCELED while a command waited for it."""

    code = "JOB_CANCELED"
    exit_code = 44


class UserCodeError(JobError):
    """A user function raised an exception.

    Parameters
    ----------
    message : str
        One line naming the exception and the function.
    traceback_text : str
        The user's traceback as Python prints it, without Java frames.
    """

    code = "USER_CODE"
    exit_code = 45

    def __init__(self, message: str, traceback_text: str = "") -> None:
        super().__init__(message)
        self.traceback_text = traceback_text

    def __reduce__(self) -> tuple[type[UserCodeError], tuple[str, str]]:
        return type(self), (self.message, self.traceback_text)


class UserTraceback(Exception):
    """The cause of an error that a user function raised elsewhere: Python shows causes first.

    Parameters
    ----------
    text : str
        The traceback as Python prints it.
    """

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


class SourceNotFound(JobError):
    """What a source reads is not there: a path, a topic.  Operator action: check its name on the cluster."""

    code = "SOURCE_NOT_FOUND"
    exit_code = 46


class DrillFailed(JobError):
    """A job did not recover from a drill in time.  Operator action: as the timeline says."""

    code = "DRILL_FAILED"
    exit_code = 47


class InvalidStateUse(JobError):
    """Keyed state or timers are used where or as they may not be.  Operator action: correct the function."""

    code = "INVALID_STATE_USE"
    exit_code = 48


class InvalidKey(JobError):
    """A key selector returned what cannot be a key.  Operator action: return plain values or tuples."""

    code = "INVALID_KEY"
    exit_code = 49


class StateTooLarge(JobError):
    """State of an operator does not fit the memory of its slot.  Operator action: as the message says."""

    code = "STATE_TOO_LARGE"
    exit_code = 38


class ElementMismatch(JobError):
    """An element is not of the type its operator declares.  Operator action: correct the named type."""

    code = "ELEMENT_MISMATCH"
    exit_code = 39


class MalformedMessage(JobError):
    """A message of a source cannot be read as its format.  Operator action: as the message says."""

    code = "MALFORMED_MESSAGE"
    exit_code = 77


class DatabaseError(JobError):
    """A database did not take what a sink writes.  Operator action: as its message says."""

    code = "DATABASE"
    exit_code = 28


class DatabaseUnavailable(DatabaseError):
    """A database does not answer, or has broken off.  Operator action: see whether it runs."""

    code = "DATABASE_UNAVAILABLE"
    exit_code = 29
    retryable = True
    http_status = 503


class SinkTaken(DatabaseError):
    """Another attempt or job writes a sink's rows.  Operator action: end it, or as the message says."""

    code = "SINK_TAKEN"
    exit_code = 27
    retryable = True


class BrokerUnavailable(JobError):
    """Kafka does not answer, or has broken off.  Operator action: see whether it runs."""

    code = "BROKER_UNAVAILABLE"
    exit_code = 26
    retryable = True
    http_status = 503


class ServerError(JobError):
    """A broker, store or index refuses what a job asks of it.  Operator action: as its message says."""

    code = "SERVER"
    exit_code = 78


class ServerUnavailable(ServerError):
    """Such a server does not answer, or has broken off.  Operator action: see whether it runs."""

    code = "SERVER_UNAVAILABLE"
    exit_code = 79
    retryable = True
    http_status = 503


class ResourceError(YarnflowError):
    """Slots, processes, ports or memory that are not available."""

    code = "RESOURCE"
    exit_code = 50
    http_status = 503


class SlotUnavailable(ResourceError):
    """Not enough slots within ``slot.request.timeout``."""

    code = "SLOT_UNAVAILABLE"
    exit_code = 51
    retryable = True


class TaskManagerNotFound(ResourceError):
    """No TaskManager has this id, or the ResourceManager has removed it."""

    code = "TASK_MANAGER_NOT_FOUND"
    exit_code = 52
    http_status = 404


class TaskManagerLost(ResourceError):
    """A TaskManager's heartbeat timed out, or its process ended."""

    code = "TASK_MANAGER_LOST"
    exit_code = 53
    retryable = True


class ExecutorLost(ResourceError):
    """A job's Spark executor ended unexpectedly."""

    code = "EXECUTOR_LOST"
    exit_code = 54
    retryable = True


class DriverLost(ResourceError):
    """A job's driver process ended unexpectedly, or does not answer any more."""

    code = "DRIVER_LOST"
    exit_code = 55
    retryable = True


class PortUnavailable(ResourceError):
    """No port of the configured range is free."""

    code = "PORT_UNAVAILABLE"
    exit_code = 56


class JavaUnavailable(ResourceError):
    """There is no Java, or its version is too old for Spark.  Operator action: as the message says."""

    code = "JAVA_UNAVAILABLE"
    exit_code = 57


class InvalidMemory(ResourceError, ValueError):
    """Memory sizes that do not fit together."""

    code = "INVALID_MEMORY"
    exit_code = 58


class TaskManagerDismissed(ResourceError):
    """The master has dismissed this TaskManager; it must end."""

    code = "TASK_MANAGER_DISMISSED"
    exit_code = 59


class HaError(YarnflowError):
    """An error of high availability."""

    code = "HA"
    exit_code = 60
    http_status = 503


class LeadershipLost(HaError):
    """This master is not the leader (any more)."""

    code = "LEADERSHIP_LOST"
    exit_code = 61
    retryable = True


class StaleEpoch(HaError):
    """A call carried the id of another leader.  The caller must look the leader up again."""

    code = "STALE_EPOCH"
    exit_code = 62
    http_status = 409


class ZooKeeperUnavailable(HaError):
    """No ZooKeeper server of the quorum answers, or the session was lost."""

    code = "ZOOKEEPER_UNAVAILABLE"
    exit_code = 63
    retryable = True


class LeaseLost(HaError):
    """This driver may not write the job's checkpoint directory (any more)."""

    code = "LEASE_LOST"
    exit_code = 64
    retryable = True


class ForeignNode(HaError):
    """A node of the cluster in ZooKeeper is somebody else's.  Operator action: see the message."""

    code = "FOREIGN_NODE"
    exit_code = 103


class CheckpointError(YarnflowError):
    """A checkpoint or savepoint could not be taken, or cannot be used."""

    code = "CHECKPOINT"
    exit_code = 93
    http_status = 409


class CheckpointFailed(CheckpointError):
    """A checkpoint or savepoint was begun and did not complete."""

    code = "CHECKPOINT_FAILED"
    exit_code = 94
    retryable = True


class SavepointNotFound(CheckpointError):
    """There is no savepoint or checkpoint at a path."""

    code = "SAVEPOINT_NOT_FOUND"
    exit_code = 95
    http_status = 404


class SavepointInvalid(CheckpointError):
    """Files of a savepoint are missing, damaged or of a newer format."""

    code = "SAVEPOINT_INVALID"
    exit_code = 96


class StateIncompatible(CheckpointError):
    """The program does not fit the state from which it should start."""

    code = "STATE_INCOMPATIBLE"
    exit_code = 97


class StateDrained(CheckpointError):
    """A drain has fired all windows of this state.  Operator action: use another state, or none."""

    code = "STATE_DRAINED"
    exit_code = 98


class StateNotTrusted(CheckpointError):
    """State holds objects, and others could have written it.  Operator action: ``--trust-state``."""

    code = "STATE_NOT_TRUSTED"
    exit_code = 99


class StateInUse(CheckpointError):
    """State cannot be claimed, or gone on from, as it is another job's.  Operator action: see the message."""

    code = "STATE_IN_USE"
    exit_code = 101


class StateUndecided(CheckpointError):
    """Which state a job goes on from cannot be told.  Operator action: name it, or start empty on purpose."""

    code = "STATE_UNDECIDED"
    exit_code = 100


class StateDamaged(CheckpointError):
    """Files of the job's state are damaged, and none before is sound.  Operator action: see the message."""

    code = "STATE_DAMAGED"
    exit_code = 87


class StateWentBack(CheckpointError):
    """Files of the job's state were damaged; it goes on from the newest sound batch at its next start."""

    code = "STATE_WENT_BACK"
    exit_code = 88
    retryable = True


class StorageError(YarnflowError, OSError):
    """A request to a file system failed."""

    code = "STORAGE"
    exit_code = 65
    retryable = True


class FileMissing(StorageError):
    """A file that should exist does not exist."""

    code = "FILE_MISSING"
    exit_code = 66
    http_status = 404


class StorageUnavailable(StorageError):
    """The file system does not answer, or is read-only (safe mode)."""

    code = "STORAGE_UNAVAILABLE"
    exit_code = 67
    http_status = 503


class StorageDenied(StorageError):
    """The user has no permission for this.  Operator action: change permissions, or use another directory."""

    code = "STORAGE_DENIED"
    exit_code = 68
    retryable = False
    http_status = 403


class FileChanged(StorageError):
    """A file is not as a process of the cluster wrote it.  Operator action: see who may write there."""

    code = "FILE_CHANGED"
    exit_code = 69
    retryable = False


class YarnError(YarnflowError):
    """A request to YARN failed."""

    code = "YARN"
    exit_code = 80
    http_status = 502


class YarnUnavailable(YarnError):
    """The ResourceManager does not answer, or YARN is not configured here."""

    code = "YARN_UNAVAILABLE"
    exit_code = 81
    http_status = 503
    retryable = True


class ApplicationNotFound(YarnError):
    """No application has this id, or it is not an application of yarnflow."""

    code = "APPLICATION_NOT_FOUND"
    exit_code = 82
    http_status = 404


class ApplicationFailed(YarnError):
    """The application ended and its job gave no reason; the message has YARN's diagnostics."""

    code = "APPLICATION_FAILED"
    exit_code = 83


class QueueUnavailable(YarnError):
    """The queue does not exist, is stopped, or the user may not submit to it."""

    code = "QUEUE_UNAVAILABLE"
    exit_code = 84


class RequestTooLarge(YarnError):
    """A container larger than YARN's maximum, which YARN would never grant."""

    code = "REQUEST_TOO_LARGE"
    exit_code = 85


class EnvironmentUnusable(YarnError):
    """The Python environment for the containers is not complete."""

    code = "ENVIRONMENT_UNUSABLE"
    exit_code = 86


class RpcError(YarnflowError):
    """A remote call failed."""

    code = "RPC"
    exit_code = 70
    http_status = 502


class RpcTimeout(RpcError, TimeoutError):
    """No answer before the call's deadline."""

    code = "RPC_TIMEOUT"
    exit_code = 71
    http_status = 504
    retryable = True


class RpcUnavailable(RpcError, ConnectionError):
    """No process answers at the address.  Operator action: check address and process."""

    code = "RPC_UNAVAILABLE"
    exit_code = 72
    retryable = True


class WrongProcess(RpcUnavailable):
    """The process at the address is not the one that was dialled.  Operator action: as the message says."""

    code = "WRONG_PROCESS"
    exit_code = 104


class CallSuspended(RpcUnavailable):
    """A process failed to answer several times in a row and is not called for some seconds."""

    code = "CALL_SUSPENDED"
    exit_code = 102


class RpcProtocolError(RpcError):
    """Bytes that are not a frame of this protocol."""

    code = "RPC_PROTOCOL"
    exit_code = 73
    http_status = 400


class SubmissionMissing(RpcError):
    """A driver was given only the digest of a job that it was never sent; the job is then sent to it."""

    code = "SUBMISSION_MISSING"
    exit_code = 76


class AuthenticationFailed(RpcError):
    """The peer does not know the cluster's secret."""

    code = "AUTHENTICATION_FAILED"
    exit_code = 74
    http_status = 401


class RemoteError(RpcError):
    """The peer failed with an error that this version does not know."""

    code = "REMOTE"
    exit_code = 75


class InternalError(YarnflowError):
    """A bug in yarnflow; please report it with the message."""

    code = "INTERNAL"
    exit_code = 90


class InvalidTransition(InternalError):
    """A state machine received an event its state does not allow.

    Parameters
    ----------
    message : str
        Machine, id, state, event and the machine's story so far.
    """

    code = "INVALID_TRANSITION"
    exit_code = 91


class InvariantViolated(InternalError):
    """A state machine's model contradicts itself."""

    code = "INVARIANT_VIOLATED"
    exit_code = 92


def _tree(root: type[YarnflowError]) -> dict[str, type[YarnflowError]]:
    found = {root.code: root}
    for child in root.__subclasses__():
        found.update(_tree(child))
    return found


#: code → class; the one registry for Thrift, REST and the CLI
ERRORS_BY_CODE: Final[dict[str, type[YarnflowError]]] = _tree(YarnflowError)


def error_from_exit(exit_status: int, output: str) -> YarnflowError | None:
    """The error one of our own processes ended with, from its exit status and last output.

    Such a process prints ``error: …`` and exits with the error's ``exit_code``; None when this
    one did not end that way.
    """
    lines = [line for line in output.splitlines() if line.startswith("error: ")]
    for cls in ERRORS_BY_CODE.values():
        if lines and cls.exit_code == exit_status:
            return error_from_code(cls.code, lines[-1].removeprefix("error: "))
    return None


def error_from_code(code: str, message: str, details: str = "") -> YarnflowError:
    """Rebuild an error that crossed a process boundary.

    Parameters
    ----------
    code : str
        The sender's ``code``; an unknown one becomes :class:`RemoteError`.
    message : str
        The one-line message.
    details : str
        User traceback for the classes that carry one, else ignored.
    """
    cls = ERRORS_BY_CODE.get(code)
    if cls is None:
        return RemoteError(f"{code}: {message}")
    if issubclass(cls, (UserCodeError, ProgramFailed)):
        return cls(message, details)
    return cls(message)
