"""One line a user can act on, whatever Spark wraps around it."""

from __future__ import annotations

from pathlib import Path

import pytest

from yarnflow.errors import (
    ElementMismatch,
    ExecutorLost,
    InvalidExpression,
    JobFailed,
    MalformedMessage,
    SchemaError,
    SourceNotFound,
    StateTooLarge,
    StorageError,
    StorageUnavailable,
    UnsupportedGraph,
    UserCodeError,
)
from yarnflow.spark.run.user_errors import (
    is_framework_frame,
    map_spark_error,
    map_texts,
    user_traceback_in,
    user_traceback_of,
)
from yarnflow.spark.translate import python_chain

WORKER = '''Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent failure: \
Lost task 0.3 in stage 1.0 (TID 3) (127.0.0.1 executor 0): \
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/v/lib/python3.11/site-packages/pyspark/worker.py", line 3000, in main
    process()
    ^^^^^^^^^
  File "/u/job.py", line 12, in parse
    raise ValueError("bad row")
ValueError: bad row

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:600)
\tat java.base/java.lang.Thread.run(Thread.java:840)

Driver stacktrace:'''


def test_worker_error_names_function_and_line() -> None:
    error = map_texts(["[STREAM_FAILED] Query [id = x] terminated: boom SQLSTATE: XXKST", WORKER])
    assert isinstance(error, UserCodeError)
    assert error.message == "ValueError: bad row (in function parse, job.py:12)"
    assert error.traceback_text == (
        'Traceback (most recent call last):\n  File "/u/job.py", line 12, in parse\n'
        '    raise ValueError("bad row")\nValueError: bad row\n'
    )


def test_a_module_that_workers_do_not_find_says_how_it_gets_there() -> None:
    raised = "ModuleNotFoundError: No module named 'company'"
    error = map_texts([WORKER.replace("ValueError: bad row", raised)])
    assert error.message.startswith(f"{raised} (in function parse, job.py:12); ")
    assert "-pyfs" in error.message and "python.environment" in error.message


def test_a_class_whose_module_workers_do_not_find_says_so_too() -> None:
    text = WORKER.replace('  File "/u/job.py", line 12, in parse\n    raise ValueError("bad row")\n', "")
    error = map_texts([text.replace("ValueError: bad row", "ModuleNotFoundError: No module named 'feeds'")])
    assert error.message.startswith("ModuleNotFoundError: No module named 'feeds'; ")
    assert "-pyfs" in error.message


def test_damaged_files_are_named() -> None:
    said = "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///in/a.parquet. SQLSTATE: 1"
    why = "java.lang.RuntimeException: /in/a.parquet is not a Parquet file"
    error = map_texts(["Job aborted due to stage failure", f"org.apache.spark.SparkException: {said}", why])
    assert error.message.startswith("file /in/a.parquet cannot be read: /in/a.parquet is not a Parquet")
    assert "ignoreCorruptFiles" in error.message
    footer = "[CANNOT_READ_FILE_FOOTER] Could not read footer for file: hdfs://n:9/in/b.orc. SQLSTATE: KD001"
    error = map_texts([footer])
    assert error.message.startswith("file hdfs://n:9/in/b.orc cannot be read: its content is damaged; ")


def test_files_of_other_types_are_named() -> None:
    said = (
        "[FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH] Encountered error while reading file "
        "file:///in/a.parquet. Data type mismatches when reading Parquet column `[n]`. Expected Spark type "
        "int, actual Parquet type BINARY. SQLSTATE: KD001"
    )
    error = map_texts([said])
    assert isinstance(error, SchemaError)
    assert error.message.startswith("file /in/a.parquet does not fit the source's schema: Data type mis")
    assert "Expected Spark type int, actual Parquet type BINARY; correct" in error.message


def test_a_full_disk_may_have_room_again() -> None:
    error = map_texts(["Job aborted", "java.io.IOException: No space left on device"])
    assert isinstance(error, StorageError) and error.retryable


