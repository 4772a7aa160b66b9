"""Element types: what they are, and which columns they stand for."""

import pickle
from typing import Any

import pytest

from yarnflow.errors import SchemaError, UnsupportedCall
from yarnflow.graph.codec import from_plain, to_plain
from yarnflow.graph.element_schema import element_schema, from_ddl, to_ddl, type_of_schema
from yarnflow.graph.schema import Field, Schema
from yarnflow.graph.type_info import (
    PICKLED,
    ExternalTypeInfo,
    LocalTimeTypeInfo,
    RowTypeInfo,
    SqlTimeTypeInfo,
    TimeType,
    TypeInfo,
    Types,
    checked_type,
)

PERSON = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
SINGLE: list[tuple[TypeInfo, str, str | None]] = [
    (Types.STRING(), "String", "string"),
    (Types.BYTE(), "Byte", "tinyint"),
    (Types.BOOLEAN(), "Boolean", "boolean"),
    (Types.SHORT(), "Short", "smallint"),
    (Types.INT(), "Integer", "int"),
    (Types.LONG(), "Long", "bigint"),
    (Types.FLOAT(), "Float", "float"),
    (Types.DOUBLE(), "Double", "double"),
    (Types.CHAR(), "Char", "string"),
    (Types.BIG_INT(), "BigInteger", None),
    (Types.BIG_DEC(), "BigDecimal", "decimal(38,18)"),
    (Types.INSTANT(), "Instant", "timestamp"),
    (Types.SQL_DATE(), "DateTypeInfo", "date"),
    (Types.SQL_TIME(), "TimeTypeInfo", None),
    (Types.SQL_TIMESTAMP(), "TimestampTypeInfo", "timestamp"),
    (Types.PICKLED_BYTE_ARRAY(), "PickledByteArrayTypeInfo", None),
    (Types.PRIMITIVE_ARRAY(Types.BYTE()), "PrimitiveArrayTypeInfo<Byte>", "binary"),
    (Types.PRIMITIVE_ARRAY(Types.INT()), "PrimitiveArrayTypeInfo<Integer>", "array<int>"),
    (Types.BASIC_ARRAY(Types.STRING()), "BasicArrayTypeInfo<String>", "array<string>"),
    (Types.OBJECT_ARRAY(PERSON), f"ObjectArrayTypeInfo<{PERSON!r}>", "array<struct<name:string,age:int>>"),
    (Types.LIST(Types.LONG()), "ListTypeInfo<Long>", "array<bigint>"),
    (Types.MAP(Types.STRING(), Types.LONG()), "MapTypeInfo<String, Long>", "map<string,bigint>"),
    (Types.TUPLE([Types.STRING()]), "TupleTypeInfo(String)", "struct<f0:string>"),
    (Types.ROW([Types.STRING()]), "RowTypeInfo(String)", "struct<f0:string>"),
    (PERSON, "RowTypeInfo(name: String, age: Integer)", "struct<name:string,age:int>"),
    (Types.ROW([PICKLED]), "RowTypeInfo(PickledByteArrayTypeInfo)", None),
    (LocalTimeTypeInfo(TimeType.LOCAL_DATE_TIME), "LocalTimeTypeInfo<LOCAL_DATE_TIME>", "timestamp"),
    (LocalTimeTypeInfo(TimeType.LOCAL_TIME), "LocalTimeTypeInfo<LOCAL_TIME>", None),
    (ExternalTypeInfo(Types.INT()), "ExternalTypeInfo<Integer>", "int"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "shown", "ddl"), SINGLE, ids=[repr(kind) for kind, _, _ in SINGLE])
def test_each_type(kind: Any, shown: str, ddl: str | None) -> None:
    assert repr(kind) == shown
    assert to_ddl(kind) == ddl
    assert pickle.loads(pickle.dumps(kind)) == kind
    plain = to_plain(kind, TypeInfo)
    loaded: TypeInfo = from_plain(plain, TypeInfo, "type")  # type: ignore[arg-type]
    assert loaded == kind and repr(loaded) == repr(kind)
    assert len({kind, loaded}) == 1


