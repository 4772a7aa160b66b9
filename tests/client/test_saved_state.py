"""What belongs to a savepoint, and so what may be deleted."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.client import saved
from tests.config.hadoop_directory import hadoop_environ
from yarnflow.client.saved_state import (
    check_fits,
    dispose,
    find_savepoint,
    running_job_of,
)
from yarnflow.core.checkpoint.manifest import METADATA_FILE
from yarnflow.core.files import FileSystem
from yarnflow.core.ha.ports import LatestState
from yarnflow.core.ids import JobId
from yarnflow.errors import ConfigError, InvalidOption, SavepointInvalid, SavepointNotFound, StateIncompatible
from yarnflow.fs.local import LocalFileSystem
from yarnflow.fs.saved_state import delete_savepoint, read_state, state_uri
from yarnflow.ha.stores.latest_states import FileLatestStates


def local(uri: str) -> tuple[FileSystem, str]:
    assert uri.startswith("file:///")
    return LocalFileSystem(), uri.removeprefix("file://")


def tree(path: Path) -> set[str]:
    return {str(file.relative_to(path)) for file in path.rglob("*")}


@pytest.fixture
def hadoop(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "conf").mkdir()
    return hadoop_environ(tmp_path / "conf", "hdfs://n:8020")


@pytest.mark.parametrize(
    ("text", "on_hadoop", "uri"),
    [
        ("/sp/a/", True, "hdfs://n:8020/sp/a"),
        ("sp/../a", True, "hdfs://n:8020/home/me/a"),
        ("hdfs:///sp/a", False, "hdfs://n:8020/sp/a"),
        ("hdfs:/sp/a", True, "hdfs://n:8020/sp/a"),
        ("hdfs://other:1/sp//a", True, "hdfs://other:1/sp/a"),
        ("file:///sp/a", True, "file:///sp/a"),
        ("file:/sp/a b#1", True, "file:///sp/a b#1"),
        ("hdfs:/sp/a#1?x", True, "hdfs://n:8020/sp/a#1?x"),
        ("/sp/a", False, "file:///sp/a"),
        ("a%20b", False, "file://{cwd}/a%20b"),
        ("odd:name", False, "file://{cwd}/odd:name"),
    ],
)
def test_paths_mean_the_same_everywhere(
    text: str,
    on_hadoop: bool,
    uri: str,
    hadoop: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    made = state_uri(text, hadoop, on_hadoop=on_hadoop, home=lambda: "/home/me")
    assert made == uri.format(cwd=tmp_path)


@pytest.mark.parametrize("text", ["", " ", "s3://bucket/x", "file:a", "hdfs:a"])
def test_what_cannot_be_a_path(text: str) -> None:
    with pytest.raises(InvalidOption):
        state_uri(text, {}, on_hadoop=False, home=lambda: "/")


def test_a_path_of_hdfs_is_never_taken_for_one_of_this_machine(
    tmp_path: Path
) -> None:
    hadoop = hadoop_environ(tmp_path, "file:///")
    with pytest.raises(ConfigError, match="^hdfs:///.* does not say which HDFS"):
        state_uri("hdfs:///sp/a", hadoop, on_hadoop=True, home=lambda: "/")


def test_a_state_is_named_by_its_directory_or_manifest(tmp_path: Path) -> None:
    root = saved.savepoint(tmp_path)
    for uri in (f"file://{root}", f"file://{root}/", f"file://{root}/_metadata"):
        state = read_state(local, uri)
        assert (state.uri, state.what, state.metadata.checkpoint_id) == (f"file://{root}", "savepoint", 7)


def test_what_is_no_state(tmp_path: Path) -> None:
    with pytest.raises(SavepointNotFound, match="does not exist"):
        read_state(local, f"file://{tmp_path}/none")
    with pytest.raises(SavepointNotFound, match="has no _metadata"):
        read_state(local, f"file://{tmp_path}")
    job = saved.retained(tmp_path, 3, 12)
    with pytest.raises(SavepointNotFound, match=f"name one of its checkpoints: file://{job}/chk-12"):
        read_state(local, f"file://{job}")
    (tmp_path / "_metadata").write_text("what?")
    with pytest.raises(SavepointInvalid):
        read_state(local, f"file://{tmp_path}")


def test_a_program_that_does_not_fit(tmp_path: Path) -> None:
    state = read_state(local, f"file://{saved.savepoint(tmp_path)}")
    check_fits(state, saved.PROGRAM)
    with pytest.raises(StateIncompatible, match=f"the state in {state.uri}: no query of the program"):
        check_fits(state, replace(saved.PROGRAM, queries=()))


def test_dispose_of_a_savepoint(tmp_path: Path) -> None:
    root, other = saved.savepoint(tmp_path), saved.savepoint(tmp_path, "savepoint-ababab-ba9876543210")
    # Hadoop's local file system leaves these
    (root / "query-counts" / "commits" / ".12.crc").write_bytes(b"crc")
    (root / "._metadata.crc").write_bytes(b"crc")
    assert dispose(local, read_state(local, f"file://{root}")) == [f"file://{root}"]
    assert not root.exists() and (other / "_metadata").exists()


@pytest.mark.parametrize("foreign", ["notes.txt", "query-counts/commits/13", "query-other/.x.crc"])
def test_files_of_others_are_never_deleted(foreign: str, tmp_path: Path) -> None:
    root = saved.savepoint(tmp_path)
    (root / foreign).parent.mkdir(exist_ok=True)
    (root / foreign).write_text("mine")
    before = tree(root)
    with pytest.raises(SavepointInvalid, match=foreign):
        dispose(local, read_state(local, f"file://{root}"))
    assert tree(root) == before


def test_a_directory_that_only_has_a_manifest_of_a_checkpoint(tmp_path: Path) -> None:
    job = saved.retained(tmp_path, 3)
    copied = tmp_path / "home"
    copied.mkdir()
    (copied / "_metadata").write_bytes((job / "chk-3" / "_metadata").read_bytes())
    (copied / "thesis.tex").write_text("mine")
    with pytest.raises(SavepointInvalid, match="is not called chk-3"):
        dispose(local, read_state(local, f"file://{copied}"))
    assert (copied / "_metadata").exists()


def test_the_state_goes_with_the_last_checkpoint_of_the_job(tmp_path: Path) -> None:
    job = saved.retained(tmp_path, 3, 4)
    latest = FileLatestStates(local, f"file://{tmp_path}")
    latest.write(LatestState("flights", saved.JOB, "flights", "CANCELED", f"file://{job}/chk-4", 4, 1))
    dispose(local, read_state(local, f"file://{job}/chk-3"))
    assert (job / "query-counts" / "commits" / "12").exists() and not (job / "chk-3").exists()
    assert latest.read("flights") is not None
    (job / "notes.txt").write_text("mine")
    dispose(local, read_state(local, f"file://{job}/chk-4"))
    assert tree(job) == {"notes.txt"}
    # or the next job of the key would look for it
    state = latest.read("flights")
    assert state is not None and state.path == ""


def test_a_job_goes_on_from_what_is_left_when_its_newest_checkpoint_is_disposed_of(tmp_path: Path) -> None:
    job = saved.retained(tmp_path, 3, 4)
    latest = FileLatestStates(local, f"file://{tmp_path}")
    latest.write(LatestState("flights", saved.JOB, "flights", "FAILED", f"file://{job}/chk-4", 4, 1))
    dispose(local, read_state(local, f"file://{job}/chk-4"))
    state = latest.read("flights")
    assert state is not None and (state.path, state.status) == (f"file://{job}/chk-3", "FAILED")


def test_nothing_is_left_of_a_job(tmp_path: Path) -> None:
    job = saved.retained(tmp_path, 4)
    dispose(local, read_state(local, f"file://{job}/chk-4"))
    assert not job.exists()


@pytest.mark.parametrize(
    ("status", "job_id", "live"),
    [
        ("RUNNING", saved.JOB, True),
        ("RESTARTING", saved.JOB, True),
        ("FAILED", saved.JOB, False),
        ("CANCELED", saved.JOB, False),
        ("RUNNING", JobId("cd" * 16), False),
    ],
)
def test_whose_job_runs(status: str, job_id: JobId, live: bool, tmp_path: Path) -> None:
    job = saved.retained(tmp_path, 4)
    record = LatestState("flights", job_id, "flights", status, f"file://{job}/chk-4", 4, 1)
    FileLatestStates(local, f"file://{tmp_path}").write(record)
    assert bool(running_job_of(local, read_state(local, f"file://{job}/chk-4"))) is live
    assert not running_job_of(local, read_state(local, f"file://{saved.savepoint(tmp_path)}"))


def test_a_savepoint_is_found_again(tmp_path: Path) -> None:
    saved.savepoint(tmp_path, "savepoint-ababab-000000000001", created_ms=1_000)
    newest = saved.savepoint(tmp_path, "savepoint-ababab-000000000002", created_ms=3_000)
    saved.savepoint(tmp_path, "savepoint-ababab-000000000003", created_ms=2_000)
    (tmp_path / "savepoint-ababab-000000000004").mkdir()
    parent = f"file://{tmp_path}"
    found = find_savepoint(local, parent, saved.JOB, 2_000)
    assert found is not None and found.uri == f"file://{newest}"
    assert find_savepoint(local, parent, saved.JOB, 4_000) is None
    assert find_savepoint(local, parent, JobId("ababab" + "0" * 26), 0) is None


def test_what_was_checked_is_what_is_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As soon as the manifest is gone, the path leads to another directory."""
    for parent in ("checked", "other"):
        (tmp_path / parent).mkdir()
        root = saved.savepoint(tmp_path / parent)
    (root / "thesis.tex").write_text("ten years")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "checked")
    unlink = os.unlink

    def exchange(name: str, *, dir_fd: int | None = None) -> None:
        unlink(name, dir_fd=dir_fd)
        if name.endswith(METADATA_FILE):
            unlink(link)
            link.symlink_to(tmp_path / "other")

    monkeypatch.setattr(os, "unlink", exchange)
    dispose(local, read_state(local, f"file://{link}/{root.name}"))
    assert tree(tmp_path / "checked") == set() and {"thesis.tex", METADATA_FILE} <= tree(root)


def test_a_savepoint_that_changes_after_somebody_decided_to_delete_it_stays(tmp_path: Path) -> None:
    root = saved.savepoint(tmp_path)
    state = read_state(local, f"file://{root}")
    saved.savepoint(tmp_path, created_ms=6_000)
    with pytest.raises(SavepointInvalid, match="has changed since it was looked at; nothing was deleted"):
        dispose(local, state)
    assert (root / "_metadata").exists()


def test_only_a_savepoint_is_deleted_as_one(tmp_path: Path) -> None:
    job = saved.retained(tmp_path, 3)
    with pytest.raises(SavepointInvalid, match="is a checkpoint of job"):
        delete_savepoint(local, f"file://{job}/chk-3")
    with pytest.raises(SavepointNotFound, match="does not exist"):
        delete_savepoint(local, f"file://{tmp_path}/none/_metadata")
    with pytest.raises(SavepointNotFound, match="name one of its checkpoints"):
        delete_savepoint(local, f"file://{job}")
