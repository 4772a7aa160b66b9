"""For which programs a clock ticks while no elements come."""

from __future__ import annotations

from typing import Any

from tests.operators.task.test_planner import environment, identity, numbers, planned
from yarnflow.api.datastream import KeyedProcessFunction


def test_a_clock_ticks_only_for_operators_with_processing_timers() -> None:
    class Silence(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
            ctx.timer_service().register_processing_time_timer(7)

        def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
            yield timestamp

    def named_after_a_timer(first: int, ProcessingTime: int) -> int:  # noqa: N803
        return first

    env = environment()
    numbers(env).key_by(identity).reduce(named_after_a_timer).print()
    _, plan = planned(env)
    assert not plan.needs_ticks
    numbers(env).key_by(identity).process(Silence()).print()
    _, plan = planned(env)
    assert plan.needs_ticks
