"""Files are found while directories beside them are deleted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.living_files import files_below

pytestmark = pytest.mark.gate


def test_files_are_found_at_any_depth_by_their_name(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    for name in ("part-0.parquet", "a/part-1.parquet", "a/b/part-2.parquet", "a/b/other.parquet"):
        (tmp_path / name).touch()
    found = sorted(path.name for path in files_below(tmp_path, "part-*.parquet"))
    assert found == ["part-0.parquet", "part-1.parquet", "part-2.parquet"]
    assert list(files_below(tmp_path / "missing", "*")) == []


def test_a_directory_that_goes_while_it_is_looked_at_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Spark does with the temporary directory of a task."""
    temporary = tmp_path / "temporary"
    (tmp_path / "part-0.parquet").touch()
    list_directory = os.scandir

    class Listed:
        """Each listing of the directory above has it, and it is gone after each."""

        def __init__(self, path: Any) -> None:
            if Path(path) == tmp_path:
                temporary.mkdir()
            self._entries = list_directory(path)

        def __enter__(self) -> Listed:
            return self

        def __exit__(self, *_: object) -> None:
            self._entries.close()
            if temporary.exists():
                temporary.rmdir()

        def __iter__(self) -> Iterator[os.DirEntry[str]]:
            return self

        def __next__(self) -> os.DirEntry[str]:
            return next(self._entries)

    monkeypatch.setattr(os, "scandir", Listed)
    assert list(files_below(tmp_path, "part-*.parquet")) == [tmp_path / "part-0.parquet"]
