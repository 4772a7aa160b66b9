from __future__ import annotations

from dataclasses import replace

import pytest

from tests.client.diagnose.tool_fakes import DEPLOYMENT, application, ended, no_answer, yarn_with
from yarnflow.client.environment.cache import CLOCK_MARGIN_MS, cache_entries, clean_cache
from yarnflow.core.yarn import Application
from yarnflow.errors import YarnUnavailable
from yarnflow.staging.layout import DEPLOYMENT_FILE, StagingLayout
from yarnflow.testing.file_system import MemoryFileSystem
from yarnflow.testing.runtime import ManualClock

LAYOUT = StagingLayout("/user/ann/.yarnflow")
DAY_MS = 24 * 60 * 60 * 1000
OLD, NEW = "a" * 64, "b" * 64


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(0)


@pytest.fixture
def fs(clock: ManualClock) -> MemoryFileSystem:
    """A cache with a file of day 1 and one of day 50; it is day 60."""
    files = MemoryFileSystem(clock)
    for day, digest, name in ((1, OLD, "old.tar.gz"), (50, NEW, "new.tar.gz")):
        clock.set_to(day * DAY_MS)
        files.make_directory(f"{LAYOUT.cache}/{digest}")
        files.write(f"{LAYOUT.cache}/{digest}/{name}", b"x" * day)
    clock.set_to(60 * DAY_MS)
    return files


def clean(
    fs: MemoryFileSystem, *applications: Application, days: int = 0, dry_run: bool = False
) -> list[str]:
    """Names of what was deleted."""
    before = {entry.name for entry in cache_entries(fs, LAYOUT)}
    decisions = clean_cache(
        fs,
        LAYOUT,
        yarn_with(*applications),
        "ann",
        older_than_ms=days * DAY_MS,
        now_ms=60 * DAY_MS,
        dry_run=dry_run,
    )
    deleted = sorted(decision.entry.name for decision in decisions if not decision.kept_because)
    left = {entry.name for entry in cache_entries(fs, LAYOUT)}
    assert left == (before if dry_run else before - set(deleted))
    return deleted


def deploy(fs: MemoryFileSystem) -> None:
    fs.make_directory(LAYOUT.application(DEPLOYMENT))
    fs.write(f"{LAYOUT.application(DEPLOYMENT)}/{DEPLOYMENT_FILE}", b"{}")


def test_newest_first_with_what_people_want_to_know(fs: MemoryFileSystem) -> None:
    entries = cache_entries(fs, LAYOUT)
    assert [(entry.name, entry.size_bytes, entry.uploaded_ms // DAY_MS) for entry in entries] == [
        ("new.tar.gz", 50, 50),
        ("old.tar.gz", 1, 1),
    ]
    assert entries[0].uri == f"{fs.uri}{LAYOUT.cache}/{NEW}/new.tar.gz"
    assert cache_entries(MemoryFileSystem(), LAYOUT) == []


def test_only_what_is_old_enough(fs: MemoryFileSystem) -> None:
    assert clean(fs, days=30, dry_run=True) == ["old.tar.gz"]
    assert clean(fs, days=30) == ["old.tar.gz"]
    assert clean(fs) == ["new.tar.gz"]


def test_what_a_living_application_may_need_stays(fs: MemoryFileSystem) -> None:
    # started between the two uploads
    living = application(started_ms=10 * DAY_MS)
    assert clean(fs, living, dry_run=True) == ["new.tar.gz"]
    assert clean(fs, replace(living, started_ms=50 * DAY_MS - CLOCK_MARGIN_MS), dry_run=True) == []
    assert clean(fs, ended(living), dry_run=True) == ["new.tar.gz", "old.tar.gz"]
    assert clean(fs, replace(living, user="bob")) == ["new.tar.gz", "old.tar.gz"]


def test_what_a_job_brought_to_a_living_session_stays(fs: MemoryFileSystem) -> None:
    session = application(mode="yarn-session", started_ms=10 * DAY_MS)
    assert clean(fs, session, dry_run=True) == []
    assert clean(fs, ended(session)) == ["new.tar.gz", "old.tar.gz"]


def test_a_submit_that_is_under_way_keeps_everything(fs: MemoryFileSystem, clock: ManualClock) -> None:
    deploy(fs)
    assert clean(fs) == []
    # but not one that died long ago
    fs.delete(LAYOUT.application(DEPLOYMENT))
    clock.set_to(59 * DAY_MS)
    deploy(fs)
    assert clean(fs) == ["new.tar.gz", "old.tar.gz"]


def test_nothing_is_deleted_blindly(fs: MemoryFileSystem) -> None:
    cluster = yarn_with()
    cluster.error = no_answer()
    with pytest.raises(YarnUnavailable):
        clean_cache(fs, LAYOUT, cluster, "ann", older_than_ms=0, now_ms=60 * DAY_MS)
    assert len(cache_entries(fs, LAYOUT)) == 2


def test_a_content_with_two_names_stays_with_the_younger(fs: MemoryFileSystem, clock: ManualClock) -> None:
    clock.set_to(55 * DAY_MS)
    fs.write(f"{LAYOUT.cache}/{OLD}/same.tar.gz", b"x")
    assert clean(fs, days=30) == ["old.tar.gz"]
    assert {entry.name for entry in cache_entries(fs, LAYOUT)} == {"same.tar.gz", "new.tar.gz"}
