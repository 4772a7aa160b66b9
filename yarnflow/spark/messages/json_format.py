"""JSON objects as rows and back.

A block is read by Arrow where all its types are Arrow's; what is not quite as Arrow wants it, such as a
number in quotes, is read message by message as Flink reads it.

Flink counterpart: ``JsonRowDeserializationSchema``.
"""

from __future__ import annotations

import decimal
import json
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from yarnflow.errors import SchemaError
from yarnflow.graph.connectors.messages import MessageFormat
from yarnflow.graph.type_info import (
    BasicArrayTypeInfo,
    BasicType,
    BasicTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PickledBytesTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TypeInfo,
)
from yarnflow.operators.row import Row, make_row
from yarnflow.spark.messages.text_values import (
    Lenient,
    Unreadable,
    bits_of,
    float32,
    reader,
    shown,
    values_of,
    whole,
    writer,
)

_Convert = Callable[[Any], Any]
_ARROW: Final = {
    BasicType.STRING: pa.string(),
    BasicType.BOOLEAN: pa.bool_(),
    BasicType.BYTE: pa.int8(),
    BasicType.SHORT: pa.int16(),
    BasicType.INT: pa.int32(),
    BasicType.LONG: pa.int64(),
    BasicType.FLOAT: pa.float32(),
    BasicType.DOUBLE: pa.float64(),
}
_LISTS = (BasicArrayTypeInfo, ObjectArrayTypeInfo, ListTypeInfo, PrimitiveArrayTypeInfo)


class JsonReader:
    """Implements :class:`~yarnflow.spark.messages.reading.MessageReader`."""

    def __init__(self, form: MessageFormat) -> None:
        kind = form.element_type
        if not isinstance(kind, RowTypeInfo):
            raise SchemaError(f"JSON objects become rows, not {kind!r}")
        self._names = kind.get_field_names()
        strict = bool(form.options.get("fail_on_missing_field"))
        self.lenient = Lenient() if form.ignore_errors else None
        self._row = _Converters(strict, self.lenient).row(kind, "the message")
        fields = list(zip(self._names, map(_arrow_type, kind.field_types), strict=True))
        # Arrow does not tell a field that is missing from one that is null
        fits = not strict and all(field is not None for _, field in fields)
        self._schema = pa.schema(fields) if fits else None
        self._after = [_after_arrow(field) for field in kind.field_types]
        self._load = json.JSONDecoder(parse_float=decimal.Decimal if _has_decimals(kind) else None).decode

    def columns(self, messages: pa.Array) -> pa.Table | None:
        """A row for each message, without Python objects; None if they have to be read one by one."""
        if self._schema is None or not len(messages) or not _are_objects(messages):
            return None
        lines = pa.ListArray.from_arrays([0, len(messages)], messages)
        text = pc.binary_join(lines, b"\n")[0].as_py()
        if text.count(b"\n") != len(messages) - 1:
            return None
        try:
            # which read_json does not look at
            messages.cast(pa.string())
            table = pyarrow.json.read_json(
                pa.BufferReader(text),
                pyarrow.json.ReadOptions(use_threads=False, block_size=len(text) + 1),
                pyarrow.json.ParseOptions(
                    explicit_schema=self._schema, unexpected_field_behavior="ignore"
                ),
            )
        except pa.ArrowException:
            return None
        return table if table.num_rows == len(messages) else None

    def block(self, messages: pa.Array) -> list[Any] | None:
        table = self.columns(messages)
        if table is None:
            return None
        columns = [
            values if after is None else [None if value is None else after(value) for value in values]
            for values, after in zip((c.to_pylist() for c in table.columns), self._after, strict=True)
        ]
        names = self._names
        return [make_row(names, list(values)) for values in zip(*columns, strict=True)]

    def one(self, message: bytes) -> Any:
        try:
            found = self._load(message.decode())
        except (ValueError, RecursionError) as error:
            raise Unreadable(f"{error} in {shown(message)}") from None
        return None if found is None else self._row(found)


