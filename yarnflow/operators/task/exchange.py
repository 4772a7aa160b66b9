"""Elements on their way out of a level: into the buffer of their group, and blocks of these."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any, Final

from yarnflow.errors import InvalidKey, InvariantViolated, UserCodeError
from yarnflow.operators.elements import Chunk
from yarnflow.operators.functions.base import close_function, method_of, open_function
from yarnflow.operators.functions.runtime_context import RuntimeContext
from yarnflow.operators.process.user_code import noted, shown
from yarnflow.operators.state.handles import unhashable
from yarnflow.operators.task.blocks import ChunkEncoder
from yarnflow.operators.task.description import (
    Broadcast,
    ByKey,
    ByPartitioner,
    Partitioning,
    RoundRobin,
    ToExchange,
    ToFirst,
    ToSame,
)
from yarnflow.operators.task.key_groups import KeyGroups

#: elements in the buffers of all groups at which they are turned into blocks before the batch ends
BUFFERED_ELEMENTS: Final = 200_000

#: group, number of elements, payload
Encoded = tuple[int, int, bytes]


class Exchange:
    """One route to a later level, in one worker.

    Parameters
    ----------
    route : ToExchange
        Its description.
    sender_name : str
        Name of the operator it leaves, for messages.
    encoder : ChunkEncoder
        Makes the payloads.
    """

    def __init__(self, route: ToExchange, sender_name: str, encoder: ChunkEncoder) -> None:
        self.edge = route.edge
        self._groups = route.groups
        self._name = sender_name
        self._encoder = encoder
        self._partitioning = route.partitioning
        self._own_group = 0
        self._next = 0
        self._timed = False
        self._buffers: dict[int, Chunk] = {}
        self._buffered = 0
        self._encoded: list[Encoded] = []
        self._key_groups = KeyGroups(route.groups)
        self._put = self._putter(route.partitioning)

    def _putter(self, partitioning: Partitioning) -> Callable[[Chunk], None]:
        if isinstance(partitioning, ByKey):
            self._select = method_of(partitioning.key_selector, "get_key")
            return self._put_by_key
        if isinstance(partitioning, ByPartitioner):
            self._select = method_of(partitioning.key_selector, "get_key")
            self._partition = method_of(partitioning.partitioner, "partition")
            return self._put_by_partitioner
        whole: dict[type, Callable[[Chunk], None]] = {
            Broadcast: self._put_to_first,  # the block is copied, not the elements
            RoundRobin: self._put_round_robin,
            ToFirst: self._put_to_first,
            ToSame: self._put_to_same,
        }
        return whole[type(partitioning)]

    def open(self, runtime_context: RuntimeContext) -> None:
        """Open the user's key selector and partitioner."""
        for function in self._functions():
            open_function(function, runtime_context)

    def close(self) -> None:
        """Close them."""
        for function in self._functions():
            close_function(function)

    def _functions(self) -> Iterator[Any]:
        if isinstance(self._partitioning, (ByKey, ByPartitioner)):
            yield self._partitioning.key_selector
        if isinstance(self._partitioning, ByPartitioner):
            yield self._partitioning.partitioner

    def begin(self, own_group: int) -> None:
        """Begin a batch of a group; drops what a failed attempt left."""
        self._own_group = own_group
        # groups begin with different subtasks, else the first ones would get more
        self._next = own_group % self._groups
        self._buffers, self._buffered, self._encoded = {}, 0, []

    def put(self, chunk: Chunk) -> None:
        """Sort elements into the buffers of their groups."""
        timed = chunk.timestamps is not None
        if timed is not self._timed:
            self._flush()
            self._timed = timed
        self._put(chunk)
        self._buffered += len(chunk.values)
        if self._buffered >= BUFFERED_ELEMENTS:
            self._flush()

    def take(self) -> list[Encoded]:
        """All elements put since the last call, as payloads; copied where they are broadcast."""
        self._flush()
        taken, self._encoded = self._encoded, []
        if isinstance(self._partitioning, Broadcast):
            return [(group, count, payload) for _, count, payload in taken for group in range(self._groups)]
        return taken

    def _flush(self) -> None:
        for group, buffer in self._buffers.items():
            self._encode(group, buffer)
        self._buffers, self._buffered = {}, 0

    def _encode(self, group: int, buffer: Chunk) -> None:
        try:
            payload = self._encoder.encode(buffer)
        except Exception as error:
            raise UserCodeError(
                f"operator '{self._name}': its results cannot be pickled for the next operator "
                f"({error}); the first one is {shown(buffer.values[0])}"
            ) from error
        self._encoded.append((group, len(buffer.values), payload))

    def _buffer(self, group: int) -> Chunk:
        keyed = isinstance(self._partitioning, ByKey)
        buffer = self._buffers[group] = Chunk([], [] if self._timed else None, [] if keyed else None)
        return buffer

    # --- by kind of partitioning ---------------------------------------------------------

    def _put_by_key(self, chunk: Chunk) -> None:
        values, keys = chunk.values, self._keys(chunk.values)
        key_groups, buffers = self._key_groups, self._buffers
        key: Any = None
        try:
            if chunk.timestamps is None:
                for value, key in zip(values, keys, strict=True):
                    group = key_groups[key]
                    buffer = buffers.get(group) or self._buffer(group)
                    buffer.values.append(value)
                    buffer.keys.append(key)  # type: ignore[union-attr]
            else:
                for value, key, time in zip(values, keys, chunk.timestamps, strict=True):
                    group = key_groups[key]
                    buffer = buffers.get(group) or self._buffer(group)
                    buffer.values.append(value)
                    buffer.keys.append(key)  # type: ignore[union-attr]
                    buffer.timestamps.append(time)  # type: ignore[union-attr]
        except TypeError:
            raise unhashable(f"key selector behind operator '{self._name}'", key) from None
        except InvalidKey as error:
            raise InvalidKey(f"key selector behind operator '{self._name}': {error}") from None

    def _keys(self, values: list[Any]) -> list[Any]:
        keys: list[Any] = []
        try:
            keys.extend(map(self._select, values))
        except Exception as error:
            raise noted(error, self._name, "key selector, element", values[len(keys)])
        if len(keys) != len(values):
            raise InvariantViolated(f"the key selector behind operator '{self._name}' raised StopIteration")
        return keys

    def _put_by_partitioner(self, chunk: Chunk) -> None:
        groups, partition, keys = self._groups, self._partition, self._keys(chunk.values)
        times = repeat(None) if chunk.timestamps is None else chunk.timestamps
        for value, key, time in zip(chunk.values, keys, times, strict=False):
            try:
                group = partition(key, groups)
            except Exception as error:
                raise noted(error, self._name, "partitioner, key", key)
            if not (isinstance(group, int) and 0 <= group < groups):
                raise UserCodeError(
                    f"the partitioner behind operator '{self._name}' returned {group!r} for the key "
                    f"{shown(key)}; it must return a number from 0 to {groups - 1}"
                )
            buffer = self._buffers.get(group) or self._buffer(group)
            buffer.values.append(value)
            if buffer.timestamps is not None:
                buffer.timestamps.append(time)

    def _put_round_robin(self, chunk: Chunk) -> None:
        groups, first = self._groups, self._next
        for offset in range(min(groups, len(chunk.values))):
            times = chunk.timestamps
            part = slice(offset, None, groups)
            group = (first + offset) % groups
            self._extend(group, chunk.values[part], None if times is None else times[part])
        self._next = (first + len(chunk.values)) % groups

    def _put_to_first(self, chunk: Chunk) -> None:
        self._extend(0, chunk.values, chunk.timestamps)

    def _put_to_same(self, chunk: Chunk) -> None:
        self._extend(self._own_group, chunk.values, chunk.timestamps)

    def _extend(self, group: int, values: list[Any], timestamps: list[int | None] | None) -> None:
        buffer = self._buffers.get(group) or self._buffer(group)
        buffer.values += values
        if timestamps is not None and buffer.timestamps is not None:
            buffer.timestamps += timestamps
