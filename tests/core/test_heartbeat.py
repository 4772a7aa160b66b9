"""Silence and failed calls."""

from __future__ import annotations

from yarnflow.core.heartbeat import HeartbeatMonitor


def test_silence_for_the_time_out_is_a_loss() -> None:
    monitor = HeartbeatMonitor(timeout_ms=50).monitor("a", 0).monitor("b", 20)
    assert monitor.expired(49) == ()
    assert monitor.expired(50) == ("a",)
    monitor = monitor.received("a", 40)
    assert monitor.expired(70) == ("b",)
    assert monitor.unmonitor("b").unmonitor("b").expired(89) == ()


def test_those_that_are_not_monitored_are_ignored() -> None:
    monitor = HeartbeatMonitor(timeout_ms=50)
    assert monitor.received("a", 1) == monitor
    assert monitor.rpc_failed("a") == (monitor, False)


def test_failed_calls_in_a_row_are_a_loss_once() -> None:
    monitor = HeartbeatMonitor(timeout_ms=50, rpc_failure_threshold=2).monitor("a", 0)
    monitor, lost = monitor.rpc_failed("a")
    assert not lost
    monitor = monitor.received("a", 5)
    outcomes = []
    for _ in range(3):
        monitor, lost = monitor.rpc_failed("a")
        outcomes.append(lost)
    assert outcomes == [False, True, False]


def test_without_threshold_failed_calls_are_never_enough() -> None:
    monitor = HeartbeatMonitor(timeout_ms=50, rpc_failure_threshold=-1).monitor("a", 0)
    for _ in range(5):
        monitor, lost = monitor.rpc_failed("a")
        assert not lost


def test_a_sign_of_life_that_came_late_does_not_turn_time_back() -> None:
    monitor = HeartbeatMonitor(timeout_ms=50).monitor("a", 30).received("a", 10)
    assert (monitor.expired(79), monitor.expired(80)) == ((), ("a",))


def test_who_could_not_be_heard_has_all_its_time_again() -> None:
    monitor = HeartbeatMonitor(timeout_ms=50).monitor("a", 0).monitor("b", 20).restarted(100)
    assert (monitor.expired(149), monitor.expired(150)) == ((), ("a", "b"))
