"""Which sink of a program is which sink of a checkpoint.

What a sink has written bears its *key*: names of files, notes in databases, transactional ids.  The key lies
in the checkpoint, beside Spark's logs, and not in the program: places in a graph, and so hashes of operators,
change with every operator that comes before.  Pure: compares the sinks of one query with those that its
checkpoint names.  Flink counterpart: the uid of a sink, whose committables are in its operator's state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from yarnflow.graph.connectors.elasticsearch import ElasticsearchSink
from yarnflow.graph.connectors.kafka import KafkaDelivery, KafkaSink
from yarnflow.graph.connectors.python import PythonSink
from yarnflow.graph.connectors.redis import RedisSink
from yarnflow.graph.connectors.sinks import FileSink, ForeachBatchSink, JdbcSink
from yarnflow.graph.job_graph import StreamNode

#: in a query's directory: its sinks
SINKS_FILE: Final = "sinks.json"
#: of the key, what is in names of files and transactional ids
_SHORT: Final = 8


@dataclass(frozen=True, slots=True)
class SinkEntry:
    """One sink of a query."""

    #: 32 hex digits, in what it writes or notes outside; the same as long as the query goes on
    key: str
    #: class of its description, e.g. ``FileSink``
    kind: str
    #: where it writes: a path; of servers a digest, since addresses may hold passwords
    target: str = ""
    #: digest of all that describes it
    detail: str = ""
    #: 32 hex digits, from the uid or from the position in the graph
    operator_hash: str = ""
    uid: str = ""
    name: str = ""
    #: ``file:line`` of the call in the user's program
    origin: str = ""
    #: what it was given must be there once
    exactly_once: bool = False
    #: a later program had it no more: its key is given to no other one
    gone: bool = False

    @property
    def shown(self) -> str:
        """For people."""
        told = ", ".join(filter(None, (f"uid '{self.uid}'" if self.uid else "no uid", self.origin)))
        where = f" to {self.target}" if self.kind == FileSink.__name__ else ""
        return f"'{self.name}'{where} ({told})"


@dataclass(frozen=True, slots=True)
class SinkEntries:
    """What :data:`SINKS_FILE` holds."""

    sinks: tuple[SinkEntry, ...] = ()


class Change(Enum):
    """Why what a sink has begun is not completed by the program."""

    GONE = "is not in the program any more"
    MOVED = "writes to another place in the program"
    DOUBTFUL = "cannot be told from others that write to the same place"


def entry_of(node: StreamNode) -> SinkEntry | None:
    """A sink as a program has it, with the key of one whose query begins; None = it needs none."""
    operator, exactly_once, target, detail = node.operator, True, "", ""
    match operator:
        case FileSink():
            target, detail = operator.path.rstrip("/") or "/", _digest(repr(operator))
        case JdbcSink():
            target, detail = _digest(_database(operator.url)), _digest(operator.statement)
        case RedisSink():
            server = operator.server
            target = _digest(f"{server.host}:{server.port}/{server.database}")
            detail = _digest(f"{operator.command.value} {operator.additional_key} {operator.mapper.name}")
        case KafkaSink():
            # names of brokers change, and they are the same cluster; notes of batches bear the prefix
            target = _digest(f"{operator.transactional_id_prefix} {operator.topic}")
            exactly_once = operator.delivery is KafkaDelivery.EXACTLY_ONCE
        case ElasticsearchSink():
            target, exactly_once = _digest(operator.index), False
        case ForeachBatchSink():
            # where it writes is known to the user's code alone
            detail, exactly_once = _digest(operator.closure.name), False
        case PythonSink():
            detail, exactly_once = _digest(operator.data_source.name), False
        case _:
            return None
    return SinkEntry(
        node.operator_hash, type(operator).__name__, target, detail, node.operator_hash, node.uid, node.name,
        node.origin, exactly_once,
    )  # fmt: skip


def gone_on(saved: Sequence[SinkEntry], program: Sequence[SinkEntry]) -> tuple[SinkEntry, ...]:
    """The sinks of a program with the keys that its checkpoint gives them; behind them those that are gone.

    Parameters
    ----------
    saved : sequence of SinkEntry
        What the checkpoint names; empty = the query begins.
    program : sequence of SinkEntry
        By :func:`entry_of`.
    """
    pairs, _ = _pairs(saved, program)
    taken = {one.key for one in saved}
    entries: list[SinkEntry] = []
    for number, one in enumerate(program):
        if number in pairs:
            key = saved[pairs[number]].key
        else:
            # of the first program as its hash is
            key = _free_key(one.key, taken) if saved else one.key
        taken.add(key)
        entries.append(replace(one, key=key))
    left = (replace(was, gone=True) for number, was in enumerate(saved) if number not in pairs.values())
    return (*entries, *left)


def not_completed(
    saved: Sequence[SinkEntry], program: Sequence[SinkEntry]
) -> tuple[tuple[SinkEntry, Change], ...]:
    """Sinks of a checkpoint which a program does not complete a batch of, if they have begun one.

    Sinks of the user's own code promise nothing by themselves: they are among them only if others could be
    taken for them.
    """
    pairs, doubtful = _pairs(saved, program)
    of_saved = {was: now for now, was in pairs.items()}
    found: list[tuple[SinkEntry, Change]] = []
    for number, was in enumerate(saved):
        if was.gone:
            continue
        if number in doubtful:
            found.append((was, Change.DOUBTFUL))
        elif was.exactly_once and number not in of_saved:
            found.append((was, Change.GONE))
        elif was.exactly_once and program[of_saved[number]].target != was.target:
            found.append((was, Change.MOVED))
    return tuple(found)


def _pairs(saved: Sequence[SinkEntry], program: Sequence[SinkEntry]) -> tuple[dict[int, int], set[int]]:
    """Number of a sink in the program → its number in the checkpoint; and numbers of the latter in doubt.

    By uid, else by where they write; several that write to the same place by their hashes if the program has
    the very same, else by all that describes them.  What is left is found by its place in the graph.
    """
    found: dict[int, int] = {}

    def left() -> tuple[list[int], list[int]]:
        were = [n for n, was in enumerate(saved) if not was.gone and n not in found.values()]
        return were, [n for n in range(len(program)) if n not in found]

    def pair(label: Callable[[SinkEntry], object], only: set[object] | None = None) -> None:
        """Those that alone have a label, here and there."""
        were, are = left()
        for was in were:
            said = label(saved[was])
            same = [now for now in are if label(program[now]) == said]
            alone = len(same) == 1 == sum(label(saved[other]) == said for other in were)
            if alone and (only is None or said in only) and _may_be(saved[was], program[same[0]]):
                found[same[0]] = was

    uids: set[object] = {(was.kind, was.uid) for was in saved if was.uid}
    pair(lambda one: (one.kind, one.uid), uids)
    for was, now in _unchanged(saved, program, *left()):
        found[now] = was
    pair(lambda one: (one.kind, one.target, one.detail))
    pair(lambda one: (one.kind, one.target))
    were, are = left()
    doubtful = {
        n for n in were
        if any(_place(saved[n]) == _place(program[m]) and _may_be(saved[n], program[m]) for m in are)
    }  # fmt: skip
    in_doubt = {_place(saved[n]) for n in doubtful}
    # no object is another one
    pair(lambda one: object() if _place(one) in in_doubt else (one.kind, one.operator_hash))
    return found, doubtful


def _unchanged(
    saved: Sequence[SinkEntry], program: Sequence[SinkEntry], were: list[int], are: list[int]
) -> Iterator[tuple[int, int]]:
    """Sinks at one place whose hashes are the very same: nothing before them has changed."""
    for place in {_place(saved[n]) for n in were}:
        before = {saved[n].operator_hash: n for n in were if _place(saved[n]) == place}
        after = {program[n].operator_hash: n for n in are if _place(program[n]) == place}
        if before.keys() == after.keys():
            for said, was in before.items():
                if _may_be(saved[was], program[after[said]]):
                    yield was, after[said]


def _place(one: SinkEntry) -> tuple[str, str]:
    return one.kind, one.target


def _may_be(was: SinkEntry, now: SinkEntry) -> bool:
    """Two uids are two sinks."""
    return not (was.uid and now.uid) or was.uid == now.uid


def _free_key(key: str, taken: set[str]) -> str:
    """A key whose beginning no other has: a place in the graph that another sink had has one already."""
    short, number = {one[:_SHORT] for one in taken}, 0
    free = key
    while free[:_SHORT] in short:
        number += 1
        free = _digest(f"{key} {number}")
    return free


def _database(url: str) -> str:
    """Without user and password, and without settings."""
    scheme, slashes, rest = url.partition("//")
    return f"{scheme}{slashes}{rest.rpartition('@')[2].partition('?')[0]}"


def _digest(text: str) -> str:
    import hashlib  # loads OpenSSL, which a program that only builds streams never needs

    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
