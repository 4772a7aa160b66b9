"""Programs with mistakes: what is reported names the program's line, says what is wrong and what to do."""

from __future__ import annotations

import traceback

import pytest

from tests.spark.run.programs_in_memory import graph_of, run
from yarnflow.errors import (
    ElementMismatch,
    GraphError,
    InvalidKey,
    InvalidStateUse,
    UserCodeError,
    YarnflowError,
)
from yarnflow.spark.run.user_errors import map_texts


def reported(program: str) -> YarnflowError:
    """What a job reports, as Spark hands a worker's traceback over."""
    try:
        run(program)
    except Exception as error:
        return map_texts([f"org.apache.spark.api.python.PythonException: {_printed(error)}"])
    raise AssertionError("nothing was raised")


def _printed(error: Exception) -> str:
    """The traceback with the frames of workers only."""
    formatted = traceback.TracebackException.from_exception(error)
    for part in (formatted, formatted.__context__):
        if part is not None:
            part.stack[:] = [frame for frame in part.stack if "/tests/" not in frame.filename]
    return "".join(formatted.format())


@pytest.mark.parametrize(
    ("program", "kind", "message"),
    [
        (
            "numbers.flat_map(lambda v: v[0]).print()",
            ElementMismatch,
            "job.py:11: the function returned 1 (int), but any number of results is needed; yield each of "
            "them, "
            "or return a list",
        ),
        (
            """
            class Plain(ProcessFunction):
                def process_element(self, value, ctx):
                    return 5
            numbers.process(Plain()).print()
            """,
            ElementMismatch,
            "job.py:14: the function returned 5 (int), but any number of results is needed; yield each of "
            "them, "
            "or return a list",
        ),
        (
            """
            class Window(ProcessWindowFunction):
                def process(self, key, ctx, elements):
                    return 5
            numbers.key_by(lambda v: v[0]).count_window(1).process(Window()).print()
            """,
            UserCodeError,
            "job.py:14: Window returned int for window CountWindow(id=0); yield the results, or return a "
            "list "
            "of them",
        ),
        (
            """
            class Timer(KeyedProcessFunction):
                def process_element(self, value, ctx):
                    ctx.timer_service().register_event_time_timer(1)
                def on_timer(self, timestamp, ctx):
                    return 5
            numbers.key_by(lambda v: v[0]).process(Timer()).print()
            """,
            ElementMismatch,
            "job.py:16: the function returned 5 (int), but any number of results is needed; yield each of "
            "them, "
            "or return a list",
        ),
        # where the program's own code has no frame, the call in the program is the place
        ("numbers.map(int).print()", UserCodeError, "TypeError: int() argument must be a string, "),
        ("numbers.map(operator.itemgetter(7)).print()", UserCodeError, "IndexError: tuple index"),
        (
            "numbers.key_by(operator.itemgetter(7)).reduce(lambda a, b: a).print()",
            UserCodeError,
            "IndexError: tuple index out of range (job.py:11)",
        ),
        # the line of the program, not one of the library it calls
        (
            "numbers.map(lambda v: json.loads(v[1])).print()",
            UserCodeError,
            "JSONDecodeError: Expecting value: line 1 column 1 (char 0) (in function <lambda>, job.py:11)",
        ),
        (
            "numbers.map(lambda v: v[1], Types.INT()).rebalance().filter(bool).print()",
            ElementMismatch,
            "job.py:11: operator 'Map' declares Integer and emitted 'a' but a whole number of 32 bits is "
            "needed "
            "and 'a' (str) came; correct the function or its output_type",
        ),
        (
            "numbers.key_by(lambda v: [v]).reduce(lambda a, b: a).print()",
            InvalidKey,
            "job.py:11: key_by(): key [(1, 'a')] of an element of 'Source: Collection Source': an object "
            "of type "
            "list cannot be hashed; return a tuple, text or number",
        ),
        (
            "numbers.key_by(lambda v: object()).reduce(lambda a, b: a).print()",
            InvalidKey,
            "an object of type object cannot be a key: its hash is not the same in every process; return "
            "a str, ",
        ),
        (
            """
            class State(ProcessFunction):
                def open(self, context):
                    context.get_state(ValueStateDescriptor("n", Types.INT()))
                def process_element(self, value, ctx):
                    yield value
            numbers.process(State()).print()
            """,
            UserCodeError,
            "InvalidStateUse: operator 'PROCESS': state 'n' was asked for on a stream that is not keyed; "
            "call key_by "
            "before it (in function open, job.py:13)",
        ),
        (
            """
            class State(KeyedProcessFunction):
                def open(self, context):
                    context.get_state(ValueStateDescriptor("n", Types.INT())).update(1)
                def process_element(self, value, ctx):
                    yield value
            numbers.key_by(lambda v: v[0]).process(State()).print()
            """,
            UserCodeError,
            "InvalidStateUse: operator 'KEYED PROCESS': state 'n' was used where there is no current key; ",
        ),
        (
            """
            class State(KeyedProcessFunction):
                def open(self, context):
                    context.get_state(ValueStateDescriptor("n", Types.INT()))
                    context.get_state(ValueStateDescriptor("n", Types.STRING()))
                def process_element(self, value, ctx):
                    yield value
            numbers.key_by(lambda v: v[0]).process(State()).print()
            """,
            UserCodeError,
            "InvalidStateUse: operator 'KEYED PROCESS': state 'n' is registered twice, with type Integer "
            "and String; "
            "give one of them another name (in function open, job.py:14)",
        ),
        (
            """
            class State(KeyedProcessFunction):
                def open(self, context):
                    context.get_state(MapStateDescriptor("n", Types.INT(), Types.INT()))
                def process_element(self, value, ctx):
                    yield value
            numbers.key_by(lambda v: v[0]).process(State()).print()
            """,
            UserCodeError,
            "operator 'KEYED PROCESS': get_state() needs a ValueStateDescriptor, not "
            "MapStateDescriptor (in function "
            "open, job.py:13)",
        ),
        (
            """
            class Timer(KeyedProcessFunction):
                def process_element(self, value, ctx):
                    ctx.timer_service().register_event_time_timer("noon")
            numbers.key_by(lambda v: v[0]).process(Timer()).print()
            """,
            UserCodeError,
            "InvalidStateUse: the time of a timer is 'noon' (str); it must be a whole number of ms "
            "since the epoch (in "
            "function process_element, job.py:13)",
        ),
        # what is found when elements leave an operator
        (
            "numbers.map(lambda v: (v[0], threading.Lock())).key_by(lambda v: v[0]).reduce(max).print()",
            ElementMismatch,
            "job.py:11: operator 'Map' emitted (1, <unlocked _thread.lock object at",
        ),
        (
            "numbers.map(lambda v: (i for i in v)).rebalance().map(lambda v: 1).print()",
            ElementMismatch,
            "(generator), which cannot be sent to the next one: cannot pickle 'generator' object; "
            "emit plain values",
        ),
        (
            """
            def deep(value):
                found = []
                for _ in range(100_000):
                    found = [found]
                return found
            numbers.map(deep).rebalance().map(lambda v: 1).print()
            """,
            ElementMismatch,
            "job.py:16: operator 'Map' emitted <list without repr> (list), which cannot be sent to "
            "the next one: ",
        ),
        (
            """
            def deep(value):
                found = []
                for _ in range(100_000):
                    found = [found]
                return found
            numbers.map(deep).print()
            """,
            UserCodeError,
            "RecursionError: maximum recursion depth exceeded while getting the repr of an object "
            "(job.py:16)",
        ),
        (
            "numbers.map(lambda v: next(iter([]))).print()",
            UserCodeError,
            "RuntimeError: the function raised StopIteration (in function <lambda>, job.py:11)",
        ),
        # found when the batch is committed, when no function of the program runs
        (
            """
            class State(KeyedProcessFunction):
                def open(self, context):
                    self.state = context.get_state(ValueStateDescriptor("n", Types.LONG()))
                def process_element(self, value, ctx):
                    self.state.update(value[1])
            numbers.key_by(lambda v: v[0]).process(State()).print()
            """,
            InvalidStateUse,
            "job.py:16: operator 'KEYED PROCESS', state 'n': the descriptor says Long, and 'a' was stored "
            "under 1: a whole number of 64 bits is needed and 'a' (str) came; correct the descriptor's type",
        ),
        (
            """
            class Noon(TimestampAssigner):
                def extract_timestamp(self, value, before):
                    return "noon"
            strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Noon())
            numbers.assign_timestamps_and_watermarks(strategy).print()
            """,
            UserCodeError,
            "a timestamp is a whole number of ms since the epoch (job.py:15)",
        ),
        (
            "numbers.partition_custom(lambda key, n: 17, lambda v: v).map(lambda v: v).print()",
            InvalidKey,
            "job.py:11: partition_custom(): the partitioner returned 17; it must be a whole number from 0 "
            "to 0",
        ),
    ],
)
def test_what_a_running_job_reports(program: str, kind: type[YarnflowError], message: str) -> None:
    error = reported(program)
    assert message in error.message and "job.py:1" in error.message
    assert type(error) is kind


