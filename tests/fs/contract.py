"""What every implementation of ``core.files.FileSystem`` must do.

Subclasses give the fixtures ``fs`` and ``root``.
"""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from yarnflow.core.files import FileSystem
from yarnflow.errors import FileMissing, StorageError

#: names a file may have, and that some part of the way could take for something else
NAMES = ("a b", "ä€", "p%2F", "p+q", "s;t", "a=b&c", "h#i", "q?r", "~7e", "[x]{y}", "it's")


class FileSystemContract:
    """``root`` is an empty directory of the test's own."""

    def test_what_was_written_is_read(self, fs: FileSystem, root: str) -> None:
        fs.write(f"{root}/file", b"one")
        assert fs.read(f"{root}/file") == b"one"
        fs.write(f"{root}/file", b"another")
        assert fs.read(f"{root}/file") == b"another"
        fs.write(f"{root}/empty", b"")
        assert fs.read(f"{root}/empty") == b""
        assert [status.path for status in fs.list(root)] == [f"{root}/empty", f"{root}/file"]

    def test_create_never_replaces(self, fs: FileSystem, root: str) -> None:
        assert fs.create(f"{root}/file", b"first")
        assert not fs.create(f"{root}/file", b"second")
        fs.make_directory(f"{root}/directory")
        assert not fs.create(f"{root}/directory", b"third")
        assert fs.read(f"{root}/file") == b"first"
        # and nothing else is left there or in the directory
        assert [status.path for status in fs.list(root)] == [f"{root}/directory", f"{root}/file"]
        assert not fs.list(f"{root}/directory")

    def test_one_of_many_creates(self, fs: FileSystem, root: str) -> None:
        contents = [str(number).encode() for number in range(6)]
        created: list[bytes] = []
        failures: list[BaseException] = []
        barrier = threading.Barrier(len(contents))

        def create(content: bytes) -> None:
            barrier.wait(PATIENCE.thread_s)
            try:
                if fs.create(f"{root}/file", content):
                    created.append(content)
            except BaseException as error:  # shown by the assertion below
                failures.append(error)

        threads = [threading.Thread(target=create, args=(content,)) for content in contents]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE.thread_s)
        assert not failures
        assert [fs.read(f"{root}/file")] == created
        assert [status.path for status in fs.list(root)] == [f"{root}/file"]

    def test_upload(self, fs: FileSystem, root: str, tmp_path: Path) -> None:
        # several pieces, the last one not whole
        content = bytes(range(256)) * 10_000
        local = tmp_path / "local"
        local.write_bytes(content)
        assert fs.upload(str(local), f"{root}/file") == len(content)
        assert fs.read(f"{root}/file") == content
        local.write_bytes(b"")
        assert fs.upload(str(local), f"{root}/file", permission=0o640) == 0
        status = fs.status(f"{root}/file")
        assert status is not None and status.length_bytes == 0 and status.permission == 0o640
        assert [status.path for status in fs.list(root)] == [f"{root}/file"]

    def test_upload_of_a_missing_file(self, fs: FileSystem, root: str, tmp_path: Path) -> None:
        with pytest.raises(FileMissing, match="nothing-here"):
            fs.upload(str(tmp_path / "nothing-here"), f"{root}/file")
        assert not fs.list(root)

    def test_status(self, fs: FileSystem, root: str) -> None:
        fs.write(f"{root}/file", b"12345", permission=0o640)
        fs.make_directory(f"{root}/directory", permission=0o711)
        file, directory = fs.status(f"{root}/file"), fs.status(f"{root}/directory")
        assert file is not None and directory is not None
        assert (file.path, file.is_directory, file.length_bytes) == (f"{root}/file", False, 5)
        assert (file.permission, directory.permission) == (0o640, 0o711)
        assert directory.is_directory
        assert file.owner == directory.owner == fs.user != ""
        assert file.modified_ms > 0
        assert fs.list(root) == [directory, file]
        assert fs.status(f"{root}/missing") is None
        root_of_all = fs.status("/")
        assert root_of_all is not None and root_of_all.path == "/"

    def test_list_what_is_no_directory(self, fs: FileSystem, root: str) -> None:
        fs.write(f"{root}/file", b"")
        assert not fs.list(f"{root}/file")
        assert not fs.list(f"{root}/missing")

    def test_make_directory(self, fs: FileSystem, root: str) -> None:
        fs.make_directory(f"{root}/a/b", permission=0o755)
        fs.write(f"{root}/a/b/file", b"")
        fs.make_directory(f"{root}/a/b", permission=0o700)
        permissions = [status.permission for path in (root, f"{root}/a") for status in fs.list(path)]
        assert permissions == [0o755, 0o755]
        assert len(fs.list(f"{root}/a/b")) == 1
        with pytest.raises(StorageError, match="file"):
            fs.make_directory(f"{root}/a/b/file")

    def test_rename_never_replaces(self, fs: FileSystem, root: str) -> None:
        fs.write(f"{root}/one", b"1")
        fs.write(f"{root}/two", b"2")
        fs.make_directory(f"{root}/directory")
        assert not fs.rename(f"{root}/one", f"{root}/two")
        assert not fs.rename(f"{root}/one", f"{root}/directory")
        assert not fs.rename(f"{root}/directory", f"{root}/one")
        assert fs.rename(f"{root}/one", f"{root}/three")
        assert fs.read(f"{root}/three") == b"1" and fs.read(f"{root}/two") == b"2"
        assert not fs.list(f"{root}/directory")
        assert fs.rename(f"{root}/directory", f"{root}/moved")
        names = [status.path.rpartition("/")[2] for status in fs.list(root)]
        assert names == ["moved", "three", "two"]
        with pytest.raises(FileMissing, match="one"):
            fs.rename(f"{root}/one", f"{root}/four")

    def test_delete(self, fs: FileSystem, root: str) -> None:
        fs.make_directory(f"{root}/a/b")
        fs.write(f"{root}/a/b/file", b"")
        assert fs.delete(f"{root}/a")
        assert not fs.delete(f"{root}/a")
        assert not fs.list(root)

    def test_missing(self, fs: FileSystem, root: str) -> None:
        with pytest.raises(FileMissing, match=f"{root}/missing"):
            fs.read(f"{root}/missing")
        # a late writer must not bring back a directory that was deleted
        with pytest.raises(FileMissing):
            fs.write(f"{root}/missing/file", b"")
        with pytest.raises(FileMissing):
            fs.create(f"{root}/missing/file", b"")
        assert not fs.list(root)

    def test_a_directory_is_no_file(self, fs: FileSystem, root: str) -> None:
        fs.make_directory(f"{root}/directory")
        with pytest.raises(StorageError):
            fs.write(f"{root}/directory", b"")
        with pytest.raises(StorageError):
            fs.read(f"{root}/directory")
        assert [status.path for status in fs.list(root)] == [f"{root}/directory"]

    @pytest.mark.parametrize("name", NAMES)
    def test_names(self, fs: FileSystem, root: str, name: str) -> None:
        fs.make_directory(f"{root}/{name}")
        assert fs.create(f"{root}/{name}/{name}", name.encode())
        assert fs.read(f"{root}/{name}/{name}") == name.encode()
        assert [status.path for status in fs.list(f"{root}/{name}")] == [f"{root}/{name}/{name}"]
        assert fs.delete(f"{root}/{name}/{name}")

    def test_home(self, fs: FileSystem, root: str) -> None:
        assert fs.home().startswith("/")
        assert (fs.uri + "/x").count("://") == 1

    def test_a_held_directory(self, fs: FileSystem, root: str) -> None:
        fs.make_directory(f"{root}/it/below")
        for name in ("one", "below/two", "below/three"):
            fs.write(f"{root}/it/{name}", name.encode())
        with fs.hold(f"{root}/it") as directory:
            assert directory.names() == ["below", "one"] and directory.read("below/two") == b"below/two"
            assert sorted(directory.files()) == ["below/three", "below/two", "one"]
            assert sorted(directory.files("below")) == ["three", "two"]
            assert directory.delete("below/two") and not directory.delete("below/two")
            directory.remove(directory.files())
        assert fs.status(f"{root}/it") is None and fs.status(root) is not None

    def test_a_file_that_is_not_in_a_held_directory(self, fs: FileSystem, root: str) -> None:
        with pytest.raises(FileMissing), fs.hold(root) as directory:
            directory.read("none")

    def test_only_directories_are_held(self, fs: FileSystem, root: str) -> None:
        with pytest.raises(FileMissing):
            with fs.hold(f"{root}/none"):
                pass
        fs.write(f"{root}/file", b"")
        with pytest.raises(StorageError):
            with fs.hold(f"{root}/file"):
                pass
