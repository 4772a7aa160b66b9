"""The answers for the keys of one Arrow batch: from what is kept, else from the table, each key asked once.

Decides which keys the table is asked for, and how often a table that is away is asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

from yarnflow.errors import DatabaseUnavailable
from yarnflow.graph.connectors.lookups import LookupOptions
from yarnflow.operators.lookups.cache import Key, LookupCache, Rows

#: between two tries, times the number of those before
RETRY_S: Final = 1.0

T = TypeVar("T")


class LookupTable(Protocol):
    """What is asked."""

    def ask(self, keys: Sequence[Key]) -> Sequence[Rows]:
        """The rows of different keys, in their order.  Raises OSError or DatabaseUnavailable where the same
        may succeed later."""
        ...

    def close(self) -> None:
        """Let go of what was opened."""
        ...


class Answers:
    """Rows of a table by key, for one worker.

    Parameters
    ----------
    table : LookupTable
    options : LookupOptions
    """

    def __init__(self, table: LookupTable, options: LookupOptions) -> None:
        self._table = table
        self._cache = LookupCache(options) if options.cached else None

    def find(self, keys: Iterable[Key], now_ms: int) -> Mapping[Key, Rows]:
        """The rows of each key.

        Parameters
        ----------
        keys : iterable
            Those of a batch, in any order and as often as they come; a key with a None in it has no rows.
        now_ms : int
            By any clock that does not go back.

        Raises
        ------
        DatabaseUnavailable
            The table is away.
        Exception
            Whatever else the table raises.
        """
        found: dict[Key, Rows] = {}
        missing: list[Key] = []
        for key in dict.fromkeys(keys):
            # as in SQL, NULL is equal to nothing
            rows = () if None in key else self._kept(key, now_ms)
            if rows is None:
                missing.append(key)
            else:
                found[key] = rows
        if missing:
            for key, rows in zip(missing, self._table.ask(missing), strict=True):
                found[key] = rows
                if self._cache is not None:
                    self._cache.put(key, rows, now_ms)
        return found

    def close(self) -> None:
        """Let go of the table."""
        self._table.close()

    def _kept(self, key: Key, now_ms: int) -> Rows | None:
        return None if self._cache is None else self._cache.get(key, now_ms)


def with_retries(
    ask: Callable[[], T],
    max_retries: int,
    wait: Callable[[float], None],
    note: Callable[[str], None],
    name: str,
) -> T:
    """Ask a table, and again where it is away.

    Parameters
    ----------
    wait : callable
        Waits so many seconds.
    note : callable
        Told before each further try why there is one.
    name : str
        The table's, for people.

    Raises
    ------
    DatabaseUnavailable
        It is still away.
    """
    for tried in range(1, max_retries + 1):
        try:
            return ask()
        except (OSError, DatabaseUnavailable) as error:
            note(retry_note(name, tried, max_retries, error))
            wait(RETRY_S * tried)
    try:
        return ask()
    except (OSError, DatabaseUnavailable) as error:
        raise away(name, error) from error


def retry_note(name: str, tried: int, max_retries: int, error: Exception) -> str:
    """What is noted before a further try."""
    return f"Asking {name} again, {tried} of {max_retries} times: {said(error)}"


def away(name: str, error: Exception) -> DatabaseUnavailable:
    """What is raised for a table that does not answer."""
    return DatabaseUnavailable(f"{name} does not answer: {said(error)}")


def said(error: Exception) -> str:
    """An error in one line."""
    text = " ".join(str(error).split())
    if isinstance(error, DatabaseUnavailable):
        return text
    return f"{type(error).__name__}: {text}".rstrip(": ")


def checked_rows(found: Any, name: str, read: Callable[[Any], tuple[object, ...]]) -> Rows:
    """What a function has returned for a key, as rows.

    Parameters
    ----------
    name : str
        The function's, for people.
    read : callable
        From what stands for a row to its values; raises TypeError.

    Raises
    ------
    TypeError
        It is no collection, or one of its rows is none of the declared type.
    """
    if found is None:
        return ()
    # a row is a tuple, and so iterable: its values would be taken for rows
    lone = isinstance(found, (str, bytes, Mapping)) or any(
        hasattr(found, name) for name in ("_fields", "get_row_kind")
    )
    if lone or not isinstance(found, Iterable):
        raise TypeError(f"{name} must return a collection of rows, got {_short(found)}")
    try:
        return tuple(read(row) for row in found)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 120 else text[:117] + "..."
