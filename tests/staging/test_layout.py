"""Names and the preparation of the staging directory."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarnflow.errors import StorageDenied, StorageError
from yarnflow.staging.layout import StagingLayout, generation_of, key_name, prepare, skein_directory
from yarnflow.testing.file_system import MemoryFileSystem

LAYOUT = StagingLayout("/user/ann/.yarnflow")


def modes(fs: MemoryFileSystem, directory: str) -> dict[str, int]:
    return {status.path.removeprefix(LAYOUT.root): status.permission for status in fs.list(directory)}


def test_paths() -> None:
    assert LAYOUT.cached_file("ab", "x.zip") == "/user/ann/.yarnflow/cache/ab/x.zip"
    assert LAYOUT.application("d1") == "/user/ann/.yarnflow/applications/d1"
    assert LAYOUT.generation("k", 7) == "/user/ann/.yarnflow/job-keys/k/0000000000000000007"
    assert LAYOUT.generation_application("k", 7) == LAYOUT.generation("k", 7) + ".application"
    assert generation_of("0000000000000000007") == 7
    assert generation_of("0000000000000000007.application") is None
    assert generation_of(".0000000000000000007.f00d.tmp") is None
    assert skein_directory("/user/ann", "application_1") == "/user/ann/.skein/application_1"


@pytest.mark.parametrize(
    "key, name",
    [
        ("flights-2.0_x", "flights-2.0_x"),
        ("a b/c%", "a~20b~2fc~25"),
        ("ä", "~c3~a4"),
        ("..", "~2e."),
        ("a~20b", "a~7e20b"),
        ("a:b", "a~3ab"),
    ],
)
def test_names_of_keys(key: str, name: str) -> None:
    assert key_name(key) == name


@given(st.lists(st.text(min_size=1, max_size=300), min_size=2, max_size=2, unique=True))
def test_distinct_keys_have_distinct_names_that_hdfs_takes(keys: list[str]) -> None:
    one, other = map(key_name, keys)
    assert one != other
    assert re.fullmatch(r"[A-Za-z0-9_~-][A-Za-z0-9_.~-]{0,199}", one)


def test_long_keys_that_differ_at_the_end_only() -> None:
    assert key_name("x" * 400 + "1") != key_name("x" * 400 + "2")


def test_prepare() -> None:
    fs = MemoryFileSystem()
    prepare(fs, LAYOUT, "ann")
    assert modes(fs, "/user/ann") == {"": 0o755}
    assert modes(fs, LAYOUT.root) == {
        "/applications": 0o700,
        "/cache": 0o755,
        "/checkpoints": 0o700,
        "/ha": 0o700,
        "/job-keys": 0o700,
        "/uploads": 0o700,
    }
    fs.before = lambda operation, path: None if operation in ("status", "list") else pytest.fail(operation)
    prepare(fs, LAYOUT, "ann")


def test_a_staging_directory_of_somebody_else() -> None:
    fs = MemoryFileSystem(user="eve")
    fs.make_directory(LAYOUT.root, permission=0o777)
    with pytest.raises(StorageDenied, match="belongs to eve, not to ann; set yarn.staging-directory"):
        prepare(fs, LAYOUT, "ann")
    assert not fs.list(LAYOUT.root)


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o1777])
def test_a_staging_directory_others_write_to(mode: int) -> None:
    fs = MemoryFileSystem()
    fs.make_directory(LAYOUT.root, permission=mode)
    with pytest.raises(StorageDenied, match=f"mode {mode:04o}.*; run: hdfs dfs -chmod go-w {LAYOUT.root}"):
        prepare(fs, LAYOUT, "ann")


def test_a_staging_directory_that_cannot_be_made() -> None:
    def deny(operation: str, path: str) -> None:
        if operation == "make_directory":
            raise StorageDenied(f"cannot create {path} as user ann")

    fs = MemoryFileSystem()
    fs.before = deny
    with pytest.raises(StorageDenied, match="as user ann; set yarn.staging-directory to"):
        prepare(fs, LAYOUT, "ann")


def test_a_staging_directory_that_is_a_file() -> None:
    fs = MemoryFileSystem()
    fs.write(LAYOUT.root, b"")
    with pytest.raises(StorageError, match="is not a directory"):
        prepare(fs, LAYOUT, "ann")