def test_a_topic_that_is_gone_is_named() -> None:
    kind = "org.apache.kafka.common.errors.UnknownTopicOrPartitionException"
    reason = f"{kind}: This server does not host this topic-partition."
    query = "Query q failed\nCurrent Committed Offsets: {KafkaV2[Subscribe[orders, more]]: {}}"
    error = map_texts([query, reason])
    assert isinstance(error, SourceNotFound)
    assert "is gone (of orders, more); create it anew" in error.message
    assert "is gone; create it anew" in map_texts([reason]).message


def test_safe_mode_is_left_again() -> None:
    said = (
        "org.apache.hadoop.hdfs.server.namenode.SafeModeException: Cannot create file/out/part-0. "
        "Name node is in safe mode.\nIt was turned on manually."
    )
    error = map_texts(["Job aborted", said])
    assert isinstance(error, StorageUnavailable) and error.retryable
    assert "hdfs dfsadmin -safemode get" in error.message and "\n" not in error.message


def test_state_that_is_too_large_is_told_as_it_is() -> None:
    text = WORKER.replace('  File "/u/job.py", line 12, in parse\n    raise ValueError("bad row")\n', "")
    text = text.replace("ValueError: bad row", "yarnflow.errors.StateTooLarge: operator 'count' has too much")
    error = map_texts([text])
    assert isinstance(error, StateTooLarge)
    assert error.message == "operator 'count' has too much"


def test_the_worker_s_traceback_wins_over_the_callback_s_around_it() -> None:
    outer = (
        'Traceback (most recent call last):\n  File "/u/job.py", line 3, in write\n    frame.count()\n'
        f"pyspark.errors.exceptions.captured.PythonException: {WORKER}"
    )
    found = user_traceback_in([outer])
    assert found is not None and found.line == 12


def test_exception_raised_from_another_is_the_one_reported() -> None:
    text = (
        'Traceback (most recent call last):\n  File "/u/job.py", line 3, in f\n    g()\nKeyError: 1\n\n'
        "The above exception was the direct cause of the following exception:\n\n"
        'Traceback (most recent call last):\n  File "/u/job.py", line 5, in f\n    raise\n'
        "my.pkg.BadThing: no\n"
    )
    found = user_traceback_in([text])
    assert found is not None and found.summary == "BadThing: no (in function f, job.py:5)"


def test_an_error_inside_spark_s_worker_is_still_one_line() -> None:
    text = (
        'Traceback (most recent call last):\n  File "/v/site-packages/pyspark/worker.py", line 1, in main\n'
        "    f()\n"
        "pyspark.errors.exceptions.base.PySparkTypeError: [WRONG] Return type should be X\n"
    )
    error = map_texts([text])
    assert isinstance(error, JobFailed)
    assert error.message == "PySparkTypeError: [WRONG] Return type should be X"


CHAINED = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/v/lib/python3.11/site-packages/pyspark/worker.py", line 3421, in process
    serializer.dump_stream(out_iter, outfile)
  File "/v/lib/python3.11/site-packages/yarnflow/spark/python_chain.py", line 270, in batches
    rows.extend(run(items))
  File "<yarnflow chain>", line 4, in loop0
  File "/u/job.py", line 9, in parse
    return int(text)
           ^^^^^^^^^
