"""Parts in a job's checkpoint directory, and what Spark leaves beside them."""

from __future__ import annotations

import pytest

from yarnflow.core.collect.parts import part_name
from yarnflow.core.files import FileSystem
from yarnflow.errors import FileMissing
from yarnflow.ha.stores.collected_files import CollectedFiles
from yarnflow.testing.file_system import MemoryFileSystem

FIRST, SECOND = part_name(9, 0), part_name(10, 0)


class Bench:
    def __init__(self) -> None:
        self.fs = MemoryFileSystem()
        self.files = CollectedFiles(self.fs_of, "hdfs://memory:8020/state/job/")

    def fs_of(self, uri: str) -> tuple[FileSystem, str]:
        return self.fs, uri.removeprefix("hdfs://memory:8020")

    def write(self, path: str, content: bytes = b"") -> None:
        path = f"/state/job/{path}"
        self.fs.make_directory(path.rpartition("/")[0])
        self.fs.write(path, content)


def test_parts_are_those_of_the_one_query_that_collects() -> None:
    bench = Bench()
    bench.write("query-elements/offsets/0")
    bench.write("query-other/commits/77")
    assert bench.files.names() == [] and bench.files.committed() == -1
    bench.write(f"collected/elements/{SECOND}", b"two")
    bench.write(f"collected/elements/{FIRST}", b"one")
    assert bench.files.names() == [FIRST, SECOND] and bench.files.committed() == -1
    for name in ("9", "10", ".10.crc", "8"):
        bench.write(f"query-elements/commits/{name}")
    assert bench.files.committed() == 10
    assert bench.files.read(SECOND) == b"two"
    bench.files.delete(FIRST)
    bench.files.delete(FIRST)
    assert bench.files.names() == [SECOND]
    with pytest.raises(FileMissing):
        bench.files.read(FIRST)


def test_a_query_without_micro_batches_has_one() -> None:
    bench = Bench()
    bench.write(f"collected/elements/{part_name(0, 0)}")
    assert bench.files.names() == [part_name(0, 0)] and bench.files.committed() == -1
    bench.write("query-elements/done")
    assert bench.files.committed() == 0


def test_the_rest_of_the_job_stays() -> None:
    bench = Bench()
    bench.write(f"collected/elements/{FIRST}")
    bench.write("query-elements/commits/0")
    assert bench.files.names() == [FIRST]
    bench.files.delete_all()
    bench.files.delete_all()
    assert bench.files.names() == [] and bench.files.committed() == 0
