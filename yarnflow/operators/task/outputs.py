"""Where an operator's results go: on to chained operators, into blocks for later levels, to sinks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

from yarnflow.errors import ElementMismatch, InvalidKey
from yarnflow.graph.type_info import RowTypeInfo
from yarnflow.operators.elements import Chunk
from yarnflow.operators.process.key_selection import SelectKeys
from yarnflow.operators.process.user_code import noted, placed, shown
from yarnflow.operators.row import Row
from yarnflow.operators.task.blocks import ALL_GROUPS, ELEMENTS, SINK_LEVEL, Block
from yarnflow.operators.task.key_groups import number_key_groups
from yarnflow.operators.task.packing import GroupColumns
from yarnflow.operators.task.plan import ChainedRoute, Exchange, ExchangeRoute, SinkRoute
from yarnflow.operators.task.route_keys import RouteKeys
from yarnflow.operators.types.coerce import CoerceChunk, chunk_coercer
from yarnflow.operators.types.columns import number_column, numbers_reader
from yarnflow.operators.types.text import print_prefix, printer

#: elements that wait in one route before they become blocks
MAX_WAITING_ELEMENTS: Final = 50_000

#: so many elements become columns at once; below it, columns cost more than they save
_COLUMNS_FROM: Final = 2_000
#: groups that blocks for sinks travel in
_SINK_GROUPS: Final = 128

Dumps = Callable[[Any], bytes]


class Target(Protocol):
    """One route at work."""

    #: elements taken and not yet flushed
    waiting: int

    def begin(self, turn: int) -> None:
        """Begin a run: what is dealt in turn goes to the subtask of this number first."""

    def take(self, chunk: Chunk) -> None:
        """Take elements; they may wait."""

    def flush(self, sender: int, sequence: Iterator[int]) -> Iterator[Block]:
        """What waits, as blocks."""


def converter(route: ChainedRoute | ExchangeRoute | SinkRoute) -> CoerceChunk:
    """From elements to what they are declared to be; the same where nothing is declared."""
    if route.element_type is None:
        return lambda values: values
    return chunk_coercer(route.element_type, route.sender, route.sender_origin)


def _liner(route: SinkRoute, coerce: CoerceChunk) -> CoerceChunk:
    """From elements to the lines that ``print()`` writes."""
    kind = route.element_type
    assert kind is not None, "a stream of elements has a type"
    text = printer(kind)
    as_they_are = route.chained and isinstance(kind, RowTypeInfo)

    def lines(values: list[Any]) -> list[str]:
        # PyFlink prints rows by Python, before they are converted to their type
        if not (as_they_are and all(isinstance(value, Row) for value in values)):
            values = coerce(values)
        found: list[str] = []
        try:
            found.extend(map(text, values))
        except Exception as error:
            # of an object's own __str__, or of one that is nested too deep
            value = values[len(found)]
            raise placed(noted(error, route.sender, "the text of element", value), route.sender_origin)
        return found

    return lines


class _Turns:
    """Deals elements to subtasks, one after the other."""

    __slots__ = ("_subtasks", "_next")

    def __init__(self, subtasks: int) -> None:
        self._subtasks = subtasks
        self._next = 0

    def begin(self, turn: int) -> None:
        """Begin anew, not where the run before ended: a worker that does this one again may not know that."""
        self._next = turn % self._subtasks

    def deal(self, count: int) -> int:
        """The subtask of the first of so many elements."""
        first = self._next
        self._next = (first + count) % self._subtasks
        return first


class _Waiting:
    """Elements on their way to one group."""

    __slots__ = ("values", "timestamps", "keys")

    def __init__(self) -> None:
        self.values: list[Any] = []
        #: None while no element has a time
        self.timestamps: list[int | None] | None = None
        #: of a keyed route
        self.keys: list[Any] = []

    def payload(self, input_index: int) -> tuple[Any, ...]:
        """What a block of these elements carries; a plain tuple pickles without the name of a class."""
        return input_index, self.values, self.timestamps, self.keys or None

    def extend(self, values: list[Any], timestamps: list[int | None] | None) -> None:
        if timestamps is not None or self.timestamps is not None:
            if self.timestamps is None:
                self.timestamps = [None] * len(self.values)
            self.timestamps.extend(timestamps if timestamps is not None else [None] * len(values))
        self.values.extend(values)


def _blocks(
    route: ExchangeRoute, waiting: dict[int, _Waiting], sender: int, sequence: Iterator[int], dumps: Dumps
) -> Iterator[Block]:
    """One block for each group that elements wait for."""
    for group, found in waiting.items():
        payload = _pickled(route, found, route.input_index, dumps)
        yield Block(route.level, group, route.node_id, ELEMENTS, sender, next(sequence), payload)


def _pickled(
    route: ExchangeRoute | SinkRoute, waiting: _Waiting, input_index: int, dumps: Dumps
) -> bytes:
    try:
        return dumps(waiting.payload(input_index))
    except Exception as error:
        raise _not_sent(route, waiting.values, error, dumps) from None


def _not_sent(
    route: ExchangeRoute | SinkRoute, values: list[Any], error: Exception, dumps: Dumps
) -> Exception:
    """The error that names the first element at fault, found again; else the error itself."""
    line = f"{route.sender_origin}: " if route.sender_origin else ""
    for value in values:
        try:
            dumps(value)
        except Exception as reason:
            return ElementMismatch(
                f"{line}operator '{route.sender}' emitted {shown(value)} ({type(value).__name__}), "
                "which cannot "
                f"be sent to the next one: {reason}; emit plain values, or objects that can be pickled"
            )
    return error


class KeyedTarget:
    """Elements go to the group of their key, and take the key with them."""

    def __init__(self, route: ExchangeRoute, select: SelectKeys, dumps: Dumps) -> None:
        self._route = route
        self._keys = RouteKeys(route, select)
        self._dumps = dumps
        self._coerce = converter(route)
        self._waiting: dict[int, _Waiting] = {}
        #: what came later than what waits by group
        self._columns = GroupColumns(route.element_type)
        self._read_columns = None if route.element_type is None else numbers_reader(route.element_type)
        self.waiting = 0

    def begin(self, turn: int) -> None:
        """A key has its group whenever it comes."""

    def take(self, chunk: Chunk) -> None:
        values, timestamps = chunk.values, chunk.timestamps
        large = len(values) >= _COLUMNS_FROM or not self._columns.empty
        columns = self._read_columns(values) if large and self._read_columns else None
        if columns is None:
            values = self._coerce(values)
        keys = self._keys.select(values)
        self.waiting += len(values)
        if not large or self._read_columns is None:
            self._deal(values, timestamps, keys)
            return
        if not values:
            return
        numbers = number_column(keys)
        groups = None if numbers is None else number_key_groups(numbers, self._route.groups)
        if numbers is None or groups is None:
            self._columns.add(self._keys.groups(keys), values, timestamps, keys, columns)
        else:
            self._columns.add(groups, values, timestamps, numbers, columns)

    def _deal(self, values: list[Any], timestamps: list[int | None] | None, keys: list[Any]) -> None:
        groups, waiting = self._keys.groups(keys), self._waiting
        if timestamps is None and all(w.timestamps is None for w in waiting.values()):
            for group, key, value in zip(groups, keys, values, strict=True):
                try:
                    found = waiting[group]
                except KeyError:
                    found = waiting[group] = _Waiting()
                found.values.append(value)
                found.keys.append(key)
            return
        times = timestamps if timestamps is not None else [None] * len(values)
        for group, key, value, time in zip(groups, keys, values, times, strict=True):
            try:
                found = waiting[group]
            except KeyError:
                found = waiting[group] = _Waiting()
            if found.timestamps is None:
                found.timestamps = [None] * len(found.values)
            found.values.append(value)
            found.keys.append(key)
            found.timestamps.append(time)

    def flush(self, sender: int, sequence: Iterator[int]) -> Iterator[Block]:
        waiting, self._waiting, self.waiting = self._waiting, {}, 0
        yield from _blocks(self._route, waiting, sender, sequence, self._dumps)
        if self._columns.empty:
            return
        route = self._route
        for group, *packed in self._columns.take():
            payload = self._dumps((route.input_index, *packed))
            yield Block(route.level, group, route.node_id, ELEMENTS, sender, next(sequence), payload)


def partitioned(
    route: ExchangeRoute | SinkRoute, partition: Callable[[Any], int] | None, values: list[Any]
) -> list[int]:
    """The subtask of each value, as the program's partitioner says.

    Raises
    ------
    InvalidKey
        It says something else.
    """
    assert partition is not None, "a CUSTOM route has a partitioner"
    found = [partition(value) for value in values]
    for subtask in found:
        if type(subtask) is not int or not 0 <= subtask < route.groups:
            where = "" if route.partitioner is None else f"{route.partitioner.origin}: "
            raise InvalidKey(
                f"{where}partition_custom(): the partitioner returned {subtask!r}; "
                f"it must be a whole number from 0 to {route.groups - 1}"
            )
    return found


class PlainTarget:
    """Elements go to groups that do not depend on a key.

    Parameters
    ----------
    route : ExchangeRoute
    of_sender : callable
        Gives the subtask of the sender, for FORWARD.
    partition : callable or None
        CUSTOM: an element's subtask.
    """

    def __init__(
        self,
        route: ExchangeRoute,
        of_sender: Callable[[], int],
        partition: Callable[[Any], int] | None,
        dumps: Dumps,
    ) -> None:
        self._route = route
        self._of_sender = of_sender
        self._partition = partition
        self._dumps = dumps
        self._coerce = converter(route)
        self._turns = _Turns(route.groups)
        self.begin = self._turns.begin
        self._waiting: dict[int, _Waiting] = {}
        self.waiting = 0

    def take(self, chunk: Chunk) -> None:
        groups, exchange = self._route.groups, self._route.exchange
        chunk = Chunk(self._coerce(chunk.values), chunk.timestamps)
        self.waiting += len(chunk.values)
        if exchange is Exchange.REBALANCE and groups > 1:
            first = self._turns.deal(len(chunk.values))
            for start in range(groups):
                times = chunk.timestamps
                self._put(
                    (first + start) % groups,
                    chunk.values[start::groups],
                    None if times is None else times[start::groups],
                )
        elif exchange is Exchange.CUSTOM:
            self._by_partitioner(chunk)
        elif exchange is Exchange.BROADCAST:
            self._put(ALL_GROUPS, chunk.values, chunk.timestamps)
        else:
            group = self._of_sender() % groups if exchange is Exchange.FORWARD else 0
            self._put(group, chunk.values, chunk.timestamps)

    def _by_partitioner(self, chunk: Chunk) -> None:
        times = chunk.timestamps if chunk.timestamps is not None else [None] * len(chunk.values)
        numbers = partitioned(self._route, self._partition, chunk.values)
        for value, group, time in zip(chunk.values, numbers, times, strict=True):
            self._put(group, [value], None if time is None else [time])

    def _put(self, group: int, values: list[Any], timestamps: list[int | None] | None) -> None:
        if values:
            if group not in self._waiting:
                self._waiting[group] = _Waiting()
            self._waiting[group].extend(values, timestamps)

    def flush(self, sender: int, sequence: Iterator[int]) -> Iterator[Block]:
        waiting, self._waiting, self.waiting = self._waiting, {}, 0
        return _blocks(self._route, waiting, sender, sequence, self._dumps)


class SinkTarget:
    """Elements leave the levels.

    Parameters
    ----------
    route : SinkRoute
    of_sender : callable
        Gives the subtask of the sender, for FORWARD.
    select : callable
        HASH: keys of elements.
    partition : callable or None
        CUSTOM: an element's subtask.
    """

    def __init__(
        self,
        route: SinkRoute,
        of_sender: Callable[[], int],
        select: SelectKeys,
        partition: Callable[[Any], int] | None,
        dumps: Dumps,
    ) -> None:
        self._route = route
        self._keys = RouteKeys(route, select)
        self._of_sender = of_sender
        self._partition = partition
        self._dumps = dumps
        self._coerce = converter(route)
        self._convert = _liner(route, self._coerce) if route.printed else self._coerce
        self._prefixes = (
            [print_prefix(route.identifier, number, route.groups) for number in range(route.groups)]
            if route.printed
            else []
        )
        self._turns = _Turns(route.groups)
        self.begin = self._turns.begin
        self._waiting = _Waiting()
        self.waiting = 0

    def take(self, chunk: Chunk) -> None:
        values, times = self._convert(chunk.values), chunk.timestamps
        if self._route.exchange is Exchange.BROADCAST:
            for prefix in self._prefixes or [""] * self._route.groups:
                self._waiting.extend([prefix + value for value in values] if prefix else values, times)
        else:
            if any(self._prefixes):
                prefixes = map(self._prefixes.__getitem__, self._subtasks(chunk.values))
                values = [prefix + value for prefix, value in zip(prefixes, values, strict=True)]
            self._waiting.extend(values, times)
        self.waiting = len(self._waiting.values)

    def _subtasks(self, values: list[Any]) -> list[int]:
        """The sink's subtask that each element goes to."""
        groups, exchange, count = self._route.groups, self._route.exchange, len(values)
        if exchange is Exchange.CUSTOM:
            return partitioned(self._route, self._partition, self._coerce(values))
        if exchange is Exchange.HASH:
            return self._keys.groups(self._keys.select(self._coerce(values)))
        if exchange is Exchange.REBALANCE:
            first = self._turns.deal(count)
            return [number % groups for number in range(first, first + count)]
        return [self._of_sender() % groups if exchange is Exchange.FORWARD else 0] * count

    def flush(self, sender: int, sequence: Iterator[int]) -> Iterator[Block]:
        found, self._waiting, self.waiting = self._waiting, _Waiting(), 0
        if found.values:
            payload = _pickled(self._route, found, 0, self._dumps)
            # spread over the partitions of the levels it passes; what one sender says stays in order
            group = sender % _SINK_GROUPS
            yield Block(SINK_LEVEL, group, self._route.node_id, ELEMENTS, sender, next(sequence), payload)
