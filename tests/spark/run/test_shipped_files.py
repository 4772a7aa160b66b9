"""Files of a job graph on their way to the workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from yarnflow.errors import InvalidOption
from yarnflow.spark.run.shipped_files import ship_files


class FakeContext:
    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def addPyFile(self, path: str) -> None:  # noqa: N802
        self.calls.append(("python", path))

    def addArchive(self, path: str) -> None:  # noqa: N802
        self.calls.append(("archive", path))


def test_files_are_written_and_given_to_spark(tmp_path: Path) -> None:
    context = FakeContext()
    ship_files(cast(Any, context), {"python/m.py": b"N = 1", "archives/data/a.zip": b"zip"}, tmp_path)
    assert context.calls == [
        ("python", f"{tmp_path}/python/m.py"), ("archive", f"{tmp_path}/archives/data/a.zip#data")
    ]  # fmt: skip
    assert (tmp_path / "python" / "m.py").read_bytes() == b"N = 1"


def test_a_file_that_spark_serves_is_never_cut_short(tmp_path: Path) -> None:
    context, path = FakeContext(), tmp_path / "python/m.py"

    def ship(content: bytes) -> None:
        ship_files(cast(Any, context), {"python/m.py": content}, tmp_path)

    ship(b"N = 1")
    with path.open("rb") as served:
        before = path.stat()
        ship(b"N = 1")
        assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
        ship(b"M")
        # whoever has begun to read it reads what it was
        assert served.read() == b"N = 1"
    assert path.read_bytes() == b"M" and [p.name for p in path.parent.iterdir()] == ["m.py"]


def test_names_stay_in_the_directory(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="leads out of the job's directory"):
        ship_files(cast(Any, FakeContext()), {"python/../../x.py": b""}, tmp_path)
