"""What users may write, and what they are told otherwise."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarnflow.config import parsers


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("10 s", 10_000),
        ("10s", 10_000),
        (" 5 min ", 300_000),
        ("5m", 300_000),
        ("100ms", 100),
        ("100", 100),
        ("1 h", 3_600_000),
        ("2 Days", 172_800_000),
        ("0", 0),
        ("PT5S", 5000),
        ("PT1M30S", 90_000),
        ("pt0.25s", 250),
        ("P1DT2H", 93_600_000),
    ],
)
def test_durations(text: str, ms: int) -> None:
    assert parsers.duration_ms(text) == ms


@pytest.mark.parametrize(
    "text", ["", "ten", "10 fortnights", "-5 s", "1.5 s", "PT", "P", "5 s 3 ms", "1 h 30 min"]
)
def test_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="^a duration such as 500 ms, 10 s, 5 min"):
        parsers.duration_ms(text)


@pytest.mark.parametrize(
    ("text", "mib"),
    [("1728m", 1728), ("1 gb", 1024), ("64 MiB", 64), ("2048k", 2), ("0", 0), ("1t", 1 << 20)],
)
def test_memory(text: str, mib: int) -> None:
    assert parsers.memory_mib(text) == mib
    assert parsers.memory_bytes(text) == mib * 1024 * 1024


@pytest.mark.parametrize("text", ["1728", "512k", "1"])
def test_memory_without_its_unit_is_not_taken_for_nothing(text: str) -> None:
    with pytest.raises(ValueError, match="1 MiB or more with its unit"):
        parsers.memory_mib(text)


@pytest.mark.parametrize("text", ["", "much", "1 parsec", "-1m", "1.5g"])
def test_no_memory(text: str) -> None:
    with pytest.raises(ValueError, match="^a size such as 1728m"):
        parsers.memory_bytes(text)


@pytest.mark.parametrize(("text", "value"), [("true", True), (" TRUE ", True), ("False", False)])
def test_booleans(text: str, value: bool) -> None:
    assert parsers.boolean(text) is value


@pytest.mark.parametrize("text", ["yes", "1", ""])
def test_no_booleans(text: str) -> None:
    with pytest.raises(ValueError, match="^true or false$"):
        parsers.boolean(text)


@pytest.mark.parametrize(
    ("parse", "text", "form"),
    [
        (parsers.duration_at_least("30 s"), "29999 ms", "a duration of 30 s or more"),
        (parsers.integer(1), "0", "a whole number, 1 or more"),
        (parsers.integer(1, 9), "10", "a whole number from 1 to 9"),
        (parsers.integer(), "1.0", "a whole number"),
        (parsers.decimal(0.0, 1.0), "1.0", "a number, 0.0 or more and below 1.0"),
        (parsers.decimal(0.0, 1.0), "nan", "a number, 0.0 or more and below 1.0"),
        (parsers.decimal(1.0), "inf", "a number, 1.0 or more"),
        (parsers.decimal(1.0), "many", "a number, 1.0 or more"),
        (parsers.one_of("rocksdb", "hashmap"), "disk", "one of rocksdb, hashmap"),
    ],
)
def test_refusals_say_the_form(parse: Callable[[str], object], text: str, form: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse(text)
    assert str(caught.value) == form


def test_bounds_are_included_and_words_get_their_spelling() -> None:
    assert parsers.duration_at_least("30 s")("PT30S") == 30_000
    assert [parsers.integer(1, 9)(text) for text in ("1", " 9 ")] == [1, 9]
    assert parsers.decimal(0.0, 1.0)("0") == 0.0
    assert parsers.one_of("rocksdb", "hashmap")(" RocksDB ") == "rocksdb"


@pytest.mark.parametrize(
    ("text", "ports"),
    [
        ("6123", [6123]),
        ("0", [0]),
        ("50100-50103", [50100, 50101, 50102, 50103]),
        ("7, 9-10", [7, 9, 10]),
    ],
)
def test_ports(text: str, ports: list[int]) -> None:
    assert list(parsers.port_candidates(text)) == ports
    assert parsers.port_range(f" {text} ") == text


@pytest.mark.parametrize("text", ["", "http", "65536", "9-7", "0-5", "1,,2", "-1"])
def test_no_ports(text: str) -> None:
    with pytest.raises(ValueError, match="^a port"):
        parsers.port_range(text)


@given(st.text(max_size=20))
def test_nothing_but_value_error_is_raised(text: str) -> None:
    for parse in (
        parsers.duration_ms,
        parsers.memory_mib,
        parsers.boolean,
        parsers.integer(0),
        parsers.decimal(0.0),
        parsers.port_range,
        parsers.one_of("a"),
    ):
        try:
            parse(text)
        except ValueError as error:
            assert str(error)
