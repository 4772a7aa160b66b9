"""Statements that find the rows of many keys at once, and which row belongs to which key.

Decides what is asked by one statement.  What is equal is decided by the database, whose texts may be equal to
others in capitals, with accents or with blanks behind them; so keys that some database could take for equal
are never asked for by one statement, and of a row that comes back it is known whose it is.
"""

from __future__ import annotations

import datetime as dt
import decimal
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from yarnflow.operators.databases.jdbc_url import DatabaseKind

#: keys that one statement asks for
KEYS_PER_STATEMENT: Final = 500

#: of these Python knows what is equal as databases do
_AS_THEY_ARE: Final = (int, float, decimal.Decimal, bytes, dt.date, dt.time, dt.timedelta)

Key = tuple[object, ...]


def select_by_keys(
    kind: DatabaseKind, table: str, key: Sequence[str], columns: Sequence[str], count: int, mark: str
) -> str:
    """A query for so many keys; its rows have the key's columns first.

    Parameters
    ----------
    table : str
        As it stands behind FROM.
    key, columns : sequence of str
        Names as the database has them.
    count : int
        Keys, whose values are given in their order, one column of the key after the other.
    mark : str
        For a value.
    """
    # drivers whose mark is %s want every other % twice
    percent = "%%" if mark == "%s" else "%"
    names = [quoted(kind, name).replace("%", percent) for name in key]
    selected = ", ".join([*names, *(quoted(kind, name).replace("%", percent) for name in columns)])
    if len(names) == 1:
        wanted = f"{names[0]} IN ({', '.join([mark] * count)})"
    else:
        # lists of pairs are not written alike everywhere
        one = " AND ".join(f"{name} = {mark}" for name in names)
        wanted = " OR ".join([f"({one})"] * count)
    return f"SELECT {selected} FROM {table.replace('%', percent)} WHERE {wanted}"


def quoted(kind: DatabaseKind, name: str) -> str:
    """A column's name in a statement."""
    quote = '"' if kind is DatabaseKind.POSTGRESQL else "`"
    return quote + name.replace(quote, quote * 2) + quote


def pieces(keys: Sequence[Key], most: int = KEYS_PER_STATEMENT) -> Iterator[Mapping[Key, Key]]:
    """What one statement asks for each: keys by their plain form, of which no two are the same."""
    rounds: list[dict[Key, Key]] = []
    turns: dict[Key, int] = {}
    for key in keys:
        plain = plain_form(key)
        turn = turns.get(plain, 0)
        turns[plain] = turn + 1
        if turn == len(rounds):
            rounds.append({})
        rounds[turn][plain] = key
    for one in rounds:
        items = list(one.items())
        for start in range(0, len(items), most):
            yield dict(items[start : start + most])


def plain_form(key: Sequence[object]) -> Key:
    """A key in a form that all keys share which a database could take for equal."""
    return tuple(map(_plain, key))


def _plain(value: Any) -> object:
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC).replace(tzinfo=None)
    if value is None or isinstance(value, _AS_THEY_ARE):
        return value
    # texts, and what is asked for as text: an identifier, an address
    letters = unicodedata.normalize("NFKD", str(value))
    return "".join(c for c in letters if not unicodedata.combining(c)).casefold().rstrip(" ")


def divided(
    piece: Mapping[Key, Key], rows: Sequence[Sequence[Any]]
) -> Mapping[Key, list[tuple[Any, ...]]] | None:
    """The rows of each key of a piece, without the key's columns.

    Returns
    -------
    mapping or None
        None = a row's key has another form than that which was asked for (a number as text, or such), so that
        each key has to be asked for by itself.
    """
    found: dict[Key, list[tuple[Any, ...]]] = {key: [] for key in piece.values()}
    width = len(next(iter(piece)))
    for row in rows:
        plain = plain_form(row[:width])
        if plain not in piece:
            return None
        found[piece[plain]].append(tuple(row[width:]))
    return found
