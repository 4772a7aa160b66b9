"""What a worker keeps of a table that is looked up.

Decides which answers are still good and which give way.  Flink counterpart: ``DefaultLookupCache``, whose
``max-rows`` counts keys; here it counts rows.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from yarnflow.graph.connectors.lookups import LookupOptions

#: values of a key's columns, in order
Key = tuple[object, ...]
#: rows of a key, each the values of the declared columns
Rows = tuple[tuple[object, ...], ...]


@dataclass(slots=True)
class _Answer:
    rows: Rows
    written_ms: int
    used_ms: int

    @property
    def size(self) -> int:
        """Rows it counts for: that a key has none takes memory, too."""
        return max(1, len(self.rows))


class LookupCache:
    """Answers by key; those not used for longest give way to new ones.

    Parameters
    ----------
    options : LookupOptions
        How many rows are kept, and for how long.
    """

    def __init__(self, options: LookupOptions) -> None:
        self._options = options
        #: the one not used for longest is the first
        self._answers: OrderedDict[Key, _Answer] = OrderedDict()
        self._rows = 0

    @property
    def row_count(self) -> int:
        """Rows that are kept; a key without rows counts as one."""
        return self._rows

    def get(self, key: Key, now_ms: int) -> Rows | None:
        """The rows of a key, empty where it is known to have none; None = the table has to be asked."""
        answer = self._answers.get(key)
        if answer is None:
            return None
        if self._is_expired(answer, now_ms):
            self._drop(key)
            return None
        answer.used_ms = now_ms
        self._answers.move_to_end(key)
        return answer.rows

    def put(self, key: Key, rows: Rows, now_ms: int) -> None:
        """Keep an answer.

        Parameters
        ----------
        now_ms : int
            When the table was asked.
        """
        self._drop(key)
        answer = _Answer(rows, now_ms, now_ms)
        if not rows and not self._options.cache_missing_key:
            return
        if answer.size > self._options.max_rows:
            return
        self._answers[key] = answer
        self._rows += answer.size
        while self._rows > self._options.max_rows:
            self._drop(next(iter(self._answers)))

    def _drop(self, key: Key) -> None:
        answer = self._answers.pop(key, None)
        if answer is not None:
            self._rows -= answer.size

    def _is_expired(self, answer: _Answer, now_ms: int) -> bool:
        after_write_ms = self._options.expire_after_write_ms
        if after_write_ms is not None and now_ms - answer.written_ms >= after_write_ms:
            return True
        after_access_ms = self._options.expire_after_access_ms
        return after_access_ms is not None and now_ms - answer.used_ms >= after_access_ms
