"""Parts as the driver writes them."""

from __future__ import annotations

import pytest

from yarnflow.core.collect import parts
from yarnflow.errors import LeaseLost
from yarnflow.spark.connectors import collect_sink
from yarnflow.spark.connectors.collect_sink import PartWriter
from yarnflow.spark.hadoop_files import DirectoryEntry

KEY = b"key"
DIRECTORY = "hdfs://n/job/collected/elements"


class Files:
    """Of one directory, by name."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}

    def entries(self, path: str, is_there: bool = False) -> list[DirectoryEntry]:
        assert path == DIRECTORY
        return [DirectoryEntry(name, False, len(content)) for name, content in self.contents.items()]

    def write(self, path: str, content: bytes) -> None:
        self.contents[path.removeprefix(f"{DIRECTORY}/")] = content

    def delete(self, path: str) -> None:
        del self.contents[path.removeprefix(f"{DIRECTORY}/")]

    def elements(self) -> list[bytes]:
        found: list[bytes] = []
        for name, content in sorted(self.contents.items()):
            found += parts.unpack(parts.unseal(KEY, name, content))
        return found


class Bench:
    def __init__(self) -> None:
        self.files = Files()
        self.waits: list[float] = []
        self.lost: LeaseLost | None = None
        self.writer = PartWriter(self.files, DIRECTORY, KEY, self.check, self.wait)

    def check(self) -> None:
        if self.lost is not None:
            raise self.lost

    def wait(self, seconds: float) -> None:
        """The program reads a part while the driver waits."""
        self.waits.append(seconds)
        assert self.files.contents, "it waits although nothing is unread"
        self.files.contents.pop(min(self.files.contents))


def test_a_batch_is_divided_into_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PART_BYTES", 10)
    bench = Bench()
    bench.writer.write(7, [b"a" * 6, b"b" * 6, b"c" * 20, b"d"])
    assert sorted(bench.files.contents) == [parts.part_name(7, number) for number in range(3)]
    assert bench.files.elements() == [b"a" * 6, b"b" * 6, b"c" * 20, b"d"]
    assert not bench.waits


def test_an_empty_batch_leaves_nothing() -> None:
    bench = Bench()
    bench.writer.write(0, [])
    assert bench.files.contents == {}
    bench.writer.await_read()


def test_a_batch_done_again_replaces_its_own_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PART_BYTES", 1)
    bench = Bench()
    bench.writer.write(1, [b"kept"])
    bench.writer.write(2, [b"x", b"y", b"z"])
    bench.writer.write(2, [b"w"])
    assert bench.files.elements() == [b"kept", b"w"]


def test_a_batch_waits_for_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect_sink, "MAX_UNREAD_BYTES", 300)
    bench = Bench()
    for batch_id in range(3):
        bench.writer.write(batch_id, [b"x" * 100])
    assert not bench.waits
    bench.writer.write(3, [b"x" * 100])
    assert len(bench.waits) == 1
    assert sorted(bench.files.contents) == [parts.part_name(batch, 0) for batch in (1, 2, 3)]


def test_a_batch_done_again_does_not_wait_for_its_own_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PART_BYTES", 1)
    bench = Bench()
    bench.writer.write(4, [b"x" * 100] * 5)
    monkeypatch.setattr(collect_sink, "MAX_UNREAD_BYTES", 300)
    # the batch is not committed, so the program may read none of them
    bench.writer.write(4, [b"y"])
    assert not bench.waits
    assert bench.files.elements() == [b"y"]


def test_the_end_waits_until_all_is_read() -> None:
    bench = Bench()
    for batch_id in range(8):
        bench.writer.write(batch_id, [b"x"])
    bench.writer.await_read()
    assert bench.files.contents == {} and len(bench.waits) == 8
    assert bench.waits == sorted(bench.waits) and bench.waits[-1] == 0.25


def test_who_may_not_write_does_not_wait_either() -> None:
    bench = Bench()
    bench.writer.write(0, [b"x"])
    bench.lost = LeaseLost("another driver")
    with pytest.raises(LeaseLost):
        bench.writer.await_read()
    with pytest.raises(LeaseLost):
        bench.writer.write(1, [b"y"])
    assert sorted(bench.files.contents) == [parts.part_name(0, 0)]
