"""Which keys a table is asked for, and how often."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from yarnflow.errors import DatabaseError, DatabaseUnavailable
from yarnflow.graph.connectors.lookups import LookupOptions
from yarnflow.graph.rows import Row, record_reader
from yarnflow.graph.schema import Field, Schema
from yarnflow.graph.types import parse_schema
from yarnflow.operators.functions.lookup import AsyncLookupFunction, FoundRows, LookupFunction
from yarnflow.operators.lookups.answers import Answers, checked_rows, with_retries
from yarnflow.operators.lookups.cache import Key, Rows
from yarnflow.operators.lookups.functions import AsyncFunctionTable, FunctionTable
from yarnflow.spark.elements.async_calls import AsyncioCalls

NAMES = Schema((Field("name", "string"),))
PAIR = parse_schema("name STRING, n INT")


class Numbered:
    """Gives each key a row with the number of the question."""

    def __init__(self) -> None:
        self.asked: list[list[Key]] = []
        self.closed = False

    def ask(self, keys: Sequence[Key]) -> Sequence[Rows]:
        self.asked.append(list(keys))
        return [((len(self.asked),),) if key != ("nobody",) else () for key in keys]

    def close(self) -> None:
        self.closed = True


def test_each_key_of_a_batch_is_asked_for_once() -> None:
    table = Numbered()
    answers = Answers(table, LookupOptions())
    found = answers.find([("a",), ("b",), ("a",), ("nobody",)], 0)
    assert found == {("a",): ((1,),), ("b",): ((1,),), ("nobody",): ()}
    assert table.asked == [[("a",), ("b",), ("nobody",)]]
    assert answers.find([("a",)], 0) == {("a",): ((2,),)}, "nothing is kept"
    answers.close()
    assert table.closed


def test_keys_with_nulls_are_not_asked_for() -> None:
    table = Numbered()
    answers = Answers(table, LookupOptions())
    assert answers.find([(None,)], 0) == {(None,): ()}
    assert table.asked == []
    assert answers.find([(1, None), (1, 2)], 0) == {(1, None): (), (1, 2): ((1,),)}
    assert table.asked == [[(1, 2)]]


def test_what_is_kept_is_not_asked_for() -> None:
    table = Numbered()
    answers = Answers(table, LookupOptions(cached=True, expire_after_write_ms=100))
    answers.find([("a",), ("nobody",)], 0)
    assert answers.find([("a",), ("b",), ("nobody",)], 50) == {
        ("a",): ((1,),), ("nobody",): (), ("b",): ((2,),)
    }  # fmt: skip
    assert table.asked == [[("a",), ("nobody",)], [("b",)]]
    assert answers.find([("a",)], 100) == {("a",): ((3,),)}


# --- tables that are away ---------------------------------------------------------------------


class Away:
    """Fails so many times."""

    def __init__(self, *failures: Exception) -> None:
        self._failures = list(failures)
        self.waited: list[float] = []
        self.notes: list[str] = []

    def ask(self) -> str:
        if self._failures:
            raise self._failures.pop(0)
        return "answer"

    def run(self, max_retries: int) -> str:
        return with_retries(self.ask, max_retries, self.waited.append, self.notes.append, "table t")


def test_a_table_that_is_away_is_asked_again() -> None:
    away = Away(ConnectionError("refused"), DatabaseUnavailable("starting\nup"), TimeoutError())
    assert away.run(3) == "answer"
    assert away.waited == [1, 2, 3]
    assert away.notes == [
        "Asking table t again, 1 of 3 times: ConnectionError: refused",
        "Asking table t again, 2 of 3 times: starting up",
        "Asking table t again, 3 of 3 times: TimeoutError",
    ]


def test_a_table_that_stays_away() -> None:
    away = Away(*(ConnectionError(f"refused {number}") for number in range(3)))
    with pytest.raises(DatabaseUnavailable, match="^table t does not answer: ConnectionError: refused 2$"):
        away.run(2)
    assert away.waited == [1, 2]


@pytest.mark.parametrize("error", [ValueError("x"), DatabaseError("no column")])
def test_other_errors_do_not_pass(error: Exception) -> None:
    away = Away(error)
    with pytest.raises(type(error)):
        away.run(3)
    assert not away.waited


# --- functions ------------------------------------------------------------------------------------


class People(LookupFunction):
    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.asked: list[Row] = []

    def lookup(self, key_row: Row) -> FoundRows:
        self.asked.append(key_row)
        if self.failures:
            raise self.failures.pop(0)
        return [{"name": f"{key_row.city} {number}", "n": number} for number in range(key_row["size"])]


def function_table(function: LookupFunction, columns: Schema = PAIR, **options: Any) -> FunctionTable:
    waited: list[float] = []
    notes: list[str] = []
    return FunctionTable(
        function, ["city", "size"], columns, LookupOptions(**options), "People (job.py:3)", waited.append,
        notes.append,
    )  # fmt: skip


def test_a_function_gets_rows_with_the_names_of_the_table() -> None:
    people = People()
    assert function_table(people).ask([("Rome", 2), ("Oslo", 0)]) == [(("Rome 0", 0), ("Rome 1", 1)), ()]
    assert people.asked[0].as_dict() == {"city": "Rome", "size": 2}


def test_only_the_key_that_failed_is_asked_for_again() -> None:
    people = People(ConnectionError())
    function_table(people).ask([("Rome", 0), ("Oslo", 0)])
    assert [row.city for row in people.asked] == ["Rome", "Rome", "Oslo"]
    with pytest.raises(DatabaseUnavailable, match="^People .job.py:3. does not answer: ConnectionError$"):
        function_table(People(ConnectionError()), max_retries=0).ask([("Rome", 0)])


class Many(LookupFunction):
    """Answers all keys at once, of which the first answer is wrong."""

    def __init__(self, *answers: list[FoundRows]) -> None:
        self.answers = list(answers)

    def lookup(self, key_row: Row) -> FoundRows:
        raise NotImplementedError

    def lookup_all(self, key_rows: Sequence[Row]) -> list[FoundRows]:
        return self.answers.pop(0)


def test_a_function_for_many_keys() -> None:
    table = function_table(Many([[("x", 1)], None]))
    assert table.ask([("Rome", 1), ("Oslo", 1)]) == [(("x", 1),), ()]
    with pytest.raises(TypeError, match="it got 2 keys and returned 1 collections"):
        function_table(Many([None])).ask([("Rome", 1), ("Oslo", 1)])


@pytest.mark.parametrize("wrong", ["Rome", b"x", {"name": "Rome"}, Row(name="Rome"), 7])
def test_what_is_no_collection_of_rows(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"^f \(job.py:1\) must return a collection of rows, got "):
        checked_rows(wrong, "f (job.py:1)", record_reader(NAMES))


def test_rows_that_are_not_of_the_declared_type() -> None:
    with pytest.raises(TypeError, match=r"^f: the function returned 2 values, the stream's fields are name$"):
        checked_rows([("a", "b")], "f", record_reader(NAMES))


class AsyncPeople(AsyncLookupFunction):
    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.at_a_time = self.most = 0
        self.closed = False

    async def async_lookup(self, key_row: Row) -> FoundRows:
        self.at_a_time += 1
        self.most = max(self.most, self.at_a_time)
        try:
            if self.failures:
                raise self.failures.pop(0)
            await CALLS.pause(0)
            return [(key_row.city,)]
        finally:
            self.at_a_time -= 1

    def close(self) -> None:
        self.closed = True


class Impatient(AsyncioCalls):
    """Does not really wait."""

    def __init__(self) -> None:
        super().__init__()
        self.paused: list[int] = []

    async def pause(self, ms: int) -> None:
        self.paused.append(ms)
        await super().pause(0)


CALLS = Impatient()


@pytest.fixture
def calls() -> Iterator[Impatient]:
    found = Impatient()
    yield found
    found.close()


def async_table(people: AsyncPeople, calls: Impatient, **options: Any) -> AsyncFunctionTable:
    notes: list[str] = []
    asked = LookupOptions(**options)
    return AsyncFunctionTable(people, ["city"], NAMES, asked, "People", calls, notes.append)


def test_an_asynchronous_function_is_asked_for_many_keys_at_a_time(calls: Impatient) -> None:
    people = AsyncPeople()
    table = async_table(people, calls, capacity=3)
    assert table.ask([(f"c{number}",) for number in range(9)]) == [((f"c{number}",),) for number in range(9)]
    assert people.most == 3
    table.close()
    assert people.closed


def test_an_asynchronous_function_that_fails(calls: Impatient) -> None:
    assert async_table(AsyncPeople(OSError(), TimeoutError()), calls).ask([("a",)]) == [(("a",),)]
    assert calls.paused == [1000, 2000]
    with pytest.raises(DatabaseUnavailable, match="^People does not answer: OSError: away$"):
        async_table(AsyncPeople(OSError("away")), calls, max_retries=0).ask([("a",)])
    with pytest.raises(ValueError, match="wrong"):
        async_table(AsyncPeople(ValueError("wrong")), calls).ask([("a",)])


class Silent(AsyncPeople):
    async def async_lookup(self, key_row: Row) -> FoundRows:
        await AsyncioCalls.pause(CALLS, 60_000)
        return []


def test_an_asynchronous_function_that_takes_too_long(calls: Impatient) -> None:
    with pytest.raises(DatabaseUnavailable, match="^People does not answer: TimeoutError$"):
        async_table(Silent(), calls, timeout_ms=1, max_retries=1).ask([("a",)])
