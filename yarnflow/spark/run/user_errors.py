"""From what Spark raises to one line a user can act on.

Decides which of our errors an exception of Spark, py4j or of the user's code is, what its line
says, and which frames of a traceback are the user's.  Java frames never get past this module.
The text of a worker's traceback crosses two languages inside messages, so it is found by reading
the messages of the whole chain of causes.

Flink counterpart: ``ExceptionUtils`` and PyFlink's ``convert_py4j_exception``.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yarnflow
from yarnflow import errors
from yarnflow.errors import (
    DriverLost,
    ExecutorLost,
    InvalidExpression,
    JobFailed,
    SchemaError,
    SourceNotFound,
    StateTooLarge,
    StorageError,
    StorageUnavailable,
    UnsupportedGraph,
    UserCodeError,
    YarnflowError,
)

_TRACEBACK: Final = "Traceback (most recent call last):"
_FRAME: Final = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?$')
_JAVA_FRAME: Final = re.compile(r"^\s*(at [\w.$/<>]+\(|\.\.\. \d+ more|Caused by: |Driver stacktrace:)")
#: what :func:`yarnflow.operators.process.user_code.placed` notes
_PLACE_NOTE: Final = re.compile(r"^at (?P<file>[^\s:]+):(?P<line>\d+)$")
_OWN_ERROR: Final = "yarnflow.errors."
#: what an expression of ours raises by Spark's ``raise_error``
_RAISED: Final = re.compile(r"\[USER_RAISED_EXCEPTION\] (?P<type>yarnflow\.errors\.\w+): (?P<message>.*)")
_EXCEPTION_LINE: Final = re.compile(r"^(?P<type>[A-Za-z_][\w.]*)(?:: ?(?P<message>.*))?$")
_CONDITION: Final = re.compile(r"^\[(?P<name>[A-Z][A-Z0-9_.]+)\] ?")
_SQLSTATE: Final = re.compile(r"\s*SQLSTATE: \w+\s*$")
_SQLSTATE_LINE: Final = re.compile(r"^\s*SQLSTATE: \w+\s*$")
_MISSING_PATH: Final = re.compile(
    r"(?:Path does not exist|Input path does not exist|File does not exist|File (?=\S+ does not exist)):? ?"
    r"(?P<path>\S+?)\.?(?: does not exist|\s|$)"
)
_MALFORMED: Final = re.compile(r"Malformed records are detected in record parsing: (?P<record>.*?)\.?$", re.M)
#: the condition, with or without what it says more, and the file
_FAILED_READ: Final = re.compile(
    r"\[(?:FAILED_READ_FILE|CANNOT_READ_FILE_FOOTER)(?:\.(?P<kind>\w+))?\].*?"
    r"(?:file(?: for)?|footer for file):? (?:file:/*(?=/))?(?P<file>\S+)(?P<said>[^\n]*)"
)
_NO_SPACE: Final = ("No space left on device", "Disk quota exceeded", "QuotaExceededException")
_SAFE_MODE: Final = "SafeModeException"
_READ_FILE: Final = re.compile(r"reading file \w*:?/*(?P<file>/\S+?)\.? ")
_PACKAGE_DIR: Final = str(Path(yarnflow.__file__).parent) + "/"
_PACKAGE_NAME: Final = "/yarnflow/"
_FRAMEWORK_PATHS: Final = (
    "/site-packages/pyspark/", "/dist-packages/pyspark/", "/pyspark.zip/", "/site-packages/py4j/",
    "-src.zip/py4j/",
    "/site-packages/yarnflow/", "/dist-packages/yarnflow/", "/cloudpickle/", "<frozen ", _PACKAGE_DIR,
    # what python_chain makes of a chain's functions
    "<yarnflow chain>",
)  # fmt: skip
#: modules of Python itself, wherever it is installed
_STANDARD_LIBRARY: Final = re.compile(r"/lib(?:64)?/python3\.\d+/(?!(?:site|dist)-packages/)")
_INSTALLED: Final = ("/site-packages/", "/dist-packages/")
_EXECUTOR_LOSS: Final = ("ExecutorLostFailure", "ExecutorDeadException", "Executor heartbeat timed out")
#: Spark gives a worker 10 s, also that of keyed state which runs beside the driver
_WORKER_LATE: Final = "Timed out while waiting for the Python worker to connect back"
_UNSUPPORTED: Final = ("UNSUPPORTED_", "STREAMING_OUTPUT_MODE", "NOT_SUPPORTED", "STATE_STORE_")
_MISSING: Final = ("PATH_NOT_FOUND", "Path does not exist", "FileNotFoundException")
#: the condition's name is not always in its text
_LOST_MESSAGES: Final = re.compile(
    r"Some data may have been lost.*?Reason:\s*(?P<reason>.*?)"
    r"(?:\.|\s+with consumer group.*?)?\s*(?:SQLSTATE|\n|$)",
    re.DOTALL,
)
_TOPIC_GONE: Final = "This server does not host this topic-partition"
#: in the positions that a streaming query's failure tells
_TOPICS: Final = re.compile(r"KafkaV2\[\w+\[(?P<topics>[^\]]+)\]")
_MODULES: Final = (
    "; modules of yours come to the workers by -pyfs or env.add_python_file(), packages by python.environment"
)
_JVM_GONE: Final = ("Py4JNetworkError", "ConnectionRefusedError", "ConnectionResetError")


@dataclass(frozen=True, slots=True)
class UserTraceback:
    """A Python traceback reduced to the user's part."""

    #: class name without module, as people say it
    type_name: str
    #: first line of the message
    message: str
    #: innermost frame of the program, else of a library that it calls, else the call of the operator in the
    #: program; empty if none of them is known
    file: str
    line: int
    function: str
    #: as Python prints it, framework frames left out
    text: str
    #: an error of this package that no function of the program raised
    own_error: type[YarnflowError] | None = None

    @property
    def summary(self) -> str:
        """``ValueError: bad row (in function parse, job.py:12)``."""
        head = f"{self.type_name}: {self.message}" if self.message else self.type_name
        if not self.file:
            return head
        place = f"{Path(self.file).name}:{self.line}"
        return f"{head} (in function {self.function}, {place})" if self.function else f"{head} ({place})"


