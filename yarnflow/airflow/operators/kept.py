"""What a task keeps for its next try: a dataclass in Airflow's task state store.

The store outlives tries, workers and a clear; and what is kept here outlives the retention of other notes, as
a stream may be deferred for longer.
"""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any, Generic, TypeVar

from airflow.sdk import Context
from airflow.sdk.execution_time.context import NEVER_EXPIRE

#: a dataclass; its fields are JSON, with tuples for arrays
_T = TypeVar("_T")


class Kept(Generic[_T]):
    """One value of one task instance.

    Parameters
    ----------
    context : Context
        Of the task; without a store, as ``airflow dags test`` may have it, nothing is kept.
    name : str
        In the store.  Renamed, a task that runs now would forget it.
    of : type
        The dataclass.
    """

    def __init__(self, context: Context, name: str, of: type[_T]) -> None:
        self._store: Any = context.get("task_state_store")
        self._name = name
        self._of = of

    def load(self) -> _T | None:
        """What an earlier try has left; None = nothing that can be read."""
        found = None if self._store is None else self._store.get(self._name)
        if not isinstance(found, dict):
            return None
        # what another version of the provider has kept besides is left out
        known = {each.name for each in fields(self._of)}  # type: ignore[arg-type]
        values = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in found.items()
            if name in known
        }
        try:
            return self._of(**values)
        except TypeError:
            return None

    def save(self, value: _T) -> None:
        """Keep it."""
        if self._store is not None:
            values = asdict(value)  # type: ignore[call-overload]
            # Airflow takes no tuples
            lists = {name: list(each) if isinstance(each, tuple) else each for name, each in values.items()}
            self._store.set(self._name, lists, retention=NEVER_EXPIRE)

    def forget(self) -> None:
        """The next try begins anew."""
        if self._store is not None:
            self._store.delete(self._name)
