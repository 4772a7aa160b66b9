"""The operators of a level, run for one key group and batch at a time.

Use, per worker: ``open`` once; per group and batch :meth:`LevelRun.run` (or ``begin``, any number of
``process``, ``advance``, ``finish`` where the elements come bit by bit, as in level 0); ``close`` at the end.

Level 0 runs one split of a source as one group: its number is the sender of the blocks, its store is
kept in the worker's memory only (what its operators forget with it, such as the latest time seen, a
later level remembers of their watermarks), and its edges have one sender, 0, which tells
``MIN_WATERMARK_MS`` until the split has ended.

If anything raises, the group's store is half advanced: it is thrown away and loaded again.  The
LevelRun itself may be used on, for operators keep nothing of a group but in its store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from yarnflow.errors import InvariantViolated
from yarnflow.operators.elements import Chunk
from yarnflow.operators.process.operator import AsyncCalls, WatermarkStatus
from yarnflow.operators.state.store import GroupStore
from yarnflow.operators.task.blocks import Block, ChunkEncoder, decode
from yarnflow.operators.task.description import (
    InputDescription,
    LevelDescription,
    Route,
    ToExchange,
    ToOperator,
)
from yarnflow.operators.task.exchange import Exchange
from yarnflow.operators.task.node import Deliver, Node, joined
from yarnflow.operators.task.watermarks import (
    EdgeWatermark,
    merge_inputs,
    merge_senders,
    with_sender,
)


@dataclass(slots=True)
class LevelOutput:
    """What came out of a level since the last time it was taken.

    Attributes
    ----------
    blocks : list of Block
        For later levels; ``sender`` is the group that ran.
    sinks : dict of str to Chunk
        Sink id → elements with their times.
    watermarks : list of EdgeWatermark
        One per edge that leaves the level, to be told to all groups of its receiver; only
        :meth:`LevelRun.finish` and :meth:`LevelRun.run` give them.
    elements : dict of str to (int, int)
        Operator id → elements in and out since ``begin``.
    next_processing_time_ms : int or None
        When the earliest processing timer of the group is due, ms since the epoch.
    """

    blocks: list[Block] = field(default_factory=list)
    sinks: dict[str, Chunk] = field(default_factory=dict)
    watermarks: list[EdgeWatermark] = field(default_factory=list)
    elements: dict[str, tuple[int, int]] = field(default_factory=dict)
    next_processing_time_ms: int | None = None


class LevelRun:
    """Runs the operators of a level.

    Parameters
    ----------
    description : LevelDescription
        What to run; its functions are this object's from now on.
    job_parameters : dict of str, optional
        ``RuntimeContext.get_job_parameter``.
    attempt_number : int, optional
        ``RuntimeContext.get_attempt_number``.
    dumps_by_value : callable, optional
        ``f(object) -> bytes`` for elements that pickle refuses; see
        :class:`~yarnflow.operators.task.blocks.ChunkEncoder`.
    async_calls : AsyncCalls, optional
        Needed where the level has asynchronous operators.

    Raises
    ------
    InvariantViolated
        The description names an operator that is not there, or not in front of its senders.
    """

    def __init__(
        self,
        description: LevelDescription,
        *,
        job_parameters: dict[str, str] | None = None,
        attempt_number: int = 0,
        dumps_by_value: Callable[[Any], bytes] | None = None,
        async_calls: AsyncCalls | None = None,
    ) -> None:
        self._encoder = ChunkEncoder(dumps_by_value)
        self._exchanges: list[tuple[Node, Exchange]] = []
        self._sinks: dict[str, list[Chunk]] = {}
        self._nodes = {
            operator.id: Node(operator, job_parameters or {}, attempt_number, async_calls)
            for operator in description.operators
        }
        self._inputs = {edge.edge: edge for edge in description.inputs}
        seen = set[str]()
        for node in self._nodes.values():
            seen.add(node.description.id)
            node.deliver = [self._deliverer(node, route, seen) for route in node.description.routes]
            node.deliver_side = {
                tag_id: [self._deliverer(node, route, seen) for route in routes]
                for tag_id, routes in node.description.side_routes.items()
            }
        for edge in description.inputs:
            self._node(edge.operator_id).upstream.append(self._edge_status(edge))
        self._group = 0
        self._store = GroupStore()
        self._running: list[Node] = []
        self._sequence = 0

    def _node(self, operator_id: str) -> Node:
        if operator_id not in self._nodes:
            raise InvariantViolated(f"the level has no operator '{operator_id}'")
        return self._nodes[operator_id]

    def _deliverer(self, node: Node, route: Route, seen: set[str]) -> Deliver:
        if isinstance(route, ToOperator):
            target, index = self._node(route.operator_id), route.input_index
            if route.operator_id in seen:
                raise InvariantViolated(
                    f"operator '{route.operator_id}' stands before '{node.description.id}', which feeds it"
                )
            target.upstream.append(lambda: node.output_status)
            return lambda chunk: target.receive(index, chunk)
        if isinstance(route, ToExchange):
            exchange = Exchange(route, node.description.name, self._encoder)
            self._exchanges.append((node, exchange))
            return exchange.put
        return self._sinks.setdefault(route.sink_id, []).append

    def _edge_status(self, edge: InputDescription) -> Callable[[], WatermarkStatus]:
        def status() -> WatermarkStatus:
            return merge_senders(self._store.get_progress(("edge", edge.edge), {}), edge.senders)

        return status

    # --- life ----------------------------------------------------------------------------

    def open(self) -> None:
        """Open all operators, those at the end of the level first, as Flink does."""
        for node in reversed(self._nodes.values()):
            node.open()
        for node, exchange in self._exchanges:
            exchange.open(node.runtime_context)

    def close(self) -> None:
        """Close all operators."""
        for node in self._nodes.values():
            node.close()
        for _, exchange in self._exchanges:
            exchange.close()

    # --- one group and batch -------------------------------------------------------------

    def run(
        self,
        group: int,
        store: GroupStore,
        blocks: Iterable[Block],
        watermarks: Iterable[EdgeWatermark],
        now_ms: int,
    ) -> LevelOutput:
        """Advance one group by one batch.

        Parameters
        ----------
        group : int
            Key group, or number of the subtask.
        store : GroupStore
            State of the group in this level as of the last commit; changed in place.  The caller
            then makes ``store.changes()`` durable with the output, or throws it away.
        blocks : iterable of Block
            All blocks for the group, in any order; processed in the order of sender and sequence.
        watermarks : iterable of EdgeWatermark
            What senders told in this batch.
        now_ms : int
            Time of the machine, ms since the epoch.

        Raises
        ------
        Exception
            Whatever a user's function raises, with a note naming operator and element.
        """
        self.begin(group, store, now_ms)
        for block in sorted(blocks, key=lambda block: (block.sender, block.sequence)):
            self.process(block.edge, decode(block.payload))
        self.advance(watermarks)
        return self.finish()

    def begin(self, group: int, store: GroupStore, now_ms: int) -> None:
        """Turn to a group, and fire its processing timers that are due already."""
        self._group, self._store, self._sequence = group, store, 0
        self._running = [node for node in self._nodes.values() if group < node.description.groups]
        for chunks in self._sinks.values():
            chunks.clear()
        for _, exchange in self._exchanges:
            exchange.begin(group)
        for node in self._running:
            node.bind(group, store, now_ms)
        self._fire_processing_timers()

    def set_processing_time(self, now_ms: int) -> None:
        """Tell the time, between chunks; timers fire in :meth:`finish`."""
        for node in self._running:
            node.set_processing_time(now_ms)

    def process(self, edge: str, chunk: Chunk) -> None:
        """Process elements of one edge; with keys if its operator is keyed."""
        found = self._inputs[edge]
        self._nodes[found.operator_id].receive(found.input_index, chunk)

    def advance(self, watermarks: Iterable[EdgeWatermark]) -> None:
        """Take over what senders told, and advance one operator after the other.

        To be called once per batch, after the elements, also when nobody told anything.
        """
        store = self._store
        for told in watermarks:
            name = ("edge", told.edge)
            store.put_progress(name, with_sender(store.get_progress(name, {}), told.sender, told.status))
        for node in self._running:
            node.advance(merge_inputs(node.status, [status() for status in node.upstream]))

    def finish(self) -> LevelOutput:
        """End the batch: processing timers, expired state, then all output and the watermarks behind it."""
        self._fire_processing_timers()
        for node in self._running:
            node.clean_up()
        output = self.take_output()
        output.watermarks = [
            EdgeWatermark(exchange.edge, self._group, node.output_status)
            for node, exchange in self._exchanges
            if node in self._running
        ]
        return output

    def take_output(self) -> LevelOutput:
        """What came out so far; for level 0, whose output leaves while more elements come."""
        output = LevelOutput(next_processing_time_ms=self._store.next_processing_time_ms())
        for _, exchange in self._exchanges:
            for group, count, payload in exchange.take():
                self._sequence += 1
                output.blocks.append(
                    Block(exchange.edge, group, self._group, self._sequence, count, payload)
                )
        for sink_id, chunks in self._sinks.items():
            if chunks:
                output.sinks[sink_id] = joined(chunks)
                chunks.clear()
        output.elements = {
            node.description.id: (node.elements_in, node.elements_out) for node in self._running
        }
        return output

    def _fire_processing_timers(self) -> None:
        for node in self._running:
            node.fire_processing_timers()

    def metrics(self) -> dict[str, dict[str, Any]]:
        """Operator id → metrics of its function by name, as of now; of this worker, over all its groups."""
        return {
            operator_id: values
            for operator_id, node in self._nodes.items()
            if (values := node.metrics.read())
        }