def is_framework_frame(file: str) -> bool:
    """Whether a frame belongs to Spark, py4j or yarnflow and not to the user."""
    return any(part in file for part in _FRAMEWORK_PATHS) or _is_ours_elsewhere(file)


def _own_error(qualified_name: str) -> type[YarnflowError] | None:
    found = getattr(errors, qualified_name.removeprefix(_OWN_ERROR), None)
    if not qualified_name.startswith(_OWN_ERROR) or not isinstance(found, type):
        return None
    return found if issubclass(found, YarnflowError) else None


def _is_library(file: str) -> bool:
    return _STANDARD_LIBRARY.search(file) is not None or any(part in file for part in _INSTALLED)


class _Frames:
    """Which frames of a traceback are shown, and which one names the error's place."""

    def __init__(self) -> None:
        self.place = ("", 0, "")
        self._in_program = False

    def keeps(self, file: str, line: int, function: str) -> bool:
        """Whether the next frame, further in, is shown.

        Python's own modules are so only where the program has called them.
        """
        if is_framework_frame(file) or (not self.place[0] and _STANDARD_LIBRARY.search(file)):
            return False
        in_program = not _is_library(file)
        if in_program or not self._in_program:
            self.place = file, line, "" if function == "<module>" else function
        self._in_program = self._in_program or in_program
        return True


def _is_ours_elsewhere(file: str) -> bool:
    """A module of this package where another machine has it, such as YARN's cache of files."""
    _, found, module = file.rpartition(_PACKAGE_NAME)
    return bool(found) and Path(_PACKAGE_DIR, module).is_file()


def user_traceback_in(texts: Iterable[str]) -> UserTraceback | None:
    """The last traceback with user frames in any of the texts, else the last one at all.

    The last is the one nearest to the user: a worker's traceback stands inside the message of
    the driver's, and an exception raised from another one stands behind it.
    """
    fallback: UserTraceback | None = None
    for text in texts:
        for block in reversed(text.split(_TRACEBACK)[1:]):
            found = _parse_block(block.splitlines())
            if found is None:
                continue
            if found.file:
                return found
            fallback = fallback or found
    return fallback


def user_traceback_of(error: BaseException, below: str = "") -> UserTraceback:
    """The same for an exception of this process; ``below``: keep frames from this file on."""
    frames = list(traceback.extract_tb(error.__traceback__))
    if below:
        starts = [i for i, frame in enumerate(frames) if frame.filename == below]
        frames = frames[starts[0] :] if starts else frames
    found = _Frames()
    frames = [f for f in frames if found.keeps(f.filename, f.lineno or 0, f.name)]
    name = type(error).__name__
    message = _first_line(_plain_message(error))
    if isinstance(error, SyntaxError) and error.filename and not is_framework_frame(error.filename):
        message, found.place = error.msg, (error.filename, error.lineno or 0, "")
    text = "".join([_TRACEBACK + "\n", *traceback.format_list(frames), f"{name}: {message}\n"])
    return UserTraceback(name, message, *found.place, text)