ValueError: invalid literal for int() with base 10: 'x'{end}"""


@pytest.mark.parametrize(
    "end", [" SQLSTATE: 38000", "\nSQLSTATE: 38000", "\n SQLSTATE: 38000\n\tat org.x.Y(Z.scala)", ""]
)
def test_made_up_frames_and_spark_s_error_class_are_not_shown(end: str) -> None:
    error = map_texts([f"[STREAM_FAILED] x SQLSTATE: XXKST: {CHAINED.format(end=end)}"])
    assert isinstance(error, UserCodeError)
    said = "ValueError: invalid literal for int() with base 10: 'x'"
    assert error.message == f"{said} (in function parse, job.py:9)"
    assert error.traceback_text == (
        'Traceback (most recent call last):\n  File "/u/job.py", line 9, in parse\n    return int(text)\n'
        f"           ^^^^^^^^^\n{said}\n"
    )


def test_an_error_of_several_lines_loses_the_error_class_only() -> None:
    text = (
        'Traceback (most recent call last):\n  File "/u/job.py", line 3, in f\n    g()\n'
        "ValueError: first\nsecond SQLSTATE: 38000\n\n\tat java.lang.Thread.run(Thread.java:840)\n"
    )
    error = map_texts([text])
    assert isinstance(error, UserCodeError) and error.traceback_text.endswith("ValueError: first\nsecond\n")


def test_the_made_up_frame_is_called_as_the_chain_calls_it() -> None:
    source = Path(python_chain.__file__).read_text(encoding="utf-8")
    assert '"<yarnflow chain>"' in source and is_framework_frame("<yarnflow chain>")


def raised_in(source: str) -> Exception:
    """What ``main`` of a user's program raises."""
    scope: dict[str, object] = {}
    exec(compile(source, "/u/job.py", "exec"), scope)
    try:
        scope["main"]()  # type: ignore[operator]
    except Exception as error:
        return error
    raise AssertionError("main did not raise")


@pytest.mark.parametrize(
    ("how", "line"),
    [
        # without "from" the first error counts: it is the deepest cause
        ("", 3),
        (" from error", 3),
        # the program says that the first one is not to be told
        (" from None", 5),
    ],
)
def test_a_suppressed_error_is_not_reported(how: str, line: int) -> None:
    error = map_spark_error(
        raised_in(
            "def main():\n    try:\n        {}['k']\n    except KeyError as error:\n"
            f"        raise ValueError('no k'){how}\n"
        )
    )
    assert isinstance(error, UserCodeError) and f"job.py:{line})" in error.message


@pytest.mark.parametrize(
    ("messages", "kind", "part"),
    [
        (
            ["[PATH_NOT_FOUND] Path does not exist: file:/data/in. SQLSTATE: 42K03"],
            SourceNotFound,
            "path /data/in does not",
        ),
        (
            [
                "org.apache.spark.sql.AnalysisException: [UNRESOLVED_COLUMN.WITH_SUGGESTION] "
                "A column `idd` cannot be resolved. SQLSTATE: 42703;\n'Project"
            ],
            InvalidExpression,
            "A column `idd` cannot be resolved.",
        ),
        (["[UNSUPPORTED_STREAMING_OPERATOR] no. SQLSTATE: 42KDE"], UnsupportedGraph, "no."),
        (
            [
                "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///data/in/a.csv.  "
                "SQLSTATE: KD001",
                "[MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed records are detected in record "
                "parsing: [bob,null].\nParse Mode: FAILFAST. To process … SQLSTATE: 22023",
            ],
            SchemaError,
            "a record of /data/in/a.csv does not fit the source's schema: [bob,null]; correct",
        ),
        (
            [
                "org.apache.spark.sql.kafka010.KafkaIllegalStateException: Some data may have been lost "
                "because they are not available in Kafka any more;\neither …\n"
                "Reason: Could not read records in offset [0, 2) for topic partition t-0\n"
                "with consumer group spark-kafka-source-1.",
                "org.apache.kafka.X: Fetch position {offset=0} is out of range for partition t-0",
            ],
            SourceNotFound,
            "is to read: Could not read records in offset [0, 2) for topic partition t-0; start the job",
        ),
        (
            [
                "org.apache.spark.SparkRuntimeException: [USER_RAISED_EXCEPTION] "
                "yarnflow.errors.MalformedMessage: topic t, partition 0, offset 7: no SQLSTATE: P0001"
            ],
            MalformedMessage,
            "topic t, partition 0, offset 7: no",
        ),
        (
            ["[USER_RAISED_EXCEPTION] a check of the program's own. SQLSTATE: P0001"],
            JobFailed,
            "a check of the program's own",
        ),
        (["Job aborted: ExecutorLostFailure (executor 1 exited)"], ExecutorLost, "executors were lost"),
        (["Timed out while waiting for the Python worker to connect back"], ExecutorLost, "did not start"),
        (["org.apache.spark.X: outer", "java.io.IOException: disk full\n\tat x"], JobFailed, "disk full"),
        ([], JobFailed, "without a message"),
    ],
)  # fmt: skip
def test_kinds(messages: list[str], kind: type[Exception], part: str) -> None:
    error = map_texts(messages)
    assert type(error) is kind
    assert part in error.message
    assert "\n" not in error.message and "SQLSTATE" not in error.message


