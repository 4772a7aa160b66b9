"""Elements of a key meet in one subtask behind ``key_by``, whatever the program around it does."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.operators.task.test_planner import planned
from yarnflow.api import StreamExecutionEnvironment
from yarnflow.api.common import Types
from yarnflow.api.datastream.functions import MapFunction
from yarnflow.operators.elements import Chunk
from yarnflow.testing.in_memory_levels import InMemoryLevels

ELEMENT = Types.TUPLE([Types.STRING(), Types.INT(), Types.INT()])
RESULT = Types.TUPLE([Types.PICKLED_BYTE_ARRAY(), Types.INT()])
#: of the tuples above
KEYS = {"name": 0, "number": 1}
#: what may stand between two operators and keeps every element
STEPS = (
    "map",
    "typed map",
    "filter",
    "flat_map",
    "name",
    "number",
    "rebalance",
    "union",
    "keyed union",
    "state",
)


class CountByAttribute(MapFunction):
    """Counts by key in an attribute, and is not opened with a context; a subtask has one such object."""

    def __init__(self, position: int) -> None:
        self.position = position
        self.counts: Counter[Any] = Counter()

    def map(self, value: Any) -> Any:
        key = value[self.position]
        self.counts[key] += 1
        return key, self.counts[key]


def keyed(stream: Any, name: str) -> Any:
    position = KEYS[name]
    return stream.key_by(lambda value: value[position])


def behind(stream: Any, step: str) -> Any:
    match step:
        case "map":
            return stream.map(lambda value: value)
        case "typed map":
            return stream.map(lambda value: value, ELEMENT)
        case "filter":
            return stream.filter(lambda value: True)
        case "flat_map":
            return stream.flat_map(lambda value: [value], ELEMENT)
        case "rebalance":
            return stream.map(lambda value: value, ELEMENT).rebalance()
        case "union":
            return stream.filter(lambda value: value[2] % 2).union(
                stream.filter(lambda value: not value[2] % 2)
            )
        case "keyed union":
            odd, even = (
                stream.filter(lambda value: value[2] % 2),
                stream.filter(lambda value: not value[2] % 2),
            )
            return keyed(odd, "name").union(keyed(even, "name"))
        case "state":
            return keyed(stream, "number").reduce(lambda _, value: value)
        case _:
            return keyed(stream, step)


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 4), st.integers(0, 99)), max_size=30),
    st.integers(1, 4),
    st.integers(1, 3),
    st.lists(st.sampled_from(STEPS), max_size=3),
    st.sampled_from(sorted(KEYS)),
    st.lists(st.sampled_from(["map", "typed map", "filter", "flat_map"]), max_size=2),
    st.booleans(),
)
def test_elements_of_a_key_meet_in_one_object(
    elements: list[tuple[str, int, int]],
    parallelism: int,
    partitions: int,
    before: list[str],
    key: str,
    between: list[str],
    unite: bool,
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    stream: Any = env.from_collection([("a", 0, 0)], type_info=ELEMENT)
    for step in before:
        stream = behind(stream, step)
    # both sides of a union have one type
    stream = keyed(stream.map(lambda value: value, ELEMENT), key)
    if unite:
        stream = stream.union(keyed(env.from_collection([("a", 0, 0)], type_info=ELEMENT), key))
    for step in between:
        stream = behind(stream, step)
    stream.map(CountByAttribute(KEYS[key]), RESULT).print()
    _, plan = planned(env)
    job = InMemoryLevels([source.level for source in plan.sources], plan.levels, max(plan.groups, default=1))
    # a source's partitions are not the subtasks of what reads it
    read = [[Chunk(elements[first::partitions])] for first in range(partitions)]
    job.run_batch(dict.fromkeys(range(len(plan.sources)), read), end=True)
    count = Counter(
        {value: n * len(plan.sources) for value, n in Counter(e[KEYS[key]] for e in elements).items()}
    )
    expected = Counter(f"({value},{i})" for value, n in count.items() for i in range(1, n + 1))
    lines = [line.split("> ")[-1] for lines in job.sinks.values() for line in lines]
    assert Counter(lines) == expected
