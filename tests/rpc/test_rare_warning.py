"""What happens over and over is warned of now and then."""

from __future__ import annotations

import logging

import pytest

from yarnflow.rpc.rare_warning import QUIET_S, RareWarning


def test_a_warning_is_written_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    now_s = 100.0
    kind, other = (RareWarning(logging.getLogger("peers"), lambda: now_s) for _ in range(2))
    for after_s in (0.0, 1.0, QUIET_S - 2.0, 1.0, 0.0):
        now_s += after_s
        kind.warn("%s sends nonsense, at %d", "10.0.0.1", now_s)
    other.warn("it is another kind")
    assert [record.getMessage() for record in caplog.records] == [
        "10.0.0.1 sends nonsense, at 100",
        f"10.0.0.1 sends nonsense, at {100 + QUIET_S:.0f}",
        "it is another kind",
    ]
    assert {record.filename for record in caplog.records} == {"test_rare_warning.py"}
