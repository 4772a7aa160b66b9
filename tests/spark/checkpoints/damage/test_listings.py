"""What a look at a query's state before it starts costs, in listings of directories."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.spark.checkpoints.local_files import LocalFiles
from yarnflow.errors import StorageError
from yarnflow.spark.checkpoints.damage.soundness import damage_at_start
from yarnflow.spark.hadoop_files import DirectoryEntry

OPERATORS, PARTITIONS = 3, 16
#: directories that are listed at a time
AT_A_TIME = 8


class CountingFiles(LocalFiles):
    """Counts listings; those of partitions end when several are under way."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root
        self.listed: list[str] = []
        self.lock = threading.Lock()
        self.under_way = self.most = 0
        self.together = threading.Barrier(AT_A_TIME)

    def entries(self, path: str, is_there: bool = False) -> list[DirectoryEntry]:
        relative = str(Path(path).relative_to(self.root))
        with self.lock:
            self.listed.append(relative)
            self.under_way += 1
            self.most = max(self.most, self.under_way)
        try:
            if relative.count("/") == 2 and not relative.endswith("/_metadata"):
                self.together.wait(PATIENCE.thread_s)
            return super().entries(path, is_there)
        finally:
            with self.lock:
                self.under_way -= 1


@pytest.fixture
def files(tmp_path: Path) -> CountingFiles:
    """A query with batch 0 committed, and state with RocksDB."""
    made = CountingFiles(tmp_path)
    contents = {"metadata": '{"id":"first"}', "commits/0": "v1\n{}", "offsets/0": "v1\n{}\n{}"}
    for operator in range(OPERATORS):
        contents[f"state/{operator}/_metadata/v2/0"] = "v2\n{}"
        for partition in range(PARTITIONS):
            store = f"state/{operator}/{partition}"
            contents |= {f"{store}/1.zip": "PK", f"{store}/SSTs/1.sst": "", f"{store}/logs/1.log": ""}
    for path, content in contents.items():
        LocalFiles().write(f"{tmp_path}/{path}", content.encode())
    return made


def test_partitions_are_listed_several_at_a_time_and_tables_not_at_all(files: CountingFiles) -> None:
    """On HDFS each is a call, and a job may have thousands of partitions of state."""
    assert damage_at_start(files, str(files.root)) is None
    of_operators = OPERATORS * (1 + len(("_metadata", "v2")) + PARTITIONS)
    assert len(files.listed) == len(("offsets", "commits", "state")) + of_operators
    assert not [path for path in files.listed if path.endswith(("/SSTs", "/logs"))]
    assert files.most == AT_A_TIME


def test_all_of_a_tree_is_found(files: CountingFiles) -> None:
    tree = files.tree(str(files.root))
    found = {str(path.relative_to(files.root)) for path in files.root.rglob("*") if path.is_file()}
    assert set(tree) == found and tree["state/2/15/1.zip"] == 2


def test_a_directory_that_cannot_be_listed_ends_the_look(files: CountingFiles) -> None:
    def refuse(path: str, is_there: bool = False) -> list[DirectoryEntry]:
        if path.endswith("/state/1/7"):
            raise StorageError("no answer")
        return LocalFiles.entries(files, path, is_there)

    files.entries = refuse  # type: ignore[method-assign]
    with pytest.raises(StorageError, match="no answer"):
        damage_at_start(files, str(files.root))
