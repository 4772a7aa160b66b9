"""Which file manager a query that starts is given, without Spark."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.spark.checkpoints.local_files import LocalFiles
from yarnflow.errors import StorageError
from yarnflow.spark.checkpoints.file_manager import FILE_MANAGER, LOCAL_FILE_MANAGER, file_manager

#: far above what the test takes
LIMIT_S = 20


class FakeConf(dict[str, str]):
    def set(self, key: str, value: str) -> None:
        self[key] = value

    def unset(self, key: str) -> None:
        del self[key]


class FakeSession:
    def __init__(self, **conf: str) -> None:
        self.conf = FakeConf(conf)


class Files(LocalFiles):
    """Some paths are of other file systems."""

    def __init__(self, hadoop: str | None = None) -> None:
        super().__init__()
        self._hadoop = hadoop

    def qualified(self, path: str) -> str:
        if path.startswith("nosuch:"):
            raise StorageError(f"no file system for {path}")
        return path if ":" in path else f"file:{path}"

    def setting(self, key: str) -> str | None:
        return self._hadoop if key == FILE_MANAGER else None


def chosen(session: Any, files: Files, *places: str) -> str | None:
    """What a query that starts would find."""
    with file_manager(session, files, *places):
        found: str | None = session.conf.get(FILE_MANAGER)
    return found


@pytest.mark.parametrize("places", [("/c",), ("file:/c",), ("file:///c", "/out")])
def test_local_files_are_written_without_a_look_for_links(places: tuple[str, ...]) -> None:
    session = FakeSession()
    assert chosen(session, Files(), *places) == LOCAL_FILE_MANAGER
    assert session.conf == {}, "the next query may be of another file system"


@pytest.mark.parametrize(
    "places",
    [
        (),
        ("hdfs://nn/c",),
        ("s3a://bucket/c",),
        ("viewfs://c/c",),
        ("file:/c", "hdfs://nn/out"),
        ("hdfs://nn/c", "file:/out"),
        ("file:/c", "nosuch:table"),
    ],
)
def test_other_file_systems_keep_theirs(places: tuple[str, ...]) -> None:
    session = FakeSession()
    assert chosen(session, Files(), *places) is None
    assert session.conf == {}


def test_what_the_user_set_stays() -> None:
    session = FakeSession(**{FILE_MANAGER: "theirs"})
    assert chosen(session, Files(), "/c") == "theirs"
    assert session.conf == {FILE_MANAGER: "theirs"}
    assert chosen(FakeSession(), Files(hadoop="theirs"), "/c") is None


def test_it_is_put_back_when_the_start_fails() -> None:
    session: Any = FakeSession()
    with pytest.raises(ValueError, match="no such source"), file_manager(session, Files(), "/c"):
        raise ValueError("no such source")
    assert session.conf == {}


def test_a_query_that_starts_meanwhile_does_not_see_it() -> None:
    session: Any = FakeSession()
    inside, seen = threading.Event(), []

    def start_another() -> None:
        inside.wait(LIMIT_S)
        seen.append(chosen(session, Files(), "hdfs://nn/c"))

    other = threading.Thread(target=start_another)
    other.start()
    with file_manager(session, Files(), "/c"):
        inside.set()
        # it comes through here only if nothing holds it back
        other.join(0.2)
        assert seen == []
    other.join()
    assert seen == [None]


def test_a_listener_may_start_a_query_while_one_starts() -> None:
    session: Any = FakeSession()
    with file_manager(session, Files(), "/c"):
        assert chosen(session, Files(), "/d") == LOCAL_FILE_MANAGER
        assert session.conf == {FILE_MANAGER: LOCAL_FILE_MANAGER}
    assert session.conf == {}
