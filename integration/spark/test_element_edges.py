"""Programs on elements where Spark stands between: rare types, keys and times, empty sources, errors."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.classic.dataframe import DataFrame

from integration.spark.test_elements import environment, printed, program_of
from yarnflow.api import FileSource, StreamExecutionEnvironment
from yarnflow.api.common import Row, Time, Types
from yarnflow.api.datastream import AsyncDataStream
from yarnflow.api.datastream.functions import AsyncFunction, KeyedProcessFunction
from yarnflow.api.datastream.window import TumblingProcessingTimeWindows
from yarnflow.errors import UserCodeError
from yarnflow.spark.run.query_run import QueryRun

Run = Callable[[StreamExecutionEnvironment], None]

#: two ways to write one letter, letters beyond 16 bits, a letter that is two in capitals, none, controls
KEYS = ["é", "e\u0301", "ключ", "😀", "ß", "SS", "", "\x00", "\u2028"]


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    """Run a program's job to its end."""

    def run_to_end(env: StreamExecutionEnvironment) -> None:
        program = program_of(spark, env, tmp_path / "checkpoint")
        program.start()
        program.await_end()

    return run_to_end


def runs() -> list[QueryRun]:
    """All there are."""
    gc.collect()
    return [found for found in gc.get_objects() if isinstance(found, QueryRun)]


def test_a_query_is_forgotten_when_it_has_ended(run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    """Else the JVM of a driver that is kept for other jobs is full after some hundred of them."""
    before = set(map(id, runs()))
    env = environment()
    env.from_collection([1], Types.INT()).key_by(lambda value: value).map(shown, Types.STRING()).print()
    run(env)
    assert printed(capfd) == [">>1"]
    assert [found.name for found in runs() if id(found) not in before] == []


def shown(value: Any) -> str:
    return f">>{value!r}"


def test_batches_are_computed_without_further_python_workers(
    run: Run, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(frame: DataFrame) -> None:
        raise AssertionError("actions of RDDs send the rows to Python workers of their own")

    monkeypatch.setattr(DataFrame, "rdd", property(refuse))
    env = environment()
    env.from_collection([1, 2], Types.INT()).key_by(lambda value: value).map(shown, Types.STRING()).print()
    run(env)
    assert sorted(printed(capfd)) == [">>1", ">>2"]


@pytest.mark.gate
@pytest.mark.parametrize("typed", [True, False])
def test_keys_are_told_apart_as_python_does(
    run: Run, capfd: pytest.CaptureFixture[str], typed: bool
) -> None:
    env = environment()
    pairs = [(key, 1) for key in KEYS * 2]
    pair = Types.TUPLE([Types.STRING(), Types.INT()])
    stream = env.from_collection(pairs, pair) if typed else env.from_collection(pairs)
    keyed = stream.key_by(lambda pair: pair[0])
    keyed.reduce(lambda a, b: (a[0], a[1] + b[1])).map(shown).print()
    run(env)
    assert sorted(printed(capfd)) == sorted(shown((key, n)) for key in KEYS for n in (1, 2))


class Past(KeyedProcessFunction):
    """Timers for times that are past when they are registered, of both clocks."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        service = ctx.timer_service()
        service.register_processing_time_timer(service.current_processing_time() - 10_000)
        service.register_processing_time_timer(-1)
        service.register_event_time_timer(-5)
        return iter(())

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield f">>{ctx.get_current_key()} {min(timestamp, 0)} {ctx.time_domain().name}"


@pytest.mark.gate
def test_timers_in_the_past_fire(run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    env = environment()
    stream = env.from_collection([1, 2], Types.INT()).key_by(lambda value: value)
    stream.process(Past(), Types.STRING()).print()
    run(env)
    expected = ["-1 PROCESSING_TIME", "0 PROCESSING_TIME", "-5 EVENT_TIME"]
    assert sorted(printed(capfd)) == sorted(f">>{key} {fired}" for key in (1, 2) for fired in expected)


def test_types_nested_deep_go_through_keys(run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    point = Types.ROW_NAMED(["at", "of"], [Types.TUPLE([Types.INT(), Types.DOUBLE()]), Types.STRING()])
    deep = Types.MAP(Types.STRING(), Types.LIST(Types.OBJECT_ARRAY(point)))
    for _ in range(8):
        deep = Types.LIST(deep)
    value: Any = {"a": [[Row(at=(1, 0.5), of="é")], []], "b": []}
    for _ in range(8):
        value = [value]
    env = environment()
    stream = env.from_collection([value, value], deep).key_by(lambda value: len(value))
    stream.reduce(lambda a, b: b).map(shown, Types.STRING()).print()
    run(env)
    assert printed(capfd) == [shown(value)] * 2


@pytest.mark.gate
def test_nothing_comes_of_an_empty_source(
    run: Run, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "empty.txt").touch()
    env = environment()
    for stream in (
        env.from_collection([], Types.STRING()),
        env.from_source(FileSource(str(tmp_path / "empty.txt"), "text")),
    ):
        keyed = stream.map(shown, Types.STRING()).key_by(lambda line: line)
        keyed.window(TumblingProcessingTimeWindows.of(Time.seconds(1))).reduce(lambda a, b: b).print()
        keyed.process(Past(), Types.STRING()).print()
    run(env)
    assert printed(capfd) == []


class Slow(AsyncFunction[Any, Any]):
    async def async_invoke(self, value: Any) -> list[Any]:
        import asyncio

        await asyncio.sleep((5 - value) / 100)
        if value == 4:
            raise LookupError(f"nobody knows {value}")
        return [f">>{value}", f">>{value}"]


@pytest.mark.gate
def test_async_functions(run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    env = environment(1)
    numbers = env.from_collection([0, 1, 2], Types.INT())
    AsyncDataStream.ordered_wait(numbers, Slow(), Time.seconds(5), 3, Types.STRING()).print()
    run(env)
    assert printed(capfd) == [f">>{n}" for n in range(3) for _ in range(2)]


def test_an_error_of_an_async_function_names_it_and_its_element(run: Run) -> None:
    env = environment()
    numbers = env.from_collection([3, 4], Types.INT())
    AsyncDataStream.unordered_wait(numbers, Slow(), Time.seconds(5), 3, Types.STRING()).print()
    with pytest.raises(UserCodeError, match=r"LookupError: nobody knows 4.*test_element_edges\.py:\d+"):
        run(env)


@pytest.fixture
def only_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of an installed package that the workers do not have."""
    package = tmp_path / "site-packages"
    package.mkdir()
    (package / "only_here.py").write_text(
        "class Point:\n    def __init__(self, x):\n        self.x = x\n"
        "def double(value):\n    return value * 2\n"
    )
    monkeypatch.syspath_prepend(str(package))
    import only_here  # type: ignore[import-not-found]

    yield only_here
    del sys.modules["only_here"]


@pytest.mark.parametrize("what", ["a function", "what a function uses", "an element"])
def test_a_class_that_workers_do_not_have_is_named(run: Run, only_here: Any, what: str) -> None:
    env, point = environment(), only_here.Point
    if what == "a function":
        env.from_collection([1], Types.INT()).map(only_here.double, Types.INT()).print()
    elif what == "what a function uses":
        env.from_collection([1], Types.INT()).map(lambda value: point(value).x).print()
    else:
        env.from_collection([point(1)]).map(lambda value: value.x).print()
    with pytest.raises(UserCodeError, match=r"No module named 'only_here'.*(-pyfs|env pack)"):
        run(env)
