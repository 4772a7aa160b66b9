"""One level at work in one worker: elements first, then the watermark and the timers it makes due.

A group's turn in a micro-batch: processing timers that are due; its elements by sender and sequence, and
processing timers they registered for a time that is past; then its watermark, operator by operator, each
firing its timers and handing their results on before the next one advances.  In a batch, where all input is
there, elements come by their times, and then all timers, those of the clock behind those of the event time.
Whatever an operator keeps of
a group is in the group's store, which the caller makes durable or throws away.  Never reads a clock and
never decides where blocks travel.

Flink counterparts: ``OperatorChain``, ``InternalTimeServiceManager``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import suppress
from itertools import count, groupby
from operator import itemgetter
from typing import Any, Final, cast

from yarnflow.graph.closures import Closure
from yarnflow.operators.elements import MAX_WATERMARK_MS, MIN_WATERMARK_MS, Chunk, SourceChunk
from yarnflow.operators.functions.measures import Measures
from yarnflow.operators.process.key_selection import SelectKeys
from yarnflow.operators.process.operator import AsyncCalls, OperatorDefinition, WatermarkStatus
from yarnflow.operators.process.snapshots import snapshot
from yarnflow.operators.state.store import GroupStore
from yarnflow.operators.task.blocks import ALL_GROUPS, ELEMENTS, END, WATERMARK, Block
from yarnflow.operators.task.channels import Channels
from yarnflow.operators.task.key_groups import is_first_of_subtask
from yarnflow.operators.task.micro_batch import MicroBatch
from yarnflow.operators.task.node import Deliver, Node, joined
from yarnflow.operators.task.outputs import (
    MAX_WAITING_ELEMENTS,
    Dumps,
    KeyedTarget,
    PlainTarget,
    SinkTarget,
    Target,
    converter,
)
from yarnflow.operators.task.packing import Packed, unpacked
from yarnflow.operators.task.plan import (
    ChainedRoute,
    Exchange,
    ExchangeRoute,
    JobInfo,
    LevelPlan,
    Route,
    SinkRoute,
)
from yarnflow.operators.task.time_order import in_time_order

#: begins the name of a channel's watermark in a group's store
_CHANNEL: Final = "channel"


class LevelRun:
    """The operators of a level, opened.

    Parameters
    ----------
    plan : LevelPlan
        What the level consists of.
    job : JobInfo
        For functions' RuntimeContext.
    subtask : int
        Number of the partition this worker works on.
    load : callable
        From a closure to what was pickled.
    dumps, loads : callable
        Pickle's, for blocks.
    async_calls : AsyncCalls, optional
        Needed where the level has asynchronous operators.
    """

    def __init__(
        self,
        plan: LevelPlan,
        job: JobInfo,
        subtask: int,
        load: Callable[[Closure], Any],
        dumps: Dumps,
        loads: Callable[[bytes], Any],
        async_calls: AsyncCalls | None = None,
    ) -> None:
        self.plan = plan
        self._load = load
        self._dumps = dumps
        self._loads = loads
        self._subtask = subtask
        #: by the last :meth:`run_source`
        self.elements_read = self.errors_read = 0
        self._channels = Channels(_channel_names(plan), plan.idle_after_ms)
        self._targets: list[Target] = []
        #: routes that leave the level, with the node before them
        self._exchanges: list[tuple[Node, ExchangeRoute]] = []
        self._nodes = {
            operator.node_id: Node(operator, definition, job, subtask, async_calls)
            for operator in plan.operators
            for definition in [cast(OperatorDefinition, load(operator.definition))]
        }
        #: nodes behind which every group has a watermark of its own
        self._own_watermark: set[int] = set()
        for node in self._nodes.values():
            self._connect(node)
        for (node_id, _), channels in plan.channels.items():
            self._nodes[node_id].upstream.append(self._channels_status(channels))
        self._head: list[Deliver] = []
        #: side outputs of the source itself
        self._head_sides: dict[str, list[Deliver]] = {}
        for route in plan.head:
            delivers = self._head if route.side is None else self._head_sides.setdefault(route.side, [])
            delivers.append(self._deliverer(route, self._own_subtask))
        _set_apart(self._head, plan.fixed_head)
        for delivers in self._head_sides.values():
            _set_apart(delivers, False)
        self._open()

    def _open(self) -> None:
        opened: list[Node] = []
        try:
            # those that get the elements last are opened first, as Flink does
            for node in reversed(self._nodes.values()):
                # one that fails may hold something already
                opened.append(node)
                node.open()
        except BaseException:
            for node in reversed(opened):
                with suppress(Exception):
                    node.close()
            raise

    def close(self) -> list[Exception]:
        """Close all operators.

        Returns
        -------
        list of Exception
            What their functions raised; a note on each names operator and line.
        """
        errors: list[Exception] = []
        for node in self._nodes.values():
            try:
                node.close()
            except Exception as error:
                errors.append(error)
        return errors

    def take_measures(self, busy_ns: int) -> Measures:
        """What the operators counted in the turn that was last; to be asked once after each.

        Parameters
        ----------
        busy_ns : int
            How long that turn took.
        """
        return {
            (node.plan.node_id, node.subtask()): node.take_measures(busy_ns) for node in self._nodes.values()
        }

    # --- building -------------------------------------------------------------------

    def _connect(self, node: Node) -> None:
        number = node.plan.node_id
        if node.makes_watermarks:
            self._own_watermark.add(number)
        for route in node.plan.routes:
            if isinstance(route, ChainedRoute):
                self._nodes[route.node_id].upstream.append(_status_behind(node))
                if number in self._own_watermark:
                    self._own_watermark.add(route.node_id)
            elif isinstance(route, ExchangeRoute):
                self._exchanges.append((node, route))
            if route.side is None:
                node.deliver.append(self._deliverer(route, node.subtask))
            else:
                node.deliver_side.setdefault(route.side, []).append(self._deliverer(route, node.subtask))
        for delivers in (node.deliver, *node.deliver_side.values()):
            _set_apart(delivers, node.plan.fixed_results)

    def _own_subtask(self) -> int:
        return self._subtask

    def _deliverer(self, route: Route, of_sender: Callable[[], int]) -> Callable[[Chunk], None]:
        if isinstance(route, ChainedRoute):
            node, index = self._nodes[route.node_id], route.input_index
            if route.element_type is None:
                return lambda chunk: node.receive(index, chunk)
            convert = converter(route)
            return lambda chunk: node.receive(
                index, Chunk(convert(chunk.values), chunk.timestamps, chunk.keys)
            )
        made: Target
        if isinstance(route, SinkRoute):
            keyed = route.exchange is Exchange.HASH
            select = self._selector(route) if keyed else _themselves
            made = SinkTarget(route, of_sender, select, self._partition(route), self._dumps)
        elif route.exchange is Exchange.HASH:
            made = KeyedTarget(route, self._selector(route), self._dumps)
        else:
            made = PlainTarget(route, of_sender, self._partition(route), self._dumps)
        self._targets.append(made)
        return made.take

    def _function(self, closure: Closure) -> Callable[..., Any]:
        """A shipped function of the program."""
        return cast(Callable[..., Any], self._load(closure).build())

    def _selector(self, route: ExchangeRoute | SinkRoute) -> SelectKeys:
        if route.selector is None:
            return _themselves
        return self._function(route.selector)

    def _partition(self, route: ExchangeRoute | SinkRoute) -> Callable[[Any], int] | None:
        if route.partitioner is None:
            return None
        partitioner, select, groups = self._function(route.partitioner), self._selector(route), route.groups
        return lambda value: cast(int, partitioner(select([value])[0], groups))

    def _channels_status(self, channels: tuple[int, ...]) -> Callable[[], WatermarkStatus]:
        return lambda: self._channels.status(channels)

    # --- level 0 ----------------------------------------------------------------------

    def run_source(
        self, chunks: Iterable[Chunk], sender: int, batch: MicroBatch
    ) -> Iterator[Block]:
        """Handle one partition of a source's micro-batch; the last blocks are watermarks.

        Nothing is kept of it: the next micro-batch may be another partition's.

        Parameters
        ----------
        chunks : iterable of Chunk
        sender : int
            Number of the partition, unique among all sources.
        batch : MicroBatch
        """
        sequence = count()
        self._bind(self._subtask, GroupStore(), batch)
        empty = True
        self.elements_read = self.errors_read = 0
        for chunk in chunks:
            empty = False
            self.elements_read += len(chunk.values)
            for deliver in self._head:
                deliver(chunk)
            if isinstance(chunk, SourceChunk):
                self.errors_read += chunk.errors
                for tag_id, found in chunk.sides.items():
                    for deliver in self._head_sides.get(tag_id, ()):
                        deliver(found)
            yield from self._flush(sender, sequence, MAX_WAITING_ELEMENTS)
        yield from self._flush(sender, sequence, 0)
        if empty:
            # a partition without elements knows of no time, and holds nobody back
            return
        for node in self._nodes.values():
            node.advance(_merged(node))
        yield from self._watermarks(sender, sequence, True)

    # --- later levels -------------------------------------------------------------------

    def run_group(
        self, group: int, store: GroupStore, blocks: Iterable[Block], batch: MicroBatch
    ) -> Iterator[Block]:
        """Handle what one group got in a micro-batch, blocks of other levels left out.

        The store is advanced wholly only if the iterator was used up; else it is to be thrown away.

        Parameters
        ----------
        group : int
        store : GroupStore
            State of the group.
        blocks : iterable of Block
            In any order.
        batch : MicroBatch
        """
        sequence = count()
        self._bind(group, store, batch)
        running = [node for node in self._nodes.values() if group < node.plan.groups]
        if not batch.whole:
            for node in running:
                node.fire_processing_timers()
        told: dict[int, list[WatermarkStatus]] = {}
        ended = False
        waiting: list[Block] = []
        for block in blocks:
            if block.kind == ELEMENTS:
                waiting.append(block)
            elif block.kind == WATERMARK:
                told.setdefault(block.target, []).append(WatermarkStatus(*self._loads(block.payload)))
            elif block.kind == END:
                ended = True
        inputs = self._inputs(group, sorted(waiting, key=_order))
        for node, index, chunk in in_time_order(inputs) if batch.whole else inputs:
            self._receive(group, node, index, chunk)
            yield from self._flush(group, sequence, MAX_WAITING_ELEMENTS)
        if not batch.whole:
            for node in running:
                # an element may have registered one for a time that is past
                node.fire_processing_timers()
                yield from self._flush(group, sequence, MAX_WAITING_ELEMENTS)
        self._channels.take_over(told)
        for node in running:
            if batch.whole:
                node.end()
            else:
                node.advance(WatermarkStatus(MAX_WATERMARK_MS) if ended else _merged(node))
            yield from self._flush(group, sequence, MAX_WAITING_ELEMENTS)
        for node in running:
            node.clean_up()
        yield from self._flush(group, sequence, 0)
        yield from self._watermarks(group, sequence, group == 0)

    def _bind(self, group: int, store: GroupStore, batch: MicroBatch) -> None:
        self._channels.bind(store, batch)
        for target in self._targets:
            # senders begin apart, and so do micro-batches of few elements
            target.begin(group + batch.number)
        for node in self._nodes.values():
            node.bind(group, store, batch)

    def _inputs(self, group: int, blocks: Iterable[Block]) -> Iterator[tuple[Node, int, Chunk]]:
        """Node, number of the input and elements of blocks; neighbours for one input become one chunk.

        A block holds what one sender had for one group, which is little where there are many groups.
        """
        # a broadcast reaches all groups of the level; some of its operators have fewer
        reaching = (block for block in blocks if group < self._nodes[block.target].plan.groups)
        for target, found in groupby(reaching, key=lambda block: block.target):
            node = self._nodes[target]
            payloads = (self._loads(block.payload) for block in found)
            for index, of_input in groupby(payloads, key=itemgetter(0)):
                waiting: list[Chunk] = []
                size = 0
                for _, values, timestamps, keys in of_input:
                    chunk = Chunk(unpacked(values), _unpacked(timestamps), _unpacked(keys))
                    waiting.append(chunk)
                    size += len(chunk.values)
                    if size >= MAX_WAITING_ELEMENTS:
                        yield node, index, joined(waiting)
                        waiting, size = [], 0
                if waiting:
                    yield node, index, joined(waiting)

    def _receive(self, group: int, node: Node, index: int, chunk: Chunk) -> None:
        # a broadcast element has its effect on the state of every key group, and one result per subtask
        plan = node.plan
        speaks = is_first_of_subtask(group, plan.parallelism, plan.groups)
        node.context.muted = index in plan.broadcast_inputs and not speaks
        node.receive(index, chunk)
        node.context.muted = False

    # --- both ---------------------------------------------------------------------------

    def _flush(self, sender: int, sequence: Iterator[int], most: int) -> Iterator[Block]:
        for target in self._targets:
            if target.waiting > most:
                yield from target.flush(sender, sequence)

    def _watermarks(self, sender: int, sequence: Iterator[int], speaks: bool) -> Iterator[Block]:
        """Watermarks for later levels.

        All groups of a level advance alike, so one of them speaks for all; only behind an operator that
        makes watermarks of its own has every group its own.
        """
        for node, route in self._exchanges:
            status = node.output_status
            if not (speaks or node.plan.node_id in self._own_watermark):
                continue
            if status.watermark_ms > MIN_WATERMARK_MS or status.idle:
                payload = self._dumps(tuple(status))
                yield Block(
                    route.level, ALL_GROUPS, route.channel, WATERMARK, sender, next(sequence), payload
                )


def _channel_names(plan: LevelPlan) -> dict[int, Hashable]:
    """Channel → the name of its watermark in a group's store.

    Channels are numbered anew for each version of a program; who speaks to whom stays.
    """
    ids = {operator.node_id: operator.operator_id for operator in plan.operators}
    names: dict[int, Hashable] = {}
    for (node_id, index), channels in plan.channels.items():
        spoken: Counter[str] = Counter()
        for channel in channels:
            sender = plan.senders.get(channel, "")
            names[channel] = (_CHANNEL, ids[node_id], index, sender, spoken[sender])
            spoken[sender] += 1
    return names


def _status_behind(node: Node) -> Callable[[], WatermarkStatus]:
    return lambda: node.output_status


def _merged(node: Node) -> WatermarkStatus:
    """Watermark of an operator: the earliest of its inputs that are not idle; it never goes back.

    A single input that is idle as a whole has told all it will for the time being, as in Flink.
    """
    found = [read() for read in node.upstream]
    active = [status.watermark_ms for status in found if not status.idle]
    if not active:
        last_ms = found[0].watermark_ms if len(found) == 1 else MIN_WATERMARK_MS
        return WatermarkStatus(max(node.status.watermark_ms, last_ms), bool(found))
    return WatermarkStatus(max(node.status.watermark_ms, min(active)))


def _unpacked(found: Packed | None) -> list[Any] | None:
    return None if found is None else unpacked(found)


def _themselves(values: list[Any]) -> list[Any]:
    return values


def _set_apart(delivers: list[Deliver], fixed: bool) -> None:
    """Of elements that can change each way but the last gets copies: what is behind it may change them."""
    if not fixed:
        delivers[:-1] = map(_of_copies, delivers[:-1])


def _of_copies(deliver: Deliver) -> Deliver:
    return lambda chunk: deliver(Chunk(list(map(snapshot, chunk.values)), chunk.timestamps, chunk.keys))


def _order(block: Block) -> tuple[int, int]:
    return block.sender, block.sequence
