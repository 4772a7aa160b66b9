"""Calls of the program that become operators on elements.

Decides the type of what comes out, how inputs are keyed, and which side outputs there are; what an
operator does is in its definition (:mod:`yarnflow.operators`), which is pickled with the user's function.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from yarnflow.api.building import definitions
from yarnflow.api.building.definitions import Inputs, Resolved
from yarnflow.api.building.kept_state import kept_by_function
from yarnflow.api.building.output_types import element_columns, record_columns
from yarnflow.api.origin import definition_origin
from yarnflow.errors import SchemaError, UnsupportedGraph
from yarnflow.graph.closures import Closure, copied, function_name, load_closure, make_closure
from yarnflow.graph.element_schema import element_schema, type_of_schema
from yarnflow.graph.operators import (
    ElementInput,
    ElementKind,
    ElementOperator,
    PartitionByKey,
    PartitionCustom,
    PythonKind,
    SideOutput,
)
from yarnflow.graph.schema import Schema
from yarnflow.graph.stream_graph import Definition
from yarnflow.graph.type_info import PICKLED, TupleTypeInfo, TypeInfo, TypeInformation, checked_type
from yarnflow.graph.types import to_schema
from yarnflow.operators.functions.base import Function, positional_arity
from yarnflow.operators.functions.output_tag import OutputTag
from yarnflow.operators.process.adapters import FieldKey, ProjectFields
from yarnflow.operators.process.elementwise import FilterDefinition, FlatMapDefinition, MapDefinition
from yarnflow.operators.process.key_selection import KeySelection, Partitioning

#: fields of an OperatorDefinition that are known only when the job is executed
Settled = Callable[[], Mapping[str, object]]
#: the schema of what comes out, given those of the inputs
Output = Callable[[Inputs], Schema]


@dataclass(slots=True)
class SideTags:
    """The side outputs of one operator; grows until the job is executed."""

    tags: dict[str, TypeInfo] = field(default_factory=dict)

    def add(self, tag: OutputTag) -> TypeInfo:
        """A side output that is read; gives the type of its elements.

        Raises
        ------
        SchemaError
            The id stands for another type already.
        """
        kind = tag_type(tag)
        known = self.tags.setdefault(tag.tag_id, kind)
        if known != kind:
            raise SchemaError(f"side output '{tag.tag_id}' has the types {known!r} and {kind!r}; use one")
        return kind

    def settled(self) -> Mapping[str, object]:
        """What the definition of a process function is told: whether somebody reads a side output."""
        return {"side_outputs": True} if self.tags else {}


def tag_type(tag: OutputTag) -> TypeInfo:
    """Type of the elements of a side output."""
    return checked_type(tag.type_info, f"the type of side output '{tag.tag_id}'")


@dataclass(frozen=True, slots=True)
class KeyBy:
    """How one input is keyed: by a function, or by plain fields."""

    function: Any = None
    key_type: TypeInfo = PICKLED
    #: field names or expressions
    columns: tuple[str, ...] = ()

    def selector(self, schema: Schema, origin: str, operator: str) -> Closure:
        """The key selector for elements of a schema, pickled."""
        if self.function is not None:
            selection = KeySelection(self.function, self.key_type, operator)
            name = function_name(self.function)
            return make_closure(selection, definition_origin(self.function, origin), name)
        known = definitions.columns(schema)
        names = tuple(self._field(text, known) for text in self.columns)
        selection = KeySelection(FieldKey(names, schema.scalar))
        return make_closure(selection, origin, ", ".join(names))

    @staticmethod
    def _field(text: str, schema: Schema) -> str:
        found = schema.find(text)
        if found is None:
            raise UnsupportedGraph(
                f"key '{text}' is an expression, by which only expressions can be keyed; "
                "key_by() a field or a Python function"
            )
        return found.name


@dataclass(frozen=True, slots=True)
class InputOf:
    """One input of an operator on elements."""

    key: KeyBy | None = None
    broadcast: bool = False


def element_operator(
    kind: ElementKind,
    definition: Any,
    function: Any,
    origin: str,
    output: Output,
    *,
    inputs: Sequence[InputOf] = (InputOf(),),
    stateful: bool = False,
    tags: SideTags | None = None,
    settled: Settled | None = None,
    name: str = "",
    processing_timers: bool = False,
    idle_after_ms: int | None = None,
    keeps: str = "",
) -> Definition:
    """Any operator on elements.

    The function is pickled now, as PyFlink does: what the program changes later is not seen by it.

    Parameters
    ----------
    definition : OperatorDefinition
        What the operator does; a dataclass.
    function : object
        The user's, for messages.
    tags : SideTags, optional
        Side outputs that somebody reads; grows until the job is executed.
    settled : callable, optional
        Fields of the definition that are known only when the job is executed; default: those of ``tags``.

    Raises
    ------
    UnserializableFunction
        The function cannot be sent to the workers.
    """
    tags = tags if tags is not None else SideTags()
    settled = settled if settled is not None else tags.settled
    shown = name or function_name(function)
    where = definition_origin(function, origin)
    pickled = make_closure(definition, where, shown)

    def define(schemas: Inputs) -> Resolved:
        ways = tuple(
            ElementInput(
                None if way.key is None else way.key.selector(schema, origin, shown), way.broadcast
            )
            for way, schema in zip(inputs, schemas, strict=True)
        )
        closure, fields = pickled, settled()
        if any(getattr(definition, name) != value for name, value in fields.items()):
            # from what was pickled: the program may have changed the function since
            definition_then: Any = load_closure(pickled)
            closure = make_closure(replace(definition_then, **fields), where, shown)
        sides = tuple(tags.tags.items())
        operator = ElementOperator(
            kind, closure, ways, stateful, sides, processing_timers, idle_after_ms, keeps
        )
        return operator, output(schemas)

    return define


# --- what comes out -------------------------------------------------------------------------


def declared_output(function: Any, method: str, output_type: object | None, iterable: bool) -> Output:
    """Elements of the type a call declares.

    Without one they are pickled; what the function's annotation says about columns is kept for
    expressions, and changes nothing for functions.
    """

    def output(_: Inputs) -> Schema:
        declared = declared_type(output_type)
        if declared is not None:
            return element_schema(declared)
        hinted = element_columns if iterable else record_columns
        try:
            return element_schema(PICKLED, hinted(function, method, None))
        except SchemaError:
            return element_schema(PICKLED)

    return output


def declared_type(output_type: object | None) -> TypeInfo | None:
    """``output_type`` as an element type: one of Types, a list of them, DDL text or a Python type."""
    if output_type is None:
        return None
    if isinstance(output_type, (TypeInformation, list)):
        return checked_type(output_type, "output_type")
    return type_of_schema(to_schema(output_type))


def same_output(schemas: Inputs) -> Schema:
    """Elements of the input's type."""
    (first, *_) = schemas
    if first.element_type is not None:
        return first
    return element_schema(type_of_schema(first), first)


