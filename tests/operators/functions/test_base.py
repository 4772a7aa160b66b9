"""How users' functions are opened, and what of them is called."""

from __future__ import annotations

from typing import Any

import pytest

from yarnflow.graph.type_info import PICKLED
from yarnflow.operators.functions.base import Function, close_function, method_of, open_function
from yarnflow.operators.functions.elements import MapFunction
from yarnflow.operators.functions.output_tag import OutputTag
from yarnflow.operators.functions.runtime_context import TaskInfo, TaskRuntimeContext

CONTEXT = TaskRuntimeContext(TaskInfo("Task", 3, 128, 1, 2, {"key": "value"}))


class Opens:
    def __init__(self) -> None:
        self.given: tuple[Any, ...] | None = None


class WithContext(Opens):
    def open(self, runtime_context: Any) -> None:
        self.given = (runtime_context,)


class Without(Opens):
    def open(self) -> None:
        self.given = ()


class WithDefault(Opens):
    def open(self, runtime_context: Any = None) -> None:
        self.given = (runtime_context,)


class Anything(Opens):
    def open(self, *arguments: Any) -> None:
        self.given = arguments


@pytest.mark.parametrize(
    "kind, expected",
    [
        (WithContext, (CONTEXT,)),
        (Without, ()),
        (WithDefault, (CONTEXT,)),
        (Anything, (CONTEXT,)),
        (Opens, None),
    ],
)
def test_open_gets_the_context_if_it_takes_it(kind: type[Opens], expected: Any) -> None:
    function = kind()
    open_function(function, CONTEXT)
    close_function(function)
    assert function.given == expected


def test_plain_functions_are_neither_opened_nor_closed() -> None:
    open_function(len, CONTEXT)
    close_function(len)


def test_what_is_called_per_element() -> None:
    class Identity(MapFunction):
        def map(self, value: Any) -> Any:
            return value

    identity = Identity()
    assert method_of(identity, "map") == identity.map
    assert method_of(len, "map") is len
    with pytest.raises(TypeError, match="int cannot be used here: it needs a method map, or to be"):
        method_of(5, "map")
    with pytest.raises(TypeError, match="Function cannot be used here"):
        method_of(Function(), "map")


def test_a_runtime_context_tells_what_the_task_is() -> None:
    assert CONTEXT.get_task_name() == "Task"
    assert CONTEXT.get_task_name_with_subtasks() == "Task (2/3)"
    assert CONTEXT.get_number_of_parallel_subtasks() == 3
    assert CONTEXT.get_max_number_of_parallel_subtasks() == 128
    assert CONTEXT.get_index_of_this_subtask() == 1
    assert CONTEXT.get_attempt_number() == 2
    assert CONTEXT.get_job_parameter("key", "default") == "value"
    assert CONTEXT.get_job_parameter("other", "default") == "default"


def test_output_tags_are_known_by_their_id() -> None:
    assert OutputTag("late") == OutputTag("late", "STRING") != OutputTag("early")
    assert len({OutputTag("late"), OutputTag("late")}) == 1
    assert OutputTag("late").type_info == PICKLED
    with pytest.raises(ValueError, match="the id of an OutputTag cannot be empty"):
        OutputTag("")
