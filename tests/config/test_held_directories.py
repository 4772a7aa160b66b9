"""What is deleted when others exchange parts of a path meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from yarnflow.config.held_directories import delete_tree, hold
from yarnflow.errors import StorageDenied, StorageError


def tree(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*")}


@pytest.fixture
def places(tmp_path: Path) -> Path:
    """``link`` leads to ``mine``; ``theirs`` has a directory of the same name."""
    for parent in ("mine", "theirs"):
        (tmp_path / parent / "it" / "below").mkdir(parents=True)
        (tmp_path / parent / "it" / "below" / "file").write_text(parent)
    (tmp_path / "link").symlink_to("mine")
    return tmp_path


def lead_elsewhere(places: Path) -> None:
    (places / "link").unlink()
    (places / "link").symlink_to("theirs")


def test_everything_goes_by_what_was_held(places: Path) -> None:
    with hold(f"{places}/link/it") as directory:
        lead_elsewhere(places)
        assert directory.read("below/file") == b"mine"
        assert directory.names() == ["below"] and directory.files("below") == ["file"]
        directory.remove(directory.files())
    assert tree(places) == {"link", "mine", "theirs", "theirs/it", "theirs/it/below", "theirs/it/below/file"}


def test_one_entry_goes(places: Path) -> None:
    with hold(f"{places}/link/it") as directory:
        lead_elsewhere(places)
        assert directory.delete("below/file") and not directory.delete("below/file")
        assert directory.delete("below") and not directory.delete("below/file")
    assert tree(places / "mine") == {"it"}
    assert (places / "theirs" / "it" / "below" / "file").exists()


def test_a_whole_tree_goes(places: Path) -> None:
    (places / "mine" / "it" / "out").symlink_to(places / "theirs")
    assert delete_tree(f"{places}/link/it") and not delete_tree(f"{places}/link/it")
    assert not delete_tree(f"{places}/nowhere/it")
    assert not delete_tree(f"{places}/theirs/it/below/file/it")
    assert (places / "theirs" / "it" / "below" / "file").exists()
    assert delete_tree(f"{places}/link") and tree(places / "mine") == set(), "a link itself goes"


def test_links_within_are_not_followed(places: Path) -> None:
    (places / "mine" / "it" / "out").symlink_to(places / "theirs" / "it")
    with hold(f"{places}/mine/it") as directory:
        assert directory.files() == ["below/file", "out"]
        with pytest.raises(OSError):
            directory.read("out/below/file")
        with pytest.raises(OSError):
            directory.delete("out/below/file")
        assert directory.delete("out")
    assert (places / "theirs" / "it" / "below" / "file").exists()


def test_a_directory_that_is_a_link_is_not_held(places: Path) -> None:
    with pytest.raises(StorageDenied, match="link is a link; name the directory to which it leads"):
        with hold(f"{places}/link"):
            pass


def test_what_has_come_meanwhile_stays(places: Path) -> None:
    with hold(f"{places}/mine/it") as directory:
        files = directory.files()
        (places / "mine" / "it" / "new").write_text("of somebody else")
        with pytest.raises(StorageError, match="it/new has come while"):
            directory.remove(files)
    assert (places / "mine" / "it" / "new").exists()


def test_a_directory_in_its_place_stays(places: Path) -> None:
    with hold(f"{places}/mine/it") as directory:
        (places / "mine" / "it").rename(places / "mine" / "moved")
        (places / "mine" / "it").mkdir()
        with pytest.raises(StorageError, match="it was exchanged for another directory"):
            directory.remove(directory.files())
    assert (places / "mine" / "it").exists()


def test_a_link_where_everybody_may_put_one_is_not_followed(places: Path) -> None:
    places.chmod(0o777)
    with pytest.raises(StorageDenied, match="link on the way is a link that others can exchange"):
        with hold(f"{places}/link/it"):
            pass
    # as /tmp is
    places.chmod(0o1777)
    with hold(f"{places}/link/it") as directory:
        assert directory.files()


def test_a_path_of_ones_own_choice_may_lead_through_any_link(places: Path) -> None:
    places.chmod(0o777)
    assert delete_tree(f"{places}/link/it")
    assert not delete_tree(f"{places}/link/it")


def test_what_others_delete_meanwhile_is_no_reason_to_leave_the_rest(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (places / "mine" / "it" / "new").write_text("x")
    unlink = os.unlink

    def gone_before(name: str, *, dir_fd: int) -> None:
        unlink(name, dir_fd=dir_fd)
        raise FileNotFoundError(name)

    monkeypatch.setattr(os, "unlink", gone_before)
    assert delete_tree(f"{places}/mine/it")
    assert not (places / "mine" / "it").exists()


def test_links_that_lead_to_each_other_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        delete_tree(f"{tmp_path}/a/it")


def test_a_link_to_a_path_from_the_root_and_upwards(places: Path) -> None:
    (places / "theirs" / "far").symlink_to(places / "mine")
    (places / "theirs" / "up").symlink_to("../mine/it")
    assert delete_tree(f"{places}/theirs/up/below")
    assert delete_tree(f"{places}/theirs/far/it")
    assert tree(places / "mine") == set()


@pytest.mark.parametrize("path", ["a/b", "", "/", "/tmp/..", "/tmp/."])
def test_what_names_nothing_that_could_go(path: str) -> None:
    with pytest.raises(StorageError, match="is not the absolute path"):
        delete_tree(path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "it").mkdir()
    os.mkfifo(tmp_path / "it" / "_metadata")
    with hold(f"{tmp_path}/it") as directory, pytest.raises(StorageError, match="_metadata is not a file"):
        directory.read("_metadata")


def test_directories_in_each_other_without_end_are_an_error(tmp_path: Path) -> None:
    deep = tmp_path / "it" / "/".join(["d"] * 60)
    deep.mkdir(parents=True)
    with hold(f"{tmp_path}/it") as directory:
        with pytest.raises(StorageError, match="in more than 50 others"):
            directory.files()
        with pytest.raises(StorageError, match="in more than 50 others"):
            directory.remove(())


def test_nothing_stays_open(places: Path) -> None:
    before = os.listdir("/proc/self/fd")
    for path in (f"{places}/link/it", f"{places}/none/it", f"{places}/mine/it/below/file"):
        for name in ("below/file", "out/of", "none"):
            with suppressed(), hold(path) as directory:
                directory.files(name)
    with suppressed():
        delete_tree(f"{places}/mine/it/below/file/x")
    assert len(os.listdir("/proc/self/fd")) == len(before)


@contextmanager
def suppressed() -> Iterator[None]:
    try:
        yield
    except OSError:
        pass