def map_spark_error(error: BaseException) -> YarnflowError:
    """What to report for an exception that came out of Spark, py4j or a callback.

    Never raises; what is already one of ours is returned unchanged.
    """
    if isinstance(error, YarnflowError):
        return error
    if type(error).__name__ in _JVM_GONE:
        return DriverLost("the driver's JVM is gone; see driver-<n>.jvm.log beside the driver's log")
    return map_texts(list(messages_of(error)))


def map_texts(messages: Sequence[str]) -> YarnflowError:
    """The same from the messages of the chain of causes, outermost first."""
    user = user_traceback_in(reversed(messages))
    if user is not None and user.own_error is not None:
        return user.own_error(user.message)
    if user is not None and user.file:
        return UserCodeError(user.summary + _hint(user), user.text)
    if user is not None and user.type_name == StateTooLarge.__name__:
        return StateTooLarge(user.message)
    for raised in filter(None, map(_RAISED.search, messages)):
        own = _own_error(raised.group("type"))
        if own is not None:
            return own(_SQLSTATE.sub("", raised.group("message")))
    for message in reversed(messages):
        if any(mark in message for mark in _MISSING):
            match = _MISSING_PATH.search(message)
            path = match.group("path") if match else _first_line(message)
            path = path.removeprefix("file:")
            return SourceNotFound(f"path {path} does not exist; check that every TaskManager can read it")
    for message in messages:
        if any(mark in message for mark in _EXECUTOR_LOSS):
            return ExecutorLost(
                "executors were lost more often than spark.task.maxFailures allows; see TaskManagers' logs"
            )
    if any(_WORKER_LATE in message for message in messages):
        return ExecutorLost(
            "a Python worker did not start within 10 s; give its machine fewer slots if that happens often"
        )
    for message in reversed(messages):
        record = _MALFORMED.search(message)
        if record is not None:
            return _malformed(record.group("record"), messages)
    if any(mark in message for message in messages for mark in _NO_SPACE):
        return StorageError(
            "no space is left where files are written, or where Spark keeps its temporary ones; make room"
        )
    if any(_SAFE_MODE in message for message in messages):
        return StorageUnavailable(
            "HDFS is in safe mode and takes no changes; check with: hdfs dfsadmin -safemode get"
        )
    unreadable = _unreadable(messages)
    if unreadable is not None:
        return unreadable
    for message in messages:
        lost = _LOST_MESSAGES.search(message)
        if lost is not None:
            return SourceNotFound(
                "Kafka has not all messages any more that the job is to read: "
                f"{' '.join(lost.group('reason').split())}; start the job without its state, or have what is "
                "lost left out by set_option('failOnDataLoss', 'false')"
            )
    if any(_TOPIC_GONE in message for message in messages):
        found = next(filter(None, map(_TOPICS.search, messages)), None)
        of = f" (of {found['topics']})" if found else ""
        return SourceNotFound(
            f"a topic of Kafka that the job reads, or a partition of it, is gone{of}; create it anew and "
            "start the job without its state, or leave it out of the source"
        )
    for message in reversed(messages):
        match = _CONDITION.match(_strip_type(message))
        if match is not None:
            line = _first_line(_strip_type(message))
            if any(mark in match.group("name") for mark in _UNSUPPORTED):
                return UnsupportedGraph(line)
            if "SQLSTATE: 42" in message or "SQLSTATE: 22" in message:
                # class 42: the text is wrong; class 22: a value is, which only this row's job can know
                return InvalidExpression(line) if "SQLSTATE: 42" in message else JobFailed(line)
    if user is not None:
        # such as a class of the program's that a worker cannot import
        return JobFailed(user.summary + _hint(user))
    lines = [line for line in (_first_line(_strip_type(m)) for m in messages) if line]
    silent = "Spark failed without a message; see driver-<n>.jvm.log beside the driver's log"
    return JobFailed(lines[-1] if lines else silent)


def _unreadable(messages: Sequence[str]) -> YarnflowError | None:
    """A file whose content is not what its format, or the source's schema, says."""
    found = next((match for match in map(_FAILED_READ.search, messages) if match), None)
    if found is None:
        return None
    file = found.group("file").rstrip(".")
    if found.group("kind") and "MISMATCH" in found.group("kind"):
        said = _SQLSTATE.sub("", " ".join(found.group("said").split())).rstrip(". ")
        return SchemaError(
            f"file {file} does not fit the source's schema: {said}; correct the schema, "
            "or read the files from before the change by a source of their own"
        )
    reason = next((line for line in map(_reason, reversed(messages)) if line), "its content is damaged")
    return JobFailed(
        f"file {file} cannot be read: {reason}; remove it, or set the source's option ignoreCorruptFiles to "
        "true"
    )


