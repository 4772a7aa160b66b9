"""Row by itself: positions and names, equality, order, hashing, kinds, dictionaries.

A field is changed by its name or position in brackets; an assignment to an attribute is refused.
"""

# compare: exact
# differs: the message for an assignment to an attribute is Python's own.

from pyflink.common import Row, RowKind


def main():
    plain, named = Row("a", 1), Row(name="a", age=1)
    print(plain, named, Row(), Row(None), len(named))
    print(named.name, named["age"], named[0], plain[1], named[0:2], list(plain))
    print("name" in named, "x" in named, "a" in plain)
    nested = Row(key=1, value=Row(a=[Row(b=2)]))
    print(named.as_dict(), nested.as_dict(), nested.as_dict(True))
    print(
        plain == Row("a", 1),
        plain == named,
        plain == ("a", 1),
        named == Row(age=1, name="a"),
        plain != Row("a", 2),
    )
    named["age"] = 5
    plain[0] = "changed"
    print(named, plain)
    try:
        named.name = "z"
    except AttributeError as error:
        print("refused:", error)
    person = Row("name", "age")
    print(person, person("x", 3), person("x", 3).as_dict())
    print(len({Row(1, "a"), Row(1, "a"), Row(1, "b")}), hash(Row(1, "a")) == hash(Row(1, "a")))
    deleted = Row.of_kind(RowKind.DELETE, 1, 2)
    print(
        deleted,
        deleted.get_row_kind(),
        deleted == Row(1, 2),
        str(RowKind.UPDATE_BEFORE),
        RowKind.UPDATE_AFTER.value,
    )
    named.set_row_kind(RowKind.UPDATE_AFTER)
    print(named.get_row_kind(), named.get_fields_by_names(["age"]))
    plain.set_field_names(["x", "y"])
    print(plain, plain.x, plain.as_dict())
    print([*Row(3, 4)], Row(*[5, 6]), tuple(Row(1, None)), 3 in Row(3, 4))


if __name__ == "__main__":
    main()
