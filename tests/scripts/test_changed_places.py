"""Which integration tests belong to a change."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from scripts.lib.changed_places import PLACES, places_of, room_of
from tests.architecture_rules import ALLOWED, ROOMS
from tests.package_modules import ROOT

INTEGRATION = ROOT / "integration"


def test_every_room_has_integration_tests() -> None:
    """A room below another one may leave it to that one, a package may not."""
    assert sorted(set(ALLOWED) - set(PLACES)) == []
    assert sorted(set(PLACES) - set(ALLOWED) - set(ROOMS)) == [], "not a room of the package any more"
    assert [room for room, places in PLACES.items() if not places] == []


def test_every_place_is_there() -> None:
    missing = {place for places in PLACES.values() for place in places if not (INTEGRATION / place).exists()}
    assert missing == set()


def test_every_integration_test_belongs_to_a_room() -> None:
    places = [Path(place) for places in PLACES.values() for place in places]
    files = [file.relative_to(INTEGRATION) for file in INTEGRATION.rglob("test_*.py")]
    alone = [file for file in files if not any(place == file or place in file.parents for place in places)]
    # Hadoop's own clients and the harness for it
    assert alone == []


def test_nearest_room_above_counts() -> None:
    assert room_of(PurePosixPath("yarnflow/operators/windows/operator/aligned.py")) == "operators"
    assert room_of(PurePosixPath("yarnflow/spark/connectors/kafka/producer.py")) == "spark.connectors.kafka"
    assert room_of(PurePosixPath("yarnflow/__init__.py")) == ""


@pytest.mark.parametrize(
    "files, places",
    [
        (["docs/testing.md", "tests/core/job/test_job.py", "integration/conftest.py"], []),
        (["yarnflow/spark/connectors/redis/store.py"], ["integration/spark/test_redis_sink.py"]),
        (["yarnflow/rest/history/server.py", "integration/test_history.py"],
         ["integration/rest/test_dashboard_over_history.py", "integration/test_history.py"]),
        # a module beside tests may be used by all of them
        (["integration/spark/data_sources.py", "yarnflow/spark/connectors/redis/store.py"],
         ["integration/spark"]),
        (["integration/bench/chain.py"], []),
        (["scripts/lib/hadoop/ports.py"], ["integration/yarn/test_hadoop.py"]),
    ],
)  # fmt: skip
def test_places_of_changed_files(files: list[str], places: list[str]) -> None:
    assert places_of(files) == places
