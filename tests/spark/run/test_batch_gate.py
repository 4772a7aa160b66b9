"""The gate before each micro-batch."""

from __future__ import annotations

import threading
import time

import pytest

from tests.patience import PATIENCE
from yarnflow.spark.run.batch_gate import BatchGate, GateClosed


def entering(gate: BatchGate, batch_id: int) -> tuple[threading.Thread, list[str]]:
    results: list[str] = []

    def enter() -> None:
        try:
            gate.enter(batch_id)
            results.append("in")
        except GateClosed:
            results.append("refused")

    thread = threading.Thread(target=enter, daemon=True)
    thread.start()
    return thread, results


def test_batches_pass_an_open_gate() -> None:
    gate = BatchGate()
    assert gate.entered == -1
    gate.enter(0)
    gate.enter(1)
    assert gate.entered == 1


def test_a_batch_that_an_earlier_attempt_began_passes_a_closed_gate() -> None:
    """What it has written of the batch already must be committed before the query ends."""
    gate = BatchGate()
    gate.begun(4)
    assert gate.close() == 4
    gate.enter(4)
    with pytest.raises(GateClosed):
        gate.enter(5)


def test_a_closed_gate_refuses_the_next_batch_and_says_which_is_inside() -> None:
    gate = BatchGate()
    gate.enter(4)
    assert gate.close() == 4
    with pytest.raises(GateClosed):
        gate.enter(5)
    assert gate.entered == 4
    gate.open()
    gate.enter(5)
    assert gate.entered == 5


def test_a_gate_closed_before_the_first_batch_refuses_any() -> None:
    gate = BatchGate()
    assert gate.close() == -1
    with pytest.raises(GateClosed):
        gate.enter(17)


def test_a_gate_that_lets_one_more_in() -> None:
    gate = BatchGate()
    gate.close(3)
    gate.enter(3)
    with pytest.raises(GateClosed):
        gate.enter(4)


def test_a_held_batch_waits_and_its_wait_is_measured() -> None:
    gate = BatchGate()
    gate.hold_above(1)
    gate.enter(1)
    thread, results = entering(gate, 2)
    while gate._waiting_since is None:
        thread.join(0.001)
    began = time.monotonic()
    thread.join(0.2)
    assert not results
    waited_ms = int((time.monotonic() - began) * 1000)
    assert gate.release() >= waited_ms > 0
    thread.join(PATIENCE.thread_s)
    assert results == ["in"]
    gate.hold_above(5)
    assert gate.release() == 0, "nobody waited this time"


def test_closing_ends_the_wait_of_a_held_batch() -> None:
    gate = BatchGate()
    gate.enter(1)
    gate.hold_above(1)
    thread, results = entering(gate, 2)
    thread.join(0.05)
    gate.close()
    thread.join(PATIENCE.thread_s)
    assert results == ["refused"]
