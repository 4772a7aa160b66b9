"""Functions that find rows of an outside table by their key, for ``lookup_join``.

Names are those of Flink's ``LookupFunction`` and ``AsyncLookupFunction``, which are of its Table API.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from yarnflow.graph.rows import Row
from yarnflow.operators.functions.base import Function

#: rows of the declared type: tuples, lists, mappings, dataclasses or Rows; None = there are none
FoundRows = Iterable[Any] | None


class LookupFunction(Function):
    """Finds the rows of an outside table that have a key.

    ``open`` runs once in every worker, before the first key, and ``close`` when the worker ends or the
    function has failed.
    """

    @abstractmethod
    def lookup(self, key_row: Row) -> FoundRows:
        """The rows of one key.

        Parameters
        ----------
        key_row : Row
            The key's columns by the table's names; none of them is None.

        Returns
        -------
        iterable or None
            Rows of the declared type.  Empty or None: the table has no such key.

        Raises
        ------
        OSError
            The table is away (ConnectionError and TimeoutError are OSErrors): the key is asked for again,
            ``lookup.max-retries`` times.  Any other exception fails the job.
        """

    def lookup_all(self, key_rows: Sequence[Row]) -> Iterable[FoundRows]:
        """The rows of many different keys: for each of them, in order, what :meth:`lookup` would give.

        Called once for all keys of an Arrow batch that are not in the cache, where a class overrides it:
        one question for many keys.
        """
        return [self.lookup(key_row) for key_row in key_rows]


class AsyncLookupFunction(Function):
    """Finds the rows of an outside table that have a key, for many keys at a time."""

    @abstractmethod
    async def async_lookup(self, key_row: Row) -> FoundRows:
        """The rows of one key; as :meth:`LookupFunction.lookup`."""


def asks_for_many(function: LookupFunction) -> bool:
    """Whether a function answers many keys by one question."""
    return type(function).lookup_all is not LookupFunction.lookup_all
