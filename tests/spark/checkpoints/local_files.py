"""Files of this machine behind the interface of Hadoop's, without a JVM."""

from __future__ import annotations

import shutil
from pathlib import Path

from yarnflow.errors import FileMissing, StorageError
from yarnflow.spark.hadoop_files import DirectoryEntry, HadoopFiles


class LocalFiles(HadoopFiles):
    """Absolute paths; directories are moved as HDFS does it."""

    def __init__(self) -> None:
        self.faults: set[str] = set()
        #: files that cannot be read now
        self.unanswered: set[str] = set()

    def qualified(self, path: str) -> str:
        return path

    def exists(self, path: str) -> bool:
        return Path(path).exists()

    def delete(self, path: str) -> None:
        if Path(path).is_dir():
            shutil.rmtree(path)
        else:
            Path(path).unlink(missing_ok=True)

    def make_directory(self, path: str) -> None:
        Path(path).mkdir(parents=True, exist_ok=True)

    def children(self, path: str) -> list[str]:
        return [entry.name for entry in self.entries(path)]

    def entries(self, path: str, is_there: bool = False) -> list[DirectoryEntry]:
        found = sorted(Path(path).iterdir()) if Path(path).is_dir() else []
        return [
            DirectoryEntry(p.name, p.is_dir(), 0 if p.is_dir() else p.stat().st_size) for p in found
        ]

    def modified_ms(self, path: str) -> int:
        return Path(path).stat().st_mtime_ns // 1_000_000

    def read(self, path: str) -> bytes:
        return Path(path).read_bytes()

    def fault_of(self, path: str, compressed: bool = False) -> str:
        """Files in :attr:`faults` do not fit their checksums."""
        if path in self.unanswered:
            raise StorageError(f"cannot read {path}: no answer")
        if not Path(path).exists():
            raise FileMissing(f"{path} is missing")
        return "does not fit its checksum" if path in self.faults else ""

    def write(self, path: str, content: bytes) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(content)

    def rename(self, source: str, target: str) -> None:
        """What is moved to a directory that is there comes into it."""
        place = Path(target)
        if place.is_dir():
            place = place / Path(source).name
        if place.exists() or not Path(source).exists():
            raise StorageError(f"cannot rename {source} to {target}")
        Path(source).rename(place)