def test_there_are_the_factories_of_pyflink() -> None:
    made = {name for name in vars(Types) if name.isupper()}
    assert len(made) == 24
    assert isinstance(SqlTimeTypeInfo.DATE(), type(Types.SQL_DATE()))


def test_names_of_a_row_do_not_count() -> None:
    assert Types.ROW([Types.INT()]) == Types.ROW_NAMED(["a"], [Types.INT()])
    assert Types.ROW([Types.INT()]) != Types.ROW([Types.LONG()])
    row: TypeInfo = Types.ROW([Types.INT()])
    assert row != Types.TUPLE([Types.INT()])


def test_fields_of_a_row() -> None:
    assert (PERSON.get_field_names(), PERSON.get_field_index("age")) == (["name", "age"], 1)
    unnamed = Types.ROW([Types.INT(), Types.INT()])
    assert (unnamed.get_field_names(), unnamed.get_field_index("f1")) == (["f0", "f1"], -1)
    assert unnamed.get_field_types() == [Types.INT(), Types.INT()]
    assert Types.TUPLE([Types.INT()]).get_field_types() == [Types.INT()]


def test_a_list_of_types_is_a_row() -> None:
    assert checked_type([Types.INT()], "output_type") == Types.ROW([Types.INT()])


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda: Types.ROW(["STRING"]), r"field 0 of ROW is 'STRING'"),  # type: ignore[list-item]
        (lambda: Types.TUPLE(Types.INT()), r"write \[Integer\]"),  # type: ignore[arg-type]
        (lambda: Types.ROW_NAMED(["a"], []), "a row of 0 types has 1 names: a"),
        (lambda: Types.ROW_NAMED(["a", "a"], [Types.INT(), Types.INT()]), "one name"),
        (lambda: Types.PRIMITIVE_ARRAY(Types.STRING()), "PRIMITIVE_ARRAY takes .*, not String"),
        (lambda: Types.BASIC_ARRAY(PERSON), "BASIC_ARRAY takes"),
        (lambda: checked_type(int, "output_type"), "output_type is <class 'int'>, which is no type"),
    ],
)
def test_what_is_no_type(make: Any, part: str) -> None:
    with pytest.raises(SchemaError, match=part):
        make()


def test_java_types_are_refused() -> None:
    with pytest.raises(UnsupportedCall, match="get_java_type_info.*without a JVM"):
        PERSON.get_java_type_info()


@pytest.mark.parametrize(
    ("ddl", "kind"),
    [
        ("INT", Types.INT()),
        ("varchar(3)", Types.STRING()),
        ("binary", Types.PRIMITIVE_ARRAY(Types.BYTE())),
        ("array<double>", Types.LIST(Types.DOUBLE())),
        ("map<string,struct<a:int>>", Types.MAP(Types.STRING(), Types.ROW_NAMED(["a"], [Types.INT()]))),
        ("timestamp", LocalTimeTypeInfo(TimeType.LOCAL_DATE_TIME)),
    ],
)
def test_from_ddl(ddl: str, kind: TypeInfo) -> None:
    assert from_ddl(ddl) == kind
    with pytest.raises(SchemaError, match="elements of the type variant"):
        from_ddl("variant")


def test_schemas_of_elements() -> None:
    person = element_schema(PERSON)
    assert person == Schema((Field("name", "string"), Field("age", "int")), False, PERSON)
    assert not person.pickled and person.columns == Schema(person.fields)
    assert element_schema(Types.INT()).scalar
    pickled = element_schema(PICKLED)
    assert pickled.pickled and not pickled.known
    hinted = element_schema(PICKLED, Schema((Field("value", "int"),), scalar=True))
    assert hinted.known and hinted.scalar and hinted.pickled
    assert person.without("age").element_type == PERSON


def test_types_of_columns() -> None:
    fields = (Field("name", "string"), Field("age", "int"))
    found = type_of_schema(Schema(fields))
    assert isinstance(found, RowTypeInfo) and found.get_field_names() == ["name", "age"]
    assert type_of_schema(Schema(fields[:1], scalar=True)) == Types.STRING()
    assert type_of_schema(element_schema(PERSON)) == PERSON
    assert type_of_schema(Schema((Field("a"),))) == type_of_schema(Schema(())) == PICKLED