def test_errors_of_ours_pass_unchanged() -> None:
    error = SourceNotFound("x")
    assert map_spark_error(error) is error


def test_an_error_of_this_process_keeps_user_frames_only() -> None:
    scope: dict[str, object] = {}
    exec(compile("def main():\n    raise KeyError('k')\n", "/u/job.py", "exec"), scope)
    try:
        scope["main"]()  # type: ignore[operator]
    except KeyError as error:
        found = user_traceback_of(error, below="/u/job.py")
    assert found.summary == "KeyError: 'k' (in function main, job.py:2)"
    assert "test_user_errors" not in found.text


def test_a_traceback_with_user_frames_is_preferred_to_a_later_one_without() -> None:
    user = 'Traceback (most recent call last):\n  File "/u/job.py", line 3, in f\n    g()\nKeyError: 1\n'
    spark = 'Traceback (most recent call last):\n  File "/v/site-packages/pyspark/x.py", line 1, in y\nE\n'
    found = user_traceback_in([spark, user + spark])
    assert found is not None and found.summary == "KeyError: 1 (in function f, job.py:3)"


@pytest.mark.parametrize(
    ("file", "ours"),
    [
        ("/disk1/filecache/30/yarnflow-dist.zip/yarnflow/spark/translate/python_chain.py", True),
        ("/srv/ann/yarnflow/jobs/flights.py", False),
        ("/srv/ann/flights.py", False),
    ],
)
def test_frames_of_yarnflow_on_other_machines_are_not_the_user_s(file: str, ours: bool) -> None:
    assert is_framework_frame(file) is ours


LIBRARIES = """Traceback (most recent call last):
  File "/usr/lib/python3.11/contextlib.py", line 137, in __enter__
    return next(self.gen)
  File "/u/job.py", line 9, in parse
    return json.loads(text)
  File "/usr/lib/python3.11/json/decoder.py", line 355, in raw_decode
    raise JSONDecodeError
{error}"""


def test_the_place_is_the_program_s_line_whatever_libraries_are_around_it() -> None:
    error = map_texts([LIBRARIES.format(error="ValueError: no")])
    assert isinstance(error, UserCodeError)
    assert error.message == "ValueError: no (in function parse, job.py:9)"
    assert "contextlib" not in error.traceback_text and "decoder.py" in error.traceback_text


def test_a_traceback_without_frames_of_the_program_takes_the_noted_place() -> None:
    worker = "/v/site-packages/pyspark/worker.py"
    text = f'Traceback (most recent call last):\n  File "{worker}", line 1, in main\n    f()\n'
    error = map_texts([f"{text}ValueError: no\noperator 'Map': element 'x'\nat job.py:7\n"])
    assert isinstance(error, UserCodeError) and error.message == "ValueError: no (job.py:7)"
    assert error.traceback_text.endswith("ValueError: no\noperator 'Map': element 'x'\nat job.py:7\n")
    own = map_texts([f"{text}yarnflow.errors.ElementMismatch: no\nat job.py:7\n"])
    assert type(own) is ElementMismatch and own.message == "job.py:7: no"
    named = map_texts([f"{text}yarnflow.errors.ElementMismatch: job.py:5: no\nat job.py:7\n"])
    assert named.message == "job.py:5: no"
