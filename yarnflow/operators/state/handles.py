"""State as users' functions hold it: bound to the current key, and to a namespace where there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, cast

from yarnflow.errors import InvalidKey, InvalidStateUse
from yarnflow.operators.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from yarnflow.operators.state.interfaces import (
    AggregatingState,
    BroadcastState,
    ListState,
    MapState,
    ReadOnlyBroadcastState,
    ReducingState,
    ValueState,
)
from yarnflow.operators.state.keyed import BROADCAST_PREFIX, NO_KEY, KeyedState
from yarnflow.operators.state.kinds import StateKind
from yarnflow.operators.state.tables import StateTable

#: key under which broadcast state is stored: it belongs to the operator, not to a key
BROADCAST_KEY = None


class _Handle:
    """A table seen from the current key."""

    __slots__ = ("_keyed", "_table", "namespace")

    def __init__(self, keyed: KeyedState, table: StateTable, namespace: Any = None) -> None:
        self._keyed = keyed
        self._table = table
        #: whose entries are seen; windows change it
        self.namespace = namespace

    def _key(self) -> Any:
        key = self._keyed.current_key
        if key is NO_KEY:
            raise no_key(self._keyed, f"state '{self._table.name}'")
        return key

    def clear(self) -> None:
        self._table.remove(self._key(), self.namespace)


H = TypeVar("H", bound=_Handle)


class ValueHandle(_Handle, ValueState[Any]):
    """ValueState of the current key."""

    __slots__ = ()

    def value(self) -> Any:
        key = self._keyed.current_key
        if key is NO_KEY:
            self._key()
        return self._table.get(key, self.namespace)

    def update(self, value: Any) -> None:
        if value is None:
            self.clear()
            return
        key = self._keyed.current_key
        if key is NO_KEY:
            self._key()
        self._table.put(key, value, self.namespace)


class ListHandle(_Handle, ListState[Any]):
    """ListState of the current key."""

    __slots__ = ()

    def get(self) -> list[Any]:
        """A new list, empty if there is none: the state may change while it is read."""
        return list(self._table.get(self._key(), self.namespace, ()))

    def add(self, value: Any) -> None:
        self._table.append(self._key(), value, self.namespace)

    def add_all(self, values: Iterable[Any]) -> None:
        self._table.extend(self._key(), list(values), self.namespace)

    def update(self, values: Iterable[Any]) -> None:
        self._table.put(self._key(), list(values), self.namespace)


class ReducingHandle(_Handle, ReducingState[Any]):
    """ReducingState of the current key."""

    __slots__ = ("_reduce",)

    def __init__(
        self, keyed: KeyedState, table: StateTable, reduce: Callable[[Any, Any], Any], namespace: Any = None
    ) -> None:
        super().__init__(keyed, table, namespace)
        self._reduce = reduce

    def get(self) -> Any:
        return self._table.get(self._key(), self.namespace)

    def add(self, value: Any) -> None:
        key, table, namespace = self._key(), self._table, self.namespace
        if value is None:
            table.remove(key, namespace)
            return
        before = table.get(key, namespace)
        table.put(key, value if before is None else self._reduce(before, value), namespace)


class AggregatingHandle(_Handle, AggregatingState[Any, Any]):
    """AggregatingState of the current key."""

    __slots__ = ("_function",)

    def __init__(self, keyed: KeyedState, table: StateTable, function: Any, namespace: Any = None) -> None:
        super().__init__(keyed, table, namespace)
        self._function = function

    def get(self) -> Any:
        accumulator = self._table.get(self._key(), self.namespace)
        return None if accumulator is None else self._function.get_result(accumulator)

    def add(self, value: Any) -> None:
        key, table, namespace = self._key(), self._table, self.namespace
        if value is None:
            table.remove(key, namespace)
            return
        accumulator = table.get(key, namespace)
        if accumulator is None:
            accumulator = self._function.create_accumulator()
        table.put(key, self._function.add(value, accumulator), namespace)


class _ReadableMap(_Handle):
    """What maps can do for reading."""

    __slots__ = ()

    def _entries(self) -> dict[Any, Any]:
        found = self._table.get(self._key(), self.namespace)
        return {} if found is None else found

    def get(self, key: Any) -> Any:
        return self._table.get_entry(self._key(), key, self.namespace)

    def contains(self, key: Any) -> bool:
        missing = self._table
        return self._table.get_entry(self._key(), key, self.namespace, missing) is not missing

    def items(self) -> list[tuple[Any, Any]]:
        return list(self._entries().items())

    def keys(self) -> list[Any]:
        return list(self._entries())

    def values(self) -> list[Any]:
        return list(self._entries().values())

    def is_empty(self) -> bool:
        return not self._entries()


class _WritableMap(_ReadableMap):
    """What maps can do for writing."""

    __slots__ = ()

    def put(self, key: Any, value: Any) -> None:
        try:
            self._table.put_entry(self._key(), key, value, self.namespace)
        except TypeError:
            raise unhashable(f"map state '{self._table.name}'", key) from None

    def put_all(self, dict_value: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
        pairs = dict_value.items() if isinstance(dict_value, Mapping) else dict_value
        for key, value in pairs:
            self.put(key, value)

    def remove(self, key: Any) -> None:
        self._table.remove_entry(self._key(), key, self.namespace)


class MapHandle(_WritableMap, MapState[Any, Any]):
    """MapState of the current key."""

    __slots__ = ()


class ReadOnlyBroadcastHandle(_ReadableMap, ReadOnlyBroadcastState[Any, Any]):
    """Broadcast state for the side of the elements."""

    __slots__ = ()

    def _key(self) -> Any:
        return BROADCAST_KEY

    def clear(self) -> None:
        name = self._table.name.removeprefix(BROADCAST_PREFIX)
        raise InvalidStateUse(
            f"operator '{self._keyed.operator_name}': broadcast state '{name}' can only be changed "
            "in process_broadcast_element"
        )


class BroadcastHandle(_WritableMap, BroadcastState[Any, Any]):
    """Broadcast state for the broadcast side."""

    __slots__ = ()

    def _key(self) -> Any:
        return BROADCAST_KEY


class StateHandles:
    """Makes handles of one operator's state: one per descriptor's name, the same each time.

    Parameters
    ----------
    keyed : KeyedState
        The operator's state.
    namespace : object, optional
        Namespace of the entries the handles see; see :meth:`set_namespace`.
    """

    def __init__(self, keyed: KeyedState, namespace: Any = None) -> None:
        self._keyed = keyed
        self._namespace = namespace
        self._handles: dict[str, _Handle] = {}

    def set_namespace(self, namespace: Any) -> None:
        """Turn all handles, made already or later, to a namespace, such as a window."""
        self._namespace = namespace
        for handle in self._handles.values():
            handle.namespace = namespace

    def value(self, descriptor: ValueStateDescriptor) -> ValueState[Any]:
        """ValueState of a descriptor."""
        self._check("get_state", descriptor, ValueStateDescriptor)
        return self._handle(ValueHandle, descriptor, StateKind.VALUE)

    def list(self, descriptor: ListStateDescriptor) -> ListState[Any]:
        """ListState of a descriptor."""
        self._check("get_list_state", descriptor, ListStateDescriptor)
        return self._handle(ListHandle, descriptor, StateKind.LIST)

    def map(self, descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        """MapState of a descriptor."""
        self._check("get_map_state", descriptor, MapStateDescriptor)
        return self._handle(MapHandle, descriptor, StateKind.MAP)

    def reducing(self, descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        """ReducingState of a descriptor."""
        self._check("get_reducing_state", descriptor, ReducingStateDescriptor)
        return self._handle(ReducingHandle, descriptor, StateKind.REDUCING, descriptor.reducer())

    def aggregating(self, descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]:
        """AggregatingState of a descriptor."""
        self._check("get_aggregating_state", descriptor, AggregatingStateDescriptor)
        function = descriptor.get_agg_function()
        return self._handle(AggregatingHandle, descriptor, StateKind.AGGREGATING, function)

    def _check(self, call: str, descriptor: object, wanted: type[StateDescriptor]) -> None:
        if not isinstance(descriptor, wanted):
            raise InvalidStateUse(
                f"operator '{self._keyed.operator_name}': {call}() needs a {wanted.__name__}, "
                f"not {type(descriptor).__name__}"
            )

    def _handle(
        self, make: Callable[..., H], descriptor: StateDescriptor, kind: StateKind, *extra: Any
    ) -> H:
        table = table_of(self._keyed, descriptor, kind)
        found = self._handles.get(descriptor.name)
        if found is None:
            found = self._handles[descriptor.name] = make(self._keyed, table, *extra, self._namespace)
        return cast("H", found)


def table_of(keyed: KeyedState, descriptor: StateDescriptor, kind: StateKind) -> StateTable:
    """The table of a descriptor, registered at first use.

    Raises
    ------
    InvalidStateUse
        The name is registered with another kind, type or time-to-live.
    """
    return keyed.table(descriptor.name, kind, descriptor._ttl_config, descriptor.type_info)


def broadcast_table(keyed: KeyedState, descriptor: MapStateDescriptor) -> StateTable:
    """The table of a broadcast state, registered at first use."""
    return keyed.table(
        BROADCAST_PREFIX + descriptor.name, StateKind.MAP, descriptor._ttl_config, descriptor.type_info
    )


def no_key(keyed: KeyedState, what: str) -> InvalidStateUse:
    """The error for state or timers used where there is no key."""
    return InvalidStateUse(
        f"operator '{keyed.operator_name}': {what} was used where there is no current key; keyed state and "
        "timers can be used while an element or a timer is processed, not in open, close or "
        "process_broadcast_element"
    )


def unhashable(where: str, key: Any) -> InvalidKey:
    """The error for a key that Python cannot hash."""
    return InvalidKey(
        f"{where}: {type(key).__name__} cannot be a key, since Python cannot hash it; "
        "use a tuple or a str of its parts"
    )
