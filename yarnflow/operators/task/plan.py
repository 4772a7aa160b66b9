"""What a level consists of: plain descriptions that travel to the workers.

Flink counterpart: ``StreamConfig`` of the operators of a task.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from yarnflow.graph.closures import Closure
from yarnflow.graph.type_info import TypeInfo


class Exchange(Enum):
    """Which group of the next level an element goes to."""

    #: its key's
    HASH = "HASH"
    #: one group after the other
    REBALANCE = "REBALANCE"
    #: that of the number of the sending subtask
    FORWARD = "FORWARD"
    #: the first
    GLOBAL = "GLOBAL"
    #: all of them
    BROADCAST = "BROADCAST"
    #: as the program's partitioner says
    CUSTOM = "CUSTOM"


@dataclass(frozen=True, slots=True)
class ChainedRoute:
    """To an operator of the same level, without leaving the worker."""

    node_id: int
    input_index: int
    #: side output it carries; None = the main output
    side: str | None = None
    #: what the elements become on the way; None = the very objects go on
    element_type: TypeInfo | None = None
    #: name of the sender and ``file:line`` of its call, for messages
    sender: str = ""
    sender_origin: str = ""


@dataclass(frozen=True, slots=True)
class ExchangeRoute:
    """To an operator of a later level."""

    level: int
    node_id: int
    input_index: int
    exchange: Exchange
    #: key groups, or subtasks, of that operator
    groups: int
    #: watermarks of this route; unique among the inputs of the level
    channel: int
    #: HASH, CUSTOM: a definition whose ``build()`` gives the key selector; None = the element itself
    selector: Closure | None = None
    #: CUSTOM: a definition whose ``build()`` gives the partitioner
    partitioner: Closure | None = None
    side: str | None = None
    #: what the elements are declared to be; those that are near it become it on the way
    element_type: TypeInfo | None = None
    #: name of the sender and ``file:line`` of its call, for messages
    sender: str = ""
    sender_origin: str = ""


@dataclass(frozen=True, slots=True)
class SinkRoute:
    """To a sink; the fields are those of :class:`ExchangeRoute`."""

    node_id: int
    side: str | None = None
    element_type: TypeInfo | None = None
    sender: str = ""
    sender_origin: str = ""
    #: the sink takes the lines that ``print()`` writes of the elements
    printed: bool = False
    #: in one chain of Python functions with the sender
    chained: bool = False
    #: what printed lines begin with
    identifier: str = ""
    exchange: Exchange = Exchange.FORWARD
    #: subtasks of the sink
    groups: int = 1
    selector: Closure | None = None
    partitioner: Closure | None = None


Route = ChainedRoute | ExchangeRoute | SinkRoute


@dataclass(frozen=True, slots=True)
class OperatorPlan:
    """One operator in one level."""

    node_id: int
    #: names its state: stable over versions of a program
    operator_id: str
    name: str
    #: ``file:line`` of the call
    origin: str
    #: cloudpickled OperatorDefinition
    definition: Closure
    routes: tuple[Route, ...]
    #: has keyed state, broadcast state or timers
    stateful: bool = False
    #: its functions may use keyed state and timers
    keyed: bool = False
    parallelism: int = 1
    max_parallelism: int = 128
    #: groups that have it: its key groups where it is keyed, else its subtasks
    groups: int = 128
    #: inputs whose elements every group gets
    broadcast_inputs: frozenset[int] = frozenset()
    #: may have processing-time timers
    processing_timers: bool = False
    #: what it emits is of types that cannot change
    fixed_results: bool = False


@dataclass(frozen=True, slots=True)
class LevelPlan:
    """Operators of one level, each after those that feed it."""

    #: 0 = behind a source
    level: int
    operators: tuple[OperatorPlan, ...]
    #: (node, input) → channels whose watermarks it waits for; inputs without one have no watermark
    channels: dict[tuple[int, int], tuple[int, ...]] = field(default_factory=dict)
    #: level 0: where the elements of the source go
    head: tuple[Route, ...] = ()
    #: channel → how long it tells nothing, by the clock, until nobody waits for it; others are waited for
    idle_after_ms: dict[int, int] = field(default_factory=dict)
    #: level 0: the elements of the source are of a type that cannot change
    fixed_head: bool = False
    #: channel → id of the operator or source that tells it
    senders: dict[int, str] = field(default_factory=dict)

    @property
    def keyed(self) -> bool:
        """Whether groups are key groups, many for one subtask; else a group is a subtask."""
        return any(operator.keyed for operator in self.operators)

    @property
    def stateful(self) -> bool:
        """Whether anything here outlives a micro-batch.

        Watermarks do where several channels are waited for, which may speak in different micro-batches.
        """
        return any(operator.stateful for operator in self.operators) or (
            sum(len(channels) for channels in self.channels.values()) > 1
        )


@dataclass(frozen=True, slots=True)
class JobInfo:
    """What functions can learn of the job through their RuntimeContext."""

    job_name: str = ""
    attempt: int = 0
    parameters: dict[str, str] = field(default_factory=dict)