# --- one element at a time ---------------------------------------------------------------------

_METHODS = {PythonKind.MAP: "map", PythonKind.FLAT_MAP: "flat_map", PythonKind.FILTER: "filter"}
_MAKE = {
    PythonKind.MAP: MapDefinition, PythonKind.FLAT_MAP: FlatMapDefinition, PythonKind.FILTER: FilterDefinition
}  # fmt: skip


def one_by_one(
    kind: PythonKind, function: Any, origin: str, output_type: object | None, key: KeyBy | None = None
) -> Definition:
    """``map``, ``flat_map`` and ``filter``: on columns where both sides are, else on elements.

    A function class that is opened with a context sees elements: only those have one.
    """
    method = _METHODS[kind]
    output = (
        same_output
        if kind is PythonKind.FILTER
        else declared_output(function, method, output_type, iterable=kind is PythonKind.FLAT_MAP)
    )
    on_elements = element_operator(
        ElementKind(kind.value),
        _MAKE[kind](function),
        function,
        origin,
        output,
        inputs=(InputOf(key),),
        stateful=key is not None,
        keeps="" if key is None else kept_by_function(function),
    )

    if key is not None or takes_context(function):
        return on_elements
    if kind is not PythonKind.FILTER and not _has_columns(function, method, output_type, kind):
        return on_elements
    on_columns = definitions.python(kind, function, origin, output_type)

    def define(schemas: Inputs) -> Resolved:
        return (on_columns if schemas[0].element_type is None else on_elements)(schemas)

    return define


def takes_context(function: Any) -> bool:
    """Whether a function class overrides ``open`` with a runtime context."""
    if not isinstance(function, Function) or type(function).open is Function.open:
        return False
    return positional_arity(function.open, with_defaults=True) != 0


def _has_columns(function: Any, method: str, output_type: object | None, kind: PythonKind) -> bool:
    if output_type is not None:
        return not isinstance(output_type, (TypeInformation, list))
    hinted = element_columns if kind is PythonKind.FLAT_MAP else record_columns
    try:
        hinted(function, method, None)
    except SchemaError:
        return False
    return True


# --- ways -----------------------------------------------------------------------------------------


def side_output(tag: OutputTag, kind: TypeInfo | None = None) -> Definition:
    """``get_side_output``; of a source, which knows the type."""

    def define(_: Inputs) -> Resolved:
        if kind is not None and tag.type_info != PICKLED and tag_type(tag) != kind:
            raise SchemaError(
                f"side output '{tag.tag_id}' of the source has elements of the type {kind!r}; leave out the "
                "type of the tag"
            )
        return SideOutput(tag.tag_id), element_schema(kind or tag_type(tag))

    return define


def partition_custom(partitioner: Any, key_selector: Any, origin: str) -> Definition:
    """``partition_custom``."""
    by = make_closure(Partitioning(partitioner), definition_origin(partitioner, origin))
    key = KeyBy(copied(key_selector, origin))

    def define(schemas: Inputs) -> Resolved:
        selector = key.selector(schemas[0], origin, "partition_custom")
        return PartitionCustom(by, selector), same_output(schemas)

    return define


def partition_by_key(key: KeyBy, origin: str) -> Definition:
    """Define ``key_by`` in front of what has no keyed state."""

    def define(schemas: Inputs) -> Resolved:
        return PartitionByKey(key.selector(schemas[0], origin, "key_by")), same_output(schemas)

    return define


def project(positions: Sequence[int], origin: str) -> Definition:
    """``project``: some fields of tuples."""
    function = ProjectFields(tuple(positions))

    def output(schemas: Inputs) -> Schema:
        kind = type_of_schema(schemas[0])
        if not isinstance(kind, TupleTypeInfo):
            raise SchemaError(f"only tuples can be projected, and the stream has {kind!r}; use map(…)")
        for position in positions:
            if type(position) is not int or not 0 <= position < len(kind.field_types):
                raise SchemaError(
                    f"there is no field {position!r}: the stream has tuples of "
                    f"{len(kind.field_types)} fields, "
                    "whose positions begin with 0"
                )
        return element_schema(TupleTypeInfo(tuple(kind.field_types[position] for position in positions)))

    return element_operator(
        ElementKind.MAP, MapDefinition(function), function, origin, output, name="project"
    )


def is_coroutine(function: Any) -> bool:
    """Whether an AsyncFunction's ``async_invoke`` is declared ``async def``."""
    return inspect.iscoroutinefunction(getattr(function, "async_invoke", None))
