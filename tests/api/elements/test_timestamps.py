"""Strategies of timestamps and watermarks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.api.conftest import Jobs
from tests.api.elements.programs import WORDS, definition, one, words
from yarnflow.api import RateSource
from yarnflow.api.common import Duration, WatermarkStrategy
from yarnflow.api.common.watermark_strategy import TimestampAssigner
from yarnflow.graph.operators import ElementKind


def test_timestamps_of_elements(jobs: Jobs) -> None:
    class Second(TimestampAssigner):
        def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
            return int(value[1])

    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(2))
    idle = strategy.with_timestamp_assigner(Second()).with_idleness(Duration.of_minutes(1))
    words(jobs).assign_timestamps_and_watermarks(idle).print()
    node = one(jobs.graph(), ElementKind.TIMESTAMPS)
    found = definition(node)
    assert (found.out_of_orderness_ms, found.idle_after_ms) == (2_000, 60_000)
    assert node.output_schema.element_type == WORDS
    assert found.assigner.extract_timestamp(("a", 5), -1) == 5


@pytest.mark.parametrize("assigner", [lambda word: word[1], lambda word, before: word[1] + before + 1])
def test_plain_functions_tell_the_time(jobs: Jobs, assigner: Callable[..., int]) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(assigner)
    words(jobs).assign_timestamps_and_watermarks(strategy).print()
    assert definition(one(jobs.graph(), ElementKind.TIMESTAMPS)).assigner(("a", 5), -1) == 5


def test_elements_may_keep_their_times(jobs: Jobs) -> None:
    words(jobs).assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps()).print()
    assert definition(one(jobs.graph(), ElementKind.TIMESTAMPS)).assigner is None


def test_sources_take_strategies_without_a_time(jobs: Jobs) -> None:
    jobs.env.from_source(RateSource(1), WatermarkStrategy.for_monotonous_timestamps(), "rate").print()
    assert [n.name for n in jobs.graph().nodes] == ["Source: rate", "Sink: Print to Std. Out"]
