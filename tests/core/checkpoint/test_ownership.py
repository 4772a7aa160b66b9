"""Who could have written state, as owners and permissions say."""

from __future__ import annotations

import pytest

from yarnflow.core.checkpoint.ownership import Access, owned_by_another, writable_by_others
from yarnflow.testing.state import OwnersInMemory

ROOT = "hdfs://nn:8020/user/alice/savepoint"
STATE = "query-elements/state/0/1.zip"
TREES = {ROOT: ("_metadata", STATE)}


def owners(**changed: Access) -> OwnersInMemory:
    made = OwnersInMemory()
    made.add(ROOT, "_metadata", STATE)
    for name, access in changed.items():
        path = {"root": ROOT, "parent": "hdfs://nn:8020/user", "first": "hdfs://nn:8020/"}.get(name)
        made.found[path or next(p for p in made.found if p.endswith(f"/{name}"))] = access
    return made


def test_what_is_the_users_alone_nobody_else_could_write() -> None:
    assert writable_by_others(owners(), TREES) == ""


def test_others_may_read() -> None:
    found = owners(root=Access("alice", 0o755), _metadata=Access("alice", 0o644))
    assert writable_by_others(found, TREES) == ""


@pytest.mark.parametrize("place", ["root", "_metadata", "state"])
@pytest.mark.parametrize("mode", [0o720, 0o702, 0o1777])
def test_what_others_may_write_is_named(place: str, mode: int) -> None:
    found = writable_by_others(owners(**{place: Access("alice", mode)}), TREES)
    assert found.startswith(ROOT) and "is writable by others (rwx" in found


@pytest.mark.parametrize("place", ["root", "_metadata", "state"])
def test_what_belongs_to_another_is_named(place: str) -> None:
    found = writable_by_others(owners(**{place: Access("bob", 0o700)}), TREES)
    assert found.startswith(ROOT) and found.endswith("belongs to bob, not to alice")


def test_files_of_others_are_found_that_lie_deep() -> None:
    found = owners()
    found.found[f"{ROOT}/{STATE}"] = Access("alice", 0o660)
    assert writable_by_others(found, TREES) == f"{ROOT}/{STATE} is writable by others (rw-rw----)"


def test_directories_above_keep_others_from_exchanging_what_is_in_them() -> None:
    named = "hdfs://nn:8020/user, above it, is writable by others (rwxrwxrwx)"
    assert writable_by_others(owners(parent=Access("hdfs", 0o777)), TREES) == named
    assert writable_by_others(owners(parent=Access("hdfs", 0o1777)), TREES) == ""
    assert "hdfs://nn:8020/, above it" in writable_by_others(owners(first=Access("hdfs", 0o777)), TREES)


def test_a_file_that_is_not_there_is_nobodys() -> None:
    found = owners()
    del found.found[f"{ROOT}/{STATE}"]
    assert writable_by_others(found, TREES) == f"{ROOT}/{STATE} is missing"


def test_every_tree_counts() -> None:
    other = "hdfs://nn:8020/user/alice/job/query-elements"
    found = owners()
    found.add(other, "commits/0")
    assert writable_by_others(found, {**TREES, other: ("commits/0",)}) == ""
    found.found[other] = Access("bob", 0o700)
    assert "belongs to bob" in writable_by_others(found, {**TREES, other: ("commits/0",)})


def test_permissions_of_object_stores_mean_nothing() -> None:
    found = OwnersInMemory(name="")
    found.add(ROOT, "_metadata", STATE)
    assert writable_by_others(found, TREES) == f"permissions mean nothing in {ROOT}"


@pytest.mark.parametrize("root", ["file:/tmp/savepoint", "file:///tmp/savepoint"])
def test_local_directories_above_are_looked_at(root: str) -> None:
    found = OwnersInMemory()
    found.add(root, "_metadata")
    assert writable_by_others(found, {root: ("_metadata",)}) == ""
    found.found[root.rpartition("/")[0]] = Access("root", 0o777)
    assert "/tmp, above it, is writable" in writable_by_others(found, {root: ("_metadata",)})


def test_where_only_the_clusters_jobs_write_the_owner_alone_counts() -> None:
    wide = owners(root=Access("alice", 0o775), _metadata=Access("alice", 0o664))
    assert owned_by_another(wide, TREES) == ""
    assert owned_by_another(OwnersInMemory(name=""), TREES) == ""


@pytest.mark.parametrize("place", ["root", "_metadata", "state"])
def test_where_only_the_clusters_jobs_write_what_belongs_to_another_is_named(place: str) -> None:
    found = owned_by_another(owners(**{place: Access("bob", 0o700)}), TREES)
    assert found.startswith(ROOT) and found.endswith("belongs to bob, not to alice")
