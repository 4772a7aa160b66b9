"""The content cache: what is uploaded, under which name, and who may share it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from yarnflow.core.yarn import Visibility
from yarnflow.errors import FileMissing, StorageError, StorageUnavailable
from yarnflow.staging.cache import ContentCache
from yarnflow.staging.layout import StagingLayout, prepare
from yarnflow.testing.file_system import MemoryFileSystem

LAYOUT = StagingLayout("/user/ann/.yarnflow")
SHA256 = hashlib.sha256(b"content").hexdigest()
CACHED = f"{LAYOUT.cache}/{SHA256}/x.zip"
LONG_AGO_S = 1_000_000_000


@pytest.fixture
def fs() -> MemoryFileSystem:
    fs = MemoryFileSystem()
    prepare(fs, LAYOUT, "ann")
    return fs


@pytest.fixture
def hashes(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "hashes.json"


@pytest.fixture
def cache(fs: MemoryFileSystem, hashes: Path) -> ContentCache:
    return ContentCache(fs, LAYOUT, hashes)


@pytest.fixture
def local(tmp_path: Path) -> Path:
    path = tmp_path / "local.zip"
    path.write_bytes(b"content")
    os.utime(path, (LONG_AGO_S, LONG_AGO_S))
    return path


def test_the_second_time_nothing_is_uploaded(cache: ContentCache, fs: MemoryFileSystem, local: Path) -> None:
    first = cache.put(local, "x.zip", archive=True)
    assert first.uploaded_bytes == 7
    assert first.resource.source == f"hdfs://memory:8020{CACHED}"
    assert (first.resource.archive, first.resource.size_bytes) == (True, 7)
    assert fs.read(CACHED) == b"content"
    fs.before = lambda operation, path: None if operation == "status" else pytest.fail(operation)
    second = cache.put(local, "x.zip", archive=True)
    assert (second.uploaded_bytes, second.resource) == (0, first.resource)
    # content counts, not where it comes from
    assert cache.put_bytes(b"content", "x.zip", archive=True) == second


def test_content_in_memory(cache: ContentCache, fs: MemoryFileSystem) -> None:
    assert cache.put_bytes(b"content", "x.zip").uploaded_bytes == 7
    assert fs.paths(LAYOUT.cache) == [f"{LAYOUT.cache}/{SHA256}", CACHED]
    assert not fs.list(LAYOUT.uploads)


def test_another_client_is_quicker(cache: ContentCache, fs: MemoryFileSystem) -> None:
    def quicker(operation: str, path: str) -> None:
        if operation == "rename":
            fs.before = lambda operation, path: None
            ContentCache(fs, LAYOUT).put_bytes(b"content", "x.zip")

    fs.before = quicker
    found = cache.put_bytes(b"content", "x.zip")
    status = fs.status(CACHED)
    # its file was not replaced: YARN insists on the time its client saw
    assert status is not None and found.resource.modified_ms == status.modified_ms
    assert found.uploaded_bytes == 0
    assert not fs.list(LAYOUT.uploads)


def test_a_failed_upload_leaves_nothing(cache: ContentCache, fs: MemoryFileSystem) -> None:
    def fail(operation: str, path: str) -> None:
        if operation == "rename":
            raise StorageUnavailable("no answer")

    fs.before = fail
    with pytest.raises(StorageUnavailable):
        cache.put_bytes(b"content", "x.zip")
    assert not fs.list(LAYOUT.uploads)
    assert fs.status(CACHED) is None


def test_a_cached_file_of_another_length(cache: ContentCache, fs: MemoryFileSystem) -> None:
    cache.put_bytes(b"content", "x.zip")
    fs.write(CACHED, b"cont")
    with pytest.raises(StorageError, match=r"has 4 bytes instead of 7 bytes; .* hdfs dfs -rm -r"):
        cache.put_bytes(b"content", "x.zip")


def test_a_local_file_that_is_missing(cache: ContentCache, tmp_path: Path) -> None:
    with pytest.raises(FileMissing, match="none.zip does not exist"):
        cache.put(tmp_path / "none.zip", "x.zip")
    with pytest.raises(StorageError, match="cannot read .*: Is a directory"):
        cache.put(tmp_path, "x.zip")


@pytest.mark.parametrize(
    "directory, mode, visibility",
    [
        ("/user/ann", 0o755, Visibility.PUBLIC),
        ("/user/ann", 0o711, Visibility.PUBLIC),
        ("/user/ann", 0o750, Visibility.PRIVATE),
        ("/user", 0o700, Visibility.PRIVATE),
        (LAYOUT.root, 0o700, Visibility.PRIVATE),
    ],
)
def test_who_shares_it(fs: MemoryFileSystem, directory: str, mode: int, visibility: Visibility) -> None:
    fs.set_permission("/user", 0o755)
    fs.set_permission(directory, mode)
    assert ContentCache(fs, LAYOUT).put_bytes(b"content", "x.zip").resource.visibility is visibility


def test_hashes_are_remembered(cache: ContentCache, local: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.put(local, "x.zip")
    with monkeypatch.context() as patched:
        patched.setattr(hashlib, "file_digest", lambda file, name: pytest.fail("hashed again"))
        cache.put(local, "x.zip")
    local.write_bytes(b"changed")
    os.utime(local, (LONG_AGO_S, LONG_AGO_S))
    # same size, same time, but another time of change
    assert SHA256 not in cache.put(local, "x.zip").resource.source


def test_a_file_that_has_just_changed_is_not_remembered(
    cache: ContentCache, local: Path, hashes: Path
) -> None:
    os.utime(local)
    cache.put(local, "x.zip")
    assert not hashes.exists()


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"x": 1}'])
def test_remembered_hashes_that_cannot_be_read(
    cache: ContentCache, local: Path, hashes: Path, content: bytes
) -> None:
    hashes.parent.mkdir()
    hashes.write_bytes(content)
    assert SHA256 in cache.put(local, "x.zip").resource.source
    assert SHA256 in hashes.read_text()


def test_hashes_that_cannot_be_remembered(fs: MemoryFileSystem, local: Path) -> None:
    assert SHA256 in ContentCache(fs, LAYOUT, local / "hashes.json").put(local, "x.zip").resource.source
