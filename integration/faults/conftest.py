"""Servers of a test's own, to be killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from integration.kafka import KafkaBroker


@pytest.fixture
def own_kafka(tmp_path: Path) -> Iterator[KafkaBroker]:
    """A broker that no other test needs."""
    # its client is needed by these tests alone
    from integration.kafka import KafkaBroker

    broker = KafkaBroker.start(tmp_path / "broker")
    yield broker
    broker.stop()
