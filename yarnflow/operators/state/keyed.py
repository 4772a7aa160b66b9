"""The state of one operator: what it registered, bound to one key group at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from yarnflow.errors import InvalidStateUse
from yarnflow.operators.state.expiring import ExpiringListTable, ExpiringMapTable, ExpiringTable
from yarnflow.operators.state.kinds import StateKind
from yarnflow.operators.state.store import GroupStore
from yarnflow.operators.state.tables import ListTable, MapTable, StateTable
from yarnflow.operators.state.timers import Timers
from yarnflow.operators.state.ttl import StateTtlConfig, TimeToLive, time_to_live
from yarnflow.operators.state.type_names import type_text
from yarnflow.operators.state.value_types import ChangesCheck, changes_check


class NoKey:
    """The type of :data:`NO_KEY`."""

    def __repr__(self) -> str:
        return "NO_KEY"


#: the current key where there is none, as in ``open()``; None is a key like any other
NO_KEY: Final = NoKey()
#: before the names of broadcast state, so that keyed state of one name is another state
BROADCAST_PREFIX: Final = "broadcast:"


class KeyedState:
    """State and timers of one operator in one worker.

    Tables are registered once, by ``open`` or at first use, and stay the same objects while the runner
    binds them to one key group after the other.

    Attributes
    ----------
    operator_id : str
        Names the operator in stores; stable over versions of a program.
    current_key : object
        Whose state users' functions see; :data:`NO_KEY` outside of a keyed context.
    timers : Timers
        Timers of the operator, bound with the state.
    """

    def __init__(self, operator_id: str, operator_name: str = "", origin: str = "") -> None:
        self.operator_id = operator_id
        self.operator_name = operator_name or operator_id
        #: ``file:line`` of the operator's call, for errors that no function of the program raises
        self._origin = origin
        self.current_key: Any = NO_KEY
        self.timers = Timers()
        self._tables: dict[str, StateTable] = {}
        self._types: dict[str, Any] = {}
        #: the types as texts; empty = none
        self._declared: dict[str, str] = {}
        self._checks: dict[str, ChangesCheck | None] = {}
        #: operator and state, for errors
        self._where: dict[str, str] = {}
        self._expiring: list[StateTable] = []
        self._store = GroupStore()
        self._now_ms = 0

    def bind(self, store: GroupStore) -> None:
        """Turn to another key group."""
        self._store = store
        self.current_key = NO_KEY
        for table in self._tables.values():
            data = store.table(self.operator_id, table.name, table.kind, table.ttl is not None)
            data.check, data.where = self._checks[table.name], self._where[table.name]
            table.bind(data)
            store.check_type(self.operator_id, table.name, self._declared[table.name])
        self.timers.bind(store.timers(self.operator_id))
        # what belongs to the operator, not to a key, such as broadcast state
        store.prefetch(self.operator_id, (None,))

    def prefetch(self, keys: Iterable[Any]) -> None:
        """Have the state of some keys in memory before it is used."""
        self._store.prefetch(self.operator_id, keys)

    def prefetch_all(self) -> None:
        """Have the state of all keys of the group in memory."""
        self._store.prefetch_all(self.operator_id)

    def set_processing_time(self, now_ms: int) -> None:
        """Tell the time, for time-to-live."""
        self._now_ms = now_ms
        for table in self._expiring:
            table.set_now(now_ms)

    def clean_up(self) -> int:
        """Remove what has expired in the key group; returns how many entries."""
        lifetimes = [table.ttl.ttl_ms for table in self._expiring if table.ttl and table.ttl.clean_up]
        if lifetimes:
            self._store.prefetch_expiring(self.operator_id, min(lifetimes), self._now_ms)
        return sum(table.clean_up() for table in self._expiring)

    def table(
        self,
        name: str,
        kind: StateKind,
        ttl: StateTtlConfig | TimeToLive | None = None,
        type_info: Any = None,
    ) -> StateTable:
        """Register a state, or find it if it is registered already.

        Parameters
        ----------
        name : str
            Unique in the operator.
        kind : StateKind
            What its entries are.
        ttl : StateTtlConfig or TimeToLive, optional
            When entries expire; None = never.
        type_info : object, optional
            Anything that compares equal where the type is the same.  What is stored must fit it if it is a
            TypeInformation, else the store's :meth:`~GroupStore.changes` raise InvalidStateUse.

        Raises
        ------
        InvalidStateUse
            Another kind, type or time-to-live is registered under the name.
        StateIncompatible
            Something else, or of another type, is stored under the name.
        """
        lifetime = time_to_live(ttl)
        found = self._tables.get(name)
        if found is not None:
            self._check_same(found, kind, lifetime, type_info)
            return found
        table = _make(name, kind, lifetime)
        data = self._store.table(self.operator_id, name, kind, lifetime is not None)
        data.where = self._where[name] = self._words(name)
        data.check = self._checks[name] = changes_check(data.where, kind, type_info)
        table.bind(data)
        table.set_now(self._now_ms)
        declared = type_text(type_info)
        self._store.check_type(self.operator_id, name, declared)
        self._tables[name], self._types[name], self._declared[name] = table, type_info, declared
        if lifetime is not None:
            self._expiring.append(table)
        return table

    def _words(self, name: str) -> str:
        line = f"{self._origin}: " if self._origin else ""
        kind = "broadcast state" if name.startswith(BROADCAST_PREFIX) else "state"
        return f"{line}operator '{self.operator_name}', {kind} '{name.removeprefix(BROADCAST_PREFIX)}'"

    def _check_same(
        self, found: StateTable, kind: StateKind, ttl: TimeToLive | None, type_info: Any
    ) -> None:
        where = f"operator '{self.operator_name}': state '{found.name}' is registered twice"
        if found.kind is not kind:
            differs = f"as {found.kind.value} state and as {kind.value} state"
        elif found.ttl != ttl:
            differs = f"with time-to-live {_ttl_words(found.ttl)} and {_ttl_words(ttl)}"
        elif type_info is not None and self._types[found.name] not in (None, type_info):
            differs = f"with type {self._types[found.name]} and {type_info}"
        else:
            return
        raise InvalidStateUse(f"{where}, {differs}; give one of them another name")


def _make(name: str, kind: StateKind, ttl: TimeToLive | None) -> StateTable:
    plain = {StateKind.LIST: ListTable, StateKind.MAP: MapTable}
    expiring = {StateKind.LIST: ExpiringListTable, StateKind.MAP: ExpiringMapTable}
    if ttl is None:
        return plain.get(kind, StateTable)(name, kind)
    return expiring.get(kind, ExpiringTable)(name, kind, ttl)


def _ttl_words(ttl: TimeToLive | None) -> str:
    return "none" if ttl is None else f"of {ttl.ttl_ms} ms" + (" from the last read" if ttl.on_read else "")
