"""Type descriptions: repr, equality, what their helpers tell; names play no part in the equality of rows."""

# compare: exact
# differs: a row without names does not tell names in its text after somebody has asked for them.

from pyflink.common import Types


def main():
    row = Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.LIST(Types.STRING())])
    print(row, row.get_field_names(), row.get_field_index("b"), row.get_field_types())
    print(row == Types.ROW([Types.INT(), Types.LIST(Types.STRING())]), row == Types.TUPLE([Types.INT()]))
    unnamed = Types.ROW([Types.INT(), Types.LONG()])
    # the names of a row without names are known only after somebody asked for them
    print(unnamed.get_field_index("f1"), unnamed.get_field_names(), unnamed.get_field_index("f1"), unnamed)
    print(
        Types.INT() == Types.INT(),
        Types.INT() == Types.LONG(),
        Types.LIST(Types.INT()) == Types.LIST(Types.INT()),
    )
    print(Types.MAP(Types.INT(), Types.STRING()) == Types.MAP(Types.INT(), Types.INT()))
    print(
        Types.TUPLE([Types.SQL_DATE(), Types.SQL_TIME(), Types.SQL_TIMESTAMP(), Types.PICKLED_BYTE_ARRAY()])
    )
    print(Types.PRIMITIVE_ARRAY(Types.INT()), Types.BASIC_ARRAY(Types.INT()), Types.OBJECT_ARRAY(Types.INT()))
    print(Types.TUPLE([Types.INT()]).get_field_types())
    print(Types.CHAR(), Types.BIG_INT(), Types.BIG_DEC(), Types.INSTANT())


if __name__ == "__main__":
    main()