def _reason(message: str) -> str:
    line = _first_line(_strip_type(message))
    return "" if _CONDITION.match(line) or "Job aborted" in line else line


def _hint(user: UserTraceback) -> str:
    return _MODULES if user.type_name == ModuleNotFoundError.__name__ else ""


def _malformed(record: str, messages: Sequence[str]) -> SchemaError:
    file = next(
        (found.group("file") for found in map(_READ_FILE.search, messages) if found), "a source's files"
    )
    return SchemaError(
        f"a record of {file} does not fit the source's schema: {record}; correct the file or the schema, "
        "or set the source's option mode to DROPMALFORMED or PERMISSIVE"
    )


def _parse_block(lines: Sequence[str]) -> UserTraceback | None:
    """Frames and exception of one traceback, given the lines behind its heading."""
    kept: list[str] = []
    found = _Frames()
    keep = False
    for index, line in enumerate(lines):
        frame = _FRAME.match(line)
        if frame is not None:
            keep = found.keeps(frame.group("file"), int(frame.group("line")), frame.group("function") or "")
            if keep:
                kept.append(line)
            continue
        if not line.strip() or line.startswith((" ", "\t")):
            if keep and line.strip():
                kept.append(line)
            continue
        match = _EXCEPTION_LINE.match(line)
        if match is None:
            return None
        name, message = match.group("type").rsplit(".", 1)[-1], (match.group("message") or "").strip()
        more = _message_rest(lines[index + 1 :])
        own = None if found.place[0] else _own_error(match.group("type"))
        place = found.place if found.place[0] else _noted_place(more)
        if own is not None and place[0] and not message.startswith(f"{place[0]}:"):
            message = f"{place[0]}:{place[1]}: {message}"
        said = [line, *more]
        # Spark appends its error class to the message it found in the worker
        said[-1] = _SQLSTATE.sub("", said[-1])
        text = "\n".join([_TRACEBACK, *kept, *said]) + "\n"
        return UserTraceback(name, _SQLSTATE.sub("", message), *place, text, own)
    return None


def _noted_place(notes: Sequence[str]) -> tuple[str, int, str]:
    for note in notes:
        found = _PLACE_NOTE.match(note)
        if found is not None:
            return found.group("file"), int(found.group("line")), ""
    return "", 0, ""


def _message_rest(lines: Sequence[str]) -> list[str]:
    rest: list[str] = []
    for line in lines:
        if not line.strip() or _JAVA_FRAME.match(line) or _SQLSTATE_LINE.match(line) or len(rest) == 20:
            break
        rest.append(line)
    return rest


def messages_of(error: BaseException) -> Iterator[str]:
    """The messages along the causes, in Python first and then in Java."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        java = getattr(current, "java_exception", None) or getattr(current, "_origin", None)
        if java is not None:
            yield from _java_messages(java)
        elif current.__traceback__ is not None and not _is_spark_exception(current):
            # raised in this process: by a foreachBatch function or a sink
            yield "".join(traceback.format_exception(current, chain=False))
        else:
            yield _plain_message(current)
        context = None if current.__suppress_context__ else current.__context__
        current = getattr(current, "_cause", None) or current.__cause__ or context


def _java_messages(throwable: Any) -> Iterator[str]:
    for _ in range(30):
        if throwable is None:
            return
        try:
            yield str(throwable.toString())
            throwable = throwable.getCause()
        except Exception:  # the JVM died while we asked
            return


def _is_spark_exception(error: BaseException) -> bool:
    return type(error).__module__.startswith(("pyspark.", "py4j."))


def _plain_message(error: BaseException) -> str:
    # str() of pyspark's exceptions asks the JVM and appends a Java stack trace
    description = getattr(error, "_desc", None)
    return str(description) if description else str(error)


_JAVA_TYPE: Final = re.compile(r"^(?:[a-z]\w*\.)+[A-Z][\w$]*(?:: |$)")


def _strip_type(message: str) -> str:
    return _JAVA_TYPE.sub("", message.strip())


def _first_line(message: str) -> str:
    for line in message.splitlines():
        if line.strip():
            return _SQLSTATE.sub("", line.strip().rstrip(" ;")).rstrip(" ;")
    return ""