def _are_objects(messages: pa.Array) -> bool:
    """Whether each message begins and ends as a JSON object does.

    Then each line that Arrow reads as one row is one message: texts that are no objects by themselves cannot
    make objects together, and Arrow meets no ``null`` in place of an object, which would end the process.
    """
    begins, ends = pc.starts_with(messages, b"{"), pc.ends_with(messages, b"}")
    return bool(pc.all(pc.and_(begins, ends)).as_py())


def _has_decimals(kind: TypeInfo) -> bool:
    match kind:
        case BasicTypeInfo(basic):
            return basic is BasicType.BIG_DEC
        case RowTypeInfo(types):
            return any(map(_has_decimals, types))
        case MapTypeInfo(_, value):
            return _has_decimals(value)
    return isinstance(kind, (ObjectArrayTypeInfo, ListTypeInfo)) and _has_decimals(_element(kind))


def _element(kind: Any) -> TypeInfo:
    found: TypeInfo = kind.elem_type if isinstance(kind, ListTypeInfo) else kind.element_type
    return found


def _is_bytes(kind: TypeInfo) -> bool:
    return isinstance(kind, PrimitiveArrayTypeInfo) and kind.element_type == BasicTypeInfo(BasicType.BYTE)


# --- by Arrow -----------------------------------------------------------------------------


def _arrow_type(kind: TypeInfo) -> pa.DataType | None:
    """Arrow's type for it; None where Arrow reads it in another way than Flink does."""
    if isinstance(kind, BasicTypeInfo):
        return _ARROW.get(kind.basic_type)
    if isinstance(kind, RowTypeInfo):
        types = [_arrow_type(field) for field in kind.field_types]
        if None in types:
            return None
        return pa.struct(list(zip(kind.get_field_names(), types, strict=True)))
    if isinstance(kind, _LISTS) and not _is_bytes(kind):
        element = _arrow_type(_element(kind))
        return None if element is None else pa.list_(element)
    return None


def _after_arrow(kind: TypeInfo) -> _Convert | None:
    """From what Arrow gives to an element's part; None = the same."""
    if isinstance(kind, RowTypeInfo):
        names = kind.get_field_names()
        inner = [(name, _after_arrow(field)) for name, field in zip(names, kind.field_types, strict=True)]

        def row(value: Any) -> Row:
            return make_row(
                names,
                [
                    value[name] if after is None or value[name] is None else after(value[name])
                    for name, after in inner
                ],
            )

        return row
    if isinstance(kind, _LISTS):
        after = _after_arrow(_element(kind))
        if after is not None:
            convert = after
            return lambda values: [None if value is None else convert(value) for value in values]
    return None


# --- one by one ---------------------------------------------------------------------------


class _Converters:
    """Makes what converts from JSON's values to an element's parts; conversions raise Unreadable.

    Parameters
    ----------
    strict : bool
        A row must have all of its fields.
    lenient : Lenient or None
        Given: a field, entry or value below the message that cannot be read is None, as in Flink.
    """

    def __init__(self, strict: bool, lenient: Lenient | None) -> None:
        self._strict = strict
        self._lenient = lenient

    def row(self, kind: RowTypeInfo, what: str) -> _Convert:
        """Return the conversion of an object, which is not lenient itself."""
        names, strict = kind.get_field_names(), self._strict
        types = kind.field_types
        fields = [(name, self._part(field, name)) for name, field in zip(names, types, strict=True)]

        def row(found: Any) -> Row:
            if not isinstance(found, dict):
                raise Unreadable(f"{what} is {shown(found)}, which is not a JSON object")
            if strict and (missing := [name for name in names if name not in found]):
                raise Unreadable(f"{what} has no field '{missing[0]}'")
            values = []
            for name, convert in fields:
                value = found.get(name)
                values.append(None if value is None else convert(value))
            return make_row(names, values)

        return row

    def _part(self, kind: TypeInfo, what: str) -> _Convert:
        convert = self._converter(kind, what)
        return convert if self._lenient is None else self._lenient.reading(convert)

    def _converter(self, kind: TypeInfo, what: str) -> _Convert:
        if isinstance(kind, RowTypeInfo):
            return self.row(kind, f"field '{what}'")
        if isinstance(kind, _LISTS) and not _is_bytes(kind):
            return _list(self._part(_element(kind), what), what)
        if isinstance(kind, MapTypeInfo):
            return _map(self._part(kind.value_type_info, what), what)
        if isinstance(kind, PickledBytesTypeInfo):
            return lambda value: value
        return _single(kind, what)