def test_the_traceback_has_no_frames_but_the_program_s() -> None:
    error = reported("numbers.map(lambda v: json.loads(v[1])).print()")
    assert isinstance(error, UserCodeError)
    files = [line.split('"')[1] for line in error.traceback_text.splitlines() if line.startswith('  File "')]
    assert files[0] == "/u/job.py" and all("/json/" in file for file in files[1:]) and len(files) > 1
    assert "operator 'Map': element (1, 'a')\nat job.py:11" in error.traceback_text


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (
            "class Keyed(KeyedProcessFunction):\n    def process_element(self, value, ctx):\n        "
            "yield value\n"
            "numbers.process(Keyed()).print()",
            "job.py:14: process(): a ProcessFunction is needed, not Keyed; it works on keyed streams: "
            "call key_by(…) before it",
        ),
        (
            "numbers.process(ProcessFunction).print()",
            "job.py:11: process(): a ProcessFunction is needed, not ProcessFunction; make an object of it: "
            "ProcessFunction()",
        ),
        (
            "handle = threading.Lock()\nnumbers.map(lambda v: handle.locked()).print()",
            "job.py:12: function '<lambda>' cannot be sent to the workers: it uses the global "
            "variable "
            "'handle' of type _thread.lock",
        ),
        (
            "class Opened(MapFunction):\n    def __init__(self):\n        self.handle = threading.Lock()\n"
            "    def map(self, value):\n        return value\n"
            "numbers.map(Opened()).print()",
            "job.py:16: function 'Opened' cannot be sent to the workers: it uses the attribute "
            "'handle' of "
            "type _thread.lock",
        ),
        (
            "handle = threading.Lock()\nnumbers.key_by(lambda v: handle.locked()).reduce(lambda a, b: "
            "a).print()",
            "function '<lambda>' cannot be sent to the workers: it uses the global variable 'handle' of type "
            "_thread.lock",
        ),
        (
            "pairs = env.from_collection(rows, Types.TUPLE([Types.INT(), Types.STRING()]))\n"
            "pairs.project(0, 2).print()",
            "job.py:12: project(): there is no field 2: the stream has tuples of 2 fields, whose "
            "positions begin",
        ),
        (
            "numbers.print()\nenv.execute_async()",
            "job.py:13: the program defines no operators that were not executed yet; read a source "
            "and write it",
        ),
        (
            "env.from_collection([threading.Lock()]).print()",
            "job.py:11: from_collection(): row 0 cannot be sent to the workers (cannot pickle "
            "'_thread.lock' object)",
        ),
    ],
)
def test_what_is_wrong_before_the_job_runs(program: str, message: str) -> None:
    with pytest.raises(GraphError) as caught:
        graph_of(program)
    assert message in caught.value.message
    assert "job.py:1" in caught.value.message
