"""Schemas of streams as the client knows them: names always, types where it can.

A type is Spark DDL text (``bigint``, ``array<string>``); ``None`` means that only Spark can
tell, which it does in the driver.  Names are compared as Spark compares them by default:
without regard to case.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from yarnflow.graph.type_info import PickledBytesTypeInfo, TypeInfo


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a record."""

    name: str
    #: Spark DDL type, lower case; None = resolved by Spark in the driver
    type: str | None = None


@dataclass(frozen=True, slots=True)
class Schema:
    """The fields of a stream's records, in order.

    ``scalar`` marks streams of single values (``map`` to ``str``): Python functions then get
    the bare value of the only field, called ``value``, instead of a row.

    A stream of *elements* holds Python objects of ``element_type`` as the functions of a program
    emit them; its fields say what they are as columns, and are empty where they can be none.
    """

    fields: tuple[Field, ...]
    scalar: bool = False
    #: None = the stream holds columns
    element_type: TypeInfo | None = None
    #: column of its views with the records' event time: a field, or one more; None = they have none
    event_time: str | None = field(default=None, compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.fields)

    @property
    def known(self) -> bool:
        """Whether the client knows the names; a SQL query may hide them from it."""
        return bool(self.fields)

    @property
    def pickled(self) -> bool:
        """Whether the stream holds objects of a type that the program does not name."""
        return isinstance(self.element_type, PickledBytesTypeInfo)

    @property
    def columns(self) -> Schema:
        """This schema as native operators see it."""
        return Schema(self.fields, self.scalar, None, self.event_time)

    @property
    def free_time_name(self) -> str:
        """The name of event time in views, where no field stands for it."""
        name = EVENT_TIME_NAME
        while self.find(name) is not None:
            name += "_"
        return name

    @property
    def as_view(self) -> Schema:
        """The fields that the stream has as a view of a query: event time is one of them."""
        time = self.event_time
        if time is None or not self.known or self.find(time) is not None:
            return self
        return replace(self, fields=(*self.fields, Field(time, "timestamp")))

    def find(self, name: str) -> Field | None:
        """The field of this name in any case, or None."""
        wanted = name.lower()
        return next((one for one in self.fields if one.name.lower() == wanted), None)

    def without(self, name: str) -> Schema:
        """This schema less one field."""
        wanted = name.lower()
        kept = tuple(one for one in self.fields if one.name.lower() != wanted)
        return Schema(kept, self.scalar, self.element_type, self.event_time)


#: of the column of views with event time, where no field stands for it
EVENT_TIME_NAME: Final = "event_time"
#: what a PythonOperator(KEY) adds to its input
KEY_FIELD: Final = "__key"
#: what AssignTimestamps adds at run time; never part of a Schema
EVENT_TIME_FIELD: Final = "__event_time"
#: the only field of a scalar stream
VALUE_FIELD: Final = "value"