def _list(convert: _Convert, what: str) -> _Convert:
    def values(found: Any) -> list[Any]:
        if not isinstance(found, list):
            raise Unreadable(f"field '{what}' is {shown(found)}, which is not a list")
        return [None if value is None else convert(value) for value in found]

    return values


def _map(convert: _Convert, what: str) -> _Convert:
    def values(found: Any) -> dict[str, Any]:
        if not isinstance(found, dict):
            raise Unreadable(f"field '{what}' is {shown(found)}, which is not a JSON object")
        return {
            _encodable(key): None if value is None else convert(value) for key, value in found.items()
        }

    return values


def _single(kind: TypeInfo, what: str) -> _Convert:
    read = reader(kind, f"field '{what}' of JSON objects")
    bits = bits_of(kind)
    basic = kind.basic_type if isinstance(kind, BasicTypeInfo) else None

    def value(found: Any) -> Any:
        try:
            if basic is BasicType.STRING:
                return _encodable(found if isinstance(found, str) else _text(found))
            if isinstance(found, (int, float, decimal.Decimal)) and not isinstance(found, bool):
                if bits:
                    return whole(int(found), bits)
                if basic is BasicType.DOUBLE:
                    return float(found)
                if basic is BasicType.FLOAT:
                    return float32(float(found))
            return read(_text(found))
        except (Unreadable, ArithmeticError, ValueError):
            raise Unreadable(f"field '{what}' is {shown(found)}, which is no {kind!r}") from None

    return value


def _encodable(text: str) -> str:
    """With ``?`` for half a character (``\\ud800`` alone), as Java writes it."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def _text(found: Any) -> str:
    if isinstance(found, str):
        return found
    if isinstance(found, decimal.Decimal):
        return str(found)
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"), default=str)


# --- writing ------------------------------------------------------------------------------


def json_writer(form: MessageFormat) -> Callable[[Any], bytes]:
    """From rows to JSON objects without blanks."""
    kind = form.element_type
    if not isinstance(kind, RowTypeInfo):
        raise SchemaError(f"rows become JSON objects, not {kind!r}")
    convert = _to_json(kind) or (lambda value: value)
    encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

    def write(value: Any) -> bytes:
        return encode(convert(value)).encode()

    return write


def _to_json(kind: TypeInfo) -> _Convert | None:
    if isinstance(kind, RowTypeInfo):
        return _row_to_json(kind)
    if isinstance(kind, _LISTS) and not _is_bytes(kind):
        convert = _to_json(_element(kind))
        if convert is None:
            return list
        element = convert
        return lambda values: [None if value is None else element(value) for value in values]
    if isinstance(kind, MapTypeInfo):
        inner = _to_json(kind.value_type_info) or (lambda value: value)
        return lambda found: {
            str(key): None if value is None else inner(value) for key, value in found.items()
        }
    if isinstance(kind, BasicTypeInfo) and kind.basic_type is BasicType.BIG_DEC:
        return _number
    return writer(kind)


def _number(value: decimal.Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)


def _row_to_json(kind: RowTypeInfo) -> _Convert:
    names = kind.get_field_names()
    converts = [_to_json(field) for field in kind.field_types]

    def fields(row: Any) -> dict[str, Any]:
        values = values_of(row, names) if kind.field_names else list(row)
        return {
            name: value if value is None or convert is None else convert(value)
            for name, value, convert in zip(names, values, converts, strict=True)
        }

    return fields
