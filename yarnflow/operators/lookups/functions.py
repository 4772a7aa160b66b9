"""Functions of the program as tables that are asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from yarnflow.errors import DatabaseUnavailable
from yarnflow.graph.connectors.lookups import LookupOptions
from yarnflow.graph.rows import record_reader, row_class
from yarnflow.graph.schema import Schema
from yarnflow.operators.functions.base import close_function
from yarnflow.operators.functions.lookup import AsyncLookupFunction, LookupFunction, asks_for_many
from yarnflow.operators.lookups.answers import RETRY_S, away, checked_rows, retry_note, with_retries
from yarnflow.operators.lookups.cache import Key, Rows
from yarnflow.operators.process.operator import AsyncCalls

T = TypeVar("T")


class FunctionTable:
    """A LookupFunction that was opened.

    Parameters
    ----------
    function : LookupFunction
    key_names : sequence of str
        Columns of the key, as the table calls them.
    columns : Schema
        Of its rows.
    options : LookupOptions
    name : str
        For people: name and line.
    wait : callable
        Waits so many seconds.
    note : callable
        Told why there is a further try.
    """

    def __init__(
        self,
        function: LookupFunction,
        key_names: Sequence[str],
        columns: Schema,
        options: LookupOptions,
        name: str,
        wait: Callable[[float], None],
        note: Callable[[str], None],
    ) -> None:
        self._function = function
        self._key_row = row_class(tuple(key_names))._make
        self._read = record_reader(columns)
        self._max_retries = options.max_retries
        self._name = name
        self._wait = wait
        self._note = note

    def ask(self, keys: Sequence[Key]) -> Sequence[Rows]:
        if not asks_for_many(self._function):
            # one key that fails is no reason to ask for the others again
            return [self._tried(partial(self._one, key)) for key in keys]
        return self._tried(partial(self._all, keys))

    def close(self) -> None:
        close_function(self._function)

    def _tried(self, ask: Callable[[], T]) -> T:
        return with_retries(ask, self._max_retries, self._wait, self._note, self._name)

    def _one(self, key: Key) -> Rows:
        return checked_rows(self._function.lookup(self._key_row(key)), self._name, self._read)

    def _all(self, keys: Sequence[Key]) -> Sequence[Rows]:
        found = list(self._function.lookup_all([self._key_row(key) for key in keys]))
        if len(found) != len(keys):
            raise TypeError(
                f"{self._name}: lookup_all must return the rows of each key, in the order of the keys: it "
                f"got {len(keys)} keys and returned {len(found)} collections"
            )
        return [checked_rows(rows, self._name, self._read) for rows in found]


class AsyncFunctionTable:
    """An AsyncLookupFunction that was opened; its parameters are those of :class:`FunctionTable`.

    Parameters
    ----------
    calls : AsyncCalls
        Runs its coroutines.
    """

    def __init__(
        self,
        function: AsyncLookupFunction,
        key_names: Sequence[str],
        columns: Schema,
        options: LookupOptions,
        name: str,
        calls: AsyncCalls,
        note: Callable[[str], None],
    ) -> None:
        self._function = function
        self._key_row = row_class(tuple(key_names))._make
        self._read = record_reader(columns)
        self._options = options
        self._name = name
        self._calls = calls
        self._note = note

    def ask(self, keys: Sequence[Key]) -> Sequence[Rows]:
        ended = self._calls.run([self._one(key) for key in keys], self._options.capacity)
        return [rows for _, rows in sorted(ended, key=lambda pair: pair[0])]

    def close(self) -> None:
        close_function(self._function)

    async def _one(self, key: Key) -> Rows:
        tried = 0
        while True:
            try:
                asked = self._function.async_lookup(self._key_row(key))
                found = await self._calls.within(asked, self._options.timeout_ms)
                return checked_rows(found, self._name, self._read)
            except (OSError, DatabaseUnavailable) as error:
                tried += 1
                if tried > self._options.max_retries:
                    raise away(self._name, error) from error
                self._note(retry_note(self._name, tried, self._options.max_retries, error))
            await self._calls.pause(int(RETRY_S * tried * 1000))
