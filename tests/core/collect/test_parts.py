"""Which parts may be read, and who can have written them."""

from __future__ import annotations

import pytest

from yarnflow.core.collect import parts
from yarnflow.core.ids import JobId
from yarnflow.errors import FileChanged

KEY = parts.part_key(b"secret", JobId("a" * 32))


def test_names_sort_in_the_order_of_elements() -> None:
    order = [(0, 0), (0, 1), (2, 0), (9, 10), (10, 2), (100, 0)]
    names = [parts.part_name(batch, number) for batch, number in order]
    assert sorted(names) == names
    assert [parts.batch_of(name) for name in names] == [batch for batch, _ in order]
    assert parts.batch_of(f".{names[0]}.tmp") is None and parts.batch_of("README") is None


def test_only_parts_of_committed_batches_are_read() -> None:
    names = [parts.part_name(3, 0), parts.part_name(3, 1), parts.part_name(4, 0)]
    assert parts.readable(names, -1) == []
    assert parts.readable(names, 3) == names[:2]
    assert parts.readable([*names, "other"], 4) == names


def test_what_the_program_has_is_acknowledged_by_its_position() -> None:
    names = [parts.part_name(4, 0), parts.part_name(3, 0), "other", parts.part_name(3, 1)]
    assert parts.acknowledged(names, "") == []
    assert parts.waiting(names, "") == [parts.part_name(3, 0), parts.part_name(3, 1), parts.part_name(4, 0)]
    position = parts.part_name(3, 1)
    assert parts.acknowledged(names, position) == [parts.part_name(3, 0), position]
    assert parts.waiting(names, position) == [parts.part_name(4, 0)]


@pytest.mark.parametrize("payloads", [[], [b""], [b"one", b"", b"x" * 70_000]])
def test_payloads_come_out_as_they_went_in(payloads: list[bytes]) -> None:
    name = parts.part_name(1, 0)
    sealed = parts.seal(KEY, name, parts.pack(payloads))
    assert list(parts.unpack(parts.unseal(KEY, name, sealed))) == payloads


def test_a_part_that_no_driver_wrote_is_refused() -> None:
    name, other = parts.part_name(1, 0), parts.part_name(2, 0)
    sealed = parts.seal(KEY, name, b"content")
    of_other_job = parts.part_key(b"secret", JobId("b" * 32))
    for key, said, content in (
        (KEY, name, sealed[:-1] + b"!"),
        (KEY, other, sealed),
        (of_other_job, name, sealed),
        (KEY, name, b""),
        (KEY, name, b"content"),
    ):
        with pytest.raises(FileChanged, match=f"{said}.*who may write"):
            parts.unseal(key, said, content)
